"""Stop the execution of a task that has ended, but only if no attempt will need it.

Airflow calls ``on_kill`` whoever ended a task: a person, a time limit, a shutdown of its worker, or Airflow itself,
because the process or its API server had not answered for a while. Only in the first two cases is the execution no
longer needed. In the others, the next attempt searches for the execution and resumes it. It may already have done so: a
process that stalled receives the signal to end only when it wakes up, long after another one has taken over its task.
The same holds for a triggerer that stalled and lost its triggers.

So Airflow is asked first (:func:`ask`). Its answers do not always distinguish these cases (:func:`decide`). If they do
not, the execution keeps running as long as an attempt is left: a person can still stop it, but an execution that is
stopped while its task waits for it is lost. A worker asks by :class:`EndingTask`, a triggerer by
:func:`was_killed`. A wait that is overdue needs no question (:func:`stop_overdue`).
"""

from __future__ import annotations

import logging
import math
import sys
from concurrent.futures import Future, TimeoutError, wait
from contextlib import nullcontext
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from airflow.providers.common.compat.sdk import AirflowTaskTimeout
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_0_PLUS

from airflow_provider_service._core.daemon_threads import in_background, in_daemon_thread
from airflow_provider_service._core.waits.outcome import EXECUTION_ID_KEY
from airflow_provider_service.client import errors
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._constraints import ENDED_STATUSES
from airflow_provider_service.client._execution_data import read_state

if TYPE_CHECKING:
    from airflow.executors.workloads import TaskInstance

    from airflow_provider_service._core.runs.attempt import Attempt
    from airflow_provider_service._core.runs.idempotent_start import IdempotentStart
    from airflow_provider_service._core.waits.outcome import Outcome
    from airflow_provider_service._core.waits.watch import Wait
    from airflow_provider_service.client import ServiceClient, ServiceConfig

log = logging.getLogger(__name__)

#: Seconds for each request of the stop of a killed task's execution; Airflow kills the task after 5.
STOP_TIMEOUT_SECONDS = 3.0
#: Seconds for which a worker asks Airflow who ended a task, if no signal is in a hurry.
ASKING_SECONDS = 60.0
#: The same in a triggerer, which first loads Airflow's API for more than a minute on a busy machine.
ASKING_SECONDS_IN_A_TRIGGERER = 300.0
#: Seconds for which a signal handler asks Airflow who ended the task; Airflow kills it after 5, and a stop takes 3.
ASKING_SECONDS_IN_A_SIGNAL = 1.5
#: Seconds after which a signal handler no longer waits for Airflow's answer.
ENDING_SECONDS_IN_A_SIGNAL = 4.5
#: Why the service answers 404 to the stop of an execution that it shows.
NOT_ALLOWED = "the service does not stop it, because the user of the key may read its workflow, but not execute it"

#: What became of an execution that was to be stopped, in the words of messages.
Fate = Literal["was stopped", "had ended", "could NOT be stopped"]

# A task instance that no longer exists was deleted with its DAG run.
_DELETED = "deleted"
# States in which no attempt waits for the execution or will search for it. A user's action or a timeout of the DAG run
# leads to them, and so does the end of the execution, after which there is nothing left to stop. A task that was
# cleared while a worker ran it is "restarting" until the worker has ended it.
_OVER = frozenset({_DELETED, "restarting", "failed", "success", "skipped", "removed", "upstream_failed"})
# States in which the task waits for an execution, or is about to search for the one that its last attempt left.
_AT_WORK = frozenset({"deferred", "running"})


class Decision(NamedTuple):
    """What happens to the execution of a task that is being ended, and why, as the end of a sentence."""

    stops: bool
    reason: str


class TaskNow(NamedTuple):
    #: None while it waits to be scheduled.
    state: str | None
    #: The execution that its latest attempt waits for, if the attempt has reported it.
    execution_id: str | None = None
    #: Whether a later attempt than the one that asks is known to have begun.
    has_moved_on: bool = False


