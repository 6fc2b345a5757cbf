"""Operators for all executions that match a selection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.common.compat.sdk import AirflowException

from airflow_provider_service._core.arguments import as_list, as_rendered, read_count, require, some_of
from airflow_provider_service.client._constraints import ENDED_STATUSES
from airflow_provider_service.client.errors import (
    ServiceInvalidRequestError,
    ServiceNotFoundError,
    ServiceNotOfferedError,
)
from airflow_provider_service.operators._selection import SelectedExecutionsOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import Duration, TaskArguments, Templated
    from airflow_provider_service.client.models import Execution
    from airflow_provider_service.operators.results import DeleteExecutionsResult, StopSelectionResult

__all__ = ["ServiceDeleteExecutionsOperator", "ServiceStopExecutionsOperator"]

_DELETABLE = (*ENDED_STATUSES, "new", "waiting", "unknown")
_STOPPABLE = ("queued", "running", "waiting")
_MAX_IDS_IN_XCOM = 100


def _with_start_times(
    status: str | Sequence[str] | None, started_before: datetime | str | None, older_than: Duration | None
) -> None:
    is_timed = started_before is not None or older_than is not None
    require(
        not is_timed or status is None or "queued" not in ([status] if isinstance(status, str) else status),
        "status 'queued' cannot be combined with started_before or older_than, because an execution in the queue has "
        "no start time: stop queued executions in a task of their own, without a time",
    )


class ServiceStopExecutionsOperator(SelectedExecutionsOperator):
    """Stop all executions that match a selection. Safe to repeat, but a repeat also stops those that started since.

    An execution in the queue has no start time, so a selection by time does not include it.

    :param workflow_id: only executions of this workflow; give a workflow or ``all_workflows=True``.
    :param workflow_name: exact name of the workflow, instead of its id; archived ones do not count.
    :param project_id: id of the project in which to look up the name; None (the default) for any project.
    :param project_name: exact name of that project, instead of its id.
    :param all_workflows: True to stop executions of every workflow, in every project; False by default.
    :param status: one or several of ``"queued"``, ``"running"`` and ``"waiting"``; None (the default) for all of them.
        ``"queued"`` cannot be combined with a time.
    :param started_before: only executions that started before this time: a datetime with a time zone, or text, in which
        a missing time zone means UTC.
    :param older_than: only executions that started longer ago than this: seconds, or a timedelta; not with
        ``started_before``.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`StopSelectionResult`; ``stopped`` is the number of executions.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    checks = {"status": some_of(*_STOPPABLE)}
    joint_checks = {("status", "started_before", "older_than"): _with_start_times}

    def __init__(
        self,
        *,
        workflow_id: Templated[str | None] = None,
        workflow_name: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        all_workflows: bool = False,
        status: Templated[str | Sequence[str] | None] = None,
        started_before: Templated[datetime | str | None] = None,
        older_than: Duration | None = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.workflow_id = as_rendered(workflow_id)
        self.workflow_name = as_rendered(workflow_name)
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.all_workflows = all_workflows
        self.status = as_rendered(status)
        self.started_before = as_rendered(started_before)
        self.older_than = older_than
        self.check_arguments()

    def perform(self, context: Context) -> StopSelectionResult:
        count = self.hook.executions.stop_many(
            self.statuses(_STOPPABLE, _STOPPABLE),
            workflow_id=self.selected_workflow_id,
            started_before=self.latest_start(),
        ).stopped
        url = self.link(context)
        self.log.info("Executions stopped: %d; see %s", count, url)
        return {"stopped": count, "url": url}


class ServiceDeleteExecutionsOperator(SelectedExecutionsOperator):
    """Delete executions by id, or those that match a selection. Safe to repeat with ``if_missing="ignore"``.

    Without ``status``, only executions that have ended are selected. Running executions cannot be deleted. An execution
    that never left the queue has no start time, so a selection by time does not include it.

    :param execution_ids: ids of the executions; give either ids or a selection. Repeated ids count once.
    :param workflow_id: select executions of this workflow; give a workflow or ``all_workflows=True``.
    :param workflow_name: exact name of the workflow, instead of its id; archived ones do not count.
    :param project_id: id of the project in which to look up the name; None (the default) for any project.
    :param project_name: exact name of that project, instead of its id.
    :param all_workflows: True to select from the executions of every workflow, in every project; False by default.
    :param status: select one or several of success, error, canceled, crashed, new, waiting and unknown; None (the
        default) for those that have ended.
    :param started_before: select executions that started before this time: a datetime with a time zone, or text, in
        which a missing time zone means UTC.
    :param older_than: select executions that started longer ago than this: seconds, or a timedelta; not with
        ``started_before``.
    :param max_deletions: maximum number of executions of a selection to delete, 1000 by default; the rest is left for
        another run.
    :param preview: True to return what would be deleted, without deleting it; False by default.
    :param if_missing: what to do if an execution does not exist: ``"ignore"`` (the default) or ``"fail"``, which fails
        the task once the others are deleted. A repeat then fails too, even one by itself after an answer was lost.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`DeleteExecutionsResult`: the numbers of executions that were given or selected, of those that
        were deleted and of those that were missing (the last two are 0 with ``preview``), whether the selection has
        more than ``max_deletions``, and the first 100 ids that were given or selected.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (*SelectedExecutionsOperator.template_fields, "execution_ids")
    checks = {"status": some_of(*_DELETABLE)}

    def __init__(
        self,
        *,
        execution_ids: Templated[Sequence[str | int] | None] = None,
        workflow_id: Templated[str | None] = None,
        workflow_name: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
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
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.workflow_id = as_rendered(workflow_id)
        self.workflow_name = as_rendered(workflow_name)
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.all_workflows = all_workflows
        self.status = as_rendered(status)
        self.started_before = as_rendered(started_before)
        self.older_than = older_than
        self.execution_ids = as_rendered(execution_ids)
        self.max_deletions = max_deletions
        self.preview = preview
        self.if_missing = if_missing
        self.check_arguments()

    def perform(self, context: Context) -> DeleteExecutionsResult:
        most = read_count("max_deletions", self.max_deletions)
        ids, more = self._chosen(most)
        url = self.link(context)
        errors: list[ServiceNotFoundError] = []
        for execution_id in () if self.preview else ids:
            try:
                self.hook.executions.delete(execution_id)
            except ServiceInvalidRequestError as error:
                # The execution is running. Of all refusals of a request, only this one may not recur in a retry.
                raise AirflowException(str(error)) from error
            except ServiceNotFoundError as error:
                errors.append(error)
        missing = len(errors)
        deleted = 0 if self.preview else len(ids) - missing
        self.log.info(
            "Executions %s: %d%s; see %s",
            "that would be deleted" if self.preview else "deleted",
            len(ids) if self.preview else deleted,
            f", that did not exist: {missing}" if missing else "",
            url,
        )
        if more:
            self.log.warning("The selection has more than max_deletions=%d executions", most)
        if errors and self.if_missing == "fail":
            raise errors[0]
        return {
            "selected": len(ids),
            "deleted": deleted,
            "missing": missing,
            "preview": self.preview,
            "more": more,
            "execution_ids": ids[:_MAX_IDS_IN_XCOM],
            "url": url,
        }

    def _chosen(self, most: int) -> tuple[list[str], bool]:
        if self.execution_ids is not None:
            narrowing = (self.workflow_id, self.workflow_name, self.status, self.started_before, self.older_than)
            require(
                self.all_workflows is False and all(value is None for value in narrowing),
                "give either execution_ids, or a selection by workflow or all_workflows=True",
            )
            ids = as_list("execution_ids", self.execution_ids)
            numbers = [read_count("each of execution_ids", execution_id) for execution_id in ids]
            return list(dict.fromkeys(map(str, numbers))), False
        # All ids are read before the first deletion, because deletions change what later pages contain.
        latest_start = self.latest_start()
        statuses = self.statuses(ENDED_STATUSES, _DELETABLE)
        executions = chain.from_iterable(self._started_before(latest_start, status) for status in statuses)
        selected = [execution.id for execution in islice(executions, most + 1)]
        return selected[:most], len(selected) > most

    def _started_before(self, latest_start: datetime | None, status: Any) -> Iterator[Execution]:
        read = partial(self.hook.executions.list, status=status, workflow_id=self.selected_workflow_id)
        listed = read(started_before=latest_start)
        try:
            first = list(islice(listed, 1))
        except ServiceNotOfferedError:  # n8n before 2.37 lacks the parameter
            if latest_start is None:
                raise
            return (
                execution
                for execution in read()
                if execution.started_at is not None and execution.started_at < latest_start
            )
        return chain(first, listed)
