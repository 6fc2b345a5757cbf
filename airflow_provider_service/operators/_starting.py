"""Base class for operators that start an execution once per task run, and stop it if the task is ended early.

What Airflow says about who ended a task, and what follows from that, is in ``_core/waits/stop.py``, which a triggerer
asks as well. Here is how a worker asks, which Airflow interrupts by a signal.
"""

from __future__ import annotations

import logging
import sys
from abc import abstractmethod
from collections.abc import Mapping
from concurrent.futures import Future, TimeoutError, wait
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

from airflow.providers.common.compat.sdk import AirflowFailException, AirflowTaskTimeout

from airflow_provider_service._airflow.attempts import fail_without_retry, failure_reported, push_execution
from airflow_provider_service._core.arguments import OnVanished
from airflow_provider_service._core.daemon_threads import in_background
from airflow_provider_service._core.waits.outcome import EXECUTION_ID_KEY, Outcome, not_kept, result_of, started
from airflow_provider_service._core.waits.stop import (
    ASKING_SECONDS,
    Decision,
    ask,
    decide,
    in_a_hurry,
    stop_execution,
    stop_overdue,
    undecided,
)
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client.errors import (
    ServiceRunInDoubtError,
    ServiceRunNotKeptError,
    ServiceTaskKilledError,
)
from airflow_provider_service.links.service import EXECUTION_PAGE, ServiceExecutionLink
from airflow_provider_service.operators._waiting import ServiceWaitingOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_service._core.lineage import Lineage
    from airflow_provider_service._core.runs.idempotent_start import IdempotentStart
    from airflow_provider_service._core.runs.output import WantedOutput
    from airflow_provider_service._core.waits.stop import TaskNow
    from airflow_provider_service.client import ServiceConfig
    from airflow_provider_service.operators.results import RunResult


log = logging.getLogger(__name__)

#: Seconds for which a signal handler asks Airflow who ended the task; Airflow kills it after 5, and a stop takes 3.
ASKING_SECONDS_IN_A_SIGNAL = 1.5
#: Seconds after which a signal handler no longer waits for Airflow's answer.
ENDING_SECONDS_IN_A_SIGNAL = 4.5