def ask(ti: Any, attempt: Attempt | None = None) -> TaskNow:
    """Ask Airflow about a task. The call blocks, and raises any error that the request causes."""
    state, try_number = (_state_of(ti), None) if AIRFLOW_V_3_0_PLUS else _in_database(ti)
    if state not in _AT_WORK:
        return TaskNow(state)
    has_moved_on = attempt is not None and (attempt.is_given_up if try_number is None else try_number != ti.try_number)
    return TaskNow(state, _current_execution(ti), has_moved_on)


def decide(now: TaskNow, execution_id: str | None, *, attempts_left: bool | None = None) -> Decision:
    """``attempts_left``: whether Airflow will try the task again; None in a triggerer, whose end ends no attempt."""
    if now.state in _OVER:
        return Decision(True, f"Airflow says that the task is '{now.state}'")
    # After the task was cleared, a new attempt may have begun. Usually it resumes the execution, but not always.
    if execution_id is not None and now.execution_id not in {None, execution_id}:
        return Decision(True, f"the task now waits for execution {now.execution_id}")
    if now.state == "running" and not now.has_moved_on and attempts_left is not None:
        return _left_to_the_next("the task was ended from outside", attempts_left)
    it = "it" if now.state is None else f"it is '{now.state}', or"
    return Decision(False, f"the task was not ended; {it} begins again and then resumes the execution")


def undecided(error: BaseException, *, attempts_left: bool) -> Decision:
    return _left_to_the_next(_unanswered(error), attempts_left)


async def was_killed(ti: TaskInstance | None, execution_id: str, *, is_again: bool = False) -> bool:
    """Ask Airflow, in a triggerer; when in doubt, and when Airflow cannot be asked, the answer is no."""
    if ti is None:
        log.error("Execution %s is not stopped, because its trigger belongs to no task", execution_id)
        return False
    try:
        now = await clock().wait_for(in_daemon_thread(ask, ti), ASKING_SECONDS_IN_A_TRIGGERER)
    except Exception as error:  # noqa: BLE001 - after any error, it is unknown whether the task was ended
        log.error(
            "Execution %s is not stopped and may still be running: %s. The next attempt of the task resumes it. "
            "If there is none, stop it in the service",
            *(execution_id, _unanswered(error)),
        )
        return False
    decision = decide(now, execution_id)
    if not (decision.stops and is_again):
        becomes = "is being stopped" if decision.stops else "keeps running"
        log.info("Execution %s %s: %s", execution_id, becomes, decision.reason)
    return decision.stops


