"""Whether an execution is stopped when its task is killed in a worker: that depends on who ended the task."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from airflow.providers.common.compat.sdk import AirflowTaskTimeout

from airflow_provider_service._core.runs.attempt import STATE_KEY, Attempt
from airflow_provider_service.operators.executions import ServiceRetryExecutionOperator
from airflow_provider_service.simulator import ServiceSimulator
from tests.airflow_features import AIRFLOW
from tests.polling import wait_until
from tests.waits.driving import Supervisor

from . import through_mcp
from .conftest import Killed, MakeRun, connect
from .own_state import Answer, OwnState
from .task_run import StateStore, TaskRun
from .workflows import DONE, SCHEDULE, calls, put, statuses, wait, webhook

pytestmark = pytest.mark.real_time  # signals interrupt a wait

supervisors = pytest.mark.skipif(AIRFLOW.startswith("2."), reason="tasks of Airflow 2 ask its database")
UNENDING = 3600.0
#: With two retries, as TaskRun has them.
LAST = 3
AWAY = RuntimeError("the API server is away")


class Case(NamedTuple):
    """What Airflow answers, and what becomes of the execution.

    :param attempt: the one that is killed.
    :param latest: the attempt that Airflow has begun last; None for the same one.
    """

    name: str
    state: Answer
    becomes: str
    reason: str
    attempt: int = 1
    pushed: str | None = "own"
    latest: int | None = None


AGAIN = "resumes the execution"
NEXT = "the task was ended from outside, and its next attempt resumes the execution"
OUTSIDE = "the task was ended from outside, and no attempt is left to resume the execution"
CASES = [
    Case("marked failed, or written off at last", "failed", "canceled", "the task is 'failed'"),
    Case("marked success", "success", "canceled", "the task is 'success'"),
    Case("a timeout of the DAG run", "skipped", "canceled", "the task is 'skipped'"),
    Case("its run deleted", "deleted", "canceled", "the task is 'deleted'"),
    Case("cleared", "restarting", "canceled", "the task is 'restarting'"),
    Case("cleared, in its last attempt", "restarting", "canceled", "the task is 'restarting'", LAST),
    Case("ended from outside", "running", "running", NEXT),
    Case("ended from outside, in its last attempt", "running", "canceled", OUTSIDE, LAST),
    Case("written off", "up_for_retry", "running", AGAIN),
    Case("written off, and scheduled", "scheduled", "running", AGAIN),
    Case("written off, and queued", "queued", "running", AGAIN),
    Case("written off, and not scheduled yet", None, "running", AGAIN, pushed=None),
    Case("taken over", "running", "running", AGAIN, latest=2),
    Case("taken over, and about to look", "running", "running", AGAIN, pushed=None, latest=2),
    Case("cleared after its last attempt, and queued", "queued", "running", AGAIN, LAST),
    Case("taken over by another execution", "running", "canceled", "now waits for execution 987654", 1, "987654", 2),
    Case("in the state of a later Airflow", "pondering", "running", AGAIN, LAST),
    Case("Airflow does not answer", AWAY, "running", "and its next attempt resumes the execution"),
    Case("Airflow does not answer the last attempt", AWAY, "canceled", "and no attempt is left to resume", LAST),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_who_ended_it(
    case: Case,
    task_run: MakeRun,
    killed: Killed,
    own_state: OwnState,
    simulator: ServiceSimulator,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    workflow_id = put(simulator, webhook(), wait(60), DONE)
    run = task_run(workflow_id=workflow_id, poll_interval=UNENDING)

    def happens() -> bool:
        if "execution_id" in run.pushed:
            pushed = run.pushed["execution_id"] if case.pushed == "own" else case.pushed
            own_state.becomes(case.state, pushed, attempt=case.latest or case.attempt)
        return "execution_id" in run.pushed

    message = killed(run, happens, case.attempt)

    assert statuses(simulator, workflow_id) == [case.becomes]
    fate = "keeps running" if case.becomes == "running" else "was stopped"
    assert re.fullmatch(rf"the task was killed while execution (\d+) had not ended; execution \1 {fate}: .*", message)
    assert case.reason in message
    assert ("is being stopped" in caplog.text) == (case.becomes == "canceled")


def test_the_next_attempt_resumes_what_keeps_running(
    task_run: MakeRun, killed: Killed, own_state: OwnState, store: StateStore | None, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(), wait(60), DONE)
    run = task_run(workflow_id=workflow_id, poll_interval=UNENDING, store=store)
    own_state.becomes("running")
    killed(run, lambda: "execution_id" in run.pushed)
    [execution] = simulator.state.executions

    run.on_push = lambda key, value: simulator.finish_execution(str(execution.id)) if key == "execution_id" else None
    assert run.attempt(2)["execution_id"] == str(execution.id)
    assert (calls(simulator), statuses(simulator, workflow_id)) == (1, ["success"])


def test_a_retry_of_the_service_keeps_running_as_well(
    task_run: MakeRun, killed: Killed, own_state: OwnState, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(), wait(60), DONE)
    original = simulator.start_execution(workflow_id, status="error")
    run = task_run(ServiceRetryExecutionOperator, execution_id=original, poll_interval=UNENDING)
    own_state.becomes("up_for_retry")
    assert "keeps running" in killed(run, lambda: "execution_id" in run.pushed)
    assert statuses(simulator, workflow_id) == ["error", "running"]


def test_a_start_that_is_interrupted_is_left_to_the_next_attempt(
    task_run: MakeRun, killed: Killed, own_state: OwnState, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(), wait(0.5), DONE)
    simulator.inject("latency", seconds=1.0, path="^/webhook/", after_processing=True)
    run = task_run(workflow_id=workflow_id)
    own_state.becomes("running")
    assert "what the task has started keeps running" in killed(run, lambda: calls(simulator))
    assert run.attempt(2)["status"] == "success"
    assert calls(simulator) == 1


def test_the_next_attempt_knows_the_execution_whose_id_came_with_the_end_of_the_worker(
    monkeypatch: pytest.MonkeyPatch,
    task_run: MakeRun,
    killed: Killed,
    own_state: OwnState,
    simulator: ServiceSimulator,
    tmp_path: Path,
) -> None:
    connect(monkeypatch, simulator, extra={"mcp_api_key": simulator.mcp_api_key})
    workflow_id = through_mcp.put(simulator, SCHEDULE, wait(60), DONE)  # only the answer names its executions
    simulator.inject("latency", seconds=0.8, after_processing=True, **through_mcp.START)
    run = task_run(workflow_id=workflow_id, store=StateStore(tmp_path / "state.json"))
    own_state.becomes("running")
    assert NEXT in killed(run, lambda: through_mcp.calls(simulator))
    assert run.attempt(2, wait_for_completion=False)["execution_id"] == "1"
    assert (through_mcp.calls(simulator), statuses(simulator, workflow_id)) == (1, ["running"])


@supervisors
def test_a_later_attempt_that_was_cleared_keeps_the_execution_that_it_has_resumed(
    task_run: MakeRun, killed: Killed, own_state: OwnState, simulator: ServiceSimulator, tmp_path: Path
) -> None:
    """Airflow says "running" of it, which would also be the state of the attempt that asks, its last one."""
    workflow_id = put(simulator, webhook(), wait(60), DONE)
    run = task_run(workflow_id=workflow_id, poll_interval=UNENDING, store=StateStore(tmp_path / "state.json"))

    def is_taken_over() -> bool:
        if "execution_id" in run.pushed and run.store is not None:
            own_state.becomes("running", run.pushed["execution_id"])
            run.store.set(STATE_KEY, {**run.store.get(STATE_KEY), "attempt": LAST + 1})
        return "execution_id" in run.pushed

    assert "keeps running" in killed(run, is_taken_over, LAST)
    assert statuses(simulator, workflow_id) == ["running"]


def test_the_last_attempt_stops_what_it_is_about_to_resume(
    task_run: MakeRun, killed: Killed, own_state: OwnState, simulator: ServiceSimulator, tmp_path: Path
) -> None:
    """Until it has resumed the execution, the note is still the first attempt's."""
    workflow_id = put(simulator, webhook(), wait(60), DONE)
    run = task_run(workflow_id=workflow_id, poll_interval=UNENDING, store=StateStore(tmp_path / "state.json"))
    started = simulator.start_execution(workflow_id, status="running")
    Attempt.of_task(run.prepare(1)).save(started, workflow_id)
    own_state.becomes("running", attempt=LAST)
    simulator.inject("latency", seconds=1.0, path=f"/executions/{started}$")

    def is_resuming() -> bool:
        return any(one.path.endswith(f"/executions/{started}") for one in simulator.requests)

    assert OUTSIDE in killed(run, is_resuming, LAST)
    assert statuses(simulator, workflow_id) == ["canceled"]


