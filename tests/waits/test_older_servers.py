"""Servers that do not know every status of executions, or do not select by it."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import requests_mock
from starlette.types import ASGIApp

from airflow_provider_service._core.events.finished_executions import ExecutionPoll
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.simulator import ServiceSimulator

from .driving import in_event_loop, until, waits_for
from .polls import end, requests_made, started

ADDRESS = "https://service.example.com"


def test_a_status_that_cannot_be_listed_hides_no_other(requests_mock: requests_mock.Mocker) -> None:
    def listed(request: Any, context: Any) -> dict[str, Any]:
        context.headers["Content-Type"] = "application/json"
        status = request.qs.get("status", [None])[0]
        if status == "new":
            context.status_code = 400
            return {"message": "request/query/status must be equal to one of the allowed values: running, waiting"}
        found = [{"id": "7", "status": "running", "workflowId": "w"}] if status == "running" else []
        return {"data": found, "nextCursor": None}

    requests_mock.get(f"{ADDRESS}/api/v1/executions", json=listed)

    with ServiceClient(ServiceConfig(base_url=ADDRESS, api_key="key")) as client:
        assert [one.id for one in ExecutionPoll().snapshot(client).active] == ["7"]


def selecting_by_no_status(app: ASGIApp) -> ASGIApp:
    """A server that lists executions of every status, whichever is asked for."""

    async def layer(scope: Any, receive: Any, send: Any) -> None:
        query = re.sub(rb"&?status=[a-z]+", b"", scope["query_string"])
        await app({**scope, "query_string": query}, receive, send)

    return layer


@in_event_loop
async def test_an_ended_execution_in_a_list_of_active_ones_is_not_active(
    simulator: ServiceSimulator, workflow_id: str
) -> None:
    simulator.wrap(selecting_by_no_status)
    ids = started(simulator, workflow_id, 20, "waiting")
    waits = waits_for(ids)
    await until(lambda: requests_made(simulator)["list waiting"] >= 2)
    assert not any(wait.done() for wait in waits)

    for one in ids[:12]:
        simulator.finish_execution(one, "error" if one == ids[0] else "success")
    events = await asyncio.wait_for(asyncio.gather(*waits[:12]), 60)

    assert [event["verdict"] for event in events] == ["failed", *["succeeded"] * 11]
    assert "ended with status 'error'" in events[0]["message"]
    assert not any(wait.done() for wait in waits[12:])
    await end(waits[12:])
