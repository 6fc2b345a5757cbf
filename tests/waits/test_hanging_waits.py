"""Answers that hang: they delay no other waits, the tolerance ends, and a process can always exit."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time

import pytest

from airflow_provider_service._core.waits import poller
from airflow_provider_service.simulator import ServiceSimulator

from .dripping import dripping_server
from .driving import in_event_loop, polls_of, until, waits_for
from .polls import CONNECTION, LIST, end, requests_made, started
from .test_slow_reads import open_requests, read_slowly

HANGING = 4.0


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for an answer; it is still longer than all good answers take."""
    monkeypatch.setattr(poller, "READ_PATIENCE_SECONDS", 1.0)


@pytest.mark.slow
@in_event_loop
async def test_more_hanging_reads_than_places_hold_up_no_other(
    simulator: ServiceSimulator, workflow_id: str, patience: None, no_socket_times_out: None
) -> None:
    simulator.inject("status", times=None, path=LIST, status=400)
    hanging = started(simulator, workflow_id, poller.MAX_READS_AT_ONCE + poller.MAX_SLOW_READS_AT_ONCE - 1)
    read_slowly(simulator, hanging, 60.0)
    hanging_waits = waits_for(hanging)
    await until(lambda: open_requests(simulator).total() >= poller.MAX_READS_AT_ONCE)
    ids = started(simulator, workflow_id, 5)
    waits = waits_for(ids)

    # All are read again and again, while each hanging one is read once.
    await until(lambda: min(polls_of(simulator, one) for one in ids) >= 5)

    assert max(polls_of(simulator, one) for one in hanging) == 1
    for one in ids:
        simulator.finish_execution(one)
    assert {event["verdict"] for event in await asyncio.gather(*waits)} == {"succeeded"}
    assert open_requests(simulator).total() <= poller.MAX_READS_AT_ONCE + poller.MAX_SLOW_READS_AT_ONCE
    await end(hanging_waits)
    simulator.reset()  # answers what hangs


@pytest.mark.slow
@in_event_loop
async def test_a_slow_wait_is_read_apart_the_next_time(
    simulator: ServiceSimulator, workflow_id: str, patience: None
) -> None:
    simulator.inject("status", times=None, path=LIST, status=400)
    slow = started(simulator, workflow_id, poller.MAX_READS_AT_ONCE)
    read_slowly(simulator, slow, 2.0)
    slow_waits = waits_for(slow)
    await until(lambda: min(polls_of(simulator, one) for one in slow) >= 2)
    simulator.clear_requests()
    [one] = started(simulator, workflow_id, 1)
    [wait] = waits_for([one])

    await until(lambda: polls_of(simulator, one) >= 3)

    assert max(polls_of(simulator, each) for each in slow) <= 1
    simulator.finish_execution(one)
    assert (await wait)["verdict"] == "succeeded"
    await end(slow_waits)


@pytest.mark.slow
@pytest.mark.parametrize("status", ["running", "success"])
@in_event_loop
async def test_a_list_that_hangs_holds_up_nobody(
    simulator: ServiceSimulator, workflow_id: str, patience: None, status: str, caplog: pytest.LogCaptureFixture
) -> None:
    ids = started(simulator, workflow_id, 12)
    waits = waits_for(ids)
    await until(lambda: requests_made(simulator)["list running"] >= 2)
    if status == "running":
        simulator.inject("latency", times=1, path=LIST, seconds=HANGING)
    for one in ids[:8]:
        simulator.finish_execution(one)
    if status == "success":
        simulator.inject("latency", times=None, path=LIST, seconds=HANGING)

    events = await asyncio.gather(*waits[:8])

    assert {event["verdict"] for event in events} == {"succeeded"}
    assert open_requests(simulator)["/api/v1/executions"] >= 1
    assert "A list of executions is slow, so each is read by id in the meantime" in caplog.text
    # The others keep waiting, and lists serve them again once the hanging one has arrived.
    simulator.clear_faults()
    simulator.clear_requests()
    await until(lambda: requests_made(simulator)["list running"] >= 2)
    assert not any(wait.done() for wait in waits[8:])
    await end(waits)


@pytest.mark.parametrize("waits", [2, 8], ids=["by id", "listed"])
@in_event_loop
async def test_dripping_answers_exhaust_the_tolerance(monkeypatch: pytest.MonkeyPatch, waits: int) -> None:
    with dripping_server() as server:
        monkeypatch.setenv(CONNECTION, server.connection_json(timeout=0.2))
        ids = [str(number) for number in range(1, waits + 1)]
        events = await asyncio.gather(*waits_for(ids, fault_tolerance=0.5, poll_interval=0.05))

    assert {event["verdict"] for event in events} == {"unobservable"}
    assert all("reading it failed for more than 0.5 s" in event["message"] for event in events)


LEAVES = """
import asyncio, sys, time
from airflow_provider_service.notifications.workflow import ServiceNotifier
from airflow_provider_service.triggers.events import ServiceExecutionEventTrigger
from airflow_provider_service.triggers.execution import ServiceExecutionTrigger

WAIT = {"poll_interval": 0.1, "deadline": time.time() + 3600, "timeout": 3600, "fault_tolerance": 300}

async def first(events):
    async for event in events:
        return event

async def main():
    waits = [
        asyncio.create_task(
            first(ServiceExecutionTrigger(
                service_conn_id="service_default", execution_id=str(one), on_vanished="fail", **WAIT
            ).run())
        )
        for one in range(8)
    ]
    waits += [asyncio.create_task(first(ServiceExecutionEventTrigger(workflow_id="w", poll_interval=0.1).run()))]
    waits += [asyncio.create_task(ServiceNotifier(workflow_id="w").async_notify({}))]
    print("waiting", flush=True)
    await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main())
"""


@pytest.mark.slow
def test_a_process_exits_while_answers_hang() -> None:
    with dripping_server() as server:
        environment = {**os.environ, CONNECTION: server.connection_json(timeout=3600)}
        with subprocess.Popen(
            [sys.executable, "-c", LEAVES], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "waiting\n"
            # The lists or reads of the waits, a list of the watcher, and the workflow that is to be notified.
            while server.open < 5:
                assert process.poll() is None
                time.sleep(0.01)
            # No answer ends before the server does, so whoever exits leaves them open.
            try:
                process.communicate("leave\n", timeout=100)
            finally:
                process.kill()

    assert process.returncode == 0
