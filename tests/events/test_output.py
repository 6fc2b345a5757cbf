"""The output of executions as part of their events, where a watcher asks for it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import requests

from airflow_provider_service.client._clock import clock
from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.triggers.events import ServiceExecutionEventTrigger
from tests import airflow_features
from tests.runs.workflows import FAIL, put, puts_out, webhook
from tests.waits.driving import in_event_loop, until

from . import persisting
from .persisting import PersistingTriggerer
from .watching import AssetState, polled, watcher

pytestmark = airflow_features.asset_watchers

SUM = puts_out('={{ {"sum": $json.body.n} }}')


async def event_of(simulator: ServiceSimulator, workflow_id: str, n: Any = 3, **wanted: Any) -> dict[str, Any]:
    """The event of an execution that is started while a watcher runs."""
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher(workflow_id, **wanted))
    await polled(simulator)
    await asyncio.to_thread(requests.post, f"{simulator.base_url}/webhook/w", json={"n": n}, timeout=30)
    await until(lambda: len(triggerer.events(number)) == 1)
    [event] = triggerer.events(number)
    await triggerer.shut_down()
    return dict(event)


@in_event_loop
async def test_the_last_node(simulator: ServiceSimulator) -> None:
    event = await event_of(simulator, put(simulator, webhook(), SUM), return_output="last_node")
    assert (event["output"], event["output_items"]) == ([{"sum": 3}], 1)
    assert "output_path" not in event


@in_event_loop
async def test_a_node_that_is_named(simulator: ServiceSimulator) -> None:
    event = await event_of(simulator, put(simulator, webhook(), SUM), return_output={"node": "Webhook"})
    assert event["output"][0]["body"] == {"n": 3}


@in_event_loop
async def test_output_is_opt_in(simulator: ServiceSimulator) -> None:
    event = await event_of(simulator, put(simulator, webhook(), SUM))
    assert not event.keys() & {"output", "output_items", "output_path"}
    assert not any("includeData" in one.query for one in simulator.requests)


@in_event_loop
async def test_a_failed_execution_has_no_output(simulator: ServiceSimulator) -> None:
    event = await event_of(simulator, put(simulator, webhook(), FAIL), return_output="last_node")
    assert event["status"] == "error"
    assert "output" not in event


@in_event_loop
async def test_output_that_is_too_large_for_the_database_is_left_out(simulator: ServiceSimulator) -> None:
    event = await event_of(simulator, put(simulator, webhook(), SUM), "x" * 50_000, return_output="last_node")
    assert (event["output"], event["output_items"]) == (None, 1)


@in_event_loop
async def test_output_that_cannot_be_read_loses_no_event(
    simulator: ServiceSimulator, caplog: pytest.LogCaptureFixture
) -> None:
    workflow_id = put(simulator, webhook(), SUM)
    simulator.inject("status", times=None, path=r"/executions/\d+$", status=403)
    event = await event_of(simulator, workflow_id, return_output="last_node")
    assert (event["status"], event["output"]) == ("success", None)
    assert "The output of execution 1 cannot be read" in caplog.text


@pytest.mark.slow
@airflow_features.kept_cursors
@in_event_loop
async def test_output_that_cannot_be_read_within_a_minute_holds_up_no_watch(
    simulator: ServiceSimulator, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(persisting, "SYNC_SECONDS", 1.0)
    workflow_id, state = put(simulator, webhook(), SUM), AssetState()
    first, second = PersistingTriggerer(), PersistingTriggerer()
    first.start(watcher(workflow_id, state))
    await until(lambda: state.writes == 1, every=1)
    await first.shut_down()
    for n in range(5):
        await asyncio.to_thread(requests.post, f"{simulator.base_url}/webhook/w", json={"n": n}, timeout=30)
    await clock().async_sleep(1)  # by then all have ended
    simulator.inject("latency", times=None, path=r"/executions/\d+$", seconds=25)

    trigger = watcher(workflow_id, state, return_output="last_node")
    trigger.poll_interval = 1000.0
    began, number = clock().now(), second.start(trigger)
    await until(lambda: state.writes == 2, every=1)

    assert clock().now() - began < 70
    outputs = {event["execution_id"]: event["output"] for event in second.events(number)}
    assert outputs == {"1": [{"sum": 0}], "2": [{"sum": 1}], "3": None, "4": None, "5": None}
    assert "The output of execution 3 is left out: more than 60 s have passed" in caplog.text
    await second.shut_down()


@pytest.mark.parametrize(
    "options",
    [{"return_output": "all"}, {"return_output": "last_node", "max_output_items": 0}, {"max_output_items": 1}],
)
def test_invalid_output_arguments_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ServiceInputError, match="output"):
        ServiceExecutionEventTrigger(workflow_id="w", **options)