@pytest.mark.parametrize("attempt", [1, LAST])
def test_a_time_limit_stops_it_whatever_airflow_says(
    task_run: MakeRun, own_state: OwnState, simulator: ServiceSimulator, attempt: int
) -> None:
    workflow_id = put(simulator, webhook(), wait(60), DONE)
    own_state.becomes("running")
    run = task_run(workflow_id=workflow_id, poll_interval=UNENDING)
    context = run.prepare(attempt)

    def time_is_over(key: str, value: Any) -> None:
        if key == "execution_id":
            raise AirflowTaskTimeout("Timeout")

    run.on_push = time_is_over
    try:
        run.task.execute(context)
    except AirflowTaskTimeout:
        run.task.on_kill()  # as Airflow calls it
    assert statuses(simulator, workflow_id) == ["canceled"]


class SlowSupervisor(Supervisor):
    """Tells the state of the task only when it is let go."""

    def __init__(self, state: str) -> None:
        super().__init__(state)
        self.may_answer = threading.Event()

    def send(self, message: Any) -> Any:
        if type(message).__name__ == "GetTaskStates":
            assert self.may_answer.wait(60), "nobody let it answer"
        return super().send(message)


def told_late(run: TaskRun, monkeypatch: pytest.MonkeyPatch, airflow: Any) -> None:
    """Let Airflow answer only when the handler of the signal has ended."""
    monkeypatch.setattr("airflow.sdk.execution_time.task_runner.SUPERVISOR_COMMS", airflow, raising=False)
    on_kill = run.operator.on_kill

    def then_answer(task: Any) -> None:
        on_kill(task)
        airflow.may_answer.set()

    monkeypatch.setattr(run.operator, "on_kill", then_answer)


