"""Base classes for operators on one data table, with its lookup and its link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_service._airflow.arguments import as_list
from airflow_provider_service._airflow.references import DATA_TABLE, PROJECT, data_table_in
from airflow_provider_service._airflow.task_arguments import as_rendered
from airflow_provider_service.links.service import DATA_TABLE_PAGE, ServiceDataTableLink
from airflow_provider_service.operators._base import ServiceBaseOperator
from airflow_provider_service.operators._lineage import TableLineageOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._airflow.task_arguments import TaskArguments, Templated
    from airflow_provider_service.client.models import DataTable


def given_rows(rows: object) -> list[Any]:
    """Return the argument ``rows``, a list of mappings or a DataFrame of another task, as a list.

    :raises ServiceInputError: it is neither.
    """
    from airflow_provider_service._core.rows.frames import is_frame, rows_in

    return list(rows_in(rows)) if is_frame(rows) else as_list("rows", rows)


class TableLinkedOperator(ServiceBaseOperator):
    """Base class for operators that link to a data table."""

    operator_extra_links = (ServiceDataTableLink(),)

    def link_table(self, context: Context, table: DataTable) -> str:
        """Point the task's link at the table and return the address."""
        return self.link_to(context, ServiceDataTableLink(), DATA_TABLE_PAGE, table.project_id or "", table.id)


class ServiceTableOperator(TableLineageOperator, TableLinkedOperator):
    """Base class for operators on one data table.

    :param data_table_id: id of the table; give either the id or the name.
    :param data_table_name: exact, case-sensitive name of the table.
    :param project_id: id of the project in which to look up the name; None (the default) for any project.
    :param project_name: exact name of that project, instead of its id.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    """

    template_fields: Sequence[str] = (
        *ServiceBaseOperator.template_fields,
        *DATA_TABLE.fields,
        *PROJECT.fields,
    )
    references = (DATA_TABLE, PROJECT)

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

    def link_table(self, context: Context, table: DataTable) -> str:
        """Point the task's link at the table, keep the table for lineage, and return the address."""
        self._table = table
        return super().link_table(context, table)

    def open_table(self, context: Context) -> tuple[DataTable, str]:
        """Find the table, point the task's link at it, and return the table and its address."""
        table = data_table_in(self, self.hook)
        return table, self.link_table(context, table)