class EndingTask:
    """Stops the execution of a task that a person or a time limit has ended; otherwise leaves it to the next attempt.

    Airflow calls ``on_kill`` in a signal handler, in the thread of the task. The handler must not wait long, and must
    not ask Airflow while this thread is in the middle of another request to Airflow. If the handler cannot decide, the
    task decides when it continues and finds that it was killed, as it does on Airflow 3.
    """

    def __init__(self, ti: Any, start: IdempotentStart, config: ServiceConfig) -> None:
        #: What happened to the execution, for messages; None until that is decided, or if there is no execution.
        self.fate: str | None = None
        self._ti, self._start, self._config = ti, start, config
        self._attempts_left = ti.try_number <= (ti.max_tries or 0)
        self._answer: Future[TaskNow] | None = None
        self._is_settling = False

    def settle(self, *, in_signal: bool) -> None:
        """Decide whether to stop the execution, and if so, stop it. Safe to repeat and to interrupt."""
        if self._is_settling or self.fate is not None:  # a second signal interrupts the handler of the first
            return
        self._is_settling = True
        begin = clock().monotonic()
        try:
            decision = self._decide(in_signal=in_signal)
            if decision is not None:
                self.fate = self._carry_out(decision)
                if in_signal and self._answer is not None:
                    # On Airflow 3.0 and 3.1, the answer would mix with what this thread reports next.
                    wait([self._answer], max(0.0, ENDING_SECONDS_IN_A_SIGNAL - (clock().monotonic() - begin)))
        finally:
            self._is_settling = False
        if self.fate is not None:
            log.info("The task was killed; %s", self.fate)

    def _carry_out(self, decision: Decision) -> str | None:
        execution_id = self._start.execution_id
        if not decision.stops:
            what = "what the task has started" if execution_id is None else f"execution {execution_id}"
            return f"{what} keeps running: {decision.reason}"
        execution_id = execution_id or self._start.just_started(self._config)
        if execution_id is None:
            return None
        log.info("Execution %s is being stopped: %s", execution_id, decision.reason)
        fate = stop_execution(in_a_hurry(self._config), execution_id)
        doubt = " and may still be running" if fate == "could NOT be stopped" else ""
        return f"execution {execution_id} {fate}{doubt}: {decision.reason}"

    def _decide(self, *, in_signal: bool) -> Decision | None:
        # Airflow calls ``on_kill`` while it handles the exception of the ``execution_timeout``.
        if isinstance(sys.exc_info()[1], AirflowTaskTimeout):
            return Decision(True, "the task reached its execution_timeout")
        if in_signal and _interrupts_a_request():
            log.info("The task was killed; its execution keeps running until Airflow can be asked who ended the task")
            return None
        try:
            if self._answer is None:
                # In a thread, since the supervisor, its API server or its database may be slow to answer.
                self._answer = in_background(ask, self._ti, self._start.attempt, name="service-end")
            now = self._answer.result(ASKING_SECONDS_IN_A_SIGNAL if in_signal else ASKING_SECONDS)
        except TimeoutError as error:
            if in_signal and self._attempts_left:
                log.info("The task was killed; its execution keeps running until Airflow says who ended the task")
                return None
            return undecided(error, attempts_left=self._attempts_left)
        except Exception as error:  # noqa: BLE001 - whatever the error, who ended the task is unknown
            return undecided(error, attempts_left=self._attempts_left)
        return decide(now, self._start.execution_id, attempts_left=self._attempts_left)


def _interrupts_a_request() -> bool:
    """Whether the signal interrupted a request to the supervisor, which answers one at a time."""
    # Airflow has no public way to know that.
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == "airflow.sdk.execution_time.comms":
            return True
        frame = frame.f_back
    return False


def _unanswered(error: BaseException) -> str:
    return f"Airflow did not say whether the task was ended ({error!r})"


def _left_to_the_next(what: str, attempts_left: bool) -> Decision:
    if attempts_left:
        return Decision(False, f"{what}, and its next attempt resumes the execution")
    return Decision(True, f"{what}, and no attempt is left to resume the execution")


def in_a_hurry(config: ServiceConfig) -> ServiceConfig:
    """Copy the settings for a single try that ends before Airflow kills the task."""
    return config.one_try(connect_timeout=1.5, timeout=STOP_TIMEOUT_SECONDS)


def stop_execution(config: ServiceConfig, execution_id: str, *, workflow_id: str | None = None) -> Fate:
    """The workflow is given if the server may be another one than before; then the execution is read first."""
    try:
        return try_to_stop(config, execution_id, workflow_id=workflow_id)
    except errors.ServiceApiError as error:
        log_failure(execution_id, error)
        return "could NOT be stopped"


def try_to_stop(config: ServiceConfig, execution_id: str, *, workflow_id: str | None = None) -> Fate:
    """The same as :func:`stop_execution`, but raise the error of a request that failed."""
    from airflow_provider_service.client import ServiceClient

    with ServiceClient(config) as client:
        try:
            if workflow_id is not None:
                shown = read_state(client, execution_id, workflow_id)[0].workflow_id
                if shown not in (None, workflow_id):
                    what = f"workflow '{workflow_id}' is not stopped: at {client.base_url}, it is one of '{shown}'"
                    log.error("Execution %s of %s", execution_id, what)
                    return "could NOT be stopped"
            client.executions.stop(execution_id)
        except (errors.ServiceConflictError, errors.ServiceNotFoundError) as error:
            if isinstance(error, errors.ServiceNotFoundError) and _is_active(client, execution_id):
                log.error("Execution %s has not ended: %s", execution_id, NOT_ALLOWED)
                return "could NOT be stopped"
            log.info("Execution %s had ended before it was stopped: %s", execution_id, error)
            return "had ended"
    log.info("Execution %s was stopped", execution_id)
    return "was stopped"