@supervisors
@pytest.mark.parametrize(("state", "becomes"), [("failed", "canceled"), ("up_for_retry", "running")])
def test_an_answer_that_comes_late(
    task_run: MakeRun,
    killed: Killed,
    simulator: ServiceSimulator,
    monkeypatch: pytest.MonkeyPatch,
    state: str,
    becomes: str,
) -> None:
    workflow_id = put(simulator, webhook(), wait(60), DONE)
    run = task_run(workflow_id=workflow_id, poll_interval=UNENDING)
    airflow = SlowSupervisor(state)
    told_late(run, monkeypatch, airflow)
    assert f"is '{state}'" in killed(run, lambda: "execution_id" in run.pushed)
    assert statuses(simulator, workflow_id) == [becomes]


@supervisors
def test_the_last_attempt_does_not_wait_for_a_late_answer(
    task_run: MakeRun, killed: Killed, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow_id = put(simulator, webhook(), wait(60), DONE)
    run = task_run(workflow_id=workflow_id, poll_interval=UNENDING)
    told_late(run, monkeypatch, SlowSupervisor("running"))
    message = killed(run, lambda: "execution_id" in run.pushed, LAST)
    assert "was stopped: Airflow did not say whether the task was ended" in message
    assert statuses(simulator, workflow_id) == ["canceled"]


@supervisors
def test_a_question_has_ended_before_the_last_attempt_reports(
    task_run: MakeRun, killed: Killed, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Airflow 3.0 and 3.1, nothing keeps two threads from reading each other's answers."""
    workflow_id = put(simulator, webhook(), wait(60), DONE)
    has_answered = threading.Event()

    class AfterTheStop(Supervisor):
        def send(self, message: Any) -> Any:
            if type(message).__name__ == "GetTaskStates":
                wait_until(lambda: statuses(simulator, workflow_id) == ["canceled"])
                time.sleep(0.3)
                has_answered.set()
            return super().send(message)

    run = task_run(workflow_id=workflow_id, poll_interval=UNENDING)
    on_kill, had_answered = run.operator.on_kill, []

    def handle(task: Any) -> None:
        on_kill(task)
        had_answered.append(has_answered.is_set())

    monkeypatch.setattr(run.operator, "on_kill", handle)
    comms = "airflow.sdk.execution_time.task_runner.SUPERVISOR_COMMS"
    monkeypatch.setattr(comms, AfterTheStop("running"), raising=False)
    assert "was stopped" in killed(run, lambda: "execution_id" in run.pushed, LAST)
    assert had_answered == [True]


@supervisors
def test_two_signals_at_once(
    task_run: MakeRun,
    killed: Killed,
    simulator: ServiceSimulator,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A group of processes gets the signal once for each, and the supervisor passes its own on."""

    class Again(Supervisor):
        def send(self, message: Any) -> Any:
            if type(message).__name__ == "GetTaskStates":
                os.kill(os.getpid(), signal.SIGUSR1)
                time.sleep(0.2)
            return super().send(message)

    workflow_id = put(simulator, webhook(), wait(60), DONE)
    run = task_run(workflow_id=workflow_id, poll_interval=UNENDING)
    monkeypatch.setattr("airflow.sdk.execution_time.task_runner.SUPERVISOR_COMMS", Again("failed"), raising=False)
    killed(run, lambda: "execution_id" in run.pushed)
    assert statuses(simulator, workflow_id) == ["canceled"]
    assert [one.status for one in simulator.requests if one.path.endswith("/stop")] == [200]


@contextmanager
def line_to_a_supervisor(state: str, may_answer: threading.Event) -> Iterator[tuple[Any, list[str]]]:
    """Airflow's own end of a line to a supervisor, and the types of the requests that arrived.

    :param state: that the supervisor tells of the task.
    :param may_answer: when it may begin to answer.
    """
    import msgspec
    from airflow.sdk.execution_time import comms

    here, there = socket.socketpair()
    asked: list[str] = []

    def answer() -> None:
        while len(size := there.recv(4)) == 4:
            frame = msgspec.msgpack.decode(there.recv(int.from_bytes(size, "big")), type=comms._RequestFrame)
            asked.append(str((frame.body or {})["type"]))
            may_answer.wait(60)
            body: Any = comms.XComResult(key="any", value=None)
            if asked[-1] == "GetTaskStates":
                body = comms.TaskStatesResult(task_states={"manual__1": {"task": state}})
            there.sendall(comms._ResponseFrame(id=frame.id, body=body.model_dump()).as_bytes())

    supervisor = threading.Thread(target=answer, daemon=True)
    supervisor.start()
    with here, there:
        try:
            yield comms.CommsDecoder(socket=here), asked
        finally:
            here.shutdown(socket.SHUT_WR)
            supervisor.join(60)


@supervisors
@pytest.mark.parametrize(("state", "becomes"), [("failed", "canceled"), ("up_for_retry", "running")])
def test_in_the_middle_of_a_request_to_airflow(
    task_run: MakeRun,
    killed: Killed,
    simulator: ServiceSimulator,
    monkeypatch: pytest.MonkeyPatch,
    state: str,
    becomes: str,
) -> None:
    """The line to the supervisor takes one request at a time, and the thread that the signal interrupts uses it."""
    from airflow.sdk.execution_time import comms, task_runner

    workflow_id = put(simulator, webhook(), wait(60), DONE)
    run = task_run(workflow_id=workflow_id, poll_interval=UNENDING)
    has_handled, on_kill = threading.Event(), run.operator.on_kill

    def handle(task: Any) -> None:
        on_kill(task)
        has_handled.set()

    monkeypatch.setattr(run.operator, "on_kill", handle)
    with line_to_a_supervisor(state, has_handled) as (line, asked):

        def push(key: str, value: Any) -> None:
            if key == "execution_id":
                monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", line, raising=False)
                question = comms.GetXCom(key="any", dag_id="dag", run_id="manual__1", task_id="task", map_index=-1)
                assert line.send(question).key == "any", "the answer of another request"

        run.on_push = push
        killed(run, lambda: asked == ["GetXCom"])
        assert asked == ["GetXCom", "GetTaskStates"]
    assert statuses(simulator, workflow_id) == [becomes]
