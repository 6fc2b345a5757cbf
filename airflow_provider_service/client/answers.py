"""What an answer of the server means: a value, or the one exception that names the failure."""

from __future__ import annotations

import email.utils
import re
import ssl
import time
from http import HTTPStatus
from typing import Any

import requests
from urllib3.exceptions import ClosedPoolError, NewConnectionError, ProxyError

from airflow_provider_service.client import errors
from airflow_provider_service.client.config import ServiceConfig
from airflow_provider_service.client.scopes import describe_scope

MAX_MESSAGE_CHARS = 500

# The other side ended a TLS connection, which says nothing of whether it had read a request.
_TLS_ENDED = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)

# There was nothing that a request could have been sent on.
_NO_CONNECTION = (ClosedPoolError, NewConnectionError, ProxyError)

_BY_STATUS: dict[int, tuple[type[errors.ServiceApiError], str]] = {
    400: (errors.ServiceInvalidRequestError, "the request was refused"),
    404: (errors.ServiceNotFoundError, "not found, or not visible to this key"),
    405: (errors.ServiceNotOfferedError, "this server does not offer the operation"),
    409: (errors.ServiceConflictError, "the state of the object does not allow it"),
    413: (errors.ServicePayloadTooLargeError, "the body is larger than the server accepts"),
    429: (errors.ServiceRateLimitedError, "too many requests"),
    502: (errors.ServiceUnavailableError, "the service is not available now"),
    503: (errors.ServiceUnavailableError, "the service is not available now"),
    504: (errors.ServiceUnavailableError, "the service did not answer its proxy in time"),
}


def decode(response: requests.Response, method: str, path: str, *, scope: str | None, secret: str, binary: bool) -> Any:
    """Return the value of an answer.

    :raises ServiceApiError: the answer is an error, or is not JSON where JSON is due.
    """
    if response.status_code >= HTTPStatus.BAD_REQUEST:
        raise _failure(response, method, path, scope, secret)
    if binary:
        return response.content
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError:
        raise _no_json(response, method, path, message_of(response, secret)) from None


def _no_json(response: requests.Response, method: str, path: str, message: str | None) -> errors.ServiceApiError:
    status = response.status_code
    if message and "is starting up" in message:  # an older server says so with a 200
        return errors.ServiceStartingError(
            "the service is still starting", method=method, path=path, status=status, server_message=message
        )
    return errors.ServiceUnexpectedResponseError(
        f"the answer is {_content_type(response) or 'of no stated type'}, not JSON",
        method=method,
        path=path,
        status=status,
        server_message=message,
        hint="Check that the connection's host is the address of the service's API",
    )


def failure_to_answer(
    error: requests.RequestException, method: str, path: str, config: ServiceConfig
) -> errors.ServiceApiError:
    """Name the failure of an exchange that ended without an answer."""
    if isinstance(error, requests.ConnectTimeout):
        return errors.ServiceUnreachableError(
            f"no connection to {config.base_url} within {config.connect_timeout:g} s", method=method, path=path
        )
    if isinstance(error, requests.Timeout):
        return errors.ServiceTimeoutError("no answer within the timeout", method=method, path=path)
    if isinstance(error, requests.exceptions.SSLError) and not isinstance(_innermost(error), _TLS_ENDED):
        return errors.ServiceTlsError(
            f"TLS failed with {config.base_url}: {_root_cause(error)}",
            method=method,
            path=path,
            hint="Check the scheme of the host and the extra 'verify'",
        )
    if isinstance(error, requests.ConnectionError) and not _was_sent(error):
        return errors.ServiceUnreachableError(
            f"{config.base_url} is not reachable: {_root_cause(error)}", method=method, path=path
        )
    if isinstance(error, (requests.ConnectionError, requests.exceptions.ChunkedEncodingError)):
        return errors.ServiceConnectionLostError(
            f"the connection broke before the whole answer came: {_root_cause(error)}", method=method, path=path
        )
    return errors.ServiceUnexpectedResponseError(
        f"the answer can not be read: {type(error).__name__}", method=method, path=path
    )


def _was_sent(error: requests.ConnectionError) -> bool:
    cause = error.args[0] if error.args else None
    return not isinstance(getattr(cause, "reason", cause), _NO_CONNECTION)


def _root_cause(error: BaseException) -> str:
    """The innermost message, without the URL and object reprs that wrap it."""
    cause = _innermost(error)
    return re.sub(r"<[^>]*>:?\s*|HTTPS?Connection(Pool)?\([^)]*\):\s*", "", str(cause)) or type(cause).__name__