def log_failure(execution_id: str, error: Exception) -> None:
    log.error("Execution %s could not be stopped and may still be running: %s", execution_id, error)


def _is_active(client: ServiceClient, execution_id: str) -> bool:
    try:
        return read_state(client, execution_id)[0].status not in ENDED_STATUSES
    except errors.ServiceNotFoundError:
        return False


def stop_overdue(client: ServiceClient, outcome: Outcome, wait: Wait) -> Outcome:
    """Stop an execution that apparently did not end in time. If it has ended in the meantime, that outcome counts."""
    from airflow_provider_service._core.waits.watch import Watch, where_it_waits
    from airflow_provider_service.client import ServiceClient

    if outcome.verdict != "timed_out" and not outcome.is_overdue:
        return outcome
    config = client.transport.config
    if outcome.verdict == "timed_out":
        outcome = where_it_waits(in_a_hurry(config), outcome)
    fate = stop_execution(in_a_hurry(config), outcome.execution_id, workflow_id=wait.expected_workflow_id)
    # If the service does not answer, retries would take a minute.
    is_reachable = fate != "could NOT be stopped" and not outcome.is_overdue
    with nullcontext(client) if is_reachable else ServiceClient(config.one_try()) as reader:
        ended = Watch(replace(wait, deadline=math.inf)).read(reader, is_last=True)
    if ended is not None and ended.status != "canceled":
        return ended
    if ended is not None or fate == "was stopped":
        outcome = Watch(wait).timed_out() if outcome.is_overdue else outcome
        if ended is not None:
            outcome = outcome._replace(started_at=ended.started_at, stopped_at=ended.stopped_at)
        return outcome._replace(message=f"{outcome.message}; it was stopped")
    if fate == "had ended":
        return outcome._replace(message=f"{outcome.message}; it has ended by now, but how could not be read")
    doubt = "" if outcome.is_overdue else " and may still be running"
    return outcome._replace(message=f"{outcome.message}; it {fate}{doubt}")


def _state_of(ti: Any) -> str | None:
    """Return the state of a task instance; None while it waits to be scheduled."""
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    states = RuntimeTaskInstance.get_task_states(
        dag_id=ti.dag_id, task_ids=[ti.task_id], run_ids=[ti.run_id], map_index=ti.map_index
    )
    name = ti.task_id if ti.map_index < 0 else f"{ti.task_id}_{ti.map_index}"
    state = states.get(ti.run_id, {}).get(name, _DELETED)
    return None if state is None else str(state)


def _in_database(ti: Any) -> tuple[str | None, int]:
    """Read the state and the latest attempt of a task instance on Airflow 2, where tasks may read its database."""
    from airflow.models.taskinstance import TaskInstance as Row

    row: Any = Row.get_task_instance(  # type: ignore[call-arg,unused-ignore]
        dag_id=ti.dag_id, run_id=ti.run_id, task_id=ti.task_id, map_index=ti.map_index
    )
    if row is None:
        return _DELETED, 0
    return None if row.state is None else str(row.state), row.try_number


def _current_execution(ti: Any) -> str | None:
    """Return the execution that the latest attempt waits for; Airflow discards it when another attempt begins."""
    from airflow.providers.common.compat.sdk import XCom

    value = XCom.get_one(
        key=EXECUTION_ID_KEY, dag_id=ti.dag_id, task_id=ti.task_id, run_id=ti.run_id, map_index=ti.map_index
    )
    return None if value is None else str(value)
