"""Slow answers delay only the waits that they are for."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from airflow_provider_service._core.waits import poller
from airflow_provider_service._core.waits.poller import MAX_READS_AT_ONCE, MAX_SLOW_READS_AT_ONCE, Reads
from airflow_provider_service.client._clock import clock
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.simulator._faults import RecordedRequest

from .driving import in_event_loop, polls_of, until, waits_for
from .polls import LIST, MAX_REQUESTS_AT_ONCE, end, requests_made, started

pytestmark = pytest.mark.usefixtures("no_socket_times_out")

# Longer than any test takes.
SLOW = 600.0


@pytest.fixture(autouse=True)
def no_read_stays_open(simulator: ServiceSimulator) -> Iterator[None]:
    yield
    simulator.clear_faults()  # or the client would repeat the reads that break off, and wait for these
    simulator.restart(boot_seconds=0.0)


def read_slowly(simulator: ServiceSimulator, execution_ids: list[str], seconds: float = SLOW) -> None:
    for one in execution_ids:
        simulator.inject("latency", times=None, path=f"/executions/{one}$", seconds=seconds)


def open_requests(simulator: ServiceSimulator) -> Counter[str]:
    """The requests by path that have not been answered."""
    return Counter(one.path for one in simulator.requests if one.status is None)


@in_event_loop
async def test_a_slow_read_delays_no_other_of_its_round(simulator: ServiceSimulator, workflow_id: str) -> None:
    slow, fast, other = started(simulator, workflow_id, 3)
    read_slowly(simulator, [slow])
    slow_wait, fast_wait, _ = waits = waits_for([slow, fast, other])
    simulator.finish_execution(slow)
    simulator.finish_execution(fast)

    assert (await fast_wait)["verdict"] == "succeeded"
    assert not slow_wait.done()
    await end(waits)


@pytest.mark.parametrize("neighbours", [1, 9], ids=["by id", "listed"])
@in_event_loop
async def test_the_next_round_does_not_wait_for_a_slow_read(
    simulator: ServiceSimulator, workflow_id: str, neighbours: int
) -> None:
    # In no list of active ones, so that it is read by id in either way.
    [slow] = started(simulator, workflow_id, 1, "unknown")
    read_slowly(simulator, [slow])
    ids = started(simulator, workflow_id, neighbours)
    waits = waits_for([slow, *ids])
    await until(lambda: polls_of(simulator, slow) == 1)

    simulator.finish_execution(ids[0])

    assert (await waits[1])["verdict"] == "succeeded"
    assert polls_of(simulator, slow) == 1
    await end(waits)


@in_event_loop
async def test_slow_reads_do_not_hold_up_lists(simulator: ServiceSimulator, workflow_id: str) -> None:
    slow = started(simulator, workflow_id, 10, "unknown")
    read_slowly(simulator, slow)
    ids = started(simulator, workflow_id, poller.ENDED_WORTH_LISTING)
    slow_waits, waits = waits_for(slow), waits_for(ids)
    await until(lambda: len(open_requests(simulator)) >= MAX_READS_AT_ONCE)

    for one in ids:
        simulator.finish_execution(one)

    assert {(await wait)["verdict"] for wait in waits} == {"succeeded"}
    await end(slow_waits)


@pytest.mark.slow
@in_event_loop
async def test_open_reads_are_few_and_one_a_wait(simulator: ServiceSimulator, workflow_id: str) -> None:
    simulator.inject("status", times=None, path=LIST, status=400)
    ids = started(simulator, workflow_id, 12)
    read_slowly(simulator, ids, 0.3)
    waits = waits_for(ids)
    most: Counter[str] = Counter()
    most_at_once = 0
    while min(polls_of(simulator, one) for one in ids) < 2:
        open_now = open_requests(simulator)
        most |= open_now
        most_at_once = max(most_at_once, open_now.total())
        await clock().async_sleep(0.005)

    assert most_at_once <= MAX_REQUESTS_AT_ONCE
    assert {most[f"/api/v1/executions/{one}"] for one in ids} == {1}
    # Each in its turn: nobody is read a third time before all have been read twice.
    assert max(polls_of(simulator, one) for one in ids) <= 3
    await end(waits)


@pytest.mark.slow
@in_event_loop
async def test_slow_lists_do_not_pile_up(simulator: ServiceSimulator, workflow_id: str) -> None:
    simulator.inject("latency", times=None, path=LIST, seconds=0.5)
    waits = waits_for(started(simulator, workflow_id, 8))
    most: list[RecordedRequest] = []
    while requests_made(simulator)["list running"] < 4:
        most = max(most, [one for one in simulator.requests if one.status is None], key=len)
        await clock().async_sleep(0.005)

    assert sorted(one.query.partition("&")[0] for one in most) == ["status=new", "status=running", "status=waiting"], (
        most
    )
    assert not requests_made(simulator)["read"]
    await end(waits)


@pytest.mark.slow
@pytest.mark.parametrize("others", [0, 9], ids=["by id", "beside others"])
@in_event_loop
async def test_a_deadline_does_not_wait_for_slow_reads(
    simulator: ServiceSimulator, workflow_id: str, others: int
) -> None:
    slow = started(simulator, workflow_id, 1 + others, "unknown")
    read_slowly(simulator, slow)
    waits = waits_for(slow[1:])
    await until(lambda: len(open_requests(simulator)) >= min(others, MAX_READS_AT_ONCE))
    [wait] = waits_for(slow[:1], deadline=clock().now() + 0.3, timeout=0.3)

    assert (await wait)["verdict"] == "timed_out"
    await end(waits)


@pytest.mark.slow
@in_event_loop
async def test_a_last_poll_comes_before_reads_that_wait(
    simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poller, "LAST_READ_SECONDS", SLOW)
    simulator.inject("status", times=None, path=LIST, status=400)
    ids = started(simulator, workflow_id, 400)
    read_slowly(simulator, ids, 0.4)
    waits = waits_for(ids, poll_interval=60.0)
    await until(lambda: len(open_requests(simulator)) >= MAX_READS_AT_ONCE)
    [last] = started(simulator, workflow_id, 1)
    simulator.finish_execution(last)
    [wait] = waits_for([last], poll_interval=60.0, deadline=clock().now() + 0.3, timeout=0.3)

    assert (await wait)["verdict"] == "succeeded"
    assert sum(polls_of(simulator, one) for one in ids) < len(ids), "others still wait for their first read"
    await end(waits)


class SlowReader:
    """A wait whose last read was slow."""

    is_slow = True


@in_event_loop
async def test_a_read_that_overtakes_the_slow_ones_is_made_once() -> None:
    made: Counter[SlowReader] = Counter()
    answered = asyncio.Event()

    async def read(reader: SlowReader) -> None:
        made[reader] += 1
        await answered.wait()

    *others, last = (SlowReader() for _ in range(MAX_SLOW_READS_AT_ONCE + 1))
    reads = Reads(read)
    for reader in (*others, last):
        reads.add(reader)
    assert not reads.is_open(last)
    reads.add(last, first=True)
    assert reads.is_open(last)
    answered.set()
    while reads:
        await asyncio.sleep(0)

    assert set(made.values()) == {1}
    assert len(made) == len(others) + 1


@pytest.mark.slow
@in_event_loop
async def test_a_last_poll_joins_the_read_that_is_open(simulator: ServiceSimulator, workflow_id: str) -> None:
    [one] = started(simulator, workflow_id, 1)
    read_slowly(simulator, [one], 0.8)
    [wait] = waits_for([one], poll_interval=0.2, deadline=clock().now() + 0.6, timeout=0.6)
    await until(lambda: polls_of(simulator, one) == 1)
    simulator.finish_execution(one)

    assert (await wait)["verdict"] == "succeeded"
    assert polls_of(simulator, one) == 1
