"""Executions and their annotation tags."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from airflow_provider_service.client._constraints import ExecutionStatus
from airflow_provider_service.client._models import Number, ServiceModel, Timestamp
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.resources._base import (
    Moment,
    Resource,
    moment,
    references,
    require,
    require_id,
    without_none,
)
from airflow_provider_service.client.resources._tags import Tag

_NUMBER = re.compile("[0-9]{1,18}")


class StoppedExecution(ServiceModel):
    """The answer to a stop; ``started_at`` is 1970 for an execution that never left the queue."""

    status: ExecutionStatus | str
    mode: str | None = None
    finished: bool | None = None
    started_at: Timestamp | None = None
    stopped_at: Timestamp | None = None


class _ExecutionFields(StoppedExecution):
    # retry_of is text, except in the answer to a retry on the older generation of the server.
    workflow_id: str | None = None
    retry_of: str | int | None = None
    retry_success_id: str | None = None
    wait_till: Timestamp | None = None
    created_at: Timestamp | None = None
    deleted_at: Timestamp | None = None
    stored_at: str | None = None
    workflow_version_id: str | None = None
    json_size_bytes: Number | None = None
    binary_data_size_bytes: Number | None = None
    used_private_credentials: bool | None = None
    deduplication_key: str | None = None
    tracing_context: dict[str, Any] | None = None


class Execution(_ExecutionFields):
    """An execution.

    Only ``status`` says whether it has ended; an unknown status of a newer server stays text. ``stored_at`` names the
    kind of storage. ``data``, ``workflow_data`` and ``custom_data`` are present if they were requested.
    """

    id: str
    data: dict[str, Any] | None = None
    workflow_data: dict[str, Any] | None = None
    custom_data: dict[str, Any] | None = None
    data_too_large_to_display: bool | None = None
    annotation: dict[str, Any] | None = None

    @property
    def number(self) -> int:
        """The id as a number, which increases from execution to execution; 0 for an id that is not a number."""
        return number_of(self.id)


def number_of(execution_id: str) -> int:
    """An execution's id as a number; 0 if it is not a number."""
    return int(execution_id) if _NUMBER.fullmatch(execution_id) else 0


class DeletedExecution(_ExecutionFields):
    """The answer to a delete, the only one in which the id is a number."""

    id: int


class StoppedCount(ServiceModel):
    """How many executions were stopped."""

    stopped: int


# The data of one execution can be as large as the server allows; a page of many would not fit in memory.
PAGE_SIZE_WITH_DATA = 10


