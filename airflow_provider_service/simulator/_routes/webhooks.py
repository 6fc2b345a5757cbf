"""Production webhooks, which start runs. They are not part of the API, and their nodes authenticate the callers."""

from __future__ import annotations

import base64
import hmac
import json
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote

from starlette.datastructures import Headers, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from airflow_provider_service.simulator._engine.engine import Execution
from airflow_provider_service.simulator._engine.expressions import ExpressionError, evaluate
from airflow_provider_service.simulator._engine.nodes import RESPOND, WebhookAnswer
from airflow_provider_service.simulator._gateway import (
    PAYLOAD_LIMIT,
    error_response,
    hold_open,
    json_response,
    media_type,
    parse_json,
    read_body,
)
from airflow_provider_service.simulator._state import State
from airflow_provider_service.simulator._stores.workflows import LiveWebhook
from airflow_provider_service.simulator._validation import ApiError

_HINT = (
    "The workflow must be active for a production URL to run successfully. You can activate the workflow using the "
    "toggle in the top-right of the editor. Note that unlike test URL calls, production URL calls aren't shown on the "
    "canvas (only in the executions list)"
)
_TEST_HINT = (
    "Click the 'Execute workflow' button on the canvas, then try again. (In test mode, the webhook only works for one "
    "call after you click this button)"
)
_FORM = "multipart/form-data"
FORM_LIMIT = 200 * 1024 * 1024
_INTERRUPTED = WebhookAnswer(500, {"code": 0, "message": "There was a problem executing the workflow"})


async def answer_webhook(request: Request, state: State) -> Response:
    is_form = media_type(request) == _FORM
    content = await read_body(request, FORM_LIMIT if is_form else PAYLOAD_LIMIT)
    if isinstance(content, Response) and is_form:
        return error_response(ApiError(413, "The submitted form data exceeds the allowed size.", code=413))
    if isinstance(content, Response):
        # Too large; the service answers as it does for a run that was interrupted.
        return _respond(_INTERRUPTED)
    state.settle()
    path = unquote(request.path_params["path"]).strip("/")
    try:
        live = _find(state, request.method, path)
        answer = _refusal(request, state, live.node)
        if answer is None:
            item = await _trigger_item(request, state, live, content)
            answer = await _run(request, state, live, item)
    except ApiError as error:
        return error_response(error)
    return _respond(answer)


async def answer_test_webhook(request: Request) -> Response:
    """Test webhooks answer only while an editor listens, which never happens here."""
    path = unquote(request.path_params["path"]).strip("/")
    message = f'The requested webhook "{path}" is not registered.'
    return json_response(404, {"code": 404, "message": message, "hint": _TEST_HINT})


def _respond(answer: WebhookAnswer) -> Response:
    if answer.body is None or isinstance(answer.body, bytes):  # without a type
        return Response(answer.body, answer.status, dict(answer.headers))
    if isinstance(answer.body, str) and answer.media_type is not None:
        return Response(answer.body, answer.status, dict(answer.headers), media_type=answer.media_type)
    return json_response(answer.status, answer.body, answer.headers)


def _find(state: State, method: str, path: str) -> LiveWebhook:
    live = state.workflows.webhooks.find(method, path)
    if live is not None:
        return live
    other_methods = " or ".join(state.workflows.webhooks.methods(path))
    message = f'The requested webhook "{method} {path}" is not registered.'
    if other_methods:
        message = (
            f"This webhook is not registered for {method} requests. Did you mean to make a {other_methods} request?"
        )
    raise ApiError(404, message, code=404, hint=_HINT)


# ---------------------------------------------------------------- who may call

_CREDENTIAL_TYPES = {
    "basicAuth": "httpBasicAuth",
    "bearerAuth": "httpBearerAuth",
    "headerAuth": "httpHeaderAuth",
    "jwtAuth": "jwtAuth",
}
_ALGORITHMS = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}


