"""The MCP endpoint, which starts workflows with any trigger. It is not part of the API and has its own key."""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import Response

from airflow_provider_service.simulator._clock import stamp
from airflow_provider_service.simulator._engine.engine import Execution
from airflow_provider_service.simulator._engine.nodes import WEBHOOK, Node
from airflow_provider_service.simulator._engine.run import Snapshot
from airflow_provider_service.simulator._gateway import (
    error_response,
    hold_open,
    html_response,
    json_response,
    parse_json,
    read_body,
)
from airflow_provider_service.simulator._state import State
from airflow_provider_service.simulator._stores.workflows import Workflow
from airflow_provider_service.simulator._validation import ApiError

_INVALID = "Input validation error: Invalid arguments for tool execute_workflow: "
_INPUTS: dict[str, type] = {"chatInput": str, "formData": dict, "webhookData": dict}
_METHODS = {"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"}


class _RpcError(Exception):
    def __init__(self, code: int, message: str, status: int = 200) -> None:
        super().__init__(message)
        self.code, self.status = code, status


async def answer_mcp(request: Request, state: State) -> Response:
    content = await read_body(request)
    if isinstance(content, Response):
        return content
    try:
        call = parse_json(content)
    except ValueError:
        return html_response(500, "ResponseError: Failed to parse request body")
    refused = _refusal(request, state)
    if refused is not None:
        return refused
    state.settle()
    try:
        _check_protocol(request, call)
        answer = {"result": await _result(request, state, call), "jsonrpc": "2.0", "id": call.get("id")}
    except ApiError as error:
        return error_response(error)
    except _RpcError as error:
        failed = {"jsonrpc": "2.0", "error": {"code": error.code, "message": str(error)}}
        if error.status != 200:
            return json_response(error.status, {**failed, "id": None})
        answer = {**failed, "id": call.get("id")}
    text = f"event: message\ndata: {json.dumps(answer, ensure_ascii=False)}\n\n"
    headers = {"content-type": "text/event-stream", "cache-control": "no-cache, no-transform"}
    return Response(text.encode(), 200, headers)


def _refusal(request: Request, state: State) -> Response | None:
    if not state.mcp_enabled:
        return json_response(404, {"message": "MCP access is disabled"})
    authorization = request.headers.get("authorization")
    text = "Unauthorized"
    if authorization is None:
        text = "Unauthorized: Authorization header not sent"
    elif not authorization.startswith("Bearer"):
        text = "Unauthorized: Invalid authorization header format - Missing Bearer prefix"
    elif hmac.compare_digest(authorization.encode(), f"Bearer {state.mcp_key}".encode()):
        return None
    metadata = f"{state.base_url}/.well-known/oauth-protected-resource/mcp-server/http"
    realm = f'Bearer realm="n8n MCP Server", resource_metadata="{metadata}"'
    return json_response(401, {"message": text}, {"www-authenticate": realm})


def _check_protocol(request: Request, call: Any) -> None:
    accepted = request.headers.get("accept", "")
    if not ("application/json" in accepted and "text/event-stream" in accepted):
        text = "Not Acceptable: Client must accept both application/json and text/event-stream"
        raise _RpcError(-32000, text, 406)
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise _RpcError(-32000, "Unsupported Media Type: Content-Type must be application/json", 415)
    if not isinstance(call, dict) or call.get("jsonrpc") != "2.0" or not isinstance(call.get("method"), str):
        raise _RpcError(-32600, "Bad Request: the request body is not a valid JSON-RPC message", 400)


async def _result(request: Request, state: State, call: dict[str, Any]) -> dict[str, Any]:
    if call["method"] == "tools/list":
        return {"tools": [{"name": "execute_workflow", "inputSchema": {"type": "object"}}]}
    if call["method"] != "tools/call":
        raise _RpcError(-32601, "Method not found")
    params = call.get("params")
    if not isinstance(params, dict) or not isinstance(params.get("name"), str):
        raise _RpcError(-32602, "Invalid tools/call request")
    if params["name"] != "execute_workflow":
        raise _RpcError(-32602, f"Tool {params['name']} not found")
    arguments = params.get("arguments") or {}
    problem = _problem(arguments)
    if problem:
        return {"content": [{"type": "text", "text": _INVALID + problem}], "isError": True}
    output: dict[str, Any]
    try:
        execution = _start(state, arguments)
        if not state.queue_mode:  # with a concurrency limit the caller waits for its turn
            await hold_open(request, state, lambda: execution.status != "new" or execution.deleted)
        output = {"executionId": str(execution.id), "status": "started"}
    except _NotStartedError as error:
        output = {"executionId": None, "status": "error", "error": str(error)}
    return {"content": [{"type": "text", "text": json.dumps(output)}], "structuredContent": output}


