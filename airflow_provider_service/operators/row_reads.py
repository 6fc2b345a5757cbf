"""Operator that reads the rows of a data table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.arguments import as_rendered, read_count
from airflow_provider_service._core.rows.options import require_row_filter
from airflow_provider_service.client._constraints import require_sortable
from airflow_provider_service.operators._table import ServiceTableOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated
    from airflow_provider_service._core.lineage import Lineage
    from airflow_provider_service._core.object_storage import StoredPath
    from airflow_provider_service.client.models import DataTable
    from airflow_provider_service.operators.table_results import ReadRowsResult

__all__ = ["ServiceReadRowsOperator"]


class ServiceReadRowsOperator(ServiceTableOperator):
    """Read rows into XCom, or stream them to a file. Safe to repeat.

    :param data_table_id: id of the table; give either the id or the name.
    :param data_table_name: exact, case-sensitive name of the table.
    :param project_id: id of the project in which to look up the name; None (the default) for any project.
    :param project_name: exact name of that project, instead of its id.
    :param filter: conditions on columns, as ``{"type": "and", "filters": [{"columnName": "stock", "condition": "lt",
        "value": 10}]}``; the page *Data tables* lists them. None (the default) for all rows.
    :param sort_by: column to sort by, followed by ``:asc`` or ``:desc``; None (the default) for the order of insertion,
        in which no row is missed because others are deleted while a table of several pages is read.
    :param search: text that a row must contain in any column, regardless of the case of A to Z, or with ``%`` a
        pattern for a whole value; None (the default) for all rows.
    :param columns: columns to read, in order, which may include ``id``, ``createdAt`` and ``updatedAt``; None (the
        default) for all of them.
    :param path: file to write, a path in an existing directory or an address such as ``s3://conn_id@bucket/key.csv``;
        None (the default) to return the rows. Its suffix chooses the format: ``.csv``, ``.jsonl`` or ``.parquet``
        (needs the extra ``parquet``); the first two may end in ``.gz``. A ``.csv`` file has a header; text is quoted,
        and null is an empty cell without quotes. The file appears under its name only when it is complete. On a disk,
        it takes over the permissions of a file that it replaces.
    :param object_storage_conn_id: Airflow connection of the path's object storage; None (the default) for the one that
        the address names, if any.
    :param neutralize_formulas: True (the default) to put an apostrophe before text in a ``.csv`` file that a
        spreadsheet would take for a formula because it begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break;
        False to write all text unchanged.
    :param max_rows: maximum number of rows to return without a path; 1000 by default. If there are more, the task
        fails.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`ReadRowsResult`: with the ``rows``, or with a path, the ``path`` of the file.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (
        *ServiceTableOperator.template_fields,
        "filter",
        "sort_by",
        "search",
        "columns",
        "path",
        "object_storage_conn_id",
    )
    template_fields_renderers = {"filter": "json"}
    checks = {"max_rows": partial(read_count, least=0)}

    def __init__(
        self,
        *,
        data_table_id: Templated[str | None] = None,
        data_table_name: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        filter: Templated[Mapping[str, Any] | None] = None,
        sort_by: Templated[str | None] = None,
        search: Templated[str | None] = None,
        columns: Templated[Sequence[str] | None] = None,
        path: Templated[StoredPath | None] = None,
        object_storage_conn_id: Templated[str | None] = None,
        neutralize_formulas: bool = True,
        max_rows: int = 1000,
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
        self.sort_by = as_rendered(sort_by)
        self.search = as_rendered(search)
        self.columns = as_rendered(columns)
        self.path = as_rendered(path)
        self.object_storage_conn_id = as_rendered(object_storage_conn_id)
        self.neutralize_formulas = neutralize_formulas
        self.max_rows = max_rows
        self.check_arguments()

    def perform(self, context: Context) -> ReadRowsResult:
        from airflow_provider_service._core.rows.files import chosen_types
        from airflow_provider_service._core.rows.matching import matching_rows
        from airflow_provider_service._core.rows.values import column_types

        require_row_filter(self.filter)
        table, url = self.open_table(context)
        if self.sort_by is not None:
            require_sortable(self.sort_by, column_types(table))
        types = chosen_types(column_types(table), self.columns, with_system_columns=True)
        rows = matching_rows(self.hook, table, self.filter, types, sort_by=self.sort_by, search=self.search)
        result = self._returned(table, types, rows) if self.path is None else self._written(types, rows, self.path)
        self.log.info("Rows read from %s: %d; see %s", table.name, result["count"], url)
        return cast("ReadRowsResult", {"data_table_id": table.id, **result, "url": url})

    def other_lineage(self) -> Lineage | None:
        from airflow_provider_service._core.lineage import of_file
        from airflow_provider_service._core.object_storage import address_of

        if self.path is None:
            return None
        return of_file(address_of(self.path, conn_id=self.object_storage_conn_id), is_output=True)

    def _returned(
        self, table: DataTable, types: Mapping[str, str], rows: Iterable[Mapping[str, Any]]
    ) -> dict[str, Any]:
        max_rows = read_count("max_rows", self.max_rows, least=0)
        some = list(islice(rows, max_rows + 1))
        if len(some) > max_rows:
            raise AirflowFailException(
                f"there are more than max_rows={max_rows} rows in {table.name}; "
                "narrow the filter, raise max_rows, or give a path to write them to a file"
            )
        if self.columns is not None:
            some = [{name: row[name] for name in types} for row in some]
        return {"count": len(some), "rows": some}

    def _written(self, types: Mapping[str, str], rows: Iterable[Mapping[str, Any]], path: StoredPath) -> dict[str, Any]:
        from airflow_provider_service._core.object_storage import address_of
        from airflow_provider_service._core.rows.files import write_rows

        conn_id = self.object_storage_conn_id
        count = write_rows(path, types, rows, neutralize_formulas=self.neutralize_formulas, conn_id=conn_id)
        return {"count": count, "path": address_of(path, conn_id=conn_id)}
