"""The MCP endpoint, which starts workflows whatever their trigger. It is not part of the API and has its own key."""

from __future__ import annotations

import hmac
import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from airflow_provider_service.simulator.gateway import html_response, json_response, parse_json, read_body
from airflow_provider_service.simulator.mcp_start import NotStartedError, start_workflow
from airflow_provider_service.simulator.state import State

_INVALID = "Input validation error: Invalid arguments for tool execute_workflow: "
_WEBHOOK_FIELDS = {"method", "query", "body", "headers"}
_METHODS = {"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"}


class _RpcError(Exception):
    """An error of the protocol."""

    def __init__(self, code: int, message: str, status: int = 200) -> None:
        super().__init__(message)
        self.code, self.status = code, status


async def answer_mcp(request: Request, state: State) -> Response:
    """Answer one call of the protocol: list the tools, or run the one that starts a workflow."""
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
        answer = {"result": _result(state, call), "jsonrpc": "2.0", "id": call.get("id")}
    except _RpcError as error:
        failed = {"jsonrpc": "2.0", "error": {"code": error.code, "message": str(error)}}
        if error.status != 200:
            return json_response(error.status, {**failed, "id": None})
        answer = {**failed, "id": call.get("id")}
    text = f"event: message\ndata: {json.dumps(answer, ensure_ascii=False)}\n\n"
    return Response(
        text.encode(), 200, {"content-type": "text/event-stream", "cache-control": "no-cache, no-transform"}
    )


def _refusal(request: Request, state: State) -> Response | None:
    if not state.mcp_enabled:
        return json_response(404, {"message": "MCP access is disabled"})
    given = request.headers.get("authorization")
    text = "Unauthorized"
    if given is None:
        text = "Unauthorized: Authorization header not sent"
    elif not given.startswith("Bearer"):
        text = "Unauthorized: Invalid authorization header format - Missing Bearer prefix"
    elif hmac.compare_digest(given.encode(), f"Bearer {state.mcp_key}".encode()):
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


def _result(state: State, call: dict[str, Any]) -> dict[str, Any]:
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
    return _started(state, arguments)


def _started(state: State, arguments: dict[str, Any]) -> dict[str, Any]:
    output: dict[str, Any]
    try:
        execution_id = start_workflow(
            state,
            arguments["workflowId"],
            arguments["executionMode"],
            arguments.get("triggerNodeName"),
            arguments.get("inputs"),
        )
        output = {"executionId": str(execution_id), "status": "started"}
    except NotStartedError as error:
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
    if "inputs" in arguments and not _is_inputs(arguments["inputs"]):
        return "inputs: Invalid input"
    return None


def _expected(kind: str, value: Any) -> str:
    if value is None:
        return "Required"
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return f"Expected {kind}, received {names[type(value)]}"


def _is_inputs(inputs: Any) -> bool:
    if not isinstance(inputs, dict) or len(inputs) != 1:
        return False
    name, value = next(iter(inputs.items()))
    if name == "chatInput":
        return isinstance(value, str)
    if name == "formData":
        return isinstance(value, dict)
    return name == "webhookData" and isinstance(value, dict) and _is_webhook_data(value)


def _is_webhook_data(data: dict[str, Any]) -> bool:
    texts = [value for name in ("query", "headers") for value in data.get(name, {}).values()]
    return (
        data.keys() <= _WEBHOOK_FIELDS
        and data.get("method", "GET") in _METHODS
        and isinstance(data.get("body", {}), dict)
        and all(isinstance(value, str) for value in texts)
    )
