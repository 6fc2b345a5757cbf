"""Minimal versions of the service's pages that links lead to. They only show which page they are."""

from __future__ import annotations

import base64
import html
import json
from functools import partial

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from airflow_provider_service.simulator._state import State

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


def page_routes(state: State) -> list[Route]:
    """The start page, and those of workflows and executions. They need no login and show no data."""
    return [
        Route("/", partial(_start_page, state=state), methods=["GET"]),
        Route("/workflow/{workflow_id}", partial(_workflow_page, state=state), methods=["GET"]),
        Route(
            "/workflow/{workflow_id}/executions/{execution_id}", partial(_execution_page, state=state), methods=["GET"]
        ),
    ]


async def _start_page(_request: Request, state: State) -> Response:
    told = {"dsn": "", "environment": "development", "release": f"n8n@{state.version}"}
    reporting = json.dumps(told, separators=(",", ":"))
    encoded = [base64.b64encode(one.encode()).decode() for one in ("rest", reporting)]
    return HTMLResponse(_START.format(endpoint=encoded[0], reporting=encoded[1]))


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
