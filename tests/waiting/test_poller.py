"""Waits of one triggerer share their requests, and none disturbs another."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest
import requests_mock

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.hooks.connection import config_for
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.triggers import polling
from airflow_provider_service.waiting import Outcome, Watch

from .driving import in_event_loop, looks_at, until, waits_for

LIST = "/executions$"
# JSON that Python's decoder gives up on.
NOBODY_CAN_READ = "[" * 200_000
CONNECTION = "AIRFLOW_CONN_SERVICE_DEFAULT"


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_open() -> Iterator[None]:
    """An open socket that is found afterwards fails the last test as a ResourceWarning."""
    yield
    gc.collect()


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """After each test the pollers' threads have ended."""
    yield
    end = time.monotonic() + 5
    while poller_threads() and time.monotonic() < end:
        time.sleep(0.01)
    assert not poller_threads()


def poller_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("service-poller")]


def started(simulator: ServiceSimulator, workflow_id: str, count: int, status: str = "running") -> list[str]:
    return [simulator.start_execution(workflow_id, status=status) for _ in range(count)]


def requests_made(simulator: ServiceSimulator) -> Counter[str]:
    """Lists by status, and reads by id."""
    found: Counter[str] = Counter()
    for one in list(simulator.requests):
        status = re.search("status=([a-z]+)", one.query)
        found[f"list {status[1] if status else ''}" if one.path.endswith("/executions") else "read"] += 1
    return found


async def one_round(simulator: ServiceSimulator) -> Counter[str]:
    """The requests of the next round, for waits with an interval of 0.4 s."""
    simulator.clear_requests()
    await until(lambda: len(simulator.requests) > 0)
    await asyncio.sleep(0.2)
    return requests_made(simulator)


async def end(waits: list[asyncio.Task[object]]) -> None:
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)


ACTIVE_LISTS = {"list new": 1, "list running": 1, "list waiting": 1}


@in_event_loop
async def test_few_waits_are_read_by_id(simulator: ServiceSimulator, workflow_id: str) -> None:
    waits = waits_for(started(simulator, workflow_id, 3), poll_interval=0.4)

    assert await one_round(simulator) == {"read": 3}
    assert await one_round(simulator) == {"read": 3}
    await end(waits)


@in_event_loop
async def test_many_waits_are_listed(simulator: ServiceSimulator, workflow_id: str) -> None:
    ids = [*started(simulator, workflow_id, 20), *started(simulator, workflow_id, 20, "waiting")]
    waits = waits_for(ids, poll_interval=0.4)

    assert await one_round(simulator) == ACTIVE_LISTS

    for one in ids[:2]:
        simulator.finish_execution(one)
    assert await one_round(simulator) == {**ACTIVE_LISTS, "read": 2}
    assert [wait.result()["verdict"] for wait in waits if wait.done()] == ["succeeded"] * 2

    for one in ids[2:30]:
        simulator.finish_execution(one, "error" if one == ids[2] else "success")
    # Those that succeeded are seen in one list; why one has failed takes a read of its own.
    assert await one_round(simulator) == {**ACTIVE_LISTS, "list success": 1, "read": 2}
    assert Counter(wait.result()["verdict"] for wait in waits if wait.done()) == {"succeeded": 29, "failed": 1}
    await end(waits)


@in_event_loop
async def test_lists_that_are_longer_than_the_waits_are_many(
    simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CONNECTION, small_pages(simulator, 4))
    watched = started(simulator, workflow_id, 9)
    others = started(simulator, workflow_id, 60)
    waits = waits_for(watched, poll_interval=0.05)

    await until(lambda: looks_at(simulator, watched[0]) >= 3)

    # Nine pages were enough to see that the list of running ones does not pay.
    assert requests_made(simulator)["list running"] == 9
    assert not any(wait.done() for wait in waits)
    for one in others:
        simulator.forget_execution(one)
    # A try now and then finds that the lists have become short.
    await until(lambda: requests_made(simulator)["list running"] >= 9 + 3)
    reads = requests_made(simulator)["read"]
    await until(lambda: requests_made(simulator)["list running"] >= 9 + 3 * 4)
    assert requests_made(simulator)["read"] == reads
    await end(waits)


