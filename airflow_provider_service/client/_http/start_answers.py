"""Interpret what answers a start: a webhook, or the MCP endpoint. Did nothing run, or may the workflow have run?

Unlike the API, a webhook may pass on any answer of the workflow. The MCP endpoint answers in JSON-RPC, usually in an
event stream.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from airflow_provider_service.client import errors
from airflow_provider_service.client._http import answers
from airflow_provider_service.client._http.exchange import Answer, Call, Failure
from airflow_provider_service.client._http.redaction import MIN_CHARS, HiddenText, masked, secrets_in
from airflow_provider_service.client._models import WebhookAnswer
from airflow_provider_service.client._values import dict_or_empty, list_or_empty, one_line, type_of

_NO_CREDENTIAL = "No authentication data defined on node!"
# The service's own wording, which a workflow is unlikely to use.
_DENIALS = (
    "Authorization data is wrong!",
    "Authorization is required!",
    "Authentication data is wrong!",
    "IP is not allowed to access the webhook!",
    _NO_CREDENTIAL,
)
# A library's messages about a token. A workflow that checks a token itself may send them too, and then it has run.
_TOKEN_DENIAL = re.compile(
    r"No token provided|(jwt|invalid|secretOrPublicKey|secret or public key|iat|maxAge) [^\n]{1,300}|error:[^\n]{1,300}"
)
_BAD_FORMS = (
    (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The submitted form data exceeds the allowed size."),
    (HTTPStatus.BAD_REQUEST, "The submitted form data could not be parsed."),
)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"([\x21-\x7e\xa1-\xff]([\t\x20-\x7e\xa0-\xff]*[\x21-\x7e\xa1-\xff])?)?")


def checked_headers(headers: Mapping[str, Any], argument: str = "headers") -> dict[str, str]:
    """Refuse headers that cannot be sent, without showing their values, and keep these out of later tracebacks."""
    if not isinstance(headers, Mapping):
        raise errors.ServiceInputError(f"{argument} must be a mapping, not {type_of(headers)}; nothing was started")
    for name, value in headers.items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise errors.ServiceInputError(f"{name!r} cannot be the name of a header; nothing was started")
        if not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
            raise errors.ServiceInputError(
                f"the value of header {name!r} must be text without line breaks and outer blanks; nothing was started"
            )
    return {name: HiddenText(value) for name, value in headers.items()}


def is_refusal(error: errors.ServiceApiError) -> bool:
    """Whether a failed call certainly ran nothing. A workflow itself may answer with any status, even 429 or 503."""
    if isinstance(error, (errors.ServiceWebhookNotLiveError, errors.ServiceWebhookRefusedError)):
        return True
    return error.status is None and error.not_processed


def read_answer(response: Answer, call: Call, sent: Mapping[str, str]) -> WebhookAnswer:
    """Distinguish an answer of the workflow from a refusal of the service, after which nothing ran."""
    try:
        body = response.json()
    except ValueError:
        body = response.text
    failure = _webhook_failure(response, body, call.method, call.path)
    if failure is None:
        return WebhookAnswer(response.status_code, body)
    secrets = [secret for value in sent.values() for secret in secrets_in(value) if len(secret) >= MIN_CHARS]
    # The longest first, because one secret can be part of another.
    facts = answers.facts_of(response, *sorted(secrets, key=len, reverse=True))
    raise call.error(failure, retry_after=answers.retry_after(response), **facts)


def _webhook_failure(response: Answer, body: Any, method: str, path: str) -> Failure | None:
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
    name = unquote(path).removeprefix("/webhook/").strip("/")
    if status == HTTPStatus.NOT_FOUND and message == f'The requested webhook "{method} {name}" is not registered.':
        hint = "Its workflow is inactive, or has been activated only just now"
        return errors.ServiceWebhookNotLiveError, "the webhook is not live", hint
    if status == HTTPStatus.NOT_FOUND and is_page and _is_page_of(path, method, text):
        hint = "The service may still be starting"
        return errors.ServiceWebhookNotLiveError, "there is no webhook at this address", hint
    if message == _NO_CREDENTIAL or _is_denial(response, text):
        hint = "Its credentials come from webhook_conn_id or webhook_headers, not from the API key"
        return errors.ServiceWebhookRefusedError, "the webhook's own authentication refused the call", hint
    if status == HTTPStatus.UNPROCESSABLE_ENTITY and message == "Failed to parse request body":
        return errors.ServiceWebhookRefusedError, "the webhook refused the body", None
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE and (is_page or text == "Payload Too Large"):
        return errors.ServiceWebhookRefusedError, "the body is larger than the server accepts", None
    if (status, message) in _BAD_FORMS:
        return errors.ServiceWebhookRefusedError, "the webhook refused the files and fields", None
    if status in (429, 502, 503, 504):
        return errors.ServiceWebhookUncertainError, "the service is not available now, or its workflow says so", None
    return None


def _is_page_of(path: str, method: str, text: str) -> bool:
    """Whether a page says that there is nothing at this address, which a proxy may have extended."""
    named = re.search(rf"Cannot {method} (/[^<\n]*)", text)
    return named is not None and unquote(html.unescape(named[1])).strip().endswith(unquote(path))


def _is_denial(response: Answer, text: str) -> bool:
    """Whether the webhook's node refused the call. Unlike a workflow, it does not state a content type."""
    if response.status_code not in (401, 403, 500) or not text:
        return False
    is_typed = "Content-Type" in response.headers
    by_node = response.headers.get("WWW-Authenticate") == 'Basic realm="Webhook"'
    if by_node and not is_typed:
        return True
    return (by_node or not is_typed) and (text in _DENIALS or _TOKEN_DENIAL.fullmatch(text) is not None)


