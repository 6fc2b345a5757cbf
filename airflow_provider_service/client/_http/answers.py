"""Interpret an answer of the server: as a value, or as the exception that names the failure."""

from __future__ import annotations

import email.utils
import html
import json
import re
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from airflow_provider_service.client import errors
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._http.redaction import masked, redacted
from airflow_provider_service.client._values import dict_or_empty, one_line

if TYPE_CHECKING:
    from airflow_provider_service.client._http.exchange import Answer, Call, Failure

# The message is at the beginning of an error page.
MESSAGE_BYTES = 4 * 1024
#: An error keeps a JSON body up to this size as a value.
KEPT_BYTES = 64 * 1024
_PRIVATE_HEADERS = frozenset({"set-cookie", "set-cookie2"})
_HEAD_OF_PAGE = re.compile(r"<head\b.*?</head>", re.IGNORECASE | re.DOTALL)
_NO_TEXT = re.compile(r"<(script|style)\b.*?</\1>|<!--.*?-->", re.IGNORECASE | re.DOTALL)
_END_OF_LINE = re.compile(r"<(br|hr|/?(p|div|pre|h\d|title|center|li|tr|body|html))\b[^<>]*>", re.IGNORECASE)
_UNKNOWN_PARAMETER = re.compile(r"Unknown query parameter(?: '(\w+)')?")
_WEBHOOK_TAKEN = "There is a conflict with one of the webhooks."
# What PostgreSQL, SQLite and their drivers say when they fail.
_DATABASE_FAILED = re.compile(
    r"\bECONN|terminating connection|connection terminated|driver not connected|trying to connect|too many clients"
    r"|database system is|database is locked|(statement|read) timeout",
    re.IGNORECASE,
)
IF_TLS = "If the port speaks TLS, the connection's host must begin with https://"
_STACK_TRACE = re.compile(r"\n[ \t]*at .*", re.DOTALL)

_BY_STATUS: dict[int, tuple[type[errors.ServiceApiError], str]] = {
    400: (errors.ServiceInvalidRequestError, "the request was refused"),
    404: (errors.ServiceNotFoundError, "not found, or not visible to this key"),
    409: (errors.ServiceConflictError, "the state of the object does not allow it"),
    413: (errors.ServicePayloadTooLargeError, "the body is larger than the server accepts"),
    429: (errors.ServiceRateLimitedError, "too many requests"),
    502: (errors.ServiceUnavailableError, "the service is not available now"),
    503: (errors.ServiceUnavailableError, "the service is not available now"),
    504: (errors.ServiceUnavailableError, "the service did not answer its proxy in time"),
}


def decode(response: Answer, call: Call, *, secret: str, binary: bool) -> Any:
    if response.status_code >= HTTPStatus.BAD_REQUEST:
        facts = facts_of(response, secret)
        failure = _meaning(response, facts["server_message"] or "", call)
        raise call.error(failure, retry_after=retry_after(response), **facts)
    if not HTTPStatus.OK <= response.status_code < HTTPStatus.MULTIPLE_CHOICES:
        neither = (errors.ServiceUnexpectedResponseError, "the answer is neither a success nor an error", None)
        raise call.error(neither, **facts_of(response, secret))
    if binary:
        return response.content
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError as error:
        facts = facts_of(response, secret)
        failure = _meaning_of_no_json(response, facts["server_message"] or "", error)
    raise call.error(failure, **facts)


def _meaning_of_no_json(response: Answer, message: str, error: ValueError) -> Failure:
    if "is starting up" in message:  # an older server answers this with status 200
        return errors.ServiceStartingError, "the service is still starting", None
    # If it is JSON that Python cannot represent, a repeat would bring the same.
    if _is_json(response) and isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)):
        return (
            errors.ServiceUnreadableResponseError,
            "the answer claims to be JSON but cannot be read: it was cut off, or changed on its way",
            "If this persists, look for a proxy that changes answers",
        )
    return (
        errors.ServiceUnexpectedResponseError,
        f"the answer is {response.content_type or 'of an unknown type'}, not JSON",
        "Check that the connection's host is the address of the service's API",
    )


