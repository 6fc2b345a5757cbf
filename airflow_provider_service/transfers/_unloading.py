"""Base of the transfers out of a data table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_service._airflow.task_arguments import as_rendered
from airflow_provider_service.operators._table import ServiceTableOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_provider_service._airflow.task_arguments import TaskArguments, Templated
    from airflow_provider_service.client.models import DataTable


class ServiceUnloadTableOperator(ServiceTableOperator):
    """Base of the transfers out of a data table.

    :param data_table_id: id of the table; give either the id or the name.
    :param data_table_name: exact, case-sensitive name of the table.
    :param project_id: id of the project in which to look up the name; None (the default) for any project.
    :param project_name: exact name of that project, instead of its id.
    :param filter: conditions on columns, as ``{"type": "and", "filters": [{"columnName": "stock", "condition": "lt",
        "value": 10}]}``; the page *Data tables* lists them. None (the default) for all rows.
    :param search: text that a row must contain in any column, regardless of the case of A to Z, or with ``%`` a
        pattern for a whole value; None (the default) for all rows.
    :param columns: columns to transfer, in order, which may include ``id``, ``createdAt`` and ``updatedAt``; None (the
        default) for all of them.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    """

    template_fields: Sequence[str] = (*ServiceTableOperator.template_fields, "filter", "search", "columns")
    template_fields_renderers = {"filter": "json"}

    def __init__(
        self,
        *,
        data_table_id: Templated[str | None] = None,
        data_table_name: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        filter: Templated[Mapping[str, Any] | None] = None,
        search: Templated[str | None] = None,
        columns: Templated[Sequence[str] | None] = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(
            data_table_id=data_table_id,
            data_table_name=data_table_name,
            project_id=project_id,
            project_name=project_name,
            service_conn_id=service_conn_id,
            **kwargs,
        )
        self.filter = as_rendered(filter)
        self.search = as_rendered(search)
        self.columns = as_rendered(columns)

    def types_of(self, table: DataTable, *, with_system_columns: bool) -> dict[str, str]:
        """Return the columns to transfer with their types, in order.

        :param with_system_columns: whether "all" includes the columns of the service.
        """
        from airflow_provider_service._core.rows.files import chosen_types
        from airflow_provider_service._core.rows.values import column_types

        return chosen_types(column_types(table), self.columns, with_system_columns=with_system_columns)

    def stored_rows(self, table: DataTable, types: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """Yield the rows of the table, with one page in memory at a time, and log the progress.

        :param types: the columns to transfer.
        :raises ServiceError: one of them no longer exists.
        """
        from airflow_provider_service._core.rows.matching import matching_rows
        from airflow_provider_service._core.rows.progress import Progress
        from airflow_provider_service._core.rows.upsert import checked_row

        rows = matching_rows(self.hook, table, self.filter, types, search=self.search)
        return Progress("Read").counting(checked_row(one, table.id) for one in rows)
