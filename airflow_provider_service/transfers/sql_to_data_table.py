"""Transfer the result of a query into a data table."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.arguments import as_rendered, read_count
from airflow_provider_service.transfers._loading import ServiceLoadTableOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import Templated
    from airflow_provider_service._core.lineage import Lineage
    from airflow_provider_service._core.rows.source_rows import NoteColumns
    from airflow_provider_service.transfers._loading import LoadArguments

__all__ = ["SqlToServiceDataTableOperator"]


class SqlToServiceDataTableOperator(ServiceLoadTableOperator):
    """Load the result of a query into a data table. Safe to repeat, except with ``mode="append"``.

    The task reads the rows once, with a server-side cursor if the database has one, and checks them on disk before it
    writes anything, so memory does not depend on their number. If the table cannot store a value, the error names its
    row and column. The guide ``docs/transfers.md`` describes what readers of the table see in the meantime.

    :param sql: one query, or the path of a ``.sql`` file that contains it.
    :param sql_conn_id: Airflow connection of the database; its hook is any ``DbApiHook``.
    :param parameters: values of the query's placeholders, as the database's driver expects them; None (the default)
        for none.
    :param hook_params: further arguments of the hook, such as ``{"schema": "shop"}``; None (the default) for none.
    :param fetch_rows: number of rows that are fetched at a time; 5,000 by default.
    :param kwargs: the arguments of :class:`ServiceLoadTableOperator`, and those of any task.
    :returns: a :class:`LoadTableResult`: numbers of rows that were read and left out, and of the changes to the table;
        ``deleted`` is None if ``mode="replace"`` could not count them.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (
        *ServiceLoadTableOperator.template_fields,
        "sql",
        "sql_conn_id",
        "parameters",
        "hook_params",
    )
    template_ext = (".sql",)
    template_fields_renderers = {**ServiceLoadTableOperator.template_fields_renderers, "sql": "sql"}

    def __init__(
        self,
        *,
        sql: Templated[str],
        sql_conn_id: Templated[str],
        parameters: Templated[Sequence[Any] | Mapping[str, Any] | None] = None,
        hook_params: Templated[Mapping[str, Any] | None] = None,
        fetch_rows: int = 5_000,
        **kwargs: Unpack[LoadArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.sql = as_rendered(sql)
        self.sql_conn_id = as_rendered(sql_conn_id)
        self.parameters = as_rendered(parameters)
        self.hook_params = as_rendered(hook_params)
        self.fetch_rows = fetch_rows
        self.check_arguments()

    def other_lineage(self) -> Lineage | None:
        from airflow_provider_service._core.lineage import of_query
        from airflow_provider_service.transfers._sql import sql_hook

        return of_query(sql_hook(self.sql_conn_id, self.hook_params), self.sql, self.sql_conn_id)

    def source_rows(self, note_columns: NoteColumns) -> Generator[Mapping[str, Any], None, None]:
        from airflow_provider_service.transfers._sql import query_rows, sql_hook

        hook = sql_hook(self.sql_conn_id, self.hook_params)
        fetch_rows = read_count("fetch_rows", self.fetch_rows)
        return query_rows(hook, self.sql, self.parameters, fetch_rows, note_columns)