def _meaning(response: Answer, message: str, call: Call) -> Failure:
    status = response.status_code
    if status == HTTPStatus.NOT_FOUND and not _is_json(response):
        return (
            errors.ServiceStartingError,
            "answered by a page instead of the API: the service is still starting, or this is not its address",
            "Check host, path prefix and api_version of the connection if this lasts longer than a minute",
        )
    # A server that lacks an operation does not know its path, or knows only other methods of the path.
    if (status == HTTPStatus.NOT_FOUND and message == "not found") or status == HTTPStatus.METHOD_NOT_ALLOWED:
        return errors.ServiceNotOfferedError, "this server does not offer the operation", _offered_from(call)
    # An older server answers with these until it has noticed that its database failed: 401 if it looked the key up.
    refused = status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED)
    if refused and _is_json(response) and _DATABASE_FAILED.search(message):
        return errors.ServiceUnavailableError, "the service's database failed", None
    if status == HTTPStatus.BAD_REQUEST and message == _WEBHOOK_TAKEN:  # an older server answers with this status
        return (*_BY_STATUS[HTTPStatus.CONFLICT], None)
    unknown = _UNKNOWN_PARAMETER.match(message)
    if status == HTTPStatus.BAD_REQUEST and unknown:
        # An older server also answers this when it takes the last part of an unknown path for an id.
        return (
            errors.ServiceNotOfferedError,
            "this server does not offer the operation with this parameter",
            _offered_from(call, unknown[1]),
        )
    if status == HTTPStatus.UNAUTHORIZED and "not licensed" in message:  # the wording of an older server
        return _meaning_of_forbidden(message, call.scope)
    if status == HTTPStatus.UNAUTHORIZED:
        return (
            errors.ServiceUnauthorizedError,
            "the key was refused",
            "The key may be mistyped, expired or deleted, or sent in the wrong header: see the connection's "
            "password, and its type, which is 'n8n' for n8n (or its extra 'key_header': n8n expects X-N8N-API-KEY)",
        )
    if status == HTTPStatus.FORBIDDEN and _body(response).get("reason") == "insufficient_api_key_scope":
        return (
            errors.ServiceMissingScopeError,
            f"the change was saved as a draft, but the key lacks the scope {describe_scope('workflow:activate')} "
            "to put it live",
            "Give the key that scope, or update with publish_if_active=False",
        )
    if status == HTTPStatus.FORBIDDEN:
        return _meaning_of_forbidden(message, call.scope)
    if status in _BY_STATUS:
        is_tls = status == HTTPStatus.BAD_REQUEST and not _is_json(response) and "HTTPS" in response.text
        return (*_BY_STATUS[status], IF_TLS if is_tls else None)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        hint = _FAULTS.get(f"{call.method} {call.operation}", "The service's log says why")
        return errors.ServiceServerError, "the server failed on this request", hint
    return errors.ServiceInvalidRequestError, "the request was refused", None


def _offered_from(call: Call, parameter: str | None = None) -> str:
    version = since(call.method, call.operation, parameter) or since(call.method, call.operation)
    return f"n8n offers it from {version} on" if version else "The server may be an older version"


def _meaning_of_forbidden(message: str, scope: str | None) -> Failure:
    if "license" in message.lower() or "not available on your plan" in message:
        return errors.ServiceNotLicensedError, "the server's plan does not include this", None
    if message == "Forbidden" and scope:
        return (
            errors.ServiceMissingScopeError,
            f"the key lacks the scope {describe_scope(scope)}",
            "Give the key that scope, or its user a role that holds it",
        )
    return errors.ServiceForbiddenError, "not allowed for this key", None


def facts_of(response: Answer, *secrets: str) -> dict[str, Any]:
    """What an error keeps of the answer, without secrets. The server's message is on one line, without stack trace."""
    headers = {name.lower(): masked(value, *secrets) for name, value in response.headers.items()}
    # Masked before it is truncated; an ending that may be a part of a secret is left out.
    beginning = masked(response.beginning(MESSAGE_BYTES), *secrets)
    if len(response.content) > MESSAGE_BYTES:
        beginning = beginning[: -max(map(len, secrets), default=1)]
    body: Any = beginning or None
    if _is_json(response) and len(response.content) <= KEPT_BYTES:
        with suppress(ValueError):
            body = redacted(response.json(), {}, doubtful={"": secrets})
    message = _body(response).get("message")
    if isinstance(message, str):
        message = masked(message, *secrets)[:MESSAGE_BYTES]
    else:
        message = _first_line(beginning) if "html" in response.content_type else beginning
    return {
        "status": response.status_code,
        "server_message": one_line(_STACK_TRACE.sub("", message)) or None,
        "headers": {name: value for name, value in headers.items() if name not in _PRIVATE_HEADERS},
        "body": body,
    }


def _first_line(page: str) -> str:
    """The first line of a page that is not empty, or the page's title if there is no such line."""
    page = _NO_TEXT.sub(" ", page)
    for part in (_HEAD_OF_PAGE.sub(" ", page), page):
        text = html.unescape(re.sub(r"<[^<>]*>", " ", _END_OF_LINE.sub("\n", part)))
        if text.strip():
            return text.strip().partition("\n")[0]
    return ""


def _body(response: Answer) -> dict[str, Any]:
    try:
        body = response.json() if _is_json(response) else None
    except ValueError:
        body = None
    return dict_or_empty(body)