class _DeniedError(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def _refusal(request: Request, state: State, node: Mapping[str, Any]) -> WebhookAnswer | None:
    """How the node's own authentication refuses the call; None if it does not. What cannot be checked is refused."""
    kind = (node.get("parameters") or {}).get("authentication", "none")
    if kind == "none":
        return None
    reference = (node.get("credentials") or {}).get(_CREDENTIAL_TYPES.get(kind, "")) or {}
    if state.credentials.find(reference.get("id", "")) is None:
        raise ApiError(500, "No authentication data defined on node!", code=0)
    try:
        _check(kind, request.headers, state.credentials.data(reference["id"]), state.clock.now().timestamp())
    except _DeniedError as denied:
        return WebhookAnswer(denied.status, str(denied).encode(), {"WWW-Authenticate": 'Basic realm="Webhook"'})
    return None


def _check(kind: str, headers: Headers, expected: Mapping[str, Any], now: float) -> None:
    authorization = headers.get("authorization", "")
    if kind == "basicAuth":
        _check_password(authorization, expected)
    elif kind == "jwtAuth":
        _check_token(authorization.partition(" ")[2], expected, now)
    elif kind == "bearerAuth":
        if not _same(authorization, f"Bearer {expected.get('token')}"):
            raise _DeniedError(403, "Authorization data is wrong!")
    elif not _same(headers.get(str(expected.get("name", ""))), expected.get("value")):
        raise _DeniedError(403, "Authorization data is wrong!")


def _check_password(authorization: str, expected: Mapping[str, Any]) -> None:
    scheme, _, encoded = authorization.partition(" ")
    try:
        user_and_password = base64.b64decode(encoded, validate=True).decode() if scheme.lower() == "basic" else ""
    except ValueError:
        user_and_password = ""
    if ":" not in user_and_password:
        raise _DeniedError(401, "Authorization is required!")
    if not _same(user_and_password, f"{expected.get('user')}:{expected.get('password')}"):
        raise _DeniedError(401, "Authentication data is wrong!")


def _check_token(token: str, expected: Mapping[str, Any], now: float) -> None:
    if not token:
        raise _DeniedError(401, "No token provided")
    parts = token.split(".")
    if len(parts) != 3:
        raise _DeniedError(403, "jwt malformed")
    try:
        header, claims = (json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))) for part in parts[:2])
    except ValueError:
        raise _DeniedError(403, "invalid token") from None
    algorithm = expected.get("algorithm", "HS256")
    if not isinstance(header, dict) or not isinstance(claims, dict):
        raise _DeniedError(403, "invalid token")
    if header.get("alg") != algorithm or algorithm not in _ALGORITHMS:
        raise _DeniedError(403, "invalid algorithm")
    signed = hmac.digest(
        str(expected.get("secret", "")).encode(), token.rpartition(".")[0].encode(), _ALGORITHMS[algorithm]
    )
    if not hmac.compare_digest(base64.urlsafe_b64encode(signed).rstrip(b"="), parts[2].encode()):
        raise _DeniedError(403, "invalid signature")
    if claims.get("nbf", now) > now:
        raise _DeniedError(403, "jwt not active")
    if claims.get("exp", now + 1) <= now:
        raise _DeniedError(403, "jwt expired")


def _same(text: str | None, expected: Any) -> bool:
    return text is not None and hmac.compare_digest(text.encode(), str(expected).encode())


# ---------------------------------------------------------------- input


