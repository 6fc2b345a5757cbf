"""Interpret the answers of webhooks. Unlike the API, they may pass on any answer of the workflow."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from airflow_provider_service.client import errors
from airflow_provider_service.client._http import answers
from airflow_provider_service.client._http.redaction import MIN_CHARS, HiddenText, secrets_in
from airflow_provider_service.client._texts import type_of
from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.client.models._webhooks import WebhookAnswer

if TYPE_CHECKING:
    from airflow_provider_service.client._http.exchange import Answer

_DENIED_STATUSES = frozenset({401, 403, 500})
_NO_CREDENTIAL = "No authentication data defined on node!"
# The service's own wording, which a workflow is unlikely to use.
_DENIALS = frozenset(
    {
        "Authorization data is wrong!",
        "Authorization is required!",
        "Authentication data is wrong!",
        "IP is not allowed to access the webhook!",
        _NO_CREDENTIAL,
    }
)
# A library's messages about a token. A workflow that checks a token itself may send them too, and then it has run.
_TOKEN_DENIAL = re.compile(
    r"No token provided|(jwt|invalid|secretOrPublicKey|secret or public key|iat|maxAge) [^\n]{1,300}|error:[^\n]{1,300}"
)
_BAD_FORMS = frozenset(
    {
        (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The submitted form data exceeds the allowed size."),
        (HTTPStatus.BAD_REQUEST, "The submitted form data could not be parsed."),
    }
)
_DENIAL_HEADER = 'Basic realm="Webhook"'
_UNAVAILABLE_STATUSES = frozenset({429, 502, 503, 504})
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"([\x21-\x7e\xa1-\xff]([\t\x20-\x7e\xa0-\xff]*[\x21-\x7e\xa1-\xff])?)?")


def checked_headers(headers: Mapping[str, Any], argument: str = "headers") -> dict[str, str]:
    """Refuse headers that cannot be sent, without showing their values, and keep these out of later tracebacks.

    :param argument: name of the caller's argument.
    :raises ServiceInputError: the headers are not a mapping, or a name or value is not text or contains characters that
        HTTP does not allow.
    """
    if not isinstance(headers, Mapping):
        raise ServiceInputError(f"{argument} must be a mapping, not {type_of(headers)}; nothing was started")
    for name, value in headers.items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise ServiceInputError(f"{name!r} cannot be the name of a header; nothing was started")
        if not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
            raise ServiceInputError(
                f"the value of header {name!r} must be text without line breaks and outer blanks; nothing was started"
            )
    return {name: HiddenText(value) for name, value in headers.items()}


def is_refusal(error: errors.ServiceApiError) -> bool:
    """Whether a failed call certainly ran nothing. A workflow itself may answer with any status, even 429 or 503."""
    if isinstance(error, (errors.ServiceWebhookNotLiveError, errors.ServiceWebhookRefusedError)):
        return True
    return error.status is None and error.not_processed


def read_answer(response: Answer, method: str, path: str, sent: Mapping[str, str]) -> WebhookAnswer:
    """Distinguish an answer of the workflow from a refusal of the service, after which nothing ran.

    :param sent: headers of the call, whose values an error does not show.
    :raises ServiceWebhookNotLiveError: the webhook does not exist or is not live yet.
    :raises ServiceWebhookRefusedError: wrong authentication, method or body.
    :raises ServiceWebhookUncertainError: a proxy or the workflow answered that the service is not available.
    """
    try:
        body = response.json()
    except ValueError:
        body = response.text
    failure = _failure(response, body, method, path)
    if failure is None:
        return WebhookAnswer(response.status_code, body)
    kind, reason, hint = failure
    secrets = [one for value in sent.values() for one in secrets_in(value) if len(one) >= MIN_CHARS]
    # The longest first, because one secret can be part of another.
    facts = answers.facts_of(response, *sorted(secrets, key=len, reverse=True))
    raise kind(reason, method=method, path=path, hint=hint, retry_after=answers.retry_after(response), **facts)


def _failure(
    response: Answer, body: Any, method: str, path: str
) -> tuple[type[errors.ServiceApiError], str, str | None] | None:
    # The service's complete texts are compared: a workflow that answers in similar words has run, and so has one that
    # passes on what another server has answered.
    status = response.status_code
    if method == "HEAD" and status >= HTTPStatus.BAD_REQUEST:
        reason = "the webhook refused the call or is not live, or its workflow sent this status"
        return errors.ServiceWebhookUncertainError, reason, "Answers to HEAD have no body that would show which"
    text = body if isinstance(body, str) else ""
    is_page = "html" in response.headers.get("Content-Type", "")
    coded = body if isinstance(body, dict) and "code" in body else {}
    message = str(coded.get("message", ""))
    if status == HTTPStatus.NOT_FOUND and message.startswith("This webhook is not registered for "):
        # While a webhook is going live, the service may suggest the very method that it refuses.
        if not re.search(rf"\b{method}\b", message.partition("Did you mean")[2]):
            return errors.ServiceWebhookRefusedError, f"the webhook does not take {method}", None
        return errors.ServiceWebhookNotLiveError, "the webhook is not live yet", None
    if status == HTTPStatus.NOT_FOUND and message == _not_registered(method, path):
        hint = "Its workflow is inactive, or has been activated only just now"
        return errors.ServiceWebhookNotLiveError, "the webhook is not live", hint
    if status == HTTPStatus.NOT_FOUND and is_page and _is_page_of(path, method, text):
        return (
            errors.ServiceWebhookNotLiveError,
            "there is no webhook at this address",
            "The service may still be starting",
        )
    if message == _NO_CREDENTIAL or _is_denial(response, text):
        hint = "Its credentials come from webhook_conn_id or webhook_headers, not from the API key"
        return errors.ServiceWebhookRefusedError, "the webhook's own authentication refused the call", hint
    if status == HTTPStatus.UNPROCESSABLE_ENTITY and message == "Failed to parse request body":
        return errors.ServiceWebhookRefusedError, "the webhook refused the body", None
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE and (is_page or text == "Payload Too Large"):
        return errors.ServiceWebhookRefusedError, "the body is larger than the server accepts", None
    if (status, message) in _BAD_FORMS:
        return errors.ServiceWebhookRefusedError, "the webhook refused the files and fields", None
    if status in _UNAVAILABLE_STATUSES:
        return errors.ServiceWebhookUncertainError, "the service is not available now, or its workflow says so", None
    return None


def _not_registered(method: str, path: str) -> str:
    return f'The requested webhook "{method} {unquote(path).removeprefix("/webhook/").strip("/")}" is not registered.'


def _is_page_of(path: str, method: str, text: str) -> bool:
    """Whether a page says that there is nothing at this address, which a proxy may have extended."""
    named = re.search(rf"Cannot {method} (/[^<\n]*)", text)
    return named is not None and unquote(html.unescape(named[1])).strip().endswith(unquote(path))


def _is_denial(response: Answer, text: str) -> bool:
    """Whether the webhook's node refused the call. Unlike a workflow, it does not state a content type."""
    if response.status_code not in _DENIED_STATUSES or not text:
        return False
    is_typed = "Content-Type" in response.headers
    by_node = response.headers.get("WWW-Authenticate") == _DENIAL_HEADER
    if by_node and not is_typed:
        return True
    return (by_node or not is_typed) and (text in _DENIALS or _TOKEN_DENIAL.fullmatch(text) is not None)
