"""Waits of one triggerer that come and go without disturbing each other."""

from __future__ import annotations

import asyncio
import json
import math

import pytest
import requests_mock

from airflow_provider_service._core.arguments import LEAST_POLL_SECONDS
from airflow_provider_service._core.waits import poller
from airflow_provider_service._core.waits.outcome import Outcome
from airflow_provider_service._core.waits.poller import Waiter
from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client._clock import Clock, clock, using
from airflow_provider_service.simulator import ServiceSimulator

from .driving import in_event_loop, polls_of, until, wait_for, waits_for
from .polls import CONNECTION, LIST, MAX_REQUESTS_AT_ONCE, end, poller_threads, pollers, requests_made, started


@in_event_loop
async def test_waits_that_come_and_go_disturb_no_other(simulator: ServiceSimulator, workflow_id: str) -> None:
    ids = started(simulator, workflow_id, 40)
    steady = waits_for(ids[:10])
    for _ in range(10):
        passing = waits_for(ids[10:])
        await clock().async_sleep(0.03)
        await end(passing)

    for one in ids[:10]:
        simulator.finish_execution(one)

    assert [event["execution_id"] for event in await asyncio.gather(*steady)] == ids[:10]
    assert len([name for name in poller_threads() if name]) <= MAX_REQUESTS_AT_ONCE