class Executions(Resource):
    """Executions of workflows. Ids are whole numbers, given as numbers or text."""

    def list(
        self,
        *,
        status: ExecutionStatus | None = None,
        workflow_id: str | None = None,
        project_id: str | None = None,
        include_data: bool | None = None,
        ignore_data_size_limit: bool | None = None,
        redact_execution_data: bool | None = None,
        started_after: Moment | None = None,
        started_before: Moment | None = None,
        limit: int | None = None,
    ) -> Iterator[Execution]:
        """Iterate over executions, newest first: ``GET /executions``.

        Running executions are left out unless ``status="running"``.

        :param status: only those with this status.
        :param workflow_id: only those of the workflow; an unknown workflow has none.
        :param project_id: only those of the project.
        :param include_data: include the data of every node, which can be large and contain secrets.
        :param ignore_data_size_limit: include data even above the server's limit.
        :param redact_execution_data: hide the output of nodes.
        :param started_after: only those that started after this time: a datetime with a time zone, or ISO 8601 text.
        :param started_before: only those that started before this time: a datetime with a time zone, or ISO 8601 text.
        :param limit: maximum number of executions; None for all.
        :raises ServiceInputError: an id is empty, or a datetime has no time zone.
        """
        require_id("workflow_id", workflow_id)
        require_id("project_id", project_id)
        query = {
            "status": status,
            "workflowId": workflow_id,
            "projectId": project_id,
            "includeData": include_data,
            "ignoreDataSizeLimit": ignore_data_size_limit,
            "redactExecutionData": redact_execution_data,
            "startedAfter": moment("started_after", started_after),
            "startedBefore": moment("started_before", started_before),
        }
        page_size = PAGE_SIZE_WITH_DATA if include_data else None
        return self._pages(
            Execution, "/executions", scope="execution:list", query=query, limit=limit, page_size=page_size
        )

    def get(
        self,
        execution_id: int | str,
        *,
        include_data: bool | None = None,
        ignore_data_size_limit: bool | None = None,
        redact_execution_data: bool | None = None,
    ) -> Execution:
        """Read an execution of any status: ``GET /executions/{executionId}``.

        :param include_data: include the data of every node, which can be large and contain secrets.
        :param ignore_data_size_limit: include data even above the server's limit.
        :param redact_execution_data: hide the output of nodes.
        :raises ServiceNotFoundError: no such execution, or it was not kept after its end.
        """
        query = {
            "includeData": include_data,
            "ignoreDataSizeLimit": ignore_data_size_limit,
            "redactExecutionData": redact_execution_data,
        }
        number = _checked_id(execution_id)
        return self._call(Execution, "GET", "/executions/{}", number, scope="execution:read", query=query)

    def delete(self, execution_id: int | str) -> DeletedExecution:
        """Delete an execution that is not running: ``DELETE /executions/{executionId}``.

        Safe to repeat, but if an answer is lost, the automatic repeat raises ``ServiceNotFoundError`` although the
        object has been deleted.

        :raises ServiceInvalidRequestError: it is running.
        :raises ServiceNotFoundError: no such execution.
        """
        number = _checked_id(execution_id)
        return self._call(DeletedExecution, "DELETE", "/executions/{}", number, scope="execution:delete")

    def retry(
        self, execution_id: int | str, *, load_workflow: bool | None = None, timeout: float | None = None
    ) -> Execution:
        """Run an execution again and wait until the new one ends: ``POST /executions/{executionId}/retry``.

        Not safe to repeat: every call starts another execution, even of a running one. After a timeout or a lost
        connection, look for an execution whose ``retry_of`` is this id instead of calling again. A failed retry is
        returned as well: check ``status``.

        :param load_workflow: run the current workflow instead of the version saved with the execution.
        :param timeout: seconds to wait for the new execution to end, by default the connection's timeout.
        :raises ServiceConflictError: it is queued, has succeeded, or its data was not kept.
        :raises ServiceTimeoutError: the new execution is still running.
        :raises ServiceNotFoundError: no such execution.
        """
        number, body = _checked_id(execution_id), without_none(loadWorkflow=load_workflow) or None
        return self._call(
            Execution, "POST", "/executions/{}/retry", number, scope="execution:retry", body=body, timeout=timeout
        )

    def stop(self, execution_id: int | str) -> StoppedExecution:
        """Stop a queued, running or waiting execution: ``POST /executions/{executionId}/stop``.

        Safe to repeat: a second call raises ``ServiceConflictError``, because the execution has already ended.

        :raises ServiceConflictError: it has already ended.
        :raises ServiceNotFoundError: no such execution.
        """
        number = _checked_id(execution_id)
        return self._call(
            StoppedExecution, "POST", "/executions/{}/stop", number, scope="execution:stop", repeatable=True
        )

    def stop_many(
        self,
        status: Sequence[Literal["queued", "running", "waiting"]],
        *,
        workflow_id: str | None = None,
        started_after: Moment | None = None,
        started_before: Moment | None = None,
    ) -> StoppedCount:
        """Stop all executions that match: ``POST /executions/stop``.

        Not safe to repeat: it would stop later ones too.

        :param status: one or more of queued (status ``new``), running and waiting.
        :param workflow_id: only those of the workflow; without it, those of EVERY workflow.
        :param started_after: only those that started after this time: a datetime with a time zone, or ISO 8601 text.
        :param started_before: only those that started before this time: a datetime with a time zone, or ISO 8601 text.
        :raises ServiceInputError: ``status`` or the id is empty, the id is "all", or a datetime has no time zone.
        :raises ServiceNotFoundError: no such workflow for this key.
        """
        require(not isinstance(status, str) and len(status) > 0, "status must be a list of at least one status")
        require_id("workflow_id", workflow_id)
        # To the service, this word means every workflow.
        require(workflow_id != "all", "workflow_id must be the id of a workflow, not 'all'; leave it out for all")
        body = without_none(
            status=status,
            workflowId=workflow_id,
            startedAfter=moment("started_after", started_after),
            startedBefore=moment("started_before", started_before),
        )
        return self._call(StoppedCount, "POST", "/executions/stop", scope="execution:stop", body=body, repeatable=False)

    def list_tags(self, execution_id: int | str) -> builtins.list[Tag]:
        """Read the annotation tags of an execution: ``GET /executions/{executionId}/tags``.

        :raises ServiceNotFoundError: no such execution.
        """
        number = _checked_id(execution_id)
        return self._call(builtins.list[Tag], "GET", "/executions/{}/tags", number, scope="executionTags:list")

    def update_tags(self, execution_id: int | str, tag_ids: Sequence[str]) -> builtins.list[Tag]:
        """Replace the annotation tags of an execution: ``PUT /executions/{executionId}/tags``. Safe to repeat.

        :param tag_ids: ids of annotation tags, which are a separate registry that the API cannot add to.
        :raises ServiceNotFoundError: no such execution, or a tag that does not exist.
        """
        number, body = _checked_id(execution_id), references(tag_ids)
        return self._call(
            builtins.list[Tag], "PUT", "/executions/{}/tags", number, scope="executionTags:update", body=body
        )


def _checked_id(execution_id: int | str) -> int | str:
    if isinstance(execution_id, str):
        is_number = execution_id.isascii() and execution_id.isdecimal() and execution_id.strip("0") != ""
    else:
        is_number = isinstance(execution_id, int) and execution_id > 0
    require(is_number, f"an execution id must be a whole number from 1, not {shown(execution_id)}")
    return execution_id
