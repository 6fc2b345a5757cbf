"""Operators on executions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, cast

from airflow.providers.common.compat.sdk import AirflowFailException, conf

from airflow_provider_service.arguments import OPTIONAL_FLAG, as_list, one_of, read_count, require, require_flag
from airflow_provider_service.client.models.statuses import ENDED_STATUSES
from airflow_provider_service.links import EXECUTION_PAGE, ServiceExecutionLink
from airflow_provider_service.operators._selection import SelectedExecutionsOperator
from airflow_provider_service.operators._starting import ServiceStartingOperator
from airflow_provider_service.operators._waiting import ServiceWaitingOperator
from airflow_provider_service.task_arguments import DAY_SECONDS, FAULT_TOLERANCE_SECONDS, POLL_SECONDS, as_rendered
from airflow_provider_service.waits.clock import clock

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service.client.models.executions import Execution
    from airflow_provider_service.runs.once import RunOnce
    from airflow_provider_service.task_arguments import Duration, OnVanished, TaskArguments, Templated
    from airflow_provider_service.waits.outcome import Outcome

_DELETABLE = (*ENDED_STATUSES, "new", "waiting", "unknown")
_STOPPABLE = ("queued", "running", "waiting")
_MAX_IDS_IN_XCOM = 100


class ServiceRetryExecutionOperator(ServiceStartingOperator):
    """Run an execution again, and wait until the new one has ended. Safe to repeat.

    One task run makes one retry. A later attempt resumes a retry of the same execution that began since the DAG run
    did, unless it failed. Clearing the task asks for another retry, unless the last one is still active. The service
    does not say who asked for a retry: let no two tasks retry the same execution at the same time.

    :param execution_id: an execution that failed, crashed or was canceled.
    :param load_workflow: run the current workflow instead of the one that was saved with the execution; by default
        the service decides.
    :param wait_for_completion: wait until the execution has ended; True by default.
    :param deferrable: wait in the triggerer, where thousands of waits share their requests; the default is Airflow's
        ``[operators] default_deferrable``.
    :param poll_interval: seconds, or a timedelta, between two polls; 10 seconds by default.
    :param timeout: seconds, or a timedelta, after which the wait is over and the execution is stopped; a day by
        default. A deferred wait is over before the task's ``execution_timeout``.
    :param fault_tolerance: seconds, or a timedelta, for which polls may keep failing before the task fails; 300 seconds
        by default.
    :param cancel_on_kill: stop the execution if the task is killed or marked as success or failed, or is cleared while
        it runs in a worker; True by default.
    :param on_vanished: what to do if the execution cannot be found: ``"fail"`` (the default) or ``"succeed"``.
    :param service_conn_id: Airflow connection of type ``service``; ``service_default`` by default.
    :returns: ``{"execution_id", "status", "workflow_id", "started_at", "stopped_at", "url", "retry_of"}`` of the new
        execution; without ``wait_for_completion``, ``{"execution_id", "workflow_id", "url"}``.
    """

    template_fields: Sequence[str] = (*ServiceStartingOperator.template_fields, "execution_id")

    checks = {**ServiceStartingOperator.checks, "load_workflow": OPTIONAL_FLAG}

    def __init__(
        self,
        *,
        execution_id: Templated[str | int],
        load_workflow: bool | None = None,
        wait_for_completion: bool = True,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        poll_interval: Duration = POLL_SECONDS,
        timeout: Duration = DAY_SECONDS,
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

    def begin(self, context: Context, once: RunOnce) -> tuple[str, str]:
        """Resume the retry of an earlier attempt, or start one."""
        original = self.hook.executions.get(self.execution_id)
        workflow_id = original.workflow_id or ""
        self.link_workflow(context, workflow_id)
        return self._earlier(once, original) or once.retry(original, load_workflow=self.load_workflow), workflow_id

    def output_of(self, outcome: Outcome) -> dict[str, Any]:
        """The execution that was retried."""
        return {"retry_of": str(self.execution_id)}

    def _earlier(self, once: RunOnce, original: Execution) -> str | None:
        from airflow_provider_service.client.errors import ServiceRunNotFoundError
        from airflow_provider_service.runs.service_retry import keeps_executions

        attempt = once.attempt
        if attempt.is_first:
            return None
        earlier = once.earlier_retry(original)
        if earlier is None and attempt.may_have_started_unseen and not keeps_executions(self.hook.client, original):
            raise ServiceRunNotFoundError(
                f"an earlier attempt may have retried execution {original.id}, whose workflow does not keep all its "
                "executions"
            )
        return earlier


class ServiceStopExecutionOperator(ServiceWaitingOperator):
    """Stop an execution that is queued, running or waiting. Safe to repeat: an execution that has ended is not changed.

    The service usually ends the execution at once; the task waits until it has ended.

    :param execution_id: id of the execution.
    :param if_missing: what to do if it does not exist: ``"fail"`` (the default) or ``"ignore"``.
    :param wait_for_completion: wait until the execution has ended; True by default.
    :param deferrable: wait in the triggerer; the default is Airflow's ``[operators] default_deferrable``.
    :param poll_interval: seconds, or a timedelta, between two polls; 1 second by default.
    :param timeout: seconds, or a timedelta, after which the task fails if the execution has not ended; 60 seconds by
        default. A deferred wait is over before the task's ``execution_timeout``.
    :param fault_tolerance: seconds, or a timedelta, for which polls may keep failing before the task fails; 300 seconds
        by default.
    :param service_conn_id: Airflow connection of type ``service``; ``service_default`` by default.
    :returns: ``{"execution_id", "status", "stopped", "url"}``; ``status`` is None if the execution does not
        exist, and ``stopped`` says whether this task stopped it.
    """

    template_fields: Sequence[str] = (*ServiceWaitingOperator.template_fields, "execution_id")
    checks = {**ServiceWaitingOperator.checks, "if_missing": one_of("fail", "ignore")}
    on_vanished = "succeed"  # an execution that no longer exists has ended

    def __init__(
        self,
        *,
        execution_id: Templated[str | int],
        if_missing: Literal["fail", "ignore"] = "fail",
        wait_for_completion: bool = True,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        poll_interval: Duration = 1.0,
        timeout: Duration = 60.0,
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

    def perform(self, context: Context) -> dict[str, Any]:
        """Stop the execution and return its state."""
        from airflow_provider_service.client.errors import ServiceNotFoundError

        deadline = clock().now() + self.wait_seconds
        stopped = False
        try:
            stopped = self._stop()
            # The answer to a stop request names neither the execution nor its workflow.
            execution = self.hook.executions.get(self.execution_id)
        except ServiceNotFoundError:
            if self.if_missing == "fail" and not stopped:
                raise
            self.log.info("Execution %s %s", self.execution_id, "no longer exists" if stopped else "does not exist")
            return {"execution_id": str(self.execution_id), "status": None, "stopped": stopped, "url": None}
        url = self._link(context, execution)
        if execution.status in ENDED_STATUSES or not self.wait_for_completion:
            return self._report(execution.id, execution.status, stopped, url)
        return self._ended(self.wait(execution.id, deadline, stopped=stopped, url=url), stopped, url)

    def execute_complete(self, context: Context, event: Any, stopped: bool, url: str) -> dict[str, Any]:
        """End the task according to the event of the trigger."""
        from airflow_provider_service.waits.outcome import Outcome

        return self._ended(Outcome.from_event(event), stopped, url)

    def _stop(self) -> bool:
        from airflow_provider_service.client.errors import ServiceConflictError

        try:
            self.hook.executions.stop(self.execution_id)
        except ServiceConflictError:
            return False
        return True

    def _link(self, context: Context, execution: Execution) -> str | None:
        if not execution.workflow_id:
            return None
        self.link_workflow(context, execution.workflow_id)
        return self.link_to(context, ServiceExecutionLink(), EXECUTION_PAGE, execution.workflow_id, execution.id)

    def _ended(self, outcome: Outcome, stopped: bool, url: str | None) -> dict[str, Any]:
        from airflow_provider_service.waits.outcome import settle

        if outcome.verdict == "unobservable":
            return settle(outcome)
        if outcome.verdict == "timed_out":
            raise AirflowFailException(f"{outcome.message}, although it was stopped")
        return self._report(outcome.execution_id, outcome.status, stopped, url)

    def _report(self, execution_id: str, status: str | None, stopped: bool, url: str | None) -> dict[str, Any]:
        what = "was stopped" if stopped else f"had ended as {status!r}"
        self.log.info("Execution %s %s: %s", execution_id, what, url)
        return {"execution_id": execution_id, "status": status, "stopped": stopped, "url": url}


class ServiceStopExecutionsOperator(SelectedExecutionsOperator):
    """Stop all executions that match a selection. Safe to repeat, but a repeat also stops those that started since.

    :param workflow_id: only executions of this workflow; give either this or ``all_workflows=True``.
    :param all_workflows: True to stop executions of every workflow; False by default.
    :param status: one or several of ``"queued"``, ``"running"`` and ``"waiting"``; None for all of them.
    :param started_before: only those that started before this: a datetime with a time zone, or text (without one: UTC).
    :param older_than: only those that started longer ago: seconds, or a timedelta; not with ``started_before``.
    :param service_conn_id: Airflow connection of type ``service``; ``service_default`` by default.
    :returns: ``{"stopped", "url"}``; ``stopped`` is the number of executions.
    """

    def __init__(
        self,
        *,
        workflow_id: Templated[str | None] = None,
        all_workflows: bool = False,
        status: Templated[str | Sequence[str] | None] = None,
        started_before: Templated[datetime | str | None] = None,
        older_than: Duration | None = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(
            workflow_id=workflow_id,
            all_workflows=all_workflows,
            status=status,
            started_before=started_before,
            older_than=older_than,
            service_conn_id=service_conn_id,
            **kwargs,
        )
        self.check_arguments()

    def perform(self, context: Context) -> dict[str, Any]:
        """Stop the executions and return their number."""
        self.require_workflow()
        count = self.hook.executions.stop_many(
            self.statuses(_STOPPABLE, _STOPPABLE),
            workflow_id=self.workflow_id,
            started_before=self.latest_start(),
        ).stopped
        url = self.link(context)
        self.log.info("%d executions were stopped: %s", count, url)
        return {"stopped": count, "url": url}


class ServiceDeleteExecutionsOperator(SelectedExecutionsOperator):
    """Delete executions by id, or those that match a selection. Safe to repeat.

    Without ``status``, only executions that have ended are selected. Running executions cannot be deleted. An execution
    that never left the queue has no start time, so a selection by time does not include it.

    :param execution_ids: ids of the executions; give either ids or a selection.
    :param workflow_id: select executions of this workflow; give either this or ``all_workflows=True``.
    :param all_workflows: True to select from the executions of every workflow; False by default.
    :param status: select one or several of success, error, canceled, crashed, new, waiting and unknown.
    :param started_before: select those that started before this: a datetime with a time zone, or text (without one:
        UTC).
    :param older_than: select those that started longer ago: seconds, or a timedelta; not with ``started_before``.
    :param max_deletions: most executions of a selection to delete, 1000 by default; the rest is left for another run.
    :param preview: return what would be deleted, without deleting it; False by default.
    :param if_missing: what to do if an execution does not exist: ``"ignore"`` (the default) or ``"fail"``.
    :param service_conn_id: Airflow connection of type ``service``; ``service_default`` by default.
    :returns: ``{"deleted", "missing", "preview", "more", "execution_ids", "url"}``: the numbers of deleted and missing
        executions (both 0 with ``preview``), whether the selection has more than ``max_deletions``, and the first 100
        ids that were given or selected.
    """

    template_fields: Sequence[str] = (*SelectedExecutionsOperator.template_fields, "execution_ids")
    checks = {
        **SelectedExecutionsOperator.checks,
        "max_deletions": read_count,
        "preview": require_flag,
        "if_missing": one_of("ignore", "fail"),
    }

    def __init__(
        self,
        *,
        execution_ids: Templated[Sequence[str | int] | None] = None,
        workflow_id: Templated[str | None] = None,
        all_workflows: bool = False,
        status: Templated[str | Sequence[str] | None] = None,
        started_before: Templated[datetime | str | None] = None,
        older_than: Duration | None = None,
        max_deletions: int = 1000,
        preview: bool = False,
        if_missing: Literal["ignore", "fail"] = "ignore",
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(
            workflow_id=workflow_id,
            all_workflows=all_workflows,
            status=status,
            started_before=started_before,
            older_than=older_than,
            service_conn_id=service_conn_id,
            **kwargs,
        )
        self.execution_ids = as_rendered(execution_ids)
        self.max_deletions = max_deletions
        self.preview = preview
        self.if_missing = if_missing
        self.check_arguments()

    def perform(self, context: Context) -> dict[str, Any]:
        """Delete the executions, and return their number."""
        most = read_count("max_deletions", self.max_deletions)
        ids, more = self._chosen(most)
        url = self.link(context)
        missing = 0 if self.preview else sum(not self._delete(execution_id) for execution_id in ids)
        deleted = 0 if self.preview else len(ids) - missing
        self.log.info(
            "%d executions %s%s: %s",
            len(ids) if self.preview else deleted,
            "would be deleted" if self.preview else "were deleted",
            f", {missing} did not exist" if missing else "",
            url,
        )
        if more:
            self.log.warning("The selection has more than max_deletions=%d executions", most)
        return {
            "deleted": deleted,
            "missing": missing,
            "preview": self.preview,
            "more": more,
            "execution_ids": ids[:_MAX_IDS_IN_XCOM],
            "url": url,
        }

    def _chosen(self, most: int) -> tuple[list[str], bool]:
        if self.execution_ids is not None:
            narrowing = (self.workflow_id, self.status, self.started_before, self.older_than)
            require(
                self.all_workflows is False and all(value is None for value in narrowing),
                "give either execution_ids, or a selection by workflow_id or all_workflows=True",
            )
            ids = as_list("execution_ids", self.execution_ids)
            return [str(read_count("each of execution_ids", one)) for one in ids], False
        self.require_workflow()
        # All ids are read before the first deletion, because deletions change what later pages contain.
        selected = list(islice(self._selected(), most + 1))
        return selected[:most], len(selected) > most

    def _selected(self) -> Iterator[str]:
        latest_start = self.latest_start()
        for status in self.statuses(ENDED_STATUSES, _DELETABLE):
            for execution in self.hook.executions.list(
                status=status,
                workflow_id=self.workflow_id,
                started_before=latest_start,
            ):
                yield execution.id

    def _delete(self, execution_id: str) -> bool:
        from airflow.providers.common.compat.sdk import AirflowException

        from airflow_provider_service.client.errors import ServiceInvalidRequestError, ServiceNotFoundError

        try:
            self.hook.executions.delete(execution_id)
        except ServiceInvalidRequestError as error:
            # The execution is running: the only refusal of a request that a retry may not meet again.
            raise AirflowException(str(error)) from error
        except ServiceNotFoundError:
            if self.if_missing == "fail":
                raise
            return False
        return True