# The MCP endpoint

# The id of the only request that a call sends.
REQUEST_ID = 1
CREATE_KEY = "a user of the service creates it there under Settings, Instance-level MCP"

_UNKNOWN_METHOD = -32601
_REFUSED_REQUESTS = (-32600, -32602, -32700)
_FAILED: Failure = (
    errors.ServiceServerError,
    "the service failed to start the workflow, or started it and failed to report that",
    None,
)
# The endpoint validates the answer of the tool after the tool has run.
_ANSWER_REFUSED = re.compile(r"(MCP error -32602: )?(Output validation error|Tool \S+ has an output schema)")
# What the service says if it refuses a call before it starts anything. Any other message may come from a start that
# failed halfway.
_REFUSALS: tuple[tuple[str, type[errors.ServiceApiError], str, str | None], ...] = (
    (
        r"Workflow not found",
        errors.ServiceNotFoundError,
        "the workflow does not exist, or the user of the MCP key may not run it",
        None,
    ),
    (
        r"Workflow is not available ",
        errors.ServiceMcpRefusedError,
        "the workflow may not be started through MCP",
        "Set the workflow's setting 'availableInMCP' to true",
    ),
    (r"Workflow '.*' is archived", errors.ServiceMcpRefusedError, "the workflow is archived", None),
    (
        r"Workflow '.*' has no published \(active\) version",
        errors.ServiceNotPublishedError,
        "the workflow has no published version yet",
        "Is it active? Only its draft can run otherwise (mode 'manual')",
    ),
    (
        r"(MCP error -32602: )?Input validation error.*Invalid discriminator value",
        errors.ServiceNotOfferedError,
        "the server's MCP endpoint is an older one, which expects other inputs",
        "A newer n8n has the endpoint that is needed",
    ),
    (
        r"(MCP error -32602: )?Input validation error|Trigger node \".*\" (requires inputs|does not accept inputs)",
        errors.ServiceInvalidRequestError,
        "the inputs are not what the trigger takes",
        None,
    ),
    (
        r"Trigger node \".*\" (was not found|is disabled|cannot be used|is not supported)"
        r"|This workflow has (multiple triggers|no trigger)|Provide triggerNodeName",
        errors.ServiceMcpRefusedError,
        "the trigger cannot be started through MCP",
        None,
    ),
)


def read_result(response: Answer, call: Call, secret: str) -> dict[str, Any]:
    """Return the answer of the tool that starts workflows: an object with an ``executionId``."""
    _check_status(response, call, secret)
    message = _message(response)
    output = dict_or_empty(dict_or_empty(message.get("result")).get("structuredContent"))
    if isinstance(output.get("executionId"), str) and output["executionId"]:
        return output
    text = _words(message, output)
    facts = {**answers.facts_of(response, secret), "server_message": one_line(masked(text, secret)) or None}
    raise call.error(_mcp_failure(message, text), **facts)


def _check_status(response: Answer, call: Call, secret: str) -> None:
    facts = answers.facts_of(response, secret)
    status, message = facts["status"], facts["server_message"]
    kind: type[errors.ServiceApiError]
    if status == HTTPStatus.UNAUTHORIZED:
        kind, reason = errors.ServiceUnauthorizedError, "the MCP key was refused"
        hint = f"Check the connection's extra 'mcp_api_key', which is not the API key: {CREATE_KEY}"
    elif status in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN) and message == "MCP access is disabled":
        kind, reason = errors.ServiceNotOfferedError, "MCP access is switched off on this server"
        hint = "An owner or admin switches it on in the service under Settings, Instance-level MCP"
    elif status == HTTPStatus.NOT_FOUND and "html" in response.content_type:
        kind, reason = errors.ServiceStartingError, "answered by a page: the service is still starting, or has no MCP"
        hint = (
            "If this lasts longer than a minute, check host and path prefix of the connection, and the version of n8n"
        )
    else:
        answers.decode(response, call, secret=secret, binary=True)
        return
    raise call.error((kind, reason, hint), **facts)


def is_answer(data: bytes) -> bool:
    """Whether an event is the answer to our request: others announce progress."""
    return b'"id"' in data and bool(_message(Answer(HTTPStatus.OK, {}, data)))  # parsing countless events takes long


def _message(response: Answer) -> dict[str, Any]:
    """The answer to our request, or an empty dict."""
    try:
        message = response.json()
    except ValueError:
        return {}
    return message if isinstance(message, dict) and message.get("id") == REQUEST_ID else {}


def _words(message: dict[str, Any], output: dict[str, Any]) -> str:
    """The service's message about a failure of the tool or of the protocol."""
    error, result = message.get("error"), message.get("result")
    if isinstance(error, dict):
        return str(error.get("message", ""))
    if output or not isinstance(result, dict):
        return str(output.get("error", ""))
    texts = [part.get("text") for part in list_or_empty(result.get("content")) if isinstance(part, dict)]
    return " ".join(text for text in texts if isinstance(text, str))


def _mcp_failure(message: dict[str, Any], text: str) -> Failure:
    code = dict_or_empty(message.get("error")).get("code")
    if _ANSWER_REFUSED.match(text):
        return _FAILED
    if code == _UNKNOWN_METHOD or text.startswith("Tool execute_workflow "):
        return errors.ServiceNotOfferedError, "the server's MCP endpoint does not run workflows", None
    for words, kind, reason, hint in _REFUSALS:
        if re.match(words, text, re.DOTALL):
            return kind, reason, hint
    if code in _REFUSED_REQUESTS:
        return errors.ServiceInvalidRequestError, "the MCP endpoint refused the request", None
    if not message:
        return errors.ServiceUnexpectedResponseError, "the answer of the MCP endpoint cannot be read", None
    return _FAILED