async def _trigger_item(request: Request, state: State, live: LiveWebhook, content: bytes) -> dict[str, Any]:
    query = parse_qs(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
    body = _read_input(request, content)
    binary: dict[str, Any] = {}
    if media_type(request) == _FORM:
        body, binary = await _read_files(request, content, live)
    item = {
        "headers": dict(request.headers),
        "params": live.params,
        "query": {name: values[0] if len(values) == 1 else values for name, values in query.items()},
        "body": body,
        "webhookUrl": f"{state.base_url}/webhook/{live.address}",
        "executionMode": "production",
    }
    return {"json": item, **({"binary": binary} if binary else {}), "pairedItem": {"item": 0}}


async def _read_files(
    request: Request, content: bytes, live: LiveWebhook
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    prefix = ((live.node.get("parameters") or {}).get("options") or {}).get("binaryPropertyName")
    fields: dict[str, Any] = {}
    binary: dict[str, dict[str, Any]] = {}

    async def replay() -> dict[str, Any]:
        return {"type": "http.request", "body": content, "more_body": False}

    try:
        async with Request(request.scope, replay).form() as form:
            for name, part in form.multi_items():
                if isinstance(part, str):
                    fields[name] = part
                else:
                    property_name = f"{prefix}{len(binary)}" if prefix else name.removesuffix("[]")
                    binary[property_name] = await _binary(part, part.filename or name, live.workflow_id)
    except HTTPException as error:
        raise ApiError(400, "The submitted form data could not be parsed.", code=400) from error
    return fields, binary


async def _binary(file: UploadFile, name: str, workflow_id: str) -> dict[str, Any]:
    content_type = file.content_type or ""
    kind, _, subtype = content_type.partition("/")
    file_type = kind if kind in ("text", "image", "audio", "video") else subtype if subtype in ("pdf", "json") else None
    name = name.rpartition("\\")[2].replace("%22", '"')
    extension = name.rpartition(".")[2] if "." in name else None
    size = len(await file.read())
    return {
        "mimeType": content_type,
        **({"fileType": file_type} if file_type else {}),
        **({"fileExtension": extension} if extension else {}),
        "data": "filesystem-v2",
        "fileName": name,
        "id": f"filesystem-v2:workflows/{workflow_id}/executions/temp/binary_data/{uuid.uuid4()}",
        "fileSize": f"{size} B" if size < 1000 else f"{size / 1000:.3g} kB",
        "bytes": size,
    }


def _read_input(request: Request, content: bytes) -> Any:
    """Read a body according to its media type; text stays text."""
    kind = media_type(request)
    if not content or kind == _FORM:
        return {}
    if kind == "application/json":
        try:
            return parse_json(content)
        except ValueError as error:
            raise ApiError(422, "Failed to parse request body", code=422) from error
    if kind == "application/x-www-form-urlencoded":
        return dict(parse_qsl(content.decode("utf-8", "replace"), keep_blank_values=True))
    return content.decode("utf-8", "replace")


# ---------------------------------------------------------------- running and answering


async def _run(request: Request, state: State, live: LiveWebhook, item: dict[str, Any]) -> WebhookAnswer:
    workflow = state.workflows.get(live.workflow_id)
    snapshot = workflow.snapshot(workflow.versions[live.version_id])
    parameters = live.node.get("parameters") or {}
    mode = parameters.get("responseMode", "onReceived")
    items = [item]
    may_respond = any(node["type"] == RESPOND and not node.get("disabled") for node in snapshot.nodes)
    if mode == "responseNode" and not may_respond:
        message = "No Respond to Webhook node found in the workflow"
        state.engine.refuse(snapshot, live.node, items, workflow.project_id, message=message)
        return WebhookAnswer(500, {"code": 0, "message": message})
    execution = state.engine.start(snapshot, live.node, items, workflow.project_id, mode="webhook", output=live.output)
    if mode == "onReceived" and state.queue_mode:
        return WebhookAnswer(_status_code(parameters), _received(execution, item["json"], parameters))
    # With a concurrency limit even "respond immediately" waits for a free slot. If the run is stopped or deleted in the
    # queue, the caller is left without an answer.
    await hold_open(request, state, lambda: execution.status != "new" and execution.started_at is not None)
    if mode == "responseNode":
        await hold_open(request, state, lambda: execution.run.answer is not None or not execution.in_progress)
        executed = WebhookAnswer(200, {"message": "Workflow executed successfully"})
        return execution.run.answer or _ended(execution, executed)
    status = _status_code(parameters)
    if mode == "lastNode":
        await hold_open(request, state, lambda: not execution.in_progress)
        return _ended(execution, _last_node_answer(execution, parameters, status))
    return WebhookAnswer(status, _received(execution, item["json"], parameters))


def _status_code(parameters: dict[str, Any]) -> int:
    code = (parameters.get("options") or {}).get("responseCode") or parameters.get("responseCode") or 200
    if isinstance(code, dict):
        values = code.get("values") or {}
        code = values.get("customCode") or values.get("responseCode") or 200
    return int(code)


def _received(execution: Execution, item: dict[str, Any], parameters: dict[str, Any]) -> Any:
    options = parameters.get("options") or {}
    if options.get("noResponseBody"):
        return None
    if "responseData" not in options:
        return {"message": "Workflow was started"}
    try:
        return evaluate(options["responseData"], execution.run.scope(item))
    except ExpressionError:
        return None


def _ended(execution: Execution, answer: WebhookAnswer) -> WebhookAnswer:
    if execution.status == "error":
        return WebhookAnswer(500, {"message": "Error in workflow"})
    return answer if execution.status in ("success", "waiting") else _INTERRUPTED


def _last_node_answer(execution: Execution, parameters: dict[str, Any], status: int) -> WebhookAnswer:
    selection = parameters.get("responseData", "firstEntryJson")
    items = [item["json"] for item in execution.run.first_output()]
    if selection == "noData":
        return WebhookAnswer(status, None)
    if selection == "allEntries":
        return WebhookAnswer(status, items)
    if not items:
        return WebhookAnswer(500, {"code": 0, "message": "No item to return was found"})
    return WebhookAnswer(status, items[0])