class ServiceStartingOperator(ServiceWaitingOperator):
    """Base class for operators that start an execution and wait for it.

    If a person or a time limit ends the wait before the execution ends, the execution is stopped. If the worker dies or
    loses contact with Airflow while attempts are left, the execution keeps running, and the next attempt resumes it.
    """

    context_names = ("ti", "task")

    def __init__(self, *, cancel_on_kill: bool, on_vanished: OnVanished, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cancel_on_kill = cancel_on_kill
        self.on_vanished = on_vanished
        self._ending: EndingTask | None = None
        self._start: IdempotentStart | None = None
        self._outcome: Outcome | None = None
        #: Name of the workflow, once this process has read it.
        self.known_name: str | None = None

    @abstractmethod
    def begin(self, context: Context, start: IdempotentStart) -> tuple[str, str]:
        """Start an execution, or resume that of an earlier attempt, as ``start`` does it; return what it returns."""

    def requested_workflow_id(self) -> str | None:
        """Return the id of the workflow to run, if the task names it by its id; None by default."""
        return None

    def further_result(self, outcome: Outcome) -> dict[str, Any]:
        """Return what the result has besides the outcome and the nodes; nothing by default."""
        return {}

    def wanted_output(self) -> WantedOutput | None:
        """Return which output the result has; None (the default) for no output."""
        return None

    def call_headers(self, authentication: str) -> Mapping[str, str]:
        """Return the headers of the call that started the execution, whose values are hidden in its output."""
        return {}

    def perform(self, context: Context) -> RunResult:
        """Start the execution, and wait for it if ``wait_for_completion`` is set."""
        try:
            return cast("RunResult", self._run(context))
        except ServiceTaskKilledError as error:
            self._settle(in_signal=False)
            fate = self._ending.fate if self._ending is not None else None
            raise ServiceTaskKilledError(f"{error}; {fate}" if fate else str(error)) from None

    def _run(self, context: Context) -> dict[str, Any]:
        from airflow_provider_service._core.runs.attempt import Attempt
        from airflow_provider_service._core.runs.idempotent_start import IdempotentStart

        deadline = clock().now() + self.wait_seconds
        attempt, hook = Attempt.of_task(context), self.hook
        start = IdempotentStart(hook.client, attempt, timeout=self.wait_seconds, stopped=self._killed)
        self._start, self._ending = start, EndingTask(context["ti"], start, hook.config)
        try:
            saved = start.resume_saved(self.requested_workflow_id())
            execution_id, workflow_id = saved or self.begin(context, start)
        except ServiceRunInDoubtError as error:
            if isinstance(error, ServiceRunNotKeptError) and self.on_vanished == "succeed":
                return self._result(not_kept(error))
            raise AirflowFailException(
                f"{error}. A retry could run it twice, so the task is not retried; clear the task to run it again"
            ) from error
        self.link_workflow(context, workflow_id)
        url = self.link_to(context, ServiceExecutionLink(), EXECUTION_PAGE, workflow_id, execution_id)
        context["ti"].xcom_push(key=EXECUTION_ID_KEY, value=execution_id)
        self.log.info("Execution %s: %s", execution_id, url)
        name = {"workflow_name": self.known_name} if self.known_name else {}
        if not self.wait_for_completion:
            if name:
                push_execution(context, execution_id, **name)
            return started(hook.config.base_url, workflow_id, execution_id)
        outcome = self.wait(context, execution_id, workflow_id, deadline, **name)
        return self._finish(context, outcome, **name)

    def execute_complete(self, context: Context, event: Any, workflow_name: str | None = None) -> RunResult:
        """Finish the task with the outcome in the trigger's event."""
        with failure_reported(context), fail_without_retry():
            outcome = Outcome.from_event(event)
            # Meanwhile, the connection may lead to another server, whose execution must not be stopped.
            result = self._finish(context, outcome, workflow_name, expected_workflow_id=outcome.workflow_id)
            return cast("RunResult", result)

    def on_kill(self) -> None:
        """End the wait; with ``cancel_on_kill``, also stop the execution if a person or a time limit ended the task."""
        try:
            self._settle(in_signal=True)
        finally:
            super().on_kill()

    def get_openlineage_facets_on_start(self) -> Lineage | None:
        """Return empty lineage: nothing is known before the workflow is started."""
        from airflow_provider_service._core import lineage

        return lineage.empty()

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Lineage | None:
        """Return the lineage of the execution, even if it failed or the task was deferred."""
        from airflow_provider_service._core import lineage

        source = self._start if self._outcome is None else self._outcome
        execution_id = None if source is None else source.execution_id
        if not lineage.is_installed() or not execution_id:
            return lineage.empty()
        return lineage.of_execution(task_instance, self.hook.config.base_url, execution_id, self._outcome)

    def _settle(self, *, in_signal: bool) -> None:
        if self._ending is not None and self.cancel_on_kill:
            self._ending.settle(in_signal=in_signal)

    def _finish(
        self,
        context: Context,
        outcome: Outcome,
        workflow_name: str | None = None,
        *,
        expected_workflow_id: str | None = None,
    ) -> dict[str, Any]:
        from airflow_provider_service._core.waits.watch import explained

        wait = self._wait_for(outcome.execution_id, expected_workflow_id)
        outcome = stop_overdue(self.hook.client, outcome, wait)
        outcome.push_times(context, workflow_name)
        self._outcome = explained(self.hook.config, outcome)
        return self._result(self._outcome)

    def _result(self, outcome: Outcome) -> dict[str, Any]:
        if not self.wait_for_completion:
            return outcome.to_xcom(only_ids=True)
        result = result_of(self.hook.client, outcome, self.wanted_output(), self.call_headers)
        return {**result, **self.further_result(outcome)}


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
    """Whether the signal interrupted a request of this thread to its supervisor, which answers one at a time.

    Airflow has no public way to know that, so the stack is searched for the module that sends the requests.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == "airflow.sdk.execution_time.comms":
            return True
        frame = frame.f_back
    return False
