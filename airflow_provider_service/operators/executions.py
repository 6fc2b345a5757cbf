"""Operators for executions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._airflow.attempts import fail_without_retry, failure_reported, push_execution
from airflow_provider_service._airflow.settings import DEFAULT_DEFERRABLE
from airflow_provider_service._core.arguments import DAY_SECONDS, FAULT_TOLERANCE_SECONDS, POLL_SECONDS, OnVanished
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._constraints import ENDED_STATUSES
from airflow_provider_service.client.errors import ServiceConflictError, ServiceNotFoundError, ServiceServerError
from airflow_provider_service.links.service import EXECUTION_PAGE, ServiceExecutionLink
from airflow_provider_service.operators._starting import ServiceStartingOperator
from airflow_provider_service.operators._waiting import ServiceWaitingOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import Duration, TaskArguments, Templated, TemplatedDuration
    from airflow_provider_service._core.runs.idempotent_start import IdempotentStart
    from airflow_provider_service._core.waits.outcome import Outcome
    from airflow_provider_service.client.models import Execution
    from airflow_provider_service.operators.results import StopResult

__all__ = ["ServiceRetryExecutionOperator", "ServiceStopExecutionOperator"]


class ServiceRetryExecutionOperator(ServiceStartingOperator):
    """Run an execution again, and wait until the new one has ended.

    Safe to repeat: a task run makes one retry. A later attempt resumes a retry of the same execution that began after
    the DAG run, unless that retry failed. Clearing the task requests another retry, unless the last one is still
    active. The service does not show who requested a retry, so do not let two tasks retry the same execution at once.

    :param execution_id: id of an execution that failed, crashed or was canceled. One that is still running or waiting
        fails the task for good, because its retry would run beside it.
    :param load_workflow: True to run the current workflow instead of the one that was saved with the execution; None
        (the default) to leave the choice to the service.
    :param wait_for_completion: wait until the execution has ended; True by default.
    :param deferrable: wait in the triggerer, where thousands of waits share their requests; the default is Airflow's
        ``[operators] default_deferrable``.
    :param poll_interval: seconds, or a timedelta, between two polls; 10 seconds by default.
    :param timeout: seconds, or a timedelta, after which the wait is over and the execution is stopped; a day by
        default. A deferred wait is over before the task's ``execution_timeout``.
    :param fault_tolerance: seconds, or a timedelta, for which polls may keep failing before the task fails; 300 seconds
        by default.
    :param cancel_on_kill: stop the execution if a person or a time limit ends the task, or if it is killed in its last
        attempt; True by default. If the worker ends while attempts are left, the next attempt resumes the execution.
    :param on_vanished: what to do if the execution cannot be found, or the key may not see it: ``"fail"`` (the default)
        or ``"succeed"``.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`RunResult` of the new execution, with ``retry_of`` if the task waits for it.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    :raises ServiceExecutionFailedError: the new execution failed, or did not end in time.
    :raises ServiceWaitError: the new execution could not be observed; a retry resumes it.
    """

    template_fields: Sequence[str] = (*ServiceStartingOperator.template_fields, "execution_id")

    def __init__(
        self,
        *,
        execution_id: Templated[str | int],
        load_workflow: bool | None = None,
        wait_for_completion: bool = True,
        deferrable: bool = DEFAULT_DEFERRABLE,
        poll_interval: TemplatedDuration = POLL_SECONDS,
        timeout: TemplatedDuration = DAY_SECONDS,
        fault_tolerance: Duration = FAULT_TOLERANCE_SECONDS,
        cancel_on_kill: bool = True,
        on_vanished: OnVanished = "fail",
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(
            wait_for_completion=wait_for_completion,
            deferrable=deferrable,
            poll_interval=poll_interval,
            timeout=timeout,
            fault_tolerance=fault_tolerance,
            cancel_on_kill=cancel_on_kill,
            on_vanished=on_vanished,
            service_conn_id=service_conn_id,
            **kwargs,
        )
        self.execution_id = cast("str | int", execution_id)
        self.load_workflow = load_workflow
        self.check_arguments()

    def begin(self, context: Context, start: IdempotentStart) -> tuple[str, str]:
        original = self.hook.executions.get(self.execution_id)
        self.link_workflow(context, original.workflow_id or "")
        return start.retry_execution(original, load_workflow=self.load_workflow)

    def further_result(self, outcome: Outcome) -> dict[str, Any]:
        return {"retry_of": str(self.execution_id)}


class ServiceStopExecutionOperator(ServiceWaitingOperator):
    """Stop an execution that is queued, running or waiting. Safe to repeat: an execution that has ended is not changed.

    The service usually ends the execution at once; the task waits until it has ended.

    :param execution_id: id of the execution.
    :param if_missing: what to do if it does not exist: ``"fail"`` (the default) or ``"ignore"``. If it runs, but the
        user of the key may not execute its workflow and thus not stop it, the task always fails.
    :param wait_for_completion: wait until the execution has ended; True by default.
    :param deferrable: wait in the triggerer; the default is Airflow's ``[operators] default_deferrable``.
    :param poll_interval: seconds, or a timedelta, between two polls; 1 second by default.
    :param timeout: seconds, or a timedelta, after which the task fails if the execution has not ended; 60 seconds by
        default. A deferred wait is over before the task's ``execution_timeout``.
    :param fault_tolerance: seconds, or a timedelta, for which polls may keep failing before the task fails; 300 seconds
        by default.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`StopResult`; ``status`` is None if the execution does not exist, and ``stopped`` says whether
        this task stopped it.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    :raises AirflowSensorTimeout: the execution had not ended in time.
    :raises ServiceWaitError: the execution could not be observed.
    """

    template_fields: Sequence[str] = (*ServiceWaitingOperator.template_fields, "execution_id")
    on_vanished = "succeed"  # an execution that no longer exists has ended

    def __init__(
        self,
        *,
        execution_id: Templated[str | int],
        if_missing: Literal["fail", "ignore"] = "fail",
        wait_for_completion: bool = True,
        deferrable: bool = DEFAULT_DEFERRABLE,
        poll_interval: TemplatedDuration = 1.0,
        timeout: TemplatedDuration = 60.0,
        fault_tolerance: Duration = FAULT_TOLERANCE_SECONDS,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(
            wait_for_completion=wait_for_completion,
            deferrable=deferrable,
            poll_interval=poll_interval,
            timeout=timeout,
            fault_tolerance=fault_tolerance,
            service_conn_id=service_conn_id,
            **kwargs,
        )
        self.execution_id = cast("str | int", execution_id)
        self.if_missing = if_missing
        self.check_arguments()

    def perform(self, context: Context) -> StopResult:
        from airflow_provider_service.client._execution_data import read_state

        deadline = clock().now() + self.wait_seconds
        stopped = False
        try:
            stopped = self._stop()
            # The answer to a stop request names neither the execution nor its workflow.
            execution, _ = read_state(self.hook, self.execution_id)
        except ServiceNotFoundError:
            if self.if_missing == "fail" and not stopped:
                raise
            self.log.info("Execution %s %s", self.execution_id, "no longer exists" if stopped else "does not exist")
            return {"execution_id": str(self.execution_id), "status": None, "stopped": stopped, "url": None}
        url = self._link(context, execution)
        if execution.status in ENDED_STATUSES or not self.wait_for_completion:
            return self._report(execution.id, execution.status, stopped, url)
        outcome = self.wait(context, execution.id, execution.workflow_id, deadline, stopped=stopped, url=url)
        return self._ended(context, outcome, stopped, url)

    def execute_complete(self, context: Context, event: Any, stopped: bool, url: str) -> StopResult:
        from airflow_provider_service._core.waits.outcome import Outcome

        with failure_reported(context), fail_without_retry():
            return self._ended(context, Outcome.from_event(event), stopped, url)

    def _stop(self) -> bool:
        from airflow_provider_service._core.waits.stop import NOT_ALLOWED
        from airflow_provider_service.client._execution_data import read_state

        try:
            self.hook.executions.stop(self.execution_id)
        except ServiceConflictError:
            return False
        except (ServiceServerError, ServiceNotFoundError) as error:
            # n8n 2.20 answers with an error of the server if the execution has ended.
            if read_state(self.hook, self.execution_id)[0].status in ENDED_STATUSES:
                return False
            if isinstance(error, ServiceServerError):
                raise
            raise AirflowFailException(f"execution {self.execution_id} has not ended: {NOT_ALLOWED}") from error
        return True

    def _link(self, context: Context, execution: Execution) -> str | None:
        if not execution.workflow_id:
            return None
        self.link_workflow(context, execution.workflow_id)
        push_execution(context, execution.id, started_at=execution.started_at, stopped_at=execution.stopped_at)
        return self.link_to(context, ServiceExecutionLink(), EXECUTION_PAGE, execution.workflow_id, execution.id)

    def _ended(self, context: Context, outcome: Outcome, stopped: bool, url: str | None) -> StopResult:
        from airflow_provider_service._core.waits.outcome import settle

        outcome.push_times(context)
        if outcome.verdict == "unobservable":
            settle(outcome)  # raises
        if outcome.verdict == "timed_out":
            what = "it was stopped" if stopped else "the service does not stop it because it has ended"
            raise AirflowFailException(f"{outcome.message}, even though {what}")
        return self._report(outcome.execution_id, outcome.status, stopped, url)

    def _report(self, execution_id: str, status: str | None, stopped: bool, url: str | None) -> StopResult:
        what = "was stopped" if stopped else f"had ended as {status!r}"
        self.log.info("Execution %s %s: %s", execution_id, what, url)
        return {"execution_id": execution_id, "status": status, "stopped": stopped, "url": url}
