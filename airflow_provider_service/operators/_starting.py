"""Base class for operators that start executions. Its methods import what only a running task needs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._airflow.attempts import fail_without_retry, failure_reported, push_execution
from airflow_provider_service._core.arguments import OnVanished
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
    from airflow_provider_service._core.waits.outcome import Outcome
    from airflow_provider_service._core.waits.stop import EndingTask
    from airflow_provider_service.operators.results import RunResult


class ServiceStartingOperator(ServiceWaitingOperator):
    """Base class for operators that start an execution once per task run, wait for it, and stop it if they must."""

    context_names = ("ti", "task")
    workflow_name: str | None = None

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
        return None

    def call_headers(self, authentication: str) -> Mapping[str, str]:
        """Return the headers of the call that started the execution, whose values are hidden in its output."""
        return {}

    def perform(self, context: Context) -> RunResult:
        try:
            return cast("RunResult", self._run(context))
        except ServiceTaskKilledError as error:
            self._settle(in_signal=False)
            fate = self._ending.fate if self._ending is not None else None
            raise ServiceTaskKilledError(f"{error}; {fate}" if fate else str(error)) from None

    def _run(self, context: Context) -> dict[str, Any]:
        from airflow_provider_service._core.runs.attempt import Attempt
        from airflow_provider_service._core.runs.idempotent_start import IdempotentStart
        from airflow_provider_service._core.waits.outcome import EXECUTION_ID_KEY, not_kept, started
        from airflow_provider_service._core.waits.stop import EndingTask

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
        known_name = self.known_name or self.workflow_name
        name = {"workflow_name": known_name} if known_name else {}
        if not self.wait_for_completion:
            if name:
                push_execution(context, execution_id, **name)
            return started(hook.config.base_url, workflow_id, execution_id)
        outcome = self.wait(context, execution_id, workflow_id, deadline, **name)
        return self._finish(context, outcome, **name)

    def execute_complete(self, context: Context, event: Any, workflow_name: str | None = None) -> RunResult:
        from airflow_provider_service._core.waits.outcome import Outcome

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
        from airflow_provider_service._core.waits.stop import stop_overdue
        from airflow_provider_service._core.waits.watch import explained

        wait = self._wait_for(outcome.execution_id, expected_workflow_id)
        outcome = stop_overdue(self.hook.client, outcome, wait)
        outcome.push_times(context, workflow_name)
        self._outcome = explained(self.hook.config, outcome)
        return self._result(self._outcome)

    def _result(self, outcome: Outcome) -> dict[str, Any]:
        from airflow_provider_service._core.waits.outcome import result_of

        if not self.wait_for_completion:
            return outcome.to_xcom(only_ids=True)
        result = result_of(self.hook.client, outcome, self.wanted_output(), self.call_headers)
        return {**result, **self.further_result(outcome)}