def _problem(arguments: dict[str, Any]) -> str | None:
    """What is wrong with the arguments, in the service's words; unknown arguments are ignored."""
    workflow_id, mode = arguments.get("workflowId"), arguments.get("executionMode")
    if not isinstance(workflow_id, str):
        return "workflowId: " + _expected("string", workflow_id)
    if mode is None:
        return "executionMode: Required"
    if mode not in ("manual", "production"):
        return f"executionMode: Invalid enum value. Expected 'manual' | 'production', received '{mode}'"
    if "triggerNodeName" in arguments and not isinstance(arguments["triggerNodeName"], str):
        return "triggerNodeName: " + _expected("string", arguments["triggerNodeName"])
    if "inputs" in arguments:
        return _problem_of_inputs(arguments["inputs"])
    return None


def _expected(kind: str, value: Any) -> str:
    if value is None:
        return "Required"
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return f"Expected {kind}, received {names[type(value)]}"


def _problem_of_inputs(inputs: Any) -> str | None:
    """What is wrong with the inputs; unknown keys are named only if everything else is correct."""
    name = next((key for key in _INPUTS if isinstance(inputs, dict) and key in inputs), None)
    if name is None or not isinstance(inputs[name], _INPUTS[name]):
        return "inputs: Invalid input"
    unknown = inputs.keys() - {name}
    if name == "webhookData" and not unknown:
        if not _is_webhook_data(inputs[name]):
            return "inputs: Invalid input"
        return _unknown("inputs.webhookData", inputs[name], {"method", "query", "body", "headers"})
    return _unknown("inputs", inputs, {name})


def _unknown(place: str, values: dict[str, Any], known: set[str]) -> str | None:
    unknown = ", ".join(f"'{key}'" for key in values if key not in known)
    return f"{place}: Unrecognized key(s) in object: {unknown}" if unknown else None


def _is_webhook_data(data: dict[str, Any]) -> bool:
    query, headers, body = (data.get(name, {}) for name in ("query", "headers", "body"))
    return (
        data.get("method", "GET") in _METHODS
        and all(isinstance(part, dict) for part in (query, headers, body))
        and all(isinstance(value, str) for value in (*query.values(), *headers.values()))
    )


# ---------------------------------------------------------------- starting: the trigger, its inputs and its item

_SCHEDULE = "n8n-nodes-base.scheduleTrigger"
_FORM = "n8n-nodes-base.formTrigger"
_CHAT = "@n8n/n8n-nodes-langchain.chatTrigger"
_MANUAL = "n8n-nodes-base.manualTrigger"
_NAMES = {
    _SCHEDULE: "Schedule Trigger",
    WEBHOOK: "Webhook Trigger",
    _FORM: "Form Trigger",
    _CHAT: "Chat Trigger",
    _MANUAL: "Manual Trigger",
}
# The key of the inputs that a trigger requires, and how the service describes them.
_REQUIRED_INPUTS = {
    _CHAT: ("chatInput", "{ chatInput: string }"),
    _FORM: ("formData", "{ formData: { FIELD_NAME: VALUE } }"),
    WEBHOOK: ("webhookData", "{ webhookData: { headers?, query?, body? } }"),
}
Mode = Literal["production", "manual"]


class _NotStartedError(Exception):
    """The endpoint refuses to start the workflow."""


def _start(state: State, arguments: Mapping[str, Any]) -> Execution:
    """Start the version that is live or, in the mode "manual", the draft."""
    mode, inputs = arguments["executionMode"], arguments.get("inputs")
    workflow = _available(state.workflows.find(arguments["workflowId"]))
    manual = mode == "manual"
    if not manual and workflow.live_version is None:
        raise _NotStartedError(f"Workflow '{workflow.id}' has no published (active) version to execute")
    snapshot = workflow.snapshot(None if manual else workflow.live_version)
    trigger = _trigger(snapshot, mode, arguments.get("triggerNodeName"), inputs)
    item = {"json": _item(state.clock.now(), trigger, inputs or {}), "pairedItem": {"item": 0}}
    pinned = {**((workflow.pin_data or {}) if manual else {}), trigger["name"]: [item]}
    execution_mode = "manual" if manual else {WEBHOOK: "webhook", _CHAT: "chat"}.get(trigger["type"], "trigger")
    execution = state.engine.start(snapshot, trigger, [item], workflow.project_id, mode=execution_mode, pinned=pinned)
    execution.version_id = workflow.version_id  # the service shows that of the draft, though the published version runs
    return execution