class Broken(Clock):
    """A clock by which pollers cannot pause, and which remembers for how long they were to."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    async def async_sleep(self, seconds: float, deadline: float = math.inf) -> None:
        if deadline == math.inf:
            await super().async_sleep(seconds)
            return
        self.pauses.append(seconds)
        raise OSError("no time")


@pytest.mark.real_time  # the clock itself is replaced by one that fails
@in_event_loop
async def test_an_error_in_a_pause_ends_no_poller(simulator: ServiceSimulator, workflow_id: str) -> None:
    [one] = started(simulator, workflow_id, 1)
    with using(Broken()):
        [wait] = waits_for([one])
        await until(lambda: polls_of(simulator, one) >= 3)
        simulator.finish_execution(one)

        assert (await wait)["verdict"] == "succeeded"


@pytest.mark.real_time  # here as well
@in_event_loop
async def test_without_an_interval_the_service_is_not_flooded(simulator: ServiceSimulator, workflow_id: str) -> None:
    [one] = started(simulator, workflow_id, 1)
    with using(Broken()) as clock:
        [wait] = waits_for([one], poll_interval=0.0)
        await until(lambda: polls_of(simulator, one) >= 3)
        await end([wait])

    assert min(clock.pauses) >= LEAST_POLL_SECONDS


@in_event_loop
async def test_two_waits_for_one_execution(simulator: ServiceSimulator, workflow_id: str) -> None:
    [one] = started(simulator, workflow_id, 1)
    first, second = waits_for([one, one])
    await until(lambda: polls_of(simulator, one) >= 2)
    simulator.finish_execution(one)

    assert await first == await second
    assert (await first)["verdict"] == "succeeded"


@in_event_loop
async def test_a_wait_that_comes_as_the_last_one_goes_is_served(simulator: ServiceSimulator, workflow_id: str) -> None:
    first, second = started(simulator, workflow_id, 2)
    [wait] = waits_for([first])
    await until(lambda: polls_of(simulator, first) >= 1)
    await end([wait])
    # The poller sleeps between two rounds and does not know yet that nobody waits.
    await clock().async_sleep(0.02)
    [wait] = waits_for([second])
    simulator.finish_execution(second)

    assert (await asyncio.wait_for(wait, 60))["verdict"] == "succeeded"


@pytest.mark.slow
@in_event_loop
async def test_waits_follow_a_changed_key(
    simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = simulator.create_key()
    connection = json.loads(simulator.connection_json())
    monkeypatch.setenv(CONNECTION, json.dumps({**connection, "password": old}))
    ids = started(simulator, workflow_id, 10)
    waits = waits_for(ids)
    await until(lambda: requests_made(simulator)["list running"] >= 1)

    monkeypatch.setenv(CONNECTION, json.dumps({**connection, "password": simulator.create_key()}))
    simulator.revoke_key(old)
    await until(lambda: any(one.status == 401 for one in simulator.requests))
    simulator.clear_requests()
    await until(lambda: requests_made(simulator)["list running"] >= 3)

    assert not any(wait.done() for wait in waits)
    for one in ids:
        simulator.finish_execution(one)
    assert {event["verdict"] for event in await asyncio.gather(*waits)} == {"succeeded"}


@in_event_loop
async def test_waits_follow_a_connection_that_moves_while_the_old_server_answers(
    simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poller, "CONNECTION_CHECK_SECONDS", 0.2)
    [one] = started(simulator, workflow_id, 1)
    with ServiceSimulator() as other:  # before the wait, whose time would pass while it starts
        workflow = other.create_webhook_workflow(path="w")
        assert other.start_execution(workflow["id"], status="success") == one
        [wait] = waits_for([one])
        await until(lambda: polls_of(simulator, one) >= 1)
        monkeypatch.setenv(CONNECTION, other.connection_json())
        event = await wait

    assert event["verdict"] == "succeeded"
    assert event["url"].startswith(other.base_url)


@pytest.mark.parametrize("waits", [1, 6], ids=["by id", "listed"])
@in_event_loop
async def test_an_active_execution_of_another_workflow_is_not_the_one_to_wait_for(
    simulator: ServiceSimulator, workflow_id: str, waits: int
) -> None:
    ids = started(simulator, workflow_id, waits)
    ours = waits_for(ids[:-1], expected_workflow_id=workflow_id)
    [event] = await asyncio.gather(*waits_for(ids[-1:], expected_workflow_id="another"))

    assert (event["verdict"], event["final"]) == ("unobservable", True)
    assert f"'another', but at {simulator.base_url}, that id is of an execution of workflow '{workflow_id}'" in str(
        event
    )
    assert not any(wait.done() for wait in ours)
    await end(ours)


@in_event_loop
async def test_a_connection_that_cannot_be_read_again_does_not_end_waits(
    simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(poller, "CONNECTION_CHECK_SECONDS", 0.1)
    [one] = started(simulator, workflow_id, 1)
    [wait] = waits_for([one])
    await until(lambda: polls_of(simulator, one) >= 1)

    monkeypatch.delenv(CONNECTION)
    await until(lambda: "could not be read again; its waits continue" in caplog.text)
    simulator.finish_execution(one)

    assert (await wait)["verdict"] == "succeeded"


@pytest.mark.parametrize("waits", [1, 6], ids=["by id", "listed"])
@in_event_loop
async def test_a_deadline_that_passes_looks_once_more(
    simulator: ServiceSimulator, workflow_id: str, waits: int
) -> None:
    ids = started(simulator, workflow_id, waits)
    tasks = waits_for(ids, poll_interval=60.0, deadline=clock().now() + 0.7, timeout=0.7)
    await until(lambda: len(simulator.requests) > 0)
    await clock().async_sleep(0.2)
    simulator.finish_execution(ids[0])

    events = await asyncio.gather(*tasks)

    assert [event["verdict"] for event in events] == ["succeeded", *["timed_out"] * (waits - 1)]


@in_event_loop
async def test_a_deadline_that_has_passed_already_leaves_nothing_behind(
    simulator: ServiceSimulator, workflow_id: str
) -> None:
    ended, running = started(simulator, workflow_id, 2)
    simulator.finish_execution(ended)

    events = await asyncio.gather(*waits_for([ended, running], deadline=clock().now() - 100))

    assert [event["verdict"] for event in events] == ["succeeded", "timed_out"]
    await until(lambda: not pollers())


@in_event_loop
async def test_a_poller_without_waits_ends(simulator: ServiceSimulator, workflow_id: str) -> None:
    ids = started(simulator, workflow_id, 10)
    waits = waits_for(ids)
    await until(lambda: requests_made(simulator)["list running"] >= 1)
    assert pollers() == 1
    await end(waits)

    await until(lambda: not pollers())
    simulator.clear_requests()
    await clock().async_sleep(0.2)
    assert not simulator.requests
    # The next wait gets a poller that lives.
    simulator.finish_execution(ids[0])
    [wait] = waits_for(ids[:1])
    assert (await asyncio.wait_for(wait, 60))["verdict"] == "succeeded"


class BrokenWait(Waiter):
    """A wait that cannot even fail properly."""

    def poll(self, client: ServiceClient) -> Outcome | None:
        raise RuntimeError("nobody has thought of this")

    def poll_failed(self, error: Exception, *, is_quiet: bool = False) -> Outcome | None:
        raise RuntimeError("nor of this")


async def broken_waits(count: int) -> list[asyncio.Future[Outcome | None]]:
    shared = await poller.poller_of("service_default", 0.05)
    waits = [BrokenWait(wait_for(str(number))) for number in range(900, 900 + count)]
    for wait in waits:
        shared.join(wait)
        wait.future.add_done_callback(lambda _, wait=wait: shared.leave(wait))  # type: ignore[misc]
    return [wait.future for wait in waits]


@in_event_loop
async def test_a_wait_that_breaks_when_it_looks_ends_no_other(
    simulator: ServiceSimulator, workflow_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    [one] = started(simulator, workflow_id, 1)
    broken, wait = await broken_waits(1), *waits_for([one])
    await until(lambda: caplog.text.count("The wait for execution 900 could not be polled") >= 2)
    assert not wait.done()
    simulator.finish_execution(one)

    assert (await wait)["verdict"] == "succeeded"
    assert not broken[0].done()
    await end(broken)


@in_event_loop
async def test_waits_that_break_when_lists_fail_starve_no_other(simulator: ServiceSimulator, workflow_id: str) -> None:
    simulator.inject("status", times=None, path=LIST, status=503)
    broken, waits = await broken_waits(6), waits_for(started(simulator, workflow_id, 12), fault_tolerance=0.3)

    events = await asyncio.wait_for(asyncio.gather(*waits), 60)

    assert {event["verdict"] for event in events} == {"unobservable"}
    assert not any(one.done() for one in broken)
    await end(broken)


@pytest.mark.parametrize("waits", [1, 6], ids=["by id", "listed"])
@in_event_loop
async def test_an_unknown_status_keeps_waiting(
    simulator: ServiceSimulator, workflow_id: str, waits: int, caplog: pytest.LogCaptureFixture
) -> None:
    ids = started(simulator, workflow_id, waits, "unknown")
    tasks = waits_for(ids)
    await until(lambda: all(polls_of(simulator, one) >= 3 for one in ids))

    assert not any(task.done() for task in tasks)
    assert "has the unknown status 'unknown'; still waiting" in caplog.text
    for one in ids:
        simulator.finish_execution(one, "error", message="m")
    assert {event["verdict"] for event in await asyncio.gather(*tasks)} == {"failed"}


@in_event_loop
async def test_a_status_of_a_later_server_keeps_waiting(simulator: ServiceSimulator, workflow_id: str) -> None:
    [one] = started(simulator, workflow_id, 1)
    with requests_mock.Mocker() as mock:
        statuses = ["paused", "paused", "success"]
        answers = [{"json": {"id": one, "status": status, "workflowId": workflow_id}} for status in statuses]
        mock.get(f"{simulator.api_url}/executions/{one}", answers)
        [wait] = waits_for([one])

        assert (await wait)["verdict"] == "succeeded"


@pytest.mark.slow
@in_event_loop
async def test_the_event_loop_is_never_blocked(simulator: ServiceSimulator, workflow_id: str) -> None:
    ids = started(simulator, workflow_id, 100)
    simulator.inject("latency", times=None, seconds=0.3)
    waits = waits_for(ids)

    # While it is blocked by a request, the event loop does not see that the request is open.
    for answered in (3, 6, 9):
        await until(lambda: any(one.status is None for one in simulator.requests))
        await until(lambda count=answered: sum(one.status is not None for one in simulator.requests) >= count)
    simulator.clear_faults()
    await end(waits)
