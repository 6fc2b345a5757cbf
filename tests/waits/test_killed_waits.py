"""What a deferred wait stops when its trigger is cancelled: the execution of a task that somebody ended, no other."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

import pytest

from airflow_provider_service._core.waits import stop
from airflow_provider_service.client._clock import clock
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.triggers.execution import MAX_STOPS_AT_ONCE
from tests import airflow_features

from .driving import Supervisor, TaskInstance, Triggerer, execution_trigger, in_event_loop, polls_of, status_of, until


async def waiting(
    simulator: ServiceSimulator, workflow_id: str, *, cancel_on_kill: bool = True, **changes: Any
) -> tuple[str, Triggerer, int]:
    """An execution that a trigger waits for and has polled; its id, the triggerer and the number of the trigger."""
    one = simulator.start_execution(workflow_id)
    triggerer = Triggerer()
    number = triggerer.start(execution_trigger(one, cancel_on_kill=cancel_on_kill, **changes))
    await until(lambda: polls_of(simulator, one) >= 1)
    return one, triggerer, number


@pytest.mark.parametrize("cancel_on_kill", [pytest.param(True, marks=airflow_features.kills_in_the_triggerer), False])
@in_event_loop
async def test_a_users_kill_stops_the_execution(
    simulator: ServiceSimulator, workflow_id: str, cancel_on_kill: bool
) -> None:
    one, triggerer, number = await waiting(simulator, workflow_id, cancel_on_kill=cancel_on_kill)

    await triggerer.kill(number)

    assert status_of(simulator, one) == ("canceled" if cancel_on_kill else "running")
    assert triggerer.events(number) == []
    await triggerer.shut_down()


@airflow_features.kills_in_the_triggerer
@in_event_loop
async def test_a_users_kill_stops_no_execution_of_another_server(
    simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, triggerer, number = await waiting(simulator, workflow_id, expected_workflow_id=workflow_id)
    with ServiceSimulator() as other:
        assert other.start_execution(other.create_webhook_workflow(path="w")["id"]) == one
        monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", other.connection_json())

        await triggerer.kill(number)

        assert status_of(other, one) == "running"
    await triggerer.shut_down()


@in_event_loop
async def test_a_restart_of_the_triggerer_stops_nothing(simulator: ServiceSimulator, workflow_id: str) -> None:
    one, triggerer, _ = await waiting(simulator, workflow_id)

    await triggerer.shut_down()

    assert status_of(simulator, one) == "running"
    assert not [request for request in simulator.requests if request.method == "POST"]


@pytest.mark.parametrize(
    ("airflow", "reason"),
    [
        (Supervisor("deferred", "1"), "keeps running: the task was not ended; it is 'deferred', or begins again"),
        (Supervisor("deferred"), "keeps running: the task was not ended; it is 'deferred', or begins again"),
        (Supervisor("running", "1"), "keeps running: the task was not ended; it is 'running', or begins again"),
        (
            Supervisor("up_for_retry", "1"),
            "keeps running: the task was not ended; it is 'up_for_retry', or begins again",
        ),
        (Supervisor("scheduled", "1"), "keeps running: the task was not ended; it is 'scheduled', or begins again"),
        (Supervisor("queued", "1"), "keeps running: the task was not ended; it is 'queued', or begins again"),
        (Supervisor("queued"), "keeps running: the task was not ended; it is 'queued', or begins again"),
        (
            Supervisor(None, "1"),
            "keeps running: the task was not ended; it begins again and then resumes the execution",
        ),
        (
            Supervisor(RuntimeError("the database is away")),
            "is not stopped and may still be running: Airflow did not say",
        ),
    ],
    ids=[
        "deferred",
        "deferred, nothing pushed",
        "running",
        "up_for_retry",
        "fired by another triggerer",
        "about to resume",
        "about to try again",
        "given back by its executor",
        "no answer",
    ],
)
@airflow_features.kills_in_the_triggerer
@in_event_loop
async def test_a_kill_that_nobody_asked_for_stops_nothing(
    simulator: ServiceSimulator, workflow_id: str, airflow: Supervisor, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    one, triggerer, number = await waiting(simulator, workflow_id)

    await triggerer.kill(number, airflow)

    assert status_of(simulator, one) == "running"
    assert f"Execution {one} {reason}" in caplog.text
    await triggerer.shut_down()


@airflow_features.kills_in_the_triggerer
@in_event_loop
async def test_an_execution_that_a_later_attempt_does_not_wait_for_is_stopped(
    simulator: ServiceSimulator, workflow_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    one, triggerer, number = await waiting(simulator, workflow_id)

    await triggerer.kill(number, Supervisor("deferred", "another"))

    assert status_of(simulator, one) == "canceled"
    assert f"Execution {one} is being stopped: the task now waits for execution another" in caplog.text
    await triggerer.shut_down()


@airflow_features.kills_in_the_triggerer
@in_event_loop
async def test_a_kill_of_an_ended_execution_is_harmless(simulator: ServiceSimulator, workflow_id: str) -> None:
    one, triggerer, number = await waiting(simulator, workflow_id, poll_interval=60.0)
    simulator.finish_execution(one)

    await triggerer.kill(number)

    assert [request.status for request in simulator.requests if request.method == "POST"] == [409]


class OpenRequests:
    """Counts how many requests a service had open at once."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def around(self, app: Any) -> Any:
        async def counted(*arguments: Any) -> None:
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                await app(*arguments)
            finally:
                self.now -= 1

        return counted


