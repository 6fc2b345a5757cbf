"""Ends of executions as events: each is reported once, whatever happens between two polls."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_service.client._clock import clock
from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing._service import revived
from airflow_provider_service.triggers.events import ServiceExecutionEventTrigger
from tests import airflow_features
from tests.waits.driving import in_event_loop, until

from .persisting import PersistingTriggerer
from .watching import INTERVAL, AssetState, ids, polled, polls, watcher

pytestmark = airflow_features.asset_watchers


@pytest.mark.slow
@in_event_loop
async def test_each_end_is_reported_once_in_any_order(simulator: ServiceSimulator, workflow_id: str) -> None:
    old = simulator.start_execution(workflow_id, status="success")
    first, second, third = (simulator.start_execution(workflow_id) for _ in range(3))
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher(workflow_id))
    await polled(simulator)
    assert triggerer.events(number) == [], f"{old} ended before the beginning"

    for one, status in ((third, "error"), (first, "success"), (second, "canceled")):
        simulator.finish_execution(one, status)
        await polled(simulator)

    assert [(event["execution_id"], event["status"]) for event in triggerer.events(number)] == [
        (third, "error"),
        (first, "success"),
        (second, "canceled"),
    ]
    await polled(simulator, 4)
    assert len(triggerer.events(number)) == 3
    await triggerer.shut_down()


@in_event_loop
async def test_an_event_says_what_ended(simulator: ServiceSimulator, workflow_id: str) -> None:
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher(workflow_id))
    await polled(simulator)
    one = simulator.start_execution(workflow_id, status="success")
    await until(lambda: len(triggerer.events(number)) == 1)

    [event] = triggerer.events(number)
    assert event.pop("started_at") <= event.pop("stopped_at")
    assert event == {
        "execution_id": one,
        "workflow_id": workflow_id,
        "status": "success",
        "url": f"{simulator.base_url}/workflow/{workflow_id}/executions/{one}",
    }
    await triggerer.shut_down()


@in_event_loop
async def test_executions_that_start_and_end_between_two_polls(simulator: ServiceSimulator, workflow_id: str) -> None:
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher(workflow_id))
    await polled(simulator)

    short = [simulator.start_execution(workflow_id, status="success") for _ in range(5)]

    await until(lambda: len(triggerer.events(number)) == 5)
    await polled(simulator, 3)
    assert ids(triggerer.events(number)) == short
    await triggerer.shut_down()


@in_event_loop
async def test_only_wanted_ends_of_the_workflow_are_reported(simulator: ServiceSimulator, workflow_id: str) -> None:
    other = simulator.create_webhook_workflow(path="other")["id"]
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher(workflow_id, statuses=["error", "crashed"]))
    await polled(simulator)

    statuses = ("success", "error", "canceled", "crashed")
    started = [simulator.start_execution(workflow_id, status=status) for status in statuses]
    simulator.start_execution(other, status="error")
    await polled(simulator, 4)

    assert ids(triggerer.events(number)) == [started[1], started[3]]
    await triggerer.shut_down()


@pytest.mark.slow
@in_event_loop
async def test_one_that_runs_for_long_and_one_that_sleeps(simulator: ServiceSimulator, workflow_id: str) -> None:
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher(workflow_id))
    await polled(simulator)
    running, waiting, queued = (
        simulator.start_execution(workflow_id, status=status) for status in ("running", "waiting", "new")
    )
    for _ in range(4):
        simulator.start_execution(workflow_id, status="success")
        await polled(simulator)
    assert len(triggerer.events(number)) == 4

    for one in (waiting, queued, running):
        simulator.finish_execution(one)
        await polled(simulator)

    assert ids(triggerer.events(number))[4:] == [waiting, queued, running]
    await triggerer.shut_down()


@pytest.mark.parametrize("age", [timedelta(), timedelta(hours=1)], ids=["just now", "long ago"])
@in_event_loop
async def test_one_that_younger_ones_overtook_in_the_queue_is_reported_if_it_ends_between_two_polls(
    age: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ServiceSimulator(queue_mode=True) as simulator:
        monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", simulator.connection_json())
        ours, other = (simulator.create_webhook_workflow(path=path)["id"] for path in ("ours", "other"))
        triggerer = PersistingTriggerer()
        number = triggerer.start(watcher(ours))
        await polled(simulator)
        one = simulator.start_execution(ours, status="new")  # no list shows it
        for _ in range(3):
            simulator.start_execution(other, status="success")
            await polled(simulator)

        def end() -> None:
            simulator.state.engine.finish(execution, "success")
            execution.stopped_at -= age

        execution: Any = simulator.state.executions.get(int(one))
        simulator.in_loop(end)
        await polled(simulator, 4)

        # One that ended long ago is new to the watcher only because the key can see it now.
        assert ids(triggerer.events(number)) == ([one] if not age else [])
        await triggerer.shut_down()


@pytest.mark.slow
@in_event_loop
async def test_an_execution_that_was_not_kept_is_dropped(simulator: ServiceSimulator, workflow_id: str) -> None:
    gone, kept = (simulator.start_execution(workflow_id) for _ in range(2))
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher(workflow_id))
    await polled(simulator)
    for _ in range(3):  # so that both are older than what every poll reads again
        simulator.start_execution(workflow_id, status="success")
        await polled(simulator)

    simulator.forget_execution(gone)
    await polled(simulator)
    simulator.finish_execution(kept)
    await until(lambda: kept in ids(triggerer.events(number)))

    assert gone not in ids(triggerer.events(number))
    assert [status for one, status in reads(simulator) if one == gone] == [404]
    await triggerer.shut_down()


def reads(simulator: ServiceSimulator) -> list[tuple[str, int]]:
    """The executions that were read by id, and the status of the answers."""
    requests = [(one.path.rpartition("/executions/")[2], one.status) for one in simulator.requests]
    return [(one, status) for one, status in requests if one.isdigit()]


@pytest.mark.slow
@in_event_loop
async def test_an_execution_that_cannot_be_read_hides_no_other(
    simulator: ServiceSimulator, workflow_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    other = simulator.create_webhook_workflow(path="other")["id"]
    unreadable, readable, theirs = (simulator.start_execution(one) for one in (workflow_id, workflow_id, other))
    triggerer = PersistingTriggerer()
    mine, others = triggerer.start(watcher(workflow_id)), triggerer.start(watcher(other))
    await polled(simulator)
    for _ in range(3):  # so that they are older than what every poll reads again
        simulator.start_execution(other, status="success")
        await polled(simulator)
    simulator.inject("status", times=None, path=f"/executions/{unreadable}$", status=503)

    for one in (unreadable, readable, theirs):
        simulator.finish_execution(one)
    await until(lambda: len(triggerer.events(mine)) == 1)
    new = simulator.start_execution(workflow_id, status="success")
    await until(lambda: len(triggerer.events(mine)) == 2)
    await polled(simulator, 4)
    assert ids(triggerer.events(mine)) == [readable, new]
    assert ids(triggerer.events(others))[-1] == theirs
    assert f"Cannot read whether execution {unreadable} has ended" in caplog.text
    assert triggerer.broken() == []

    simulator.clear_faults()
    await until(lambda: len(triggerer.events(mine)) == 3)
    assert ids(triggerer.events(mine)) == [readable, new, unreadable]
    await triggerer.shut_down()


@in_event_loop
async def test_only_watched_ends_are_read_and_each_once(simulator: ServiceSimulator, workflow_id: str) -> None:
    other = simulator.create_webhook_workflow(path="other")["id"]
    theirs = [simulator.start_execution(other) for _ in range(300)]
    mine = [simulator.start_execution(workflow_id) for _ in range(3)]
    triggerer = PersistingTriggerer()
    numbers = [
        triggerer.start(watcher(workflow_id, statuses=statuses)) for statuses in (["success"], ["success", "error"])
    ]
    await polled(simulator)
    for _ in range(3):
        simulator.start_execution(workflow_id, status="canceled")
        await polled(simulator)

    for one in (*theirs, *mine):
        simulator.finish_execution(one)
    await polled(simulator, 4)

    for number in numbers:
        assert ids(triggerer.events(number)) == mine
    # An execution may be read while it is still running, where it ends between two lists.
    assert {one for one, _ in reads(simulator)} == set(mine)
    assert len(reads(simulator)) <= 2 * len(mine)
    await triggerer.shut_down()


@airflow_features.shared_polls
@in_event_loop
async def test_watchers_share_one_poll(simulator: ServiceSimulator, workflow_id: str) -> None:
    other = simulator.create_webhook_workflow(path="other")["id"]
    triggerer = PersistingTriggerer()
    first = triggerer.start(watcher(workflow_id))
    second = triggerer.start(watcher(other))
    only_errors = triggerer.start(watcher(other, statuses=["error"]))
    await polled(simulator)
    simulator.start_execution(other, status="success")
    late = triggerer.start(watcher(workflow_id))
    await polled(simulator)
    begin, seen = clock().monotonic(), polls(simulator)

    mine = simulator.start_execution(workflow_id, status="success")
    theirs = simulator.start_execution(other, status="error")
    await polled(simulator, 4)

    assert ids(triggerer.events(first)) == ids(triggerer.events(late)) == [mine]
    assert ids(triggerer.events(second))[1:] == ids(triggerer.events(only_errors)) == [theirs]
    passed = clock().monotonic() - begin
    assert polls(simulator) - seen <= passed / INTERVAL + 1
    await triggerer.shut_down()


@pytest.mark.slow
@in_event_loop
async def test_faults_are_logged_and_survived(
    simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    state = AssetState()
    state.faults = 2
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher(workflow_id, state))
    await polled(simulator)
    told: list[str] = []

    async def still_tells() -> None:
        told.append(simulator.start_execution(workflow_id, status="success"))
        await until(lambda: ids(triggerer.events(number)) == told)

    await still_tells()
    simulator.inject("status", times=4, status=500)
    simulator.inject("drop", times=3)
    await still_tells()
    simulator.restart(boot_seconds=3600)
    await until(lambda: "HTTP 404" in caplog.text)
    simulator.restart(boot_seconds=0)
    await still_tells()
    state.faults = 3
    await still_tells()
    monkeypatch.delenv("AIRFLOW_CONN_SERVICE_DEFAULT")
    await until(lambda: "Airflow has no such connection" in caplog.text)
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", simulator.connection_json())
    await still_tells()
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps({"conn_type": "service", "host": "https://x"}))
    await until(lambda: "password is empty" in caplog.text)
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", simulator.connection_json())
    await still_tells()

    for text in ("the state cannot be reached", "HTTP 500"):
        assert text in caplog.text
    assert simulator.api_key not in caplog.text
    assert triggerer.broken() == []
    await triggerer.shut_down()


@in_event_loop
async def test_a_rotated_key_is_picked_up(
    simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher(workflow_id))
    await polled(simulator)
    new = simulator.create_key()
    simulator.revoke_key(simulator.api_key)
    await until(lambda: any(one.status == 401 for one in simulator.requests))
    one = simulator.start_execution(workflow_id, status="success")
    connection = {**json.loads(simulator.connection_json()), "password": new}
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps(connection))

    await until(lambda: ids(triggerer.events(number)) == [one])
    await triggerer.shut_down()


@in_event_loop
async def test_a_watcher_polls_alone_if_airflow_shares_no_streams(
    simulator: ServiceSimulator, workflow_id: str
) -> None:
    async def payloads(stream: AsyncIterator[Any]) -> str:
        async for event in stream:
            return str(event.payload["execution_id"])
        raise AssertionError("the stream has ended")

    told = asyncio.ensure_future(payloads(watcher(workflow_id).run()))
    await polled(simulator)
    one = simulator.start_execution(workflow_id, status="success")

    assert await told == one


@pytest.mark.parametrize("interval", [0, "soon", True])
def test_an_interval_without_meaning(interval: Any) -> None:
    with pytest.raises(ServiceInputError, match=r"^poll_interval must be a timedelta or a number of seconds above 0"):
        ServiceExecutionEventTrigger(workflow_id="w", poll_interval=interval)


def test_an_interval_may_be_a_timedelta() -> None:
    [half_a_minute, default] = (
        ServiceExecutionEventTrigger(workflow_id="w", **given).serialize()
        for given in ({"poll_interval": timedelta(seconds=30)}, {})
    )
    assert half_a_minute == default


@pytest.mark.parametrize("statuses", [[], ["fine"], "success", ["success", "running"]])
def test_an_invalid_list_of_ends(statuses: Any) -> None:
    with pytest.raises(ValueError, match="statuses must be a list of success, error, canceled, crashed"):
        ServiceExecutionEventTrigger(workflow_id="w", statuses=statuses)


def test_stored_arguments_and_sharing_depend_only_on_relevant_arguments() -> None:
    one, same, other = (
        ServiceExecutionEventTrigger(workflow_id=workflow, statuses=statuses, service_conn_id=connection)
        for workflow, statuses, connection in (
            ("w", ["success", "error"], "a"),
            ("w", ("error", "success"), "a"),
            ("v", ["error"], "b"),
        )
    )

    # Airflow keeps one trigger for watchers of the same arguments.
    assert one.serialize() == same.serialize() == revived(one).serialize()
    assert one.shared_stream_key() == same.shared_stream_key() != other.shared_stream_key()
    json.dumps(one.serialize())


@pytest.mark.slow
@in_event_loop
async def test_an_outage_is_reported_once_and_its_end_once(
    simulator: ServiceSimulator, workflow_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher(workflow_id))
    await polled(simulator)
    simulator.inject("status", times=None, status=503)
    await until(lambda: sum(one.status == 503 for one in simulator.requests) >= 20)
    simulator.clear_faults()
    await polled(simulator)
    one = simulator.start_execution(workflow_id, status="success")
    await until(lambda: ids(triggerer.events(number)) == [one])
    await triggerer.shut_down()

    lines = [(record.levelname, record.message) for record in caplog.records if "Reading " in record.message]
    assert [level for level, _ in lines] == ["WARNING", "INFO"], lines
    begin = "Reading executions for the watches at connection 'service_default' fails; trying again until it works: "
    assert lines[0][1].startswith(begin)
    assert "Reading executions for the watches at connection 'service_default' works again, after " in lines[1][1]