def _innermost(error: BaseException) -> BaseException:
    inner: object = getattr(error, "reason", None)
    if not isinstance(inner, BaseException):
        inner = next((argument for argument in reversed(error.args) if isinstance(argument, BaseException)), None)
    return _innermost(inner) if isinstance(inner, BaseException) else error


def _failure(
    response: requests.Response, method: str, path: str, scope: str | None, secret: str
) -> errors.ServiceApiError:
    status, message = response.status_code, message_of(response, secret)
    kind, reason, hint = _meaning(response, message, scope)
    return kind(
        reason,
        method=method,
        path=path,
        status=status,
        server_message=message,
        hint=hint,
        retry_after=retry_after(response),
    )


def _meaning(
    response: requests.Response, message: str | None, scope: str | None
) -> tuple[type[errors.ServiceApiError], str, str | None]:
    status = response.status_code
    if status == HTTPStatus.NOT_FOUND and not _is_json(response):
        return (
            errors.ServiceStartingError,
            "answered by a page instead of the API: the service is still starting, or this is not its address",
            "Check host, path prefix and api_version of the connection if this lasts longer than a minute",
        )
    if status == HTTPStatus.NOT_FOUND and message == "not found":
        return (
            errors.ServiceNotOfferedError,
            "this server does not offer the operation",
            "It may be of an older version",
        )
    if status == HTTPStatus.BAD_REQUEST and (message or "").startswith("Unknown query parameter"):
        # Also where an older server takes the last part of a path that it lacks for an id.
        return (
            errors.ServiceNotOfferedError,
            "this server does not offer the operation with this parameter",
            "It may be of an older version",
        )
    if status == HTTPStatus.UNAUTHORIZED and "not licensed" in (message or ""):  # so an older server says
        return _meaning_of_forbidden(message or "", scope)
    if status == HTTPStatus.UNAUTHORIZED:
        return (
            errors.ServiceUnauthorizedError,
            "the key was refused",
            "It may be mistyped, expired or deleted, or sent in the wrong header: see the connection's "
            "password and its extra 'api_key_header' (n8n expects X-N8N-API-KEY)",
        )
    if status == HTTPStatus.FORBIDDEN and _body(response).get("reason") == "insufficient_api_key_scope":
        return (
            errors.ServiceMissingScopeError,
            f"the change was saved as a draft, but the key lacks the scope {describe_scope('workflow:activate')} "
            "to put it live",
            "Give the key that scope, or update with publish_if_active=False",
        )
    if status == HTTPStatus.FORBIDDEN:
        return _meaning_of_forbidden(message or "", scope)
    if status in _BY_STATUS:
        return (*_BY_STATUS[status], None)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return errors.ServiceServerError, "the server failed on this request", "A malformed argument can be the cause"
    return errors.ServiceInvalidRequestError, "the request was refused", None


def _meaning_of_forbidden(message: str, scope: str | None) -> tuple[type[errors.ServiceApiError], str, str | None]:
    if "license" in message.lower() or "not available on your plan" in message:
        return errors.ServiceNotLicensedError, "the server's plan does not include this", None
    if message == "Forbidden" and scope:
        return (
            errors.ServiceMissingScopeError,
            f"the key lacks the scope {describe_scope(scope)}",
            "Give the key that scope, or its user a role that holds it",
        )
    return errors.ServiceForbiddenError, "not allowed for this key", None


def message_of(response: requests.Response, secret: str | None = None) -> str | None:
    """The server's own words, on one line, without the key and not too long."""
    text = _raw_message(response, secret)
    text = re.sub(r"\s+", " ", re.sub(r"[^\x20-\x7e\xa0-\uffff]", " ", text)).strip()
    return text[:MAX_MESSAGE_CHARS] or None


def _raw_message(response: requests.Response, secret: str | None) -> str:
    message = _body(response).get("message")
    if isinstance(message, str):
        return masked(message, secret)
    # Masked before it is cut, lest a part of the key stay.
    text = masked(response.text, secret)[: MAX_MESSAGE_CHARS * 8]
    return re.sub(r"<[^>]*>", " ", text) if "html" in _content_type(response) else text


def masked(text: str, secret: str | None) -> str:
    """The text without the key."""
    return text.replace(secret, "***") if secret else text


def _body(response: requests.Response) -> dict[str, Any]:
    try:
        body = response.json() if _is_json(response) else None
    except ValueError:
        body = None
    return body if isinstance(body, dict) else {}


def _is_json(response: requests.Response) -> bool:
    return "json" in _content_type(response)


def _content_type(response: requests.Response) -> str:
    return str(response.headers.get("Content-Type", "")).partition(";")[0].strip().lower()


def retry_after(response: requests.Response) -> float | None:
    """Seconds the server asks to wait, or None."""
    value = response.headers.get("Retry-After", "").strip()
    if value.isdecimal():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None
