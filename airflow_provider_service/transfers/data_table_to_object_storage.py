"""Transfer a data table into a file in object storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_service._core.arguments import as_rendered
from airflow_provider_service._core.rows.options import require_row_filter
from airflow_provider_service.transfers._loading import ServiceUnloadTableOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated
    from airflow_provider_service._core.lineage import Lineage
    from airflow_provider_service._core.object_storage import StoredPath
    from airflow_provider_service.operators.table_results import TableToFileResult

__all__ = ["ServiceDataTableToObjectStorageOperator"]


class ServiceDataTableToObjectStorageOperator(ServiceUnloadTableOperator):
    """Write the rows of a data table to a file. Safe to repeat: the complete file replaces the existing one.

    Memory does not depend on the number of rows: the task reads one page at a time, and writes one batch at a time.

    :param path: file to write, a path in an existing directory or an address such as ``s3://conn_id@bucket/key.parquet``.
        Its ending chooses the format: ``.csv``, ``.jsonl`` or ``.parquet`` (needs the extra ``parquet``); the first two
        may end in ``.gz``.
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
    :param neutralize_formulas: put an apostrophe before text in a ``.csv`` file that a spreadsheet would evaluate as a
        formula; True by default. With False, the file keeps all text as it is.
    :param object_storage_conn_id: Airflow connection of the path's object storage; None (the default) for the one that
        the address names, if any.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`TableToFileResult`.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (*ServiceUnloadTableOperator.template_fields, "path", "object_storage_conn_id")

    def __init__(
        self,
        *,
        path: Templated[StoredPath],
        data_table_id: Templated[str | None] = None,
        data_table_name: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        filter: Templated[Mapping[str, Any] | None] = None,
        search: Templated[str | None] = None,
        columns: Templated[Sequence[str] | None] = None,
        neutralize_formulas: bool = True,
        object_storage_conn_id: Templated[str | None] = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(
            data_table_id=data_table_id,
            data_table_name=data_table_name,
            project_id=project_id,
            project_name=project_name,
            filter=filter,
            search=search,
            columns=columns,
            service_conn_id=service_conn_id,
            **kwargs,
        )
        self.path = cast("StoredPath", path)  # once Airflow has rendered it
        self.neutralize_formulas = neutralize_formulas
        self.object_storage_conn_id = as_rendered(object_storage_conn_id)
        self.check_arguments()

    def other_lineage(self) -> Lineage | None:
        from airflow_provider_service._core.lineage import of_file
        from airflow_provider_service._core.object_storage import address_of

        return of_file(address_of(self.path, conn_id=self.object_storage_conn_id), is_output=True)

    def perform(self, context: Context) -> TableToFileResult:
        from airflow_provider_service._core.object_storage import address_of
        from airflow_provider_service._core.rows.files import write_rows

        require_row_filter(self.filter)
        table, url = self.open_table(context)
        address = address_of(self.path, conn_id=self.object_storage_conn_id)
        types = self.types_of(table, with_system_columns=True)
        count = write_rows(
            self.path,
            types,
            self.stored_rows(table, types),
            neutralize_formulas=self.neutralize_formulas,
            conn_id=self.object_storage_conn_id,
        )
        self.log.info("Rows of %s written to %s: %d; see %s", table.name, address, count, url)
        return {"data_table_id": table.id, "count": count, "path": address, "url": url}