@in_event_loop
async def test_many_kills_at_once_stop_every_execution_of_a_slow_service(
    simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop, "ask", lambda ti: stop.TaskNow("failed"))
    running = [simulator.start_execution(workflow_id) for _ in range(3 * MAX_STOPS_AT_ONCE)]
    triggers = [execution_trigger(one, cancel_on_kill=True, expected_workflow_id=workflow_id) for one in running]
    for trigger in triggers:
        trigger.task_instance = cast(Any, TaskInstance())
    simulator.inject("latency", times=None, seconds=2 * stop.STOP_TIMEOUT_SECONDS)
    open_now = OpenRequests()
    simulator.wrap(open_now.around)

    await asyncio.gather(*(trigger.on_kill() for trigger in triggers))

    assert {status_of(simulator, one) for one in running} == {"canceled"}
    assert open_now.most <= MAX_STOPS_AT_ONCE


@airflow_features.kills_in_the_triggerer
@in_event_loop
async def test_a_kill_that_cannot_be_carried_out_says_so(
    simulator: ServiceSimulator, workflow_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    simulator.inject("status", path="/stop$", status=403)
    one, triggerer, number = await waiting(simulator, workflow_id)

    await triggerer.kill(number)

    assert f"Execution {one} could not be stopped and may still be running" in caplog.text


@airflow_features.kills_in_the_triggerer
@in_event_loop
async def test_a_kill_while_the_service_is_away_stops_the_execution_once_it_is_back(
    simulator: ServiceSimulator, workflow_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    one, triggerer, number = await waiting(simulator, workflow_id, poll_interval=10.0, fault_tolerance=300.0)
    simulator.inject("status", times=None, status=503)
    killed_at = clock().now()

    async def end_the_outage() -> None:
        await until(lambda: clock().now() > killed_at + 200, every=1.0)
        simulator.clear_faults()

    await asyncio.gather(triggerer.kill(number), end_the_outage())

    assert status_of(simulator, one) == "canceled"
    told = [record.getMessage() for record in caplog.records if "topp" in record.getMessage()]
    assert [line.partition(":")[0] for line in told] == [
        f"Execution {one} is being stopped",
        f"Stopping execution {one} fails; this is tolerated for 300 s",
        f"Execution {one} was stopped",
    ]


@airflow_features.kills_in_the_triggerer
@in_event_loop
async def test_the_log_of_the_task_is_open_until_it_says_what_became_of_the_execution(
    simulator: ServiceSimulator, workflow_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Airflow closes it when the trigger has ended."""
    caplog.set_level(logging.INFO)
    one, triggerer, number = await waiting(simulator, workflow_id, poll_interval=10.0, fault_tolerance=300.0)
    simulator.inject("status", times=5, path="/stop$", status=503)
    log_of_task: list[str] = []
    triggerer.when_ended(number, lambda: log_of_task.append(caplog.text))

    await triggerer.kill(number)

    assert f"Execution {one} was stopped" in log_of_task[0]


@airflow_features.kills_in_the_triggerer
@in_event_loop
async def test_a_kill_gives_up_after_the_fault_tolerance_of_the_wait(
    simulator: ServiceSimulator, workflow_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    one, triggerer, number = await waiting(simulator, workflow_id, poll_interval=10.0, fault_tolerance=200.0)
    simulator.inject("status", times=None, path="/stop$", status=503)
    began = clock().now()

    await triggerer.kill(number)

    assert 200 <= clock().now() - began < 260
    assert f"Execution {one} could not be stopped and may still be running" in caplog.text


@airflow_features.kills_in_the_triggerer
@in_event_loop
async def test_an_execution_that_a_cleared_task_is_to_resume_is_not_stopped_after_an_outage(
    simulator: ServiceSimulator, workflow_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    one, triggerer, number = await waiting(simulator, workflow_id, poll_interval=10.0, fault_tolerance=300.0)
    simulator.inject("status", times=None, path="/stop$", status=503)
    airflow = Supervisor("failed")

    async def clear_the_task() -> None:
        await until(lambda: stops_of(simulator) >= 2, every=1.0)
        airflow.becomes("queued")
        simulator.clear_faults()

    await asyncio.gather(triggerer.kill(number, airflow), clear_the_task())

    assert status_of(simulator, one) == "running"
    assert f"Execution {one} keeps running: the task was not ended; it is 'queued'" in caplog.text


def stops_of(simulator: ServiceSimulator) -> int:
    return sum(request.path.endswith("/stop") for request in simulator.requests)