def _is_json(response: Answer) -> bool:
    return "json" in response.content_type


def retry_after(response: Answer) -> float | None:
    """Seconds that the server asks to wait, or None."""
    value = response.headers.get("Retry-After", "").strip()
    if value.isdecimal():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - clock().now())
    except (TypeError, ValueError, OverflowError):
        return None


# The scopes of the specification.
_ACTIONS = {
    "communityPackage": "install list uninstall update",
    "credential": "create read list update delete move",
    "dataTable": "create read list update delete",
    "dataTableColumn": "create read update delete",
    "dataTableRow": "create read update delete upsert",
    "execution": "read list retry stop delete",
    "executionTags": "list update",
    "folder": "create read list update delete",
    "insights": "read",
    "project": "create list update delete",
    "securityAudit": "generate",
    "sourceControl": "pull",
    "tag": "create read list update delete",
    "user": "create read list changeRole enforceMfa delete",
    "variable": "create list update delete",
    "workflow": "create read list update delete move activate",
    "workflowTags": "list update",
}

SPECIFIED_SCOPES = frozenset(
    f"{resource}:{action}" for resource, actions in _ACTIONS.items() for action in actions.split()
)
# Operations for which the server requires a different scope from the one in the specification.
_SPECIFIED_AS = {"workflow:deactivate": "workflow:activate", "project:manageMembers": "project:update"}


def describe_scope(scope: str) -> str:
    """Name the scope, or the scopes joined by commas, that an operation needs, as the specification does."""
    described = []
    for name in scope.split(","):
        remark = ""
        if name in _SPECIFIED_AS:
            remark = f" (the specification names '{_SPECIFIED_AS[name]}')"
        elif name not in SPECIFIED_SCOPES:
            remark = " (a scope of the server that the specification does not list)"
        described.append(f"'{name}'{remark}")
    return " and ".join(described)


# What n8n fails at with status 500, for a reason that its answer does not tell, with a version in which it was seen.
_FAULTS = {
    "POST /data-tables": "n8n 2.41 answers this if two columns have the same name, in capital or small letters",
    "POST /executions/{}/stop": "n8n 2.30 answers this if the execution has ended",
}


# What each version of n8n added, according to its published contracts.
_ADDED = {
    "2.3": {"/credentials/{}": "PATCH"},
    "2.7": {
        "/data-tables": "GET POST",
        "/data-tables/{}": "GET PATCH DELETE",
        "/data-tables/{}/rows": "GET POST",
        "/data-tables/{}/rows/update": "PATCH",
        "/data-tables/{}/rows/upsert": "POST",
        "/data-tables/{}/rows/delete": "DELETE",
    },
    "2.8": {"/credentials": "GET", "/projects/{}/users": "GET"},
    "2.10": {"/executions/{}/stop": "POST", "/executions/stop": "POST", "/executions/{}/tags": "GET PUT"},
    "2.14": {"/discover": "GET"},
    "2.15": {"/workflows/{}/archive": "POST", "/workflows/{}/unarchive": "POST"},
    "2.16": {
        "/community-packages": "GET POST",
        "/community-packages/{}": "PATCH DELETE",
        "/executions?redactExecutionData": "GET",
        "/executions/{}?redactExecutionData": "GET",
    },
    "2.17": {"/insights/summary": "GET", "/users?offset": "GET"},
    "2.20": {
        "/credentials/{}": "GET",
        "/credentials/{}/test": "POST",
        "/data-tables/{}/columns": "GET POST",
        "/data-tables/{}/columns/{}": "PATCH DELETE",
        "/projects/{}/folders": "GET POST",
        "/projects/{}/folders/{}": "GET PATCH DELETE",
    },
    "2.30": {
        "/data-tables/{}/rows/clear": "DELETE",
        "/executions?ignoreDataSizeLimit": "GET",
        "/executions/{}?ignoreDataSizeLimit": "GET",
    },
    "2.33": {"/workflows/{}/publish": "POST", "/workflows/{}/unpublish": "POST", "/workflows/{}/history": "GET"},
    "2.35": {"/workflows/{}?publishIfActive": "PUT"},
    "2.36": {"/workflows?offset": "GET"},
    "2.37": {"/executions?startedAfter": "GET", "/executions?startedBefore": "GET"},
    "2.39": {"/source-control/status": "GET", "/source-control/push": "POST", "/workflows/{}/versions/{}": "GET"},
}
_SINCE = {
    f"{method} {path}": version
    for version, paths in _ADDED.items()
    for path, methods in paths.items()
    for method in methods.split()
}


def since(method: str, path: str, parameter: str | None = None) -> str | None:
    """The version that added an operation, or a parameter of its query; None if n8n 1.123 has it, or none is known."""
    return _SINCE.get(f"{method} {path}" + (f"?{parameter}" if parameter else ""))
