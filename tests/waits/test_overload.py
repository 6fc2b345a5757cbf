"""Waits at a service that refuses some or all requests, and asks to come back later."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_service._core.waits.watch import MIN_FAILURES
from airflow_provider_service.client._clock import clock
from airflow_provider_service.simulator import ServiceSimulator
from tests.overloaded import refuse_some

from .driving import SENSOR_MODES, Mode, in_event_loop, run_to_end, waits_for
from .polls import ACTIVE_LISTS, CONNECTION, LIST, end, requests_made, small_pages, started


@pytest.fixture(autouse=True)
def ticking() -> Iterator[None]:
    """Somebody else is woken often, so that the clock leaves out no poll in which the service would show the same."""
    over = threading.Event()

    def tick() -> None:
        while not clock().wait(over, 2.0):
            pass

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    yield
    over.set()
    ticker.join(60)


def ended(waits: list[asyncio.Task[Any]]) -> list[Any]:
    return [wait.result() for wait in waits if wait.done()]


@pytest.mark.parametrize("count", [pytest.param(300, marks=pytest.mark.slow), 40])
@in_event_loop
async def test_a_service_that_answers_most_requests_gives_up_no_wait(
    simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setenv(CONNECTION, small_pages(simulator, count // 7))  # eight pages of executions
    ids = started(simulator, workflow_id, count)
    refuse_some(simulator, 0.3)
    waits = waits_for(ids, poll_interval=10.0, fault_tolerance=60.0, deadline=clock().now() + 7200, timeout=7200.0)
    await clock().async_sleep(300)
    assert not ended(waits)
    assert 300 / 10 < requests_made(simulator).total() < 300 / 10 * 40, "no more than a few requests a list"

    for one in ids[::2]:
        simulator.finish_execution(one)
    await clock().async_sleep(300)

    assert [event["verdict"] for event in ended(waits)] == ["succeeded"] * (count // 2)
    assert not ended(waits[1::2])
    await end(waits)


@pytest.mark.parametrize("count", [1, 8], ids=["by id", "listed"])
@in_event_loop
async def test_a_service_that_refuses_all_requests_ends_the_waits_and_is_not_flooded(
    simulator: ServiceSimulator, workflow_id: str, count: int
) -> None:
    ids = started(simulator, workflow_id, count)
    refuse_some(simulator, 1.0)
    begin = clock().now()

    events = await asyncio.gather(*waits_for(ids, poll_interval=5.0, fault_tolerance=60.0, deadline=begin + 7200))

    assert {event["verdict"] for event in events} == {"unobservable"}
    assert "reading it failed for more than 60 s (fault_tolerance), last: too many requests" in events[0]["message"]
    assert "The service asks to wait more than a day" in events[0]["message"]
    assert 60 <= clock().now() - begin < 200
    assert requests_made(simulator).total() <= MIN_FAILURES * len(ACTIVE_LISTS)


@in_event_loop
async def test_a_refused_page_fails_only_what_it_would_have_shown(
    simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(CONNECTION, small_pages(simulator, 10))
    old, new = started(simulator, workflow_id, 5), started(simulator, workflow_id, 10)
    simulator.inject("status", times=None, path=LIST, query="status=running.*cursor=", status=429)
    waits = waits_for([*old, *new], poll_interval=1.0, fault_tolerance=2.0)

    await clock().async_sleep(30)

    assert not ended(waits)
    failing = {record.message.split()[2] for record in caplog.records if record.message.startswith("Reading execution")}
    assert failing == set(old)
    for one in old:
        simulator.finish_execution(one)
    simulator.clear_faults()
    assert {event["verdict"] for event in await asyncio.gather(*waits[: len(old)])} == {"succeeded"}
    await end(waits)


@pytest.mark.parametrize("retry_after", [None, 3600])
@in_event_loop
async def test_a_list_that_is_refused_for_good_hides_no_end(
    simulator: ServiceSimulator, workflow_id: str, caplog: pytest.LogCaptureFixture, retry_after: int | None
) -> None:
    ids = started(simulator, workflow_id, 8)
    query = "status=waiting"
    simulator.inject("status", times=None, path=LIST, query=query, status=503, retry_after=retry_after)
    waits = waits_for(ids, poll_interval=5.0, fault_tolerance=60.0, deadline=clock().now() + 7200, timeout=7200.0)
    await clock().async_sleep(60)
    for one in ids:
        simulator.finish_execution(one)
    await clock().async_sleep(300)

    assert [event["verdict"] for event in ended(waits)] == ["succeeded"] * len(ids)
    assert not [one for one in caplog.messages if "failed; trying again in" in one]


@pytest.mark.parametrize("mode", SENSOR_MODES, ids=lambda mode: mode.name)
def test_the_pause_that_the_service_asks_for_is_kept(mode: Mode, simulator: ServiceSimulator, workflow_id: str) -> None:
    one = simulator.start_execution(workflow_id, status="success")
    simulator.inject("status", status=429, retry_after=40)
    begin = clock().now()

    ending = run_to_end(lambda: mode.task(one, interval=0.05, fault_tolerance=30.0))

    assert ending.kind == "returned", ending
    pause = 0 if mode.pause == "deferred" else 40  # the trigger that takes over has been asked for nothing
    assert pause <= clock().now() - begin < pause + 20
