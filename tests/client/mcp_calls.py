"""Calls of the MCP endpoint, and answers in its format."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_service.client import errors
from airflow_provider_service.client.models import StartedExecution

from .clients import BASE, Client

MCP_KEY = "mcp-key-of-a-test"
URL = f"{BASE}/mcp-server/http"
FORM = {"formData": {"name": "Ann"}}
NOT_PUBLISHED = "Workflow 'w' has no published (active) version to execute"
MISSES_THE_MODE = "Input validation error: Invalid arguments for tool execute_workflow: executionMode: Required"


def event(message: Any) -> dict[str, Any]:
    """An answer as the service sends it: one event of a stream."""
    return {
        "text": f"event: message\ndata: {json.dumps(message)}\n\n",
        "headers": {"Content-Type": "text/event-stream"},
    }


def output(**fields: Any) -> dict[str, Any]:
    """The answer of the tool."""
    result = {"content": [{"type": "text", "text": json.dumps(fields)}], "structuredContent": fields}
    return event({"result": result, "jsonrpc": "2.0", "id": 1})


def refused_arguments(text: str) -> dict[str, Any]:
    return event({"result": {"content": [{"type": "text", "text": text}], "isError": True}, "jsonrpc": "2.0", "id": 1})


def protocol_error(code: int, text: str) -> dict[str, Any]:
    return event({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": text}})


STARTED = output(executionId="7", status="started")


def refusal(status: int, body: Any, **headers: str) -> dict[str, Any]:
    """An answer in JSON, as from the service's own checks before it looks at the call."""
    return {"status_code": status, "json": body, "headers": {"Content-Type": "application/json", **headers}}


def start(client: Client, **options: Any) -> StartedExecution:
    return client.mcp.execute_workflow("w", **{"trigger_node": "Form", "inputs": FORM, **options})


def raised(client: Client, **options: Any) -> errors.ServiceError:
    with pytest.raises(errors.ServiceError) as caught:
        start(client, **options)
    return caught.value
