from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from .api_client import Api

UNITS = {
    "total": "count",
    "failed": "count",
    "failureRate": "ratio",
    "timeSaved": "minute",
    "averageRunTime": "millisecond",
}


def summary(api: Api, **query: str) -> dict[str, Any]:
    encoded = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
    answer = api.get(f"/insights/summary?{encoded}")
    assert answer.status_code == 200, answer.text
    figures: dict[str, Any] = answer.json()
    assert {name: figure["unit"] for name, figure in figures.items()} == UNITS
    return figures


def values(figures: dict[str, Any]) -> dict[str, Any]:
    return {name: figure["value"] for name, figure in figures.items()}


def test_nothing_has_run(api: Api) -> None:
    assert set(values(summary(api)).values()) == {0}
    assert all(figure["deviation"] is None for figure in summary(api).values())


def test_finished_executions_are_counted(api: Api) -> None:
    workflow = api.simulator.create_webhook_workflow(path="p")
    api.simulator.state.workflows.get(workflow["id"]).settings["timeSavedPerExecution"] = 5
    for status in ("success", "success", "success", "error", "canceled", "running"):
        execution_id = api.simulator.start_execution(workflow["id"])
        if status != "running":
            api.simulator.clock.advance(10)
            api.simulator.finish_execution(execution_id, status)
    figures = values(summary(api))
    assert (figures["total"], figures["failed"], figures["failureRate"]) == (4, 1, 0.25)
    assert figures["timeSaved"] == 15
    assert figures["averageRunTime"] == pytest.approx(10_000, rel=0.05)
    assert values(summary(api, projectId="nope"))["total"] == 0
    assert values(summary(api, projectId=api.simulator.state.personal_project_id))["total"] == 4


def test_the_deviation_compares_with_the_span_before(api: Api) -> None:
    workflow = api.simulator.create_webhook_workflow(path="p")
    api.simulator.start_execution(workflow["id"], status="error")
    api.simulator.clock.advance(8 * 86_400)
    for _ in range(3):
        api.simulator.start_execution(workflow["id"], status="success")
    figures = summary(api)
    assert (figures["total"]["value"], figures["total"]["deviation"]) == (3, 2)
    assert (figures["failureRate"]["value"], figures["failureRate"]["deviation"]) == (0, -1)


def test_dates_narrow_the_span(api: Api) -> None:
    workflow = api.simulator.create_webhook_workflow(path="p")
    api.simulator.start_execution(workflow["id"], status="success")
    api.simulator.clock.advance(60)
    before = api.simulator.state.stamp()
    api.simulator.clock.advance(60)
    api.simulator.start_execution(workflow["id"], status="success")
    assert values(summary(api))["total"] == 2
    assert values(summary(api, startDate=before))["total"] == 1
    assert values(summary(api, startDate="2020-01-01T00:00:00Z", endDate=before))["total"] == 1


def test_an_old_span_needs_a_license(api: Api) -> None:
    api.simulator.state.licensed = False
    answer = api.get("/insights/summary?startDate=2020-01-01T00%3A00%3A00Z")
    text = "The selected date range exceeds the maximum history allowed by your license"
    assert (answer.status_code, answer.json()) == (403, {"message": text})