def small_pages(simulator: ServiceSimulator, page_size: int) -> str:
    return json.dumps({**json.loads(simulator.connection_json()), "extra": {"page_size": page_size}})


@in_event_loop
async def test_old_executions_below_the_watched_ones_are_not_listed(
    simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CONNECTION, small_pages(simulator, 5))
    started(simulator, workflow_id, 50)
    waits = waits_for(started(simulator, workflow_id, 8), poll_interval=0.4)

    assert await one_round(simulator) == {**ACTIVE_LISTS, "list running": 2}
    await end(waits)


@pytest.mark.parametrize(
    ("fault", "scopes"),
    [(None, ["execution:read"]), (400, None), (405, None)],
    ids=["no scope", "refused", "not offered"],
)
@in_event_loop
async def test_without_lists_each_is_read_by_id(
    simulator: ServiceSimulator,
    workflow_id: str,
    monkeypatch: pytest.MonkeyPatch,
    fault: int | None,
    scopes: list[str] | None,
) -> None:
    if scopes is not None:
        key = simulator.create_key(scopes)
        monkeypatch.setenv(CONNECTION, json.dumps({**json.loads(simulator.connection_json()), "password": key}))
    if fault is not None:
        simulator.inject("status", times=None, path=LIST, status=fault)
    ids = started(simulator, workflow_id, 12)
    waits = waits_for(ids)

    await until(lambda: all(looks_at(simulator, one) >= 2 for one in ids))

    assert sum(one.path.endswith("/executions") for one in simulator.requests) == 3
    assert not any(wait.done() for wait in waits)
    for one in ids:
        simulator.finish_execution(one)
    assert {event["verdict"] for event in await asyncio.gather(*waits)} == {"succeeded"}


@in_event_loop
async def test_a_list_that_can_not_be_understood_is_replaced_by_reads(
    simulator: ServiceSimulator, workflow_id: str
) -> None:
    simulator.inject("html", times=3, path=LIST, status=200)
    ids = started(simulator, workflow_id, 6)
    waits = waits_for(ids, poll_interval=0.4)

    await until(lambda: requests_made(simulator)["read"] == 6)

    assert await one_round(simulator) == ACTIVE_LISTS
    await end(waits)


@in_event_loop
async def test_one_bad_execution_does_not_fail_its_neighbours(simulator: ServiceSimulator, workflow_id: str) -> None:
    ids = started(simulator, workflow_id, 6, "unknown")
    bad, good = ids[2], [*ids[:2], *ids[3:]]
    simulator.inject("status", times=None, path=f"/executions/{bad}$", status=500)
    bad_wait, *good_waits = waits_for([bad, *good])

    event = await bad_wait

    assert event["verdict"] == "unobservable"
    assert "HTTP 500" in event["message"]
    assert not any(wait.done() for wait in good_waits)
    for one in good:
        simulator.finish_execution(one)
    assert {event["verdict"] for event in await asyncio.gather(*good_waits)} == {"succeeded"}


