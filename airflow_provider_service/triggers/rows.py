"""The trigger that waits for rows of a data table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from airflow_provider_service._core.arguments import FAULT_TOLERANCE_SECONDS, ROW_POLL_SECONDS, read_count
from airflow_provider_service._core.waits.rows import RowCheck
from airflow_provider_service.triggers._polling import PollingTrigger

__all__ = ["ServiceRowTrigger"]


class ServiceRowTrigger(PollingTrigger):
    """Fires once, when the rows are there, when they cannot be read, or when the deadline has passed.

    The event is ``{"verdict", "message", "result", "final"}``. The verdict is ``"met"``, ``"timed_out"`` or
    ``"unreadable"``; ``result`` is ``{"data_table_id", "count", "url"}``, whose count stops at ``min_rows``, and
    ``final`` says whether a retry is pointless.

    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``.
    :param deadline: Unix time, in seconds, at which the wait ends; it stays the same if the triggerer restarts.
    :param timeout: seconds, or a timedelta, from the beginning of the wait to the deadline, for messages.
    :param data_table_id: id of the table; give either the id or the name.
    :param data_table_name: exact, case-sensitive name of the table.
    :param project_id: id of the project in which to look up the name; None (the default) for any project.
    :param project_name: exact name of that project, instead of its id.
    :param filter: conditions on columns, as those of ``ServiceRowSensor``; None (the default) for all rows.
    :param min_rows: number of rows to wait for; 1 by default.
    :param poll_interval: seconds, or a timedelta, between two polls; 60 seconds by default.
    :param fault_tolerance: seconds, or a timedelta, for which polls may keep failing; 300 seconds by default.
    :raises ServiceInputError: an argument is invalid.
    """

    def __init__(
        self,
        *,
        service_conn_id: str,
        deadline: float,
        timeout: float | timedelta,
        data_table_id: str | None = None,
        data_table_name: str | None = None,
        project_id: str | None = None,
        project_name: str | None = None,
        filter: Mapping[str, Any] | None = None,
        min_rows: int = 1,
        poll_interval: float | timedelta = ROW_POLL_SECONDS,
        fault_tolerance: float | timedelta = FAULT_TOLERANCE_SECONDS,
    ) -> None:
        super().__init__(
            service_conn_id=service_conn_id,
            deadline=deadline,
            timeout=timeout,
            poll_interval=poll_interval,
            fault_tolerance=fault_tolerance,
        )
        read_count("min_rows", min_rows)
        self.check = RowCheck(
            data_table_id, data_table_name, project_id, project_name, filter, min_rows, limit=min_rows
        )
