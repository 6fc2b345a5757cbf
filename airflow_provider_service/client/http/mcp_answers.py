"""Interpret the answers of the MCP endpoint: JSON-RPC inside of an event stream."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from airflow_provider_service.client import errors
from airflow_provider_service.client.http import answers
from airflow_provider_service.client.http.redaction import masked

if TYPE_CHECKING:
    from airflow_provider_service.client.http.exchange import Answer

# The id of the only request that a call sends.
REQUEST_ID = 1
MAKE_KEY = "an owner or admin makes it in the service under Settings, Instance-level MCP"

_END_OF_EVENT = re.compile(r"(?:\r\n|\r|\n){2,}")
_DATA_LINE = re.compile(r"^data:[ ]?(.*)$", re.MULTILINE)
_INVALID_REQUEST, _UNKNOWN_METHOD, _INVALID_ARGUMENTS, _NOT_JSON = -32600, -32601, -32602, -32700

_Failure = tuple[type[errors.ServiceApiError], str, str | None]
# The service's own words. All of these precede the start; any other text may come from a start that failed halfway.
_REFUSALS: tuple[tuple[re.Pattern[str], _Failure], ...] = (
    (
        re.compile(r"Workflow not found or you don't have permission"),
        (errors.ServiceNotFoundError, "the workflow does not exist, or the user of the MCP key may not run it", None),
    ),
    (
        re.compile(r"Workflow is not available in MCP"),
        (
            errors.ServiceMcpRefusedError,
            "the workflow may not be started through MCP",
            "Set the workflow's setting 'availableInMCP' to true",
        ),
    ),
    (
        re.compile(r"Workflow '.*' is archived"),
        (errors.ServiceMcpRefusedError, "the workflow is archived", None),
    ),
    (
        re.compile(r"Workflow '.*' has no published \(active\) version"),
        (
            errors.ServiceNotPublishedError,
            "the workflow has no published version yet",
            "Is it active? Only its draft can run otherwise (mode 'manual')",
        ),
    ),
    (
        re.compile(r"Trigger node \".*\" (requires inputs|does not accept inputs)|Input validation error", re.DOTALL),
        (errors.ServiceInvalidRequestError, "the inputs are not what the trigger takes", None),
    ),
    (
        re.compile(
            r"Trigger node \".*\" (was not found|is disabled|cannot be used|is not supported)"
            r"|This workflow has (multiple triggers|no trigger)|Provide triggerNodeName",
            re.DOTALL,
        ),
        (errors.ServiceMcpRefusedError, "the trigger cannot be started through MCP", None),
    ),
)


def read_result(response: Answer, path: str, secret: str) -> dict[str, Any]:
    """Return what a tool answered.

    :raises ServiceApiError: it is a refusal or a failure; ``not_processed`` is True if nothing can have run.
    """
    _check_status(response, path, secret)
    message = _message(response)
    result = message.get("result")
    content = result.get("structuredContent") if isinstance(result, dict) else None
    if isinstance(result, dict) and isinstance(content, dict) and content.get("status") == "started":
        return content
    text = _words(message)
    kind, reason, hint = _failure(message, text)
    shown = errors.one_line(masked(text, secret)) or None
    raise kind(reason, method="POST", path=path, status=response.status_code, server_message=shown, hint=hint)


def _check_status(response: Answer, path: str, secret: str) -> None:
    status, message = response.status_code, answers.message_of(response, secret)
    if status == HTTPStatus.UNAUTHORIZED:
        kind: type[errors.ServiceApiError] = errors.ServiceUnauthorizedError
        reason, hint = "the MCP key was refused", f"Check the connection's extra 'mcp_api_key': {MAKE_KEY}"
    elif status == HTTPStatus.NOT_FOUND and "MCP access is disabled" in (message or ""):
        kind, reason = errors.ServiceNotOfferedError, "MCP access is switched off on this server"
        hint = "An owner or admin switches it on in the service under Settings, Instance-level MCP"
    else:
        answers.decode(response, "POST", path, scope=None, secret=secret, binary=True)
        return
    raise kind(reason, method="POST", path=path, status=status, server_message=message, hint=hint)


def _message(response: Answer) -> dict[str, Any]:
    """The answer to our request: the body itself, or an event of the stream."""
    texts = [response.content]
    if response.content_type == "text/event-stream":
        events = _END_OF_EVENT.split(response.text)
        texts = ["\n".join(_DATA_LINE.findall(event)).encode() for event in events]
    for text in texts:
        try:
            message = response.with_content(text).json()
        except ValueError:
            continue
        if isinstance(message, dict) and message.get("id") == REQUEST_ID:
            return message
    return {}


def _words(message: dict[str, Any]) -> str:
    """The service's own words for a failure."""
    error, result = message.get("error"), message.get("result")
    if isinstance(error, dict):
        return str(error.get("message", ""))
    if not isinstance(result, dict):
        return ""
    content = result.get("structuredContent")
    if isinstance(content, dict):
        return str(content.get("error", ""))
    parts = result.get("content")
    texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return " ".join(text for text in texts if isinstance(text, str))


def _failure(message: dict[str, Any], text: str) -> _Failure:
    error = message.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    if code == _UNKNOWN_METHOD or "Tool execute_workflow not found" in text or "Tool execute_workflow disabled" in text:
        return errors.ServiceNotOfferedError, "the MCP endpoint does not offer to run workflows", None
    if code in (_INVALID_REQUEST, _INVALID_ARGUMENTS, _NOT_JSON):
        return errors.ServiceInvalidRequestError, "the MCP endpoint refused the request", None
    for words, failure in _REFUSALS:
        if words.match(text.removeprefix("MCP error -32602: ")):
            return failure
    if not message:
        return errors.ServiceUnexpectedResponseError, "the answer of the MCP endpoint cannot be read", None
    return errors.ServiceServerError, "the service failed to start the workflow; it may be running", None
