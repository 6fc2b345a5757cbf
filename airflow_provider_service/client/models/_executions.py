"""Executions and the answers to stopping and deleting them."""

from __future__ import annotations

import re
from typing import Any

from airflow_provider_service.client.models._base import Number, ServiceModel, Timestamp
from airflow_provider_service.client.models._statuses import ExecutionStatus

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
