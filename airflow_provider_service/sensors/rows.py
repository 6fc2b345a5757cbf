"""The sensor that waits for rows of a data table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_service._airflow.settings import DEFAULT_DEFERRABLE
from airflow_provider_service._core.arguments import (
    FAULT_TOLERANCE_SECONDS,
    ROW_POLL_SECONDS,
    as_rendered,
    read_count,
    require,
)
from airflow_provider_service._core.references import DATA_TABLE, PROJECT
from airflow_provider_service.links.service import ServiceDataTableLink
from airflow_provider_service.sensors._base import PollingSensor

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import Duration, SensorArguments, Templated, TemplatedDuration
    from airflow_provider_service._core.waits.rows import RowCheck

__all__ = ["ServiceRowSensor"]


def _returnable(return_rows: bool, min_rows: int, max_rows: int) -> None:
    require(
        not return_rows or min_rows <= max_rows,
        f"min_rows={min_rows} is above max_rows={max_rows}, so return_rows=True could never return them",
    )


class ServiceRowSensor(PollingSensor):
    """Wait until a data table holds rows that match a filter. Safe to repeat: it only reads.

    A poll reads rows only until there are ``min_rows``, and at the end all that match are counted or returned.

    A table that does not exist, or no longer does, fails the task without further retries. A table that is given by its
    name is looked up at each poll: if it is renamed, the wait ends, and if another one takes its name, that is read.

    Arguments of Airflow's own sensor apply as well. The task fails if the rows are not there after ``timeout``
    (seconds, or a timedelta; Airflow's ``[sensors] default_timeout`` by default), which also limits a deferred wait.
    ``mode`` is ``"poke"`` (the default) or ``"reschedule"``, and is ignored if ``deferrable`` is True. With
    ``soft_fail``, the task is skipped instead.

    :param data_table_id: id of the table; give either the id or the name.
    :param data_table_name: exact, case-sensitive name of the table.
    :param project_id: id of the project in which to look up the name; None (the default) for any project.
    :param project_name: exact name of that project, instead of its id.
    :param filter: conditions on columns, as ``{"type": "and", "filters": [{"columnName": "stock", "condition": "lt",
        "value": 10}]}``; the page *Data tables* lists them. None (the default) for all rows.
    :param min_rows: number of rows to wait for; 1 by default.
    :param return_rows: True to return the rows, too; False by default.
    :param max_rows: maximum number of rows to return; 1000 by default. If there are more, the task fails.
    :param fault_tolerance: seconds, or a timedelta, for which polls may keep failing before the task fails; 300 seconds
        by default.
    :param deferrable: wait in the triggerer, where waits for the same rows share their requests; the default is
        Airflow's ``[operators] default_deferrable``.
    :param poke_interval: seconds, or a timedelta, between two polls; 60 seconds by default.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: ``{"data_table_id", "count", "url"}``, and with ``return_rows`` also ``"rows"``.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises AirflowSensorTimeout: the time was over before that.
    :raises ServiceWaitError: reads kept failing for longer than ``fault_tolerance``.
    """

    template_fields: Sequence[str] = (*PollingSensor.template_fields, *DATA_TABLE.fields, *PROJECT.fields, "filter")
    template_fields_renderers = {"filter": "json"}
    operator_extra_links = (ServiceDataTableLink(),)
    references = (DATA_TABLE, PROJECT)
    polls_again = True
    checks = {"max_rows": partial(read_count, least=0)}
    joint_checks = {("return_rows", "min_rows", "max_rows"): _returnable}

    def __init__(
        self,
        *,
        data_table_id: Templated[str | None] = None,
        data_table_name: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        filter: Templated[Mapping[str, Any] | None] = None,
        min_rows: int = 1,
        return_rows: bool = False,
        max_rows: int = 1000,
        fault_tolerance: Duration = FAULT_TOLERANCE_SECONDS,
        deferrable: bool = DEFAULT_DEFERRABLE,
        poke_interval: TemplatedDuration = ROW_POLL_SECONDS,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[SensorArguments],
    ) -> None:
        super().__init__(
            fault_tolerance=fault_tolerance,
            deferrable=deferrable,
            poke_interval=poke_interval,
            service_conn_id=service_conn_id,
            **kwargs,
        )
        self.data_table_id = as_rendered(data_table_id)
        self.data_table_name = as_rendered(data_table_name)
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.filter = as_rendered(filter)
        self.min_rows = min_rows
        self.return_rows = return_rows
        self.max_rows = max_rows
        self._has_filter = filter is not None
        self.check_arguments()

    def to_check(self) -> RowCheck:
        """Return the check that the arguments describe."""
        from airflow_provider_service._core.waits.rows import RowCheck

        require(self.filter is not None or not self._has_filter, "filter is None; give a value, or leave it out")
        fields = {name: getattr(self, name) for name in (*DATA_TABLE.fields, *PROJECT.fields, "filter", "min_rows")}
        limit = self.max_rows + 1 if self.return_rows else None
        return RowCheck(**fields, limit=limit, returns_rows=self.return_rows)

    def to_trigger(self, **arguments: Any) -> Any:
        """Return the trigger that continues to poll."""
        from airflow_provider_service.triggers.rows import ServiceRowTrigger

        return ServiceRowTrigger(**arguments)
