"""Base classes for operators on one data table: its lookup, its link, and what Airflow and OpenLineage learn of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_service._core.arguments import as_list, as_rendered
from airflow_provider_service._core.references import DATA_TABLE, PROJECT, data_table_in
from airflow_provider_service.links.service import DATA_TABLE_PAGE, ServiceDataTableLink
from airflow_provider_service.operators._base import ServiceBaseOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated
    from airflow_provider_service._core.lineage import Lineage
    from airflow_provider_service.client.models import DataTable


class TableLinkedOperator(ServiceBaseOperator):
    operator_extra_links = (ServiceDataTableLink(),)
    _table: DataTable | None = None

    def link_table(self, context: Context, table: DataTable) -> str:
        """Point the task's link at the table, keep the table, and return the address."""
        self._table = table
        return self.link_to(context, ServiceDataTableLink(), DATA_TABLE_PAGE, table.project_id or "", table.id)


class ServiceTableOperator(TableLinkedOperator):
    """Base class for operators on one data table, which is an input or an output of the task."""

    #: Whether the operator writes the table; otherwise it reads it.
    writes_table: ClassVar[bool] = False
    _result: dict[str, Any] | None = None

    template_fields: Sequence[str] = (*ServiceBaseOperator.template_fields, *DATA_TABLE.fields, *PROJECT.fields)
    references: ClassVar[Sequence[Any]] = (DATA_TABLE, PROJECT)

    def __init__(
        self,
        *,
        data_table_id: Templated[str | None] = None,
        data_table_name: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.data_table_id = as_rendered(data_table_id)
        self.data_table_name = as_rendered(data_table_name)
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)

    def open_table(self, context: Context) -> tuple[DataTable, str]:
        table = data_table_in(self, self.hook)
        return table, self.link_table(context, table)

    def note_result(self, context: Context, result: Any) -> None:
        """Keep the result for lineage, and emit an asset event if the task has written the table."""
        self._result = result
        if not (self._is_writing and self._table is not None and self.outlets):
            return
        from airflow.providers.common.compat.sdk import Asset, AssetAlias

        from airflow_provider_service.assets.service import data_table_asset

        extra: dict[str, Any] = {
            name: value for name, value in result.items() if isinstance(value, int) and name != "preview"
        }
        asset = data_table_asset(self.hook.config.base_url, self._table.id)
        for outlet in self.outlets:
            if isinstance(outlet, AssetAlias):
                context["outlet_events"][outlet].add(asset, extra=extra)
            elif isinstance(outlet, Asset) and outlet.uri == asset.uri:
                context["outlet_events"][outlet].extra.update(extra)

    @property
    def _is_writing(self) -> bool:
        """Whether the task writes the table; a preview only shows what would be written."""
        return self.writes_table and not getattr(self, "preview", False)

    def other_lineage(self) -> Lineage | None:
        """Return the inputs and outputs of the task besides the table; none by default."""
        return None

    def get_openlineage_facets_on_start(self) -> Lineage | None:
        return self._lineage()

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Lineage | None:
        return self._lineage()

    def _lineage(self) -> Lineage | None:
        from airflow_provider_service._core import lineage
        from airflow_provider_service._core.rows.values import column_types

        lineage_of_task = lineage.empty()
        if lineage_of_task is None:
            return None
        result = self._result or {}
        table_id, types = self.data_table_id, None
        if self._table is not None:
            table_id, types = self._table.id, column_types(self._table)
            if not set(result.get("added_columns") or ()) <= types.keys():
                types = None  # the types of added columns are not known
        if table_id is not None:
            counts = [result[name] for name in ("inserted", "updated") if name in result]
            written = sum(counts) if counts and None not in counts else None
            dataset = lineage.table_dataset(
                self.hook.config.base_url, table_id, is_output=self._is_writing, types=types, written=written
            )
            (lineage_of_task.outputs if self._is_writing else lineage_of_task.inputs).append(dataset)
        other = self.other_lineage()
        return lineage_of_task if other is None else lineage_of_task.merge(other)


def given_rows(rows: object) -> list[Any]:
    """Return the argument ``rows``, a list of mappings or a DataFrame of another task, as a list."""
    from airflow_provider_service._core.rows.frames import is_frame, rows_in

    return list(rows_in(rows)) if is_frame(rows) else as_list("rows", rows)
