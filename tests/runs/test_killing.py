"""A task that a user ends in the worker: nothing keeps running, whenever that happens."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from airflow.providers.common.compat.sdk import TaskDeferred

from airflow_provider_service._core.runs import searching
from airflow_provider_service.client._clock import Clock
from airflow_provider_service.client._http import transport
from airflow_provider_service.client.errors import ServiceTaskKilledError
from airflow_provider_service.operators._waiting import _Kill
from airflow_provider_service.operators.executions import ServiceRetryExecutionOperator
from airflow_provider_service.simulator import ServiceSimulator

from .conftest import Killed, MakeRun, connect
from .own_state import OwnState
from .workflows import DONE, calls, held, put, set_live, statuses, wait, webhook

pytestmark = pytest.mark.real_time  # signals end a wait at once

#: Seconds between two polls of a wait that a kill must wake.
UNENDING = 3600.0


@pytest.fixture(autouse=True)
def marked(own_state: OwnState) -> None:
    """A user has marked the task as failed."""
    own_state.becomes("failed")


@pytest.mark.parametrize("mode", ["onReceived", "lastNode"])
def test_while_it_waits(task_run: MakeRun, killed: Killed, simulator: ServiceSimulator, mode: str) -> None:
    workflow_id = put(simulator, webhook(mode=mode), wait(30), DONE)
    run = task_run(workflow_id=workflow_id, poll_interval=UNENDING)
    killed(run, lambda: "execution_id" in run.pushed)
    assert statuses(simulator, workflow_id) == ["canceled"]


def test_a_signal_that_comes_just_before_the_operating_system_begins_to_wait() -> None:
    """It does not interrupt the wait: whatever its handler does, it does after a wait."""
    killed = _Kill()
    threading.Timer(0.1, vars(killed).update, [{"_flag": True}]).start()  # wakes nobody
    assert Clock().wait(killed, 30)


def test_a_signal_that_interrupts_a_wait_which_holds_its_lock() -> None:
    killed = _Kill()
    with vars(killed)["_cond"]:
        handler = threading.Thread(target=killed.set, daemon=True)
        handler.start()
        handler.join(20)
        assert not handler.is_alive(), "the handler waits for the task, which waits for the handler"
    assert Clock().wait(killed, 30)


def test_not_if_cancel_on_kill_is_off(task_run: MakeRun, killed: Killed, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), wait(30), DONE)
    run = task_run(workflow_id=workflow_id, poll_interval=UNENDING, cancel_on_kill=False)
    killed(run, lambda: "execution_id" in run.pushed)
    assert statuses(simulator, workflow_id) == ["running"]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("deferrable", [False, True])
@pytest.mark.parametrize("seconds", [0.8, 2.0])
def test_while_the_call_is_on_its_way(
    task_run: MakeRun, killed: Killed, simulator: ServiceSimulator, after: bool, deferrable: bool, seconds: float
) -> None:
    workflow_id = put(simulator, webhook(), wait(30), DONE)
    simulator.inject("latency", seconds=seconds, path="^/webhook/", after_processing=after)
    killed(task_run(workflow_id=workflow_id, deferrable=deferrable), lambda: calls(simulator))
    assert statuses(simulator, workflow_id) == ["canceled"]


def test_before_the_call(task_run: MakeRun, killed: Killed, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), wait(30), DONE)
    simulator.inject("latency", seconds=0.3, path="/workflows/")
    killed(task_run(workflow_id=workflow_id), lambda: simulator.requests)
    assert (calls(simulator), held(simulator, workflow_id)) == (0, [])


def test_while_the_webhook_is_not_live_yet(
    monkeypatch: pytest.MonkeyPatch,
    task_run: MakeRun,
    killed: Killed,
    simulator: ServiceSimulator,
    before_request: Callable[..., None],
) -> None:
    connect(monkeypatch, simulator, extra={"retry_deadline": 30})
    monkeypatch.setattr(transport, "_exponential_jitter", lambda _: 0.1)
    # A task that waits for the answer when its call is given up reports why the call was to be repeated: this one must
    # be searching.
    monkeypatch.setattr(searching, "PATIENCE_AT_ONCE_SECONDS", 0.1)
    workflow_id = put(simulator, webhook(), wait(30), DONE)
    set_live(simulator, workflow_id, False)
    run, has_begun = task_run(workflow_id=workflow_id), threading.Event()

    def search_until_the_kill(_: object) -> None:
        has_begun.set()
        run.task._killed.wait(60)

    before_request("GET", "/executions$", search_until_the_kill)
    killed(run, lambda: has_begun.is_set() and calls(simulator) > 1)
    set_live(simulator, workflow_id, True)
    time.sleep(1)  # the next call was to come by then
    assert held(simulator, workflow_id) == []


@pytest.mark.parametrize("wait_for_completion", [True, False])
def test_while_it_learns_the_id(
    task_run: MakeRun, killed: Killed, simulator: ServiceSimulator, wait_for_completion: bool
) -> None:
    workflow_id = put(simulator, webhook(), wait(30), DONE)
    simulator.inject("latency", seconds=0.3, path="/executions$", after_processing=True)
    run = task_run(workflow_id=workflow_id, wait_for_completion=wait_for_completion)
    killed(run, lambda: any(request.path.endswith("/executions") for request in simulator.requests))
    assert statuses(simulator, workflow_id) == ["canceled"]


def test_while_a_retry_is_being_started(task_run: MakeRun, killed: Killed, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), wait(30), DONE)
    original = simulator.start_execution(workflow_id, status="error")
    run = task_run(ServiceRetryExecutionOperator, execution_id=original)
    killed(run, lambda: len(held(simulator, workflow_id)) == 2)
    assert statuses(simulator, workflow_id) == ["error", "canceled"]


def test_while_an_attempt_looks_for_earlier_ones(
    monkeypatch: pytest.MonkeyPatch, task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    run = task_run(workflow_id=put(simulator, webhook(), DONE))
    context = run.prepare(2)
    run.task.on_kill()
    with pytest.raises(ServiceTaskKilledError, match="searched for executions of earlier attempts"):
        run.task.execute(context)
    assert calls(simulator) == 0


def test_a_service_that_is_slow_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch,
    task_run: MakeRun,
    killed: Killed,
    simulator: ServiceSimulator,
    caplog: pytest.LogCaptureFixture,
) -> None:
    workflow_id = put(simulator, webhook(mode="lastNode"), wait(30), DONE)
    simulator.inject("latency", seconds=2, path="/executions$", times=None)
    killed(task_run(workflow_id=workflow_id), lambda: calls(simulator))
    # Airflow ends a process 5 s after it was asked to: there is no time for more than two slow answers.
    assert sum(one.path.endswith("/executions") for one in simulator.requests) <= 2
    assert "was being started failed; it may be running" in caplog.text


def test_the_task_is_killed_before_it_began_anything(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    run = task_run(workflow_id="w")
    run.prepare(1)
    run.task.on_kill()
    assert not simulator.requests


def test_an_open_call_does_not_keep_the_process_of_a_deferred_task_alive(
    task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(mode="lastNode"), wait(30), DONE)
    with pytest.raises(TaskDeferred):
        task_run(workflow_id=workflow_id, deferrable=True).attempt(1)
    [call] = [thread for thread in threading.enumerate() if thread.name == "service-start"]
    assert call.daemon
    assert statuses(simulator, workflow_id) == ["running"]
