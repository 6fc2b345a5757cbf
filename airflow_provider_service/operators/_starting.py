"""What the operators share that start an execution: once, however often the task is tried, and none left running."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Protocol

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.arguments import require_flag
from airflow_provider_service.failing import failing_at_once
from airflow_provider_service.links import EXECUTION_PAGE, ServiceExecutionLink
from airflow_provider_service.operators._waiting import ServiceWaitingOperator
from airflow_provider_service.runs.attempt import Attempt

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client.errors import ServiceRunNotSeenError
    from airflow_provider_service.client.models.executions import Execution
    from airflow_provider_service.waits.outcome import OnVanished, Outcome

# Of the 5 s that Airflow gives a killed task, most are for stopping the execution.
KILLED_SEARCH_SECONDS = 1.5


class Starter(Protocol):
    """Starts one execution."""

    #: After an error: whether it provably started none.
    started_nothing: bool

    def start(self) -> str:
        """Start it and return its id."""

    def find(self, client: ServiceClient) -> str | None:
        """The execution that it has started, if it can be seen."""


class ServiceStartingOperator(ServiceWaitingOperator):
    """Base of the operators that start an execution and wait for it.

    When the wait is over before the execution is, it is stopped.

    :param cancel_on_kill: stop the execution when the task is killed or marked, or is cleared while it runs in a
        worker; True by default.
    :param on_vanished: what it means that the execution cannot be found: ``"fail"`` or ``"succeed"``.
    """

    def __init__(self, *, cancel_on_kill: bool = True, on_vanished: OnVanished = "fail", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cancel_on_kill = cancel_on_kill
        self.on_vanished = on_vanished
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
        from airflow_provider_service.client.errors import ServiceRunNotSeenError
        from airflow_provider_service.waits.outcome import EXECUTION_ID_KEY

        self.check_how_to_wait()
        require_flag("cancel_on_kill", self.cancel_on_kill)
        deadline = time.time() + self.timeout
        try:
            execution_id, workflow_id = self._begin(context)
        except ServiceRunNotSeenError as error:
            return self._unseen(error)
        url = self.link_to(context, ServiceExecutionLink(), EXECUTION_PAGE, workflow_id, execution_id)
        context["ti"].xcom_push(key=EXECUTION_ID_KEY, value=execution_id)
        self.log.info("Execution %s: %s", execution_id, url)
        if not self.wait_for_completion:
            return {"execution_id": execution_id, "workflow_id": workflow_id, "url": url}
        return self._finish(self.wait(execution_id, deadline))

    def execute_complete(self, context: Context, event: Any) -> dict[str, Any]:
        """End the task as the trigger's event says."""
        from airflow_provider_service.waits.outcome import Outcome

        with failing_at_once():
            return self._finish(Outcome.from_event(event))

    def on_kill(self) -> None:
        """Stop the execution, also one that was just being started, when that was asked for; and end the wait."""
        from airflow_provider_service.waits.stop import stop_execution

        try:
            execution_id = (self._waiting_for or self._just_started()) if self.cancel_on_kill else None
            if execution_id is not None:
                stop_execution(self.hook.config, execution_id)
        finally:
            super().on_kill()

    def _begin(self, context: Context) -> tuple[str, str]:
        from airflow_provider_service.client import errors

        attempt = Attempt(context)
        try:
            execution_id, workflow_id = self._kept(context, attempt) or self.begin(context, attempt)
        except errors.ServiceRunNotFoundError as error:
            if self.on_vanished == "succeed" and isinstance(error, errors.ServiceRunNotSeenError):
                raise
            raise AirflowFailException(
                f"{error}. Another attempt could double it, so there is none; clear the task to start anew"
            ) from error
        except errors.ServiceTaskKilledError:
            # The start may have slipped through while on_kill was looking.
            self.on_kill()
            raise
        self._waiting_for = execution_id
        if self._killed.is_set():
            # It could not be stopped before it was known.
            self.on_kill()
            raise errors.ServiceTaskKilledError(f"the task was killed while it started execution {execution_id}")
        attempt.remember(execution_id, workflow_id)
        return execution_id, workflow_id

    def _unseen(self, error: ServiceRunNotSeenError) -> dict[str, Any]:
        """What the task returns of a run whose execution was not kept."""
        from airflow_provider_service.waits.outcome import Outcome

        self.log.warning("%s (on_vanished='succeed')", error)
        if not self.wait_for_completion:
            return {"execution_id": None, "workflow_id": error.workflow_id, "url": None}
        outcome = Outcome("", "succeeded", str(error), workflow_id=error.workflow_id)
        return {**outcome.to_xcom(), "execution_id": None, **self.output_of(outcome)}

    def _kept(self, context: Context, attempt: Attempt) -> tuple[str, str] | None:
        """The execution that Airflow keeps for the task run, if this attempt resumes it."""
        from airflow_provider_service.client.errors import ServiceNotFoundError

        kept = attempt.recalled()
        if kept is None or kept.execution_id is None:
            return None
        try:
            if not attempt.key.adopts(kept.attempt, self.hook.executions.get(kept.execution_id).status):
                return None
        except ServiceNotFoundError:
            if kept.attempt < attempt.key.first:
                return None
            # It may have succeeded: the wait decides what that means.
            self.log.warning("Execution %s, which an earlier attempt started, cannot be found", kept.execution_id)
        else:
            self.log.info("Resuming execution %s, which an earlier attempt started", kept.execution_id)
        self.link_workflow(context, kept.workflow_id)
        return kept.execution_id, kept.workflow_id

    def _earlier_retry(self, attempt: Attempt, original: Execution) -> str | None:
        """The retry of an execution that an earlier attempt asked for, unless that has failed."""
        from airflow_provider_service.runs.service_retry import find_earlier_retry

        found = find_earlier_retry(self.hook.client, original, attempt.key, attempt.since, self._killed)
        if found is None:
            return None
        self.log.info("Resuming execution %s, which retries %s", found.id, original.id)
        return found.id

    def _retry(self, attempt: Attempt, original: Execution, *, load_workflow: bool | None = None) -> str:
        """Let the service retry an execution, once."""
        from airflow_provider_service.runs.service_retry import RetryStarter

        self.log.info("Letting the service retry execution %s", original.id)
        starter = RetryStarter(
            self.hook.client, original, load_workflow=load_workflow, timeout=self.timeout, stopped=self._killed
        )
        return self._start(starter, attempt)

    def _start(self, starter: Starter, attempt: Attempt) -> str:
        attempt.note_call()
        self._starter = starter
        try:
            return starter.start()
        except Exception:
            if starter.started_nothing:
                attempt.take_back()
            raise

    def _just_started(self) -> str | None:
        from airflow_provider_service.client import ServiceClient
        from airflow_provider_service.client.errors import ServiceError
        from airflow_provider_service.runs.call_and_search import search_for

        starter = self._starter
        if starter is None:
            return None
        brief = self.hook.config.one_try(connect_timeout=1.0, timeout=KILLED_SEARCH_SECONDS)
        with ServiceClient(brief) as client:
            try:
                return search_for(lambda: starter.find(client), KILLED_SEARCH_SECONDS, threading.Event())
            except ServiceError as error:
                self.log.error("An execution that was being started cannot be looked for, it may run: %s", error)
                return None

    def _finish(self, outcome: Outcome) -> dict[str, Any]:
        from airflow_provider_service.waits.outcome import settle

        if outcome.verdict == "timed_out":
            outcome = self._stopped(outcome)
        return {**settle(outcome, retry_helps=True), **self.output_of(outcome)}

    def _stopped(self, outcome: Outcome) -> Outcome:
        """Stop an execution that did not end in time, unless it ended meanwhile: then that counts."""
        from dataclasses import replace

        from airflow_provider_service.waits.stop import stop_execution
        from airflow_provider_service.waits.watch import Watch

        was_stopped = stop_execution(self.hook.config, outcome.execution_id)
        ended = Watch(outcome.execution_id, on_vanished=self.on_vanished).look(self.hook.client)
        if ended is not None and ended.status != "canceled":
            return ended
        fate = "it was stopped" if was_stopped else "it could NOT be stopped and may still be running"
        return replace(outcome, message=f"{outcome.message}; {fate}")
