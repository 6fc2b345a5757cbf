"""Interpret the answers of the MCP endpoint: JSON-RPC, usually in an event stream."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

from airflow_provider_service.client import errors
from airflow_provider_service.client._http import answers
from airflow_provider_service.client._http.exchange import Answer
from airflow_provider_service.client._http.redaction import masked
from airflow_provider_service.client._shapes import dict_or_empty
from airflow_provider_service.client._texts import one_line

# The id of the only request that a call sends.
REQUEST_ID = 1
CREATE_KEY = "a user of the service creates it there under Settings, Instance-level MCP"

_SWITCHED_OFF = "MCP access is disabled"
_UNKNOWN_METHOD = -32601
_REFUSED_REQUESTS = frozenset({-32600, -32602, -32700})

_Failure = tuple[type[errors.ServiceApiError], str, str | None]
_OLDER: _Failure = (
    errors.ServiceNotOfferedError,
    "the server's MCP endpoint is an older one, which expects other inputs",
    "A newer n8n has the endpoint that is needed",
)
_UNAVAILABLE: _Failure = (
    errors.ServiceMcpRefusedError,
    "the workflow may not be started through MCP",
    "Set the workflow's setting 'availableInMCP' to true",
)
_NOT_PUBLISHED: _Failure = (
    errors.ServiceNotPublishedError,
    "the workflow has no published version yet",
    "Is it active? Only its draft can run otherwise (mode 'manual')",
)
_FAILED: _Failure = (
    errors.ServiceServerError,
    "the service failed to start the workflow, or started it and failed to report that",
    None,
)
# The endpoint validates the answer of the tool after the tool has run.
_ANSWER_REFUSED = re.compile(r"(MCP error -32602: )?(Output validation error|Tool \S+ has an output schema)")
# What the service says if it refuses a call before it starts anything. Any other message may come from a start that
# failed halfway.
_REFUSALS: tuple[tuple[str, _Failure], ...] = (
    (
        r"Workflow not found",
        (errors.ServiceNotFoundError, "the workflow does not exist, or the user of the MCP key may not run it", None),
    ),
    (r"Workflow is not available ", _UNAVAILABLE),
    (r"Workflow '.*' is archived", (errors.ServiceMcpRefusedError, "the workflow is archived", None)),
    (r"Workflow '.*' has no published \(active\) version", _NOT_PUBLISHED),
    (r"(MCP error -32602: )?Input validation error.*Invalid discriminator value", _OLDER),
    (
        r"(MCP error -32602: )?Input validation error|Trigger node \".*\" (requires inputs|does not accept inputs)",
        (errors.ServiceInvalidRequestError, "the inputs are not what the trigger takes", None),
    ),
    (
        r"Trigger node \".*\" (was not found|is disabled|cannot be used|is not supported)"
        r"|This workflow has (multiple triggers|no trigger)|Provide triggerNodeName",
        (errors.ServiceMcpRefusedError, "the trigger cannot be started through MCP", None),
    ),
)


def read_result(response: Answer, path: str, secret: str) -> dict[str, Any]:
    """Return the answer of the tool that starts workflows: an object with an ``executionId``.

    :raises ServiceApiError: the answer is a refusal or a failure; ``not_processed`` is True if nothing can have run.
    """
    _check_status(response, path, secret)
    message = _message(response)
    output = _output(message)
    if isinstance(output.get("executionId"), str) and output["executionId"]:
        return output
    text = _words(message, output)
    kind, reason, hint = _failure(message, text)
    facts = {**answers.facts_of(response, secret), "server_message": one_line(masked(text, secret)) or None}
    raise kind(reason, method="POST", path=path, hint=hint, **facts)


def _check_status(response: Answer, path: str, secret: str) -> None:
    facts = answers.facts_of(response, secret)
    status, message = facts["status"], facts["server_message"]
    kind: type[errors.ServiceApiError]
    if status == HTTPStatus.UNAUTHORIZED:
        kind, reason = errors.ServiceUnauthorizedError, "the MCP key was refused"
        hint = f"Check the connection's extra 'mcp_api_key', which is not the API key: {CREATE_KEY}"
    elif status in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN) and message == _SWITCHED_OFF:
        kind, reason = errors.ServiceNotOfferedError, "MCP access is switched off on this server"
        hint = "An owner or admin switches it on in the service under Settings, Instance-level MCP"
    elif status == HTTPStatus.NOT_FOUND and "html" in response.content_type:
        kind, reason = errors.ServiceStartingError, "answered by a page: the service is still starting, or has no MCP"
        hint = (
            "If this lasts longer than a minute, check host and path prefix of the connection, and the version of n8n"
        )
    else:
        answers.decode(response, path, answers.Called("POST", path), secret=secret, binary=True)
        return
    raise kind(reason, method="POST", path=path, hint=hint, **facts)


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


def _output(message: dict[str, Any]) -> dict[str, Any]:
    """The structured answer of the tool, or an empty dict."""
    return dict_or_empty(dict_or_empty(message.get("result")).get("structuredContent"))


def _words(message: dict[str, Any], output: dict[str, Any]) -> str:
    """The service's message about a failure of the tool or of the protocol."""
    error, result = message.get("error"), message.get("result")
    if isinstance(error, dict):
        return str(error.get("message", ""))
    if output or not isinstance(result, dict):
        return str(output.get("error", ""))
    parts = result.get("content")
    texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return " ".join(text for text in texts if isinstance(text, str))


def _failure(message: dict[str, Any], text: str) -> _Failure:
    error = message.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    if _ANSWER_REFUSED.match(text):
        return _FAILED
    if code == _UNKNOWN_METHOD or text.startswith("Tool execute_workflow "):
        return errors.ServiceNotOfferedError, "the server's MCP endpoint does not run workflows", None
    for words, failure in _REFUSALS:
        if re.match(words, text, re.DOTALL):
            return failure
    if code in _REFUSED_REQUESTS:
        return errors.ServiceInvalidRequestError, "the MCP endpoint refused the request", None
    if not message:
        return errors.ServiceUnexpectedResponseError, "the answer of the MCP endpoint cannot be read", None
    return _FAILED