@in_event_loop
async def test_faulty_lists_are_tolerated_for_a_while(
    simulator: ServiceSimulator, workflow_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    simulator.inject("status", times=9, path=LIST, status=503)  # three rounds of three lists
    ids = started(simulator, workflow_id, 8)
    waits = waits_for(ids, fault_tolerance=0.5)

    await until(lambda: requests_made(simulator)["list running"] >= 5)

    assert sum("could not be listed" in record.message for record in caplog.records) == 3
    assert not any(wait.done() for wait in waits)
    simulator.inject("status", times=None, path=LIST, status=503)
    events = await asyncio.gather(*waits)
    assert {event["verdict"] for event in events} == {"unobservable"}
    assert {event["message"].partition(": ")[2] for event in events} == {
        "reading it failed for more than 0.5 s, last: GET /executions: the service is not available now (HTTP 503) "
        "- the service says: 'Service Unavailable'"
    }


@in_event_loop
async def test_waits_that_come_and_go_disturb_no_other(simulator: ServiceSimulator, workflow_id: str) -> None:
    ids = started(simulator, workflow_id, 40)
    steady = waits_for(ids[:10])
    for _ in range(10):
        passing = waits_for(ids[10:])
        await asyncio.sleep(0.03)
        await end(passing)

    for one in ids[:10]:
        simulator.finish_execution(one)

    assert [event["execution_id"] for event in await asyncio.gather(*steady)] == ids[:10]
    assert len([name for name in poller_threads() if name]) <= polling.MAX_REQUESTS_AT_ONCE


@in_event_loop
async def test_two_waits_for_one_execution(simulator: ServiceSimulator, workflow_id: str) -> None:
    [one] = started(simulator, workflow_id, 1)
    first, second = waits_for([one, one])
    await until(lambda: looks_at(simulator, one) >= 2)
    simulator.finish_execution(one)

    assert await first == await second
    assert (await first)["verdict"] == "succeeded"


@in_event_loop
async def test_a_wait_that_comes_as_the_last_one_goes_is_served(simulator: ServiceSimulator, workflow_id: str) -> None:
    first, second = started(simulator, workflow_id, 2)
    [wait] = waits_for([first])
    await until(lambda: looks_at(simulator, first) >= 1)
    await end([wait])
    # The poller sleeps between two rounds and does not know yet that nobody waits.
    await asyncio.sleep(0.02)
    [wait] = waits_for([second])
    simulator.finish_execution(second)

    assert (await asyncio.wait_for(wait, 2))["verdict"] == "succeeded"


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
    monkeypatch.setattr(polling, "CONNECTION_CHECK_SECONDS", 0.2)
    [one] = started(simulator, workflow_id, 1)
    [wait] = waits_for([one])
    await until(lambda: looks_at(simulator, one) >= 1)

    with ServiceSimulator() as other:
        workflow = other.create_webhook_workflow(path="w")
        assert other.start_execution(workflow["id"], status="success") == one
        monkeypatch.setenv(CONNECTION, other.connection_json())
        event = await wait

    assert event["verdict"] == "succeeded"
    assert event["url"].startswith(other.base_url)


@in_event_loop
async def test_a_connection_that_can_not_be_read_again_does_not_end_waits(
    simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(polling, "CONNECTION_CHECK_SECONDS", 0.1)
    [one] = started(simulator, workflow_id, 1)
    [wait] = waits_for([one])
    await until(lambda: looks_at(simulator, one) >= 1)

    monkeypatch.delenv(CONNECTION)
    await until(lambda: "could not be read again; its waits go on" in caplog.text)
    simulator.finish_execution(one)

    assert (await wait)["verdict"] == "succeeded"


@pytest.mark.parametrize("waits", [1, 6], ids=["by id", "listed"])
@in_event_loop
async def test_a_deadline_that_passes_looks_once_more(
    simulator: ServiceSimulator, workflow_id: str, waits: int
) -> None:
    ids = started(simulator, workflow_id, waits)
    tasks = waits_for(ids, poll_interval=60.0, deadline=time.time() + 0.7, timeout=0.7)
    await until(lambda: len(simulator.requests) > 0)
    await asyncio.sleep(0.2)
    simulator.finish_execution(ids[0])

    events = await asyncio.gather(*tasks)

    assert [event["verdict"] for event in events] == ["succeeded", *["timed_out"] * (waits - 1)]


@in_event_loop
async def test_a_deadline_that_has_passed_already_leaves_nothing_behind(
    simulator: ServiceSimulator, workflow_id: str
) -> None:
    ended, running = started(simulator, workflow_id, 2)
    simulator.finish_execution(ended)

    events = await asyncio.gather(*waits_for([ended, running], deadline=time.time() - 100))

    assert [event["verdict"] for event in events] == ["succeeded", "timed_out"]
    await until(lambda: not poller_threads())


@in_event_loop
async def test_a_poller_without_waits_ends(simulator: ServiceSimulator, workflow_id: str) -> None:
    ids = started(simulator, workflow_id, 10)
    waits = waits_for(ids)
    await until(lambda: requests_made(simulator)["list running"] >= 1)
    assert poller_threads()
    await end(waits)

    await until(lambda: not poller_threads())
    simulator.clear_requests()
    await asyncio.sleep(0.2)
    assert not simulator.requests


@in_event_loop
async def test_answers_that_break_the_decoder_are_faults_like_others(
    simulator: ServiceSimulator, workflow_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    ids = started(simulator, workflow_id, 20)
    bad, good = ids[:10], ids[10:]
    with requests_mock.Mocker(real_http=True) as mock:
        mock.get(re.compile("/executions[?]"), text=NOBODY_CAN_READ)
        for one in bad:
            mock.get(f"{simulator.api_url}/executions/{one}", text=NOBODY_CAN_READ)
        bad_waits, good_waits = waits_for(bad), waits_for(good)
        bad_events = await asyncio.gather(*bad_waits)
        assert not any(wait.done() for wait in good_waits)
        for one in good:
            simulator.finish_execution(one)
        good_events = await asyncio.gather(*good_waits)

    assert {event["verdict"] for event in bad_events} == {"unobservable"}
    assert {event["verdict"] for event in good_events} == {"succeeded"}
    assert "A list of executions can not be read, so each is read by id" in caplog.text


class BrokenWatch(Watch):
    """A wait that can not even fail properly."""

    def look(self, client: ServiceClient) -> Outcome | None:
        raise RuntimeError("nobody has thought of this")


@in_event_loop
async def test_a_round_that_breaks_ends_no_wait(
    simulator: ServiceSimulator, workflow_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    [one] = started(simulator, workflow_id, 1)
    poller = polling.poller_for(await config_for("service_default"), 0.05)
    with poller.subscription(BrokenWatch("77"), "service_default") as broken:
        [wait] = waits_for([one])
        await until(lambda: caplog.text.count("A round of polling failed; the next begins in 0.05 s") >= 2)
        assert not wait.done()
        simulator.finish_execution(one)

        assert (await wait)["verdict"] == "succeeded"
        assert not broken.done()


@pytest.mark.parametrize("waits", [1, 6], ids=["by id", "listed"])
@in_event_loop
async def test_an_unknown_status_keeps_waiting(
    simulator: ServiceSimulator, workflow_id: str, waits: int, caplog: pytest.LogCaptureFixture
) -> None:
    ids = started(simulator, workflow_id, waits, "unknown")
    tasks = waits_for(ids)
    await until(lambda: all(looks_at(simulator, one) >= 3 for one in ids))

    assert not any(task.done() for task in tasks)
    assert "has the unknown status 'unknown'; waiting on" in caplog.text
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


@in_event_loop
async def test_a_slow_read_does_not_hold_up_the_others(simulator: ServiceSimulator, workflow_id: str) -> None:
    slow, fast, other = started(simulator, workflow_id, 3)
    simulator.inject("latency", path=f"/executions/{slow}$", seconds=1.0)
    slow_wait, fast_wait, _ = waits = waits_for([slow, fast, other])
    simulator.finish_execution(slow)
    simulator.finish_execution(fast)
    begin = time.monotonic()

    assert (await fast_wait)["verdict"] == "succeeded"
    assert time.monotonic() - begin < 0.5
    assert (await slow_wait)["verdict"] == "succeeded"
    await end(waits)


@in_event_loop
async def test_the_event_loop_is_never_blocked(simulator: ServiceSimulator, workflow_id: str) -> None:
    ids = started(simulator, workflow_id, 100)
    simulator.inject("latency", times=None, seconds=0.3)
    waits = waits_for(ids)
    beats = 0
    begin = time.monotonic()
    while time.monotonic() - begin < 1.0:
        await asyncio.sleep(0.01)
        beats += 1

    assert beats > 50
    simulator.clear_faults()
    await end(waits)
