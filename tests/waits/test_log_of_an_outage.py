"""What the log of a task says while the service is away: when reading begins to fail, and when it works again."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import defaultdict
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from airflow_provider_service._core.waits.poller import Waiter
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client.errors import ServiceTimeoutError
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing._service import first_event
from airflow_provider_service.triggers.source_control import ServiceSourceControlTrigger

from .driving import (
    MODES,
    Meanwhile,
    Mode,
    execution_trigger,
    in_event_loop,
    lists_of_active,
    polls_of,
    run_to_end,
    until,
    wait_for,
)
from .polls import started

FAILS = r"WARNING Reading {} fails; this is tolerated for {} s: .*\(HTTP 503\).*"
WORKS_AGAIN = r"INFO Reading {} works again, after \d+ s"
SOURCE_CONTROL = "the status of source control"

#: The task that Airflow's triggerer would write a record to: it tells by the context in which the record is made.
task_of_context: ContextVar[str] = ContextVar("task_of_context", default="none")


class LogsOfTasks(logging.Handler):
    """The lines about reading that each task gets, with their levels."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, list[str]] = defaultdict(list)

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if "Reading " in line or "could not be" in line:
            self.lines[task_of_context.get()].append(f"{record.levelname} {line}")


@pytest.fixture
def logs(caplog: pytest.LogCaptureFixture) -> Iterator[LogsOfTasks]:
    caplog.set_level(logging.INFO)
    handler = LogsOfTasks()
    logging.getLogger("airflow_provider_service").addHandler(handler)
    yield handler
    logging.getLogger("airflow_provider_service").removeHandler(handler)


def assert_two_lines(lines: list[str], subject: str, tolerance: float) -> None:
    assert len(lines) == 2, lines
    assert re.fullmatch(FAILS.format(subject, f"{tolerance:g}"), lines[0]), lines
    assert re.fullmatch(WORKS_AGAIN.format(subject), lines[1]), lines


def task(name: str, trigger: Any) -> asyncio.Task[Any]:
    """A deferred task, in a context of its own as in Airflow's triggerer."""

    async def wait() -> Any:
        task_of_context.set(name)
        return await first_event(trigger)

    return asyncio.create_task(wait())


def away_for(simulator: ServiceSimulator, polls: int, path: str = "") -> None:
    simulator.inject("status", times=polls, path=path, status=503)


@pytest.mark.parametrize("waits", [1, 8], ids=["by id", "listed"])
@in_event_loop
async def test_each_deferred_task_gets_its_own_two_lines(
    simulator: ServiceSimulator, workflow_id: str, logs: LogsOfTasks, waits: int
) -> None:
    ids = started(simulator, workflow_id, waits)
    tasks = [task(one, execution_trigger(one, fault_tolerance=30.0)) for one in ids]
    await until(lambda: polls_of(simulator, ids[0]) + lists_of_active(simulator) >= 2)
    simulator.inject("status", times=None, status=503)
    await until(lambda: set(ids) <= set(logs.lines))
    simulator.clear_faults()
    await until(lambda: len(logs.lines[ids[-1]]) >= 2)
    for one in ids:
        simulator.finish_execution(one)

    assert {event["verdict"] for event in await asyncio.gather(*tasks)} == {"succeeded"}
    assert logs.lines.keys() == set(ids), logs.lines
    for one in ids:
        assert_two_lines(logs.lines[one], f"execution {one}", 30)


@in_event_loop
async def test_a_second_outage_is_reported_as_well(
    simulator: ServiceSimulator, workflow_id: str, logs: LogsOfTasks
) -> None:
    [one] = started(simulator, workflow_id, 1)
    wait = task("one", execution_trigger(one, fault_tolerance=30.0))
    for outages in (1, 2):
        away_for(simulator, 3)
        await until(lambda outages=outages: len(logs.lines["one"]) == 2 * outages)
    simulator.finish_execution(one)
    await wait
    assert_two_lines(logs.lines["one"][:2], f"execution {one}", 30)
    assert_two_lines(logs.lines["one"][2:], f"execution {one}", 30)


@in_event_loop
async def test_a_list_that_takes_too_long_is_no_outage_while_reads_by_id_work(logs: LogsOfTasks) -> None:
    slow = ServiceTimeoutError("r", method="GET", path="/executions")
    one = Waiter(wait_for("1", fault_tolerance=30.0))
    for _ in range(5):
        one.poll_failed(slow, is_quiet=True)
        one.saw_active()
    assert not logs.lines
    one.poll_failed(slow, is_quiet=True)
    one.poll_failed(slow)
    assert len(logs.lines["none"]) == 1


@in_event_loop
async def test_a_refused_key_is_reported_at_the_end_only(
    simulator: ServiceSimulator, workflow_id: str, logs: LogsOfTasks
) -> None:
    simulator.revoke_key(simulator.api_key)
    event = await task("one", execution_trigger(*started(simulator, workflow_id, 1)))
    assert event["verdict"] == "unobservable"
    assert not logs.lines


@pytest.mark.slow
@pytest.mark.parametrize("mode", [MODES[0], MODES[2]], ids=["worker", "triggerer"])
def test_worker_and_triggerer_say_the_same(
    mode: Mode, simulator: ServiceSimulator, workflow_id: str, logs: LogsOfTasks
) -> None:
    [one] = started(simulator, workflow_id, 1)
    simulator.inject("status", times=3, skip=2, path=f"/executions/{one}$", status=503)
    with Meanwhile(simulator, simulator.finish_execution, polls=8):
        ending = run_to_end(lambda: mode.task(one, interval=0.05, fault_tolerance=30.0))
    assert ending.kind == "returned", ending
    assert_two_lines(logs.lines["none"], f"execution {one}", 30)


@in_event_loop
async def test_a_deferred_sensor(simulator: ServiceSimulator, logs: LogsOfTasks) -> None:
    simulator.inject("status", times=None, path="/source-control", status=503)
    arguments = {"deadline": clock().now() + 600, "timeout": 600, "poll_interval": 5, "fault_tolerance": 300}
    wait = task("one", ServiceSourceControlTrigger(service_conn_id="service_default", **arguments))
    await until(lambda: "one" in logs.lines, every=5.0)  # a poll fails after a minute of retries
    simulator.clear_faults()
    assert (await wait)["verdict"] == "met"
    assert_two_lines(logs.lines["one"], SOURCE_CONTROL, 300)
