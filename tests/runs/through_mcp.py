"""Calls of the simulator's MCP endpoint, and workflows that it starts."""

from __future__ import annotations

from functools import partial
from typing import Any

from airflow_provider_service.simulator import ServiceSimulator

from . import workflows

# A call that starts a workflow, and not the one that asks for the kind of the endpoint.
START: dict[str, Any] = {"path": "^/mcp-server/http$", "body": "executionMode"}

put = partial(workflows.put, availableInMCP=True)


def calls(simulator: ServiceSimulator) -> int:
    """How often the endpoint was called to start a workflow."""
    sent = [request.body for request in simulator.requests if request.path == "/mcp-server/http"]
    # A body that is on its way is None.
    return sum("executionMode" in body["params"]["arguments"] for body in sent if body is not None)