def _available(workflow: Workflow | None) -> Workflow:
    if workflow is None:
        raise _NotStartedError("Workflow not found or you don't have permission to access it.")
    if workflow.is_archived:
        raise _NotStartedError(f"Workflow '{workflow.id}' is archived and cannot be accessed.")
    if not workflow.settings.get("availableInMCP"):
        raise _NotStartedError(
            "Workflow is not available in MCP. Enable MCP access from the workflow card in the workflows list, "
            "or from the workflow settings."
        )
    return workflow


def _trigger(snapshot: Snapshot, mode: Mode, name: str | None, inputs: Mapping[str, Any] | None) -> Node:
    supported = [kind for kind in _NAMES if mode == "manual" or kind != _MANUAL]
    eligible = [node for node in snapshot.nodes if node["type"] in supported and not node.get("disabled")]
    available = ", ".join(node["name"] for node in eligible) or "none"
    if name:
        trigger = _named(snapshot, name, mode, supported, available)
        key, described = _REQUIRED_INPUTS.get(trigger["type"], (None, ""))
        if key is None and inputs is not None:
            raise _NotStartedError(f'Trigger node "{name}" does not accept inputs. Omit inputs.')
        if key is not None and key not in (inputs or {}):
            raise _NotStartedError(f'Trigger node "{name}" requires inputs matching {described}.')
        return trigger
    if not eligible:
        names = ", ".join(_NAMES[kind] for kind in supported)
        raise _NotStartedError(
            f"This workflow has no trigger that can be executed in {mode} mode. Supported triggers: {names}."
        )
    if inputs is not None:
        raise _NotStartedError(f"Provide triggerNodeName when passing inputs. Available triggers: {available}.")
    if all(node["type"] in _REQUIRED_INPUTS for node in eligible):
        raise _NotStartedError(
            f"Provide triggerNodeName and inputs to execute this workflow. Available triggers: {available}."
        )
    if len(eligible) > 1:
        raise _NotStartedError(
            "This workflow has multiple triggers. Provide triggerNodeName to specify which one to execute. "
            f"Available triggers: {available}."
        )
    return eligible[0]


def _named(snapshot: Snapshot, name: str, mode: Mode, supported: Sequence[str], available: str) -> Node:
    node = snapshot.node(name)
    if node is None:
        raise _NotStartedError(f'Trigger node "{name}" was not found. Available triggers: {available}.')
    if node.get("disabled"):
        raise _NotStartedError(f'Trigger node "{name}" is disabled. Enable it or choose another trigger: {available}.')
    if node["type"] == _MANUAL and mode == "production":
        raise _NotStartedError(
            f'Trigger node "{name}" cannot be used in production mode. '
            "Use a webhook, form, chat, or schedule trigger, or execute in manual mode."
        )
    if node["type"] not in supported:
        raise _NotStartedError(
            f'Trigger node "{name}" is not supported for MCP execution. Available triggers: {available}.'
        )
    return node


def _item(now: datetime, trigger: Node, inputs: Mapping[str, Any]) -> dict[str, Any]:
    if trigger["type"] == WEBHOOK:
        data = inputs["webhookData"]
        return {name: data.get(name, {}) for name in ("headers", "query", "body")}
    if trigger["type"] == _FORM:
        return {"submittedAt": stamp(now), "formMode": "mcp", **inputs["formData"]}
    if trigger["type"] == _CHAT:
        session = f"mcp-session-{int(now.timestamp() * 1000)}"
        return {"sessionId": session, "action": "sendMessage", "chatInput": inputs["chatInput"]}
    if trigger["type"] == _SCHEDULE:
        ordinal = "th" if 11 <= now.day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(now.day % 10, "th")
        time_of_day = f"{now.hour % 12 or 12}:{now:%M:%S} {'am' if now.hour < 12 else 'pm'}"
        return {
            "timestamp": now.isoformat(timespec="milliseconds"),
            "Readable date": f"{now:%B} {now.day}{ordinal} {now:%Y}, {time_of_day}",
            "Readable time": time_of_day,
            "Day of week": f"{now:%A}",
            "Year": f"{now:%Y}",
            "Month": f"{now:%B}",
            "Day of month": f"{now:%d}",
            "Hour": f"{now:%H}",
            "Minute": f"{now:%M}",
            "Second": f"{now:%S}",
            "Timezone": "UTC (UTC+00:00)",
        }
    return {}
