"""Transfer a data table into a table of a SQL database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.arguments import as_rendered, require, require_mapping, text_or_texts
from airflow_provider_service._core.rows.options import LoadMode, chosen_mode, require_row_filter
from airflow_provider_service.transfers._loading import ServiceUnloadTableOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated
    from airflow_provider_service._core.lineage import Lineage
    from airflow_provider_service.operators.table_results import TableToSqlResult

__all__ = ["ServiceDataTableToSqlOperator"]


class ServiceDataTableToSqlOperator(ServiceUnloadTableOperator):
    """Write the rows of a data table into a table of a database. Safe to repeat, except with ``mode="append"``.

    The task writes all rows in one transaction: readers of the database see all of them or none. Memory in the worker
    does not depend on the number of rows.

    :param sql_table: name of an existing table of the database, as a SQL statement would write it: with its schema, as
        in ``shop.sales``, and in quotes if it needs them, as in ``"Sales 2026"``. Anything else is refused, and so is a
        table of MySQL or MariaDB whose storage engine has no transactions.
    :param sql_conn_id: Airflow connection of the database; its hook is any ``DbApiHook``.
    :param mode: ``"replace"`` deletes all rows of the database's table first, in the same transaction; ``"upsert"``
        updates the rows whose keys exist and inserts the others, with the upsert statement of the database's hook, and
        is the default with ``key_columns``; ``"append"`` only inserts, and is NOT safe to repeat. Required without
        ``key_columns``.
    :param key_columns: columns of the database's table that identify a row, for an upsert; most databases need a unique
        index on them. A row with null in one of them fails the task, because each run would insert it again.
    :param allow_empty: with ``mode="replace"``, delete all rows of the database's table even if the data table is empty
        or no row matches ``filter`` and ``search``; with False, the default, the task fails instead.
    :param column_mapping: name in the database by name in the data table; columns that it does not name keep their
        names. None (the default) for no changes.
    :param hook_params: further arguments of the hook, such as ``{"schema": "shop"}``; None (the default) for none.
    :param data_table_id: id of the table; give either the id or the name.
    :param data_table_name: exact, case-sensitive name of the table.
    :param project_id: id of the project in which to look up the name; None (the default) for any project.
    :param project_name: exact name of that project, instead of its id.
    :param filter: conditions on columns, as ``{"type": "and", "filters": [{"columnName": "stock", "condition": "lt",
        "value": 10}]}``; the page *Data tables* lists them. None (the default) for all rows.
    :param search: text that a row must contain in any column, regardless of the case of A to Z, or with ``%`` a
        pattern for a whole value; None (the default) for all rows.
    :param columns: columns to transfer, in order, which may include ``id``, ``createdAt`` and ``updatedAt``; None (the
        default) for all but these three.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`TableToSqlResult`: numbers of rows that were written, and that ``mode="replace"`` deleted first;
        None if the database's driver does not count them.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (
        *ServiceUnloadTableOperator.template_fields,
        "sql_table",
        "sql_conn_id",
        "key_columns",
        "column_mapping",
        "hook_params",
    )
    template_fields_renderers = {**ServiceUnloadTableOperator.template_fields_renderers, "column_mapping": "json"}
    joint_checks = {("mode", "key_columns"): chosen_mode}

    def __init__(
        self,
        *,
        sql_table: Templated[str],
        sql_conn_id: Templated[str],
        mode: LoadMode | None = None,
        key_columns: Templated[str | Sequence[str]] = (),
        allow_empty: bool = False,
        column_mapping: Templated[Mapping[str, str] | None] = None,
        hook_params: Templated[Mapping[str, Any] | None] = None,
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
            filter=filter,
            search=search,
            columns=columns,
            service_conn_id=service_conn_id,
            **kwargs,
        )
        self.sql_table = as_rendered(sql_table)
        self.sql_conn_id = as_rendered(sql_conn_id)
        self.mode = mode
        self.key_columns = as_rendered(key_columns)
        self.allow_empty = allow_empty
        self.column_mapping = as_rendered(column_mapping)
        self.hook_params = as_rendered(hook_params)
        self.check_arguments()

    def other_lineage(self) -> Lineage | None:
        from airflow_provider_service._core.lineage import of_sql_table
        from airflow_provider_service.transfers._sql import sql_hook

        return of_sql_table(sql_hook(self.sql_conn_id, self.hook_params), self.sql_table, self.sql_conn_id)

    def perform(self, context: Context) -> TableToSqlResult:
        from airflow_provider_service.client._models import parse_moment
        from airflow_provider_service.transfers._sql import insert_all, require_table_name, sql_hook

        require_row_filter(self.filter)
        require_table_name("sql_table", self.sql_table)
        keys = text_or_texts("key_columns", self.key_columns)
        mode = chosen_mode(self.mode, keys)
        table, url = self.open_table(context)
        types = self.types_of(table, with_system_columns=False)
        names = self._names(types)
        unknown = [key for key in keys if key not in names]
        require(not unknown, f"key_columns names {', '.join(unknown)}, which are not written: {', '.join(names)}")
        key_sources = [source for source, name in zip(types, names, strict=True) if name in keys]
        hook = sql_hook(self.sql_conn_id, self.hook_params)
        # SQLite has no type for dates: they stay text.
        has_dates = getattr(hook, "conn_type", "") != "sqlite"

        def values(row: Mapping[str, Any]) -> list[Any]:
            # To a database, no null equals another.
            null = [name for name in key_sources if row.get(name) is None]
            require(
                not null,
                f"the row with the id {row['id']} has null in the key columns {', '.join(null)}, so each run would "
                "insert it again; leave such rows out with filter",
            )
            cells = ((row[name], kind) for name, kind in types.items())
            return [
                parse_moment(cell) if kind == "date" and has_dates and cell is not None else cell
                for cell, kind in cells
            ]

        rows = map(values, self.stored_rows(table, types))
        count, deleted = insert_all(
            hook, self.sql_table, names, rows, mode=mode, key_columns=keys, allow_empty=self.allow_empty
        )
        deleted_count = "an unknown number" if deleted is None else deleted
        after = f", after deleting {deleted_count}" if mode == "replace" else ""
        self.log.info("Rows of %s written to %s: %d%s; see %s", table.name, self.sql_table, count, after, url)
        return {"data_table_id": table.id, "count": count, "deleted": deleted, "url": url}

    def _names(self, types: Mapping[str, str]) -> list[str]:
        from airflow_provider_service.transfers._sql import require_column_name

        mapping = self.column_mapping or {}
        require_mapping("column_mapping", mapping)
        unknown = [name for name in mapping if name not in types]
        require(not unknown, f"column_mapping names {', '.join(unknown)}, which are not read: {', '.join(types)}")
        for name in mapping.values():
            require_column_name("each value of column_mapping", name)
        names = [mapping.get(name, name) for name in types]
        require(len(set(names)) == len(names), "column_mapping gives several columns the same name")
        return names
