"""How waits of one triggerer share their requests, and what happens when those fail."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections import Counter

import pytest
import requests_mock

from airflow_provider_service._core.waits import poller
from airflow_provider_service.client._clock import clock
from airflow_provider_service.simulator import ServiceSimulator

from .driving import in_event_loop, polls_of, until, waits_for
from .polls import ACTIVE_LISTS, CONNECTION, LIST, ROUND_SECONDS, end, requests_made, round_of, small_pages, started

# JSON that Python's decoder gives up on.
NOBODY_CAN_READ = "[" * 200_000


@in_event_loop
async def test_few_waits_are_read_by_id(simulator: ServiceSimulator, workflow_id: str) -> None:
    waits = waits_for(started(simulator, workflow_id, 3), poll_interval=ROUND_SECONDS)

    assert await round_of(simulator, 3) == {"read": 3}
    assert await round_of(simulator, 3) == {"read": 3}
    await end(waits)


@pytest.mark.slow
@in_event_loop
async def test_many_waits_are_listed(simulator: ServiceSimulator, workflow_id: str) -> None:
    ids = [*started(simulator, workflow_id, 20), *started(simulator, workflow_id, 20, "waiting")]
    waits = waits_for(ids, poll_interval=ROUND_SECONDS)

    assert await round_of(simulator, 3) == ACTIVE_LISTS

    for one in ids[:2]:
        simulator.finish_execution(one)
    assert await round_of(simulator, 5) == {**ACTIVE_LISTS, "read": 2}
    assert [wait.result()["verdict"] for wait in waits if wait.done()] == ["succeeded"] * 2

    for one in ids[2:30]:
        simulator.finish_execution(one, "error" if one == ids[2] else "success")
    # Those that succeeded are seen in one list; the one that failed is read by its id.
    assert await round_of(simulator, 5) == {**ACTIVE_LISTS, "list success": 1, "read": 1}
    assert Counter(wait.result()["verdict"] for wait in waits if wait.done()) == {"succeeded": 29, "failed": 1}
    await end(waits)


@pytest.mark.slow
@in_event_loop
async def test_lists_that_are_longer_than_the_waits_are_many(
    simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CONNECTION, small_pages(simulator, 4))
    watched = started(simulator, workflow_id, 9)
    others = started(simulator, workflow_id, 60)
    waits = waits_for(watched, poll_interval=0.05)

    await until(lambda: polls_of(simulator, watched[0]) >= 3)

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


@in_event_loop
async def test_old_executions_below_the_watched_ones_are_not_listed(
    simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CONNECTION, small_pages(simulator, 5))
    started(simulator, workflow_id, 50)
    waits = waits_for(started(simulator, workflow_id, 8), poll_interval=ROUND_SECONDS)

    assert await round_of(simulator, 4) == {**ACTIVE_LISTS, "list running": 2}
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
    monkeypatch.setattr(poller, "ROUNDS_BEFORE_LISTING_AGAIN", math.inf)
    ids = started(simulator, workflow_id, 12)
    waits = waits_for(ids)

    await until(lambda: all(polls_of(simulator, one) >= 2 for one in ids))

    assert sum(one.path.endswith("/executions") for one in simulator.requests) == 3
    assert not any(wait.done() for wait in waits)
    for one in ids:
        simulator.finish_execution(one)
    assert {event["verdict"] for event in await asyncio.gather(*waits)} == {"succeeded"}


@pytest.mark.slow
@pytest.mark.parametrize("status", [400, 403, 405])
@in_event_loop
async def test_lists_that_were_refused_are_tried_again(
    simulator: ServiceSimulator, workflow_id: str, status: int
) -> None:
    simulator.inject("status", times=3, path=LIST, status=status)
    ids = started(simulator, workflow_id, 12)
    waits = waits_for(ids)
    await until(lambda: requests_made(simulator)["read"] >= 12)

    await until(lambda: requests_made(simulator)["list running"] == 2)
    reads = requests_made(simulator)["read"]
    assert reads > 12 * 2  # several rounds went by
    # From then on in every round, and what was still to be read is not.
    await until(lambda: requests_made(simulator)["list running"] >= 6)
    assert requests_made(simulator)["read"] <= reads + 12
    await end(waits)


@pytest.mark.slow
@in_event_loop
async def test_a_list_that_cannot_be_understood_is_replaced_by_reads(
    simulator: ServiceSimulator, workflow_id: str
) -> None:
    simulator.inject("html", times=3, path=LIST, status=200)
    ids = started(simulator, workflow_id, 6)
    waits = waits_for(ids, poll_interval=ROUND_SECONDS)

    await until(lambda: requests_made(simulator)["read"] == 6)

    assert await round_of(simulator, 3) == ACTIVE_LISTS
    await end(waits)


@pytest.mark.slow
@pytest.mark.parametrize("status", [500, 504])
@in_event_loop
async def test_lists_that_fail_end_no_wait_while_each_can_be_read(
    simulator: ServiceSimulator, workflow_id: str, status: int
) -> None:
    simulator.inject("status", times=None, path=LIST, status=status)
    ids = started(simulator, workflow_id, 6)
    waits = waits_for(ids, fault_tolerance=0.3)

    await clock().async_sleep(1)

    assert not any(wait.done() for wait in waits)
    for one in ids:
        simulator.finish_execution(one)
    assert {event["verdict"] for event in await asyncio.gather(*waits)} == {"succeeded"}
    assert requests_made(simulator)["list running"] > 1, "lists are tried again"


@in_event_loop
async def test_one_bad_execution_does_not_fail_its_neighbours(
    simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = simulator.create_key(["execution:read"])  # or lists would show the state of the bad one
    monkeypatch.setenv(CONNECTION, json.dumps({**json.loads(simulator.connection_json()), "password": key}))
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


@pytest.mark.slow
@in_event_loop
async def test_faulty_lists_are_tolerated_for_a_while(
    simulator: ServiceSimulator, workflow_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    simulator.inject("status", times=9, path=LIST, status=503)  # three rounds of three lists
    ids = started(simulator, workflow_id, 8)
    waits = waits_for(ids, fault_tolerance=0.5)

    await until(lambda: requests_made(simulator)["list running"] >= 5)

    lines = [record.message for record in caplog.records if record.message.startswith("Reading execution ")]
    assert len([line for line in lines if " fails; this is tolerated for 0.5 s: " in line]) == len(ids)
    assert len([line for line in lines if " works again, after " in line]) == len(ids)
    assert not any(wait.done() for wait in waits)
    simulator.inject("status", times=None, path=LIST, status=503)
    events = await asyncio.gather(*waits)
    assert {event["verdict"] for event in events} == {"unobservable"}
    assert {event["message"].partition(": ")[2] for event in events} == {
        "reading it failed for more than 0.5 s (fault_tolerance), last: the service is not available now (HTTP 503) "
        "- the service says: 'Service Unavailable' (connection 'service_default')"
    }


@pytest.mark.slow
@pytest.mark.real_time  # of what is mocked, the clock that jumps knows nothing
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
    assert "A list of executions cannot be read, so each is read by id" in caplog.text
