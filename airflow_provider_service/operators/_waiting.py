"""What the operators share that start an execution and wait for it: the wait in the worker or the triggerer, the
deadline, and the stop when the task is killed."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from airflow.providers.common.compat.sdk import conf

from airflow_provider_service.client.statuses import FAILED_STATUSES
from airflow_provider_service.links import EXECUTION_PAGE, WORKFLOW_PAGE, ServiceExecutionLink, ServiceWorkflowLink
from airflow_provider_service.operators._attempts import Attempt
from airflow_provider_service.operators._base import (
    ServiceBaseOperator,
    check_wait,
    fail,
    read_seconds,
    require_flag,
)

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client.models.executions import Execution
    from airflow_provider_service.waiting import OnVanished, Outcome

DAY_SECONDS = 86_400.0
# Of the 5 s that Airflow gives a killed task, most are for stopping the execution.
KILLED_SEARCH_SECONDS = 1.5
# What Airflow may need to run a task again after its trigger has fired.
RESUMING_SECONDS = 30.0


class Starter(Protocol):
    """Starts one execution."""

    def start(self) -> str:
        """Start it and return its id."""

    def find(self, client: ServiceClient) -> str | None:
        """The execution that it has started, if it can be seen."""


class ServiceWaitingOperator(ServiceBaseOperator):
    """Base of the operators that start an execution and wait for it.

    :param wait_for_completion: wait until the execution has ended; True by default.
    :param deferrable: wait in the triggerer; by default as ``[operators] default_deferrable`` says.
    :param poll_interval: seconds between two looks; 10 by default.
    :param timeout: seconds after which the execution is stopped and the task fails; a day by default. A deferred task
        stops it before its ``execution_timeout``.
    :param cancel_on_kill: stop the execution when the task is killed, cleared or marked; True by default.
    :param on_vanished: what it means that the execution can not be found: ``"fail"`` or ``"succeed"``.
    :param fault_tolerance: seconds that looking may fail in a row before the task fails; 300 by default.
    """

    operator_extra_links = (ServiceExecutionLink(), ServiceWorkflowLink())

    def __init__(
        self,
        *,
        wait_for_completion: bool = True,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        poll_interval: float = 10.0,
        timeout: float = DAY_SECONDS,
        cancel_on_kill: bool = True,
        on_vanished: OnVanished = "fail",
        fault_tolerance: float = 300.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.wait_for_completion = wait_for_completion
        self.deferrable = deferrable
        self.poll_interval = poll_interval
        self.timeout = timeout
        self.cancel_on_kill = cancel_on_kill
        self.on_vanished = on_vanished
        self.fault_tolerance = fault_tolerance
        self._killed = threading.Event()
        self._starter: Starter | None = None
        self._waiting_for: str | None = None

    @abstractmethod
    def begin(self, context: Context, attempt: Attempt) -> tuple[str, str]:
        """Start the execution, or find the one that an earlier attempt started; its id and its workflow's."""

    def output_of(self, outcome: Outcome) -> dict[str, Any]:
        """What the task returns beyond the outcome."""
        return {}

    def perform(self, context: Context) -> dict[str, Any]:
        """Start the execution and wait for it as asked."""
        self._check_how_to_wait()
        deadline = time.time() + self.timeout
        execution_id, workflow_id = self._begin(context)
        url = self.link_to(context, ServiceExecutionLink(), EXECUTION_PAGE, workflow_id, execution_id)
        context["ti"].xcom_push(key="execution_id", value=execution_id)
        self.log.info("Execution %s: %s", execution_id, url)
        if not self.wait_for_completion:
            return {"execution_id": execution_id, "workflow_id": workflow_id, "url": url}
        outcome = self._look(execution_id, deadline, once=self.deferrable)
        if self._killed.is_set():
            self._interrupt()
        return self._finish(outcome) if outcome else self._defer(execution_id, deadline)

    def execute_complete(self, context: Context, event: Any) -> dict[str, Any]:
        """End the task as the trigger's event says."""
        from airflow_provider_service.waiting import Outcome

        return self._finish(Outcome.from_event(event))

    def on_kill(self) -> None:
        """Stop the execution, also one that was just being started, when that was asked for; and end the wait."""
        from airflow_provider_service.waiting import stop_execution

        try:
            execution_id = (self._waiting_for or self._just_started()) if self.cancel_on_kill else None
            if execution_id is not None:
                stop_execution(self.hook.config, execution_id)
        finally:
            self._killed.set()

    def _check_how_to_wait(self) -> None:
        self.timeout = read_seconds("timeout", self.timeout)
        self.poll_interval = read_seconds("poll_interval", self.poll_interval)
        for name in ("wait_for_completion", "cancel_on_kill"):
            require_flag(name, getattr(self, name))
        check_wait(self)
        if self.deferrable and self.execution_timeout is not None:
            # Airflow 2 drops a deferred task at that moment, Airflow 3 lets it wait on: neither stops the execution.
            seconds = self.execution_timeout.total_seconds()
            self.timeout = min(self.timeout, seconds - min(RESUMING_SECONDS, seconds / 4))

    def _begin(self, context: Context) -> tuple[str, str]:
        from airflow_provider_service.client.starting import ServiceRunNotFoundError

        attempt = Attempt(context)
        try:
            execution_id, workflow_id = self.begin(context, attempt)
        except ServiceRunNotFoundError as error:
            fail(f"{error}. Another attempt could double it, so there is none; clear the task to start anew")
        except InterruptedError:
            # The start may have slipped through while on_kill was looking.
            self.on_kill()
            raise
        self._waiting_for = execution_id
        if self._killed.is_set():
            # It could not be stopped before it was known.
            self.on_kill()
            self._interrupt()
        attempt.remember(execution_id)
        return execution_id, workflow_id

    def link_workflow(self, context: Context, workflow_id: str) -> None:
        """Let the button lead to the workflow, also when nothing of it can be started."""
        self.link_to(context, ServiceWorkflowLink(), WORKFLOW_PAGE, workflow_id)

    def _start(self, starter: Starter, attempt: Attempt) -> str:
        attempt.note_call()
        self._starter = starter
        return starter.start()

    def _kept_run(self, attempt: Attempt) -> str | None:
        """The execution that Airflow keeps for the task run, unless that has failed."""
        kept = attempt.recalled()
        return kept if kept is not None and self._goes_on(kept) else None

    def _earlier_retry(self, attempt: Attempt, original: Execution) -> str | None:
        """The retry of an execution that an earlier attempt asked for, unless that has failed."""
        from airflow_provider_service.client.retries import find_earlier_retry

        found = find_earlier_retry(self.hook.client, original, attempt.since, self._killed)
        if found is None:
            return None
        self.log.info("Going on with execution %s, which retries %s", found.id, original.id)
        return found.id

    def _retry(self, attempt: Attempt, original: Execution, *, load_workflow: bool | None = None) -> str:
        """Let the service retry an execution, once."""
        from airflow_provider_service.client.retries import RetryStarter

        self.log.info("Letting the service retry execution %s", original.id)
        starter = RetryStarter(
            self.hook.client, original, load_workflow=load_workflow, timeout=self.timeout, stopped=self._killed
        )
        return self._start(starter, attempt)

    def _goes_on(self, execution_id: str) -> bool:
        from airflow_provider_service.client.errors import ServiceNotFoundError

        try:
            if self.hook.executions.get(execution_id).status in FAILED_STATUSES:
                return False
        except ServiceNotFoundError:
            # It may have succeeded: the wait decides what that means.
            self.log.warning("Execution %s, which an earlier attempt started, can not be found", execution_id)
        else:
            self.log.info("Going on with execution %s, which an earlier attempt started", execution_id)
        return True

    def _just_started(self) -> str | None:
        from airflow_provider_service.client import ServiceClient
        from airflow_provider_service.client.errors import ServiceApiError
        from airflow_provider_service.client.starting import search_for

        starter = self._starter
        if starter is None:
            return None
        brief = self.hook.config.one_try(connect_timeout=1.0, timeout=KILLED_SEARCH_SECONDS)
        with ServiceClient(brief) as client:
            try:
                return search_for(lambda: starter.find(client), KILLED_SEARCH_SECONDS, threading.Event())
            except ServiceApiError as error:
                self.log.error("An execution that was being started can not be looked for, it may run: %s", error)
                return None

    def _interrupt(self) -> NoReturn:
        raise InterruptedError(f"the task was killed while execution {self._waiting_for} had not ended")

    def _look(self, execution_id: str, deadline: float, *, once: bool) -> Outcome | None:
        from airflow_provider_service.client import ServiceClient
        from airflow_provider_service.waiting import Watch

        watch = Watch(
            execution_id,
            deadline=deadline,
            timeout=self.timeout,
            on_vanished=self.on_vanished,
            fault_tolerance=self.fault_tolerance,
        )
        with ServiceClient(self.hook.config.one_try()) as client:
            outcome = watch.look(client)
            while outcome is None and not once:
                if self._killed.wait(min(self.poll_interval, watch.seconds_left)):
                    return None
                outcome = watch.look(client)
        return outcome

    def _defer(self, execution_id: str, deadline: float) -> dict[str, Any]:
        from airflow_provider_service.triggers.execution import ServiceExecutionTrigger

        self.defer(
            trigger=ServiceExecutionTrigger(
                service_conn_id=self.service_conn_id,
                execution_id=execution_id,
                poll_interval=self.poll_interval,
                deadline=deadline,
                timeout=self.timeout,
                on_vanished=self.on_vanished,
                fault_tolerance=self.fault_tolerance,
                cancel_on_kill=self.cancel_on_kill,
            ),
            method_name="execute_complete",
        )
        raise AssertionError("defer always raises")

    def _finish(self, outcome: Outcome) -> dict[str, Any]:
        from airflow_provider_service.waiting import settle

        if outcome.verdict == "timed_out":
            outcome = self._stopped(outcome)
        return {**settle(outcome, retry_helps=True), **self.output_of(outcome)}

    def _stopped(self, outcome: Outcome) -> Outcome:
        """Stop an execution that did not end in time, unless it ended meanwhile: then that counts."""
        from dataclasses import replace

        from airflow_provider_service.waiting import Watch, stop_execution

        was_stopped = stop_execution(self.hook.config, outcome.execution_id)
        ended = Watch(outcome.execution_id, on_vanished=self.on_vanished).look(self.hook.client)
        if ended is not None and ended.status != "canceled":
            return ended
        fate = "it was stopped" if was_stopped else "it could NOT be stopped and may still be running"
        return replace(outcome, message=f"{outcome.message}; {fate}")
