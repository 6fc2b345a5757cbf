"""A watcher whose service now has another database or address, so that its kept cursor does not apply."""

from __future__ import annotations

import pytest

from airflow_provider_service.simulator import ServiceSimulator
from tests import airflow_features
from tests.waits.driving import in_event_loop, until

from .persisting import PersistingTriggerer
from .watching import AssetState, ids, polled, watcher

pytestmark = airflow_features.asset_watchers

CONNECTION = "AIRFLOW_CONN_SERVICE_DEFAULT"


async def watched(simulator: ServiceSimulator, workflow_id: str) -> AssetState:
    """The state of a watcher that has reported ends up to number 31."""
    for _ in range(30):
        simulator.start_execution(workflow_id, status="success")
    state = AssetState()
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher(workflow_id, state))
    await polled(simulator)
    simulator.start_execution(workflow_id, status="success")
    await until(lambda: len(triggerer.events(number)) == 1)
    await polled(simulator, 3)
    await triggerer.shut_down()
    return state


def refill(simulator: ServiceSimulator, state: AssetState) -> str:
    """Create a workflow with 5 ended executions, and give the state to its watcher, because its id differs."""
    workflow_id = str(simulator.create_webhook_workflow(path="w")["id"])
    for _ in range(5):
        simulator.start_execution(workflow_id, status="success")
    [kept] = state.kept.values()
    state.kept = {watcher(workflow_id)._cursor_key: kept}
    return workflow_id


async def reports_what_ends_from_now_on(simulator: ServiceSimulator, workflow_id: str, state: AssetState) -> None:
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher(workflow_id, state))
    await polled(simulator, 3)
    assert triggerer.events(number) == [], "ended before the watch began anew"
    running = simulator.start_execution(workflow_id)
    expected = [simulator.start_execution(workflow_id, status="success") for _ in range(40)]
    await until(lambda: len(triggerer.events(number)) >= 40)
    simulator.finish_execution(running)
    await polled(simulator, 4)
    assert ids(triggerer.events(number)) == [*expected, running]
    await triggerer.shut_down()


@pytest.mark.slow
@airflow_features.kept_cursors
@in_event_loop
async def test_another_database_is_logged_and_watched_from_now_on(
    simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    state = await watched(simulator, workflow_id)
    simulator.reset()
    monkeypatch.setenv(CONNECTION, simulator.connection_json())
    workflow_id = refill(simulator, state)

    await reports_what_ends_from_now_on(simulator, workflow_id, state)

    assert "Execution 31 was seen" in caplog.text
    assert caplog.text.count("now 5 is the newest") == 1


@airflow_features.kept_cursors
@in_event_loop
async def test_another_address_is_logged_and_watched_from_now_on(
    simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    state = await watched(simulator, workflow_id)
    with ServiceSimulator() as other:
        monkeypatch.setenv(CONNECTION, other.connection_json())
        workflow_id = refill(other, state)
        for _ in range(50):  # more than were reported: by their ids alone, these would be new
            other.start_execution(workflow_id, status="success")

        await reports_what_ends_from_now_on(other, workflow_id, state)

    assert f"was watched at {simulator.base_url}; the watch starts from scratch at {other.base_url}" in caplog.text


@pytest.mark.slow
@in_event_loop
async def test_a_connection_that_moves_while_it_is_watched(
    simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher("another"))
    await polled(simulator)
    with ServiceSimulator() as other:
        workflow = str(other.create_webhook_workflow(path="w")["id"])
        own = triggerer.start(watcher(workflow))
        await polled(simulator)
        old = other.start_execution(workflow, status="success")
        monkeypatch.setenv(CONNECTION, other.connection_json())
        await polled(other, 3)
        one = other.start_execution(workflow, status="success")
        await until(lambda: len(triggerer.events(own)) > 0)
        await polled(other, 3)

    assert ids(triggerer.events(own)) == [one], f"{old} ended before"
    assert triggerer.events(number) == []
    assert "the watch starts from scratch" in caplog.text
    await triggerer.shut_down()


@pytest.mark.slow
@in_event_loop
async def test_the_newest_execution_is_deleted(
    simulator: ServiceSimulator, workflow_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher(workflow_id))
    await polled(simulator)
    unsaved = simulator.start_execution(workflow_id)
    await polled(simulator)
    simulator.forget_execution(unsaved)
    await polled(simulator, 3)
    assert "is the newest" not in caplog.text, "an execution that was not kept is nothing to warn of"

    told = simulator.start_execution(workflow_id, status="success")
    await until(lambda: ids(triggerer.events(number)) == [told])
    await polled(simulator, 3)
    simulator.forget_execution(told)
    after = simulator.start_execution(workflow_id, status="success")
    await until(lambda: len(triggerer.events(number)) > 1)

    await polled(simulator, 3)
    assert ids(triggerer.events(number)) == [told, after]
    await triggerer.shut_down()
