"""The HTTP application: the operations under ``/api/v1``, webhooks, health, pages, and the socket it listens on."""

from __future__ import annotations

import base64
import html
import json
import socket
from functools import partial
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from airflow_provider_service.simulator._gateway import OPERATIONS, handle, html_response, json_response
from airflow_provider_service.simulator._routes.mcp import answer_mcp
from airflow_provider_service.simulator._routes.webhooks import answer_test_webhook, answer_webhook
from airflow_provider_service.simulator._state import State

API_ROOT = "/api/v1"
_WORKFLOW_PAGE = "/workflow/{workflow_id}"
_ANY_METHOD = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]


def build_app(state: State) -> ASGIApp:
    # Fixed segments take precedence over parameters: /workflows/{id}/tags is not a version of a workflow.
    ordered = sorted(OPERATIONS.values(), key=lambda op: [part.startswith("{") for part in op.path.split("/")])
    routes = [
        *(Route(API_ROOT + op.path, partial(handle, op=op, state=state), methods=[op.method]) for op in ordered),
        Route(f"{API_ROOT}/openapi.yml", _contract, methods=["GET"]),
        Route("/webhook/{path:path}", partial(answer_webhook, state=state), methods=_ANY_METHOD),
        Route("/webhook-test/{path:path}", answer_test_webhook, methods=_ANY_METHOD),
        Route("/mcp-server/http", partial(answer_mcp, state=state), methods=["POST"]),
        # Minimal pages that links lead to: they need no login, and only show which page they are.
        Route("/", partial(_start_page, state=state), methods=["GET"]),
        Route(_WORKFLOW_PAGE, partial(_workflow_page, state=state), methods=["GET"]),
        Route(f"{_WORKFLOW_PAGE}/executions/{{execution_id}}", partial(_execution_page, state=state), methods=["GET"]),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _unroutable, Exception: _fault})
    app.router.redirect_slashes = False
    return _edge(app, state)


async def _unroutable(request: Request, error: Exception) -> Response:
    path = unquote(request.scope["path"])
    if not path.startswith(f"{API_ROOT}/"):
        return no_such_page(request.method, path)
    if isinstance(error, HTTPException) and error.status_code == 405:
        return json_response(405, {"message": f"{request.method} method not allowed"})
    return json_response(404, {"message": "not found"})


async def _fault(_request: Request, _error: Exception) -> Response:
    return json_response(500, {"message": "Internal server error"})


def no_such_page(method: str, path: str) -> Response:
    return html_response(404, f"Cannot {method} {path}")


async def _contract(_request: Request) -> Response:
    """The published contract, readable without a key: JSON, which is also valid YAML."""
    paths: dict[str, dict[str, object]] = {}
    for op in OPERATIONS.values():
        described: dict[str, Any] = {"operationId": op.name, "responses": {str(op.status): {"description": "Success"}}}
        if op.body is not None:
            described["requestBody"] = {"content": {"application/json": {"schema": op.body.described.schema()}}}
        paths.setdefault(op.path, {})[op.method.lower()] = described
    contract = {
        "openapi": "3.0.0",
        "info": {"title": "Service Public API", "version": "1.1.1"},
        "servers": [{"url": API_ROOT}],
        "paths": paths,
    }
    return Response(json.dumps(contract, indent=1), media_type="text/yaml; charset=utf-8")


def _edge(app: ASGIApp, state: State) -> ASGIApp:
    """ASGI layer for what applies to all paths: health, booting, preflight, undecoded routing."""

    def answer(method: str, path: str) -> Response | None:
        if path == "/healthz":
            return json_response(200, {"status": "ok"})
        if path == "/healthz/readiness":
            return json_response(503, {"status": "error"}) if state.booting else json_response(200, {"status": "ok"})
        if state.booting:
            return no_such_page(method, path)
        return Response(None, 204) if method == "OPTIONS" else None

    async def layer(scope: Scope, receive: Receive, send: Send) -> None:
        # Routes match the undecoded path, so that %2F stays inside a segment; parameters are decoded afterwards.
        routed = {**scope, "path": scope["raw_path"].decode("latin-1")}
        await (answer(scope["method"], scope["path"]) or app)(routed, receive, send)

    return layer


def listen(host: str, port: int) -> socket.socket:
    # With the protocol given, asyncio turns off Nagle's algorithm, which would cost 40 ms per request.
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener


def without_address(app: ASGIApp) -> ASGIApp:
    """uvicorn itself removes the address only if httptools is installed, which Airflow 2.11 does without."""

    async def layer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["raw_path"].startswith((b"http://", b"https://")):
            _scheme, _, _host, *path = scope["raw_path"].split(b"/", 3)
            raw_path = b"/" + b"".join(path)
            scope = {**scope, "raw_path": raw_path, "path": unquote(raw_path.decode("latin-1"))}
        await app(scope, receive, send)

    return layer


# ---------------------------------------------------------------- pages

_START = """<!DOCTYPE html>
<html lang="en">
<head>
<meta name="n8n:config:rest-endpoint" content="{endpoint}">
<meta name="n8n:config:sentry" content="{reporting}">
<title>Simulator</title>
</head>
<body><h1>Simulator</h1></body>
</html>
"""
_PAGE = "<!DOCTYPE html><html><head><title>{title}</title></head><body><h1>{title}</h1><p>{text}</p></body></html>"


async def _start_page(_request: Request, state: State) -> Response:
    sentry = {"dsn": "", "environment": "development", "release": f"n8n@{state.version}"}
    reporting = base64.b64encode(json.dumps(sentry, separators=(",", ":")).encode()).decode()
    endpoint = base64.b64encode(b"rest").decode()
    return HTMLResponse(_START.format(endpoint=endpoint, reporting=reporting))


async def _workflow_page(request: Request, state: State) -> Response:
    workflow = state.workflows.find(request.path_params["workflow_id"])
    if workflow is None:
        return _page(404, "No such workflow", "")
    return _page(200, f"Workflow {workflow.name}", "active" if workflow.active else "not active")


async def _execution_page(request: Request, state: State) -> Response:
    state.settle()
    execution_id = request.path_params["execution_id"]
    execution = state.executions.get(int(execution_id)) if execution_id.isdecimal() else None
    if execution is None or execution.workflow_id != request.path_params["workflow_id"]:
        return _page(404, "No such execution", "")
    return _page(200, f"Execution {execution.id}", execution.status)


def _page(status: int, title: str, text: str) -> Response:
    return HTMLResponse(_PAGE.format(title=html.escape(title), text=html.escape(text)), status)
