"""The data tables of a hook, which also reads DataFrames and streams as rows, and rows as DataFrames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.references import DATA_TABLE, PROJECT, data_table_in
from airflow_provider_service._core.rows.batches import Progress
from airflow_provider_service._core.rows.files import chosen_types
from airflow_provider_service._core.rows.frames import arrow_table, pandas_frame, rows_in
from airflow_provider_service._core.rows.matching import matching_rows
from airflow_provider_service._core.rows.options import LOAD_CHECKS, chosen_strategy, require_row_filter
from airflow_provider_service._core.rows.target import LoadOptions, TableTarget, opening_rejects
from airflow_provider_service._core.rows.values import column_types
from airflow_provider_service.client.errors import ServiceInsertInDoubtError
from airflow_provider_service.client.resources import DataTables

if TYPE_CHECKING:
    from airflow_provider_service._core.object_storage import StoredPath
    from airflow_provider_service._core.rows.options import (
        ChangeStrategy,
        LoadedRows,
        LoadMode,
        OnDuplicate,
        OnError,
        OnStoredDuplicates,
    )
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client.models import RowFilter
    from airflow_provider_service.client.resources._data_table_rows import Row

__all__ = ["HookDataTables"]


class HookDataTables(DataTables):
    """Data tables, with conversion of rows from and to DataFrames and streams."""

    def __init__(self, client: ServiceClient) -> None:
        super().__init__(client.transport)
        self._client = client

    def load(
        self,
        rows: Any,
        *,
        data_table_id: str | None = None,
        data_table_name: str | None = None,
        project_id: str | None = None,
        project_name: str | None = None,
        mode: LoadMode | None = None,
        key_columns: str | Sequence[str] = (),
        delete_missing: bool = False,
        allow_empty: bool = False,
        column_mapping: Mapping[str, str | None] | None = None,
        create_table: bool = False,
        add_columns: bool = False,
        column_types: Mapping[str, str] | None = None,
        on_error: OnError = "fail",
        reject_path: StoredPath | None = None,
        object_storage_conn_id: str | None = None,
        on_duplicate: OnDuplicate = "last",
        on_stored_duplicates: OnStoredDuplicates = "remove_copies",
        change_strategy: ChangeStrategy = "auto",
    ) -> LoadedRows:
        """Load rows into a data table, as the transfers do: check all rows, then write them.

        Rows of a generator or a stream are kept on disk, never in memory as a whole. Safe to repeat, except with
        ``mode="append"``; but a generator yields its rows only once. All arguments but ``rows`` are those of
        :class:`ServiceLoadTableOperator`.

        :param rows: a pandas or polars DataFrame, an Arrow table or stream, or anything else with
            ``__arrow_c_stream__`` or ``__dataframe__``; mappings of columns to values, in a list or a generator; or a
            list or generator of DataFrames. Anything but pandas needs the extra ``arrow``.
        :returns: numbers of rows that were read and left out, and of the changes to the table.
        :raises ServiceInputError: a row, a column name or an option does not fit, or a library is missing; nothing was
            written.
        :raises ServiceLookupError: no table or project has the name.
        :raises ServiceApiError: a call failed; with ``mode="append"``, no row was inserted.
        :raises AirflowFailException: with ``mode="append"``, a call failed, and some rows were inserted, or may have
            been. Airflow does not retry the task: that would insert rows twice.
        """
        arguments = _named(data_table_id, data_table_name, project_id, project_name)
        vars(arguments).update(
            mode=mode,
            key_columns=key_columns,
            delete_missing=delete_missing,
            allow_empty=allow_empty,
            column_mapping=column_mapping,
            create_table=create_table,
            add_columns=add_columns,
            column_types=column_types,
            on_duplicate=on_duplicate,
            on_stored_duplicates=on_stored_duplicates,
            change_strategy=change_strategy,
            on_error=on_error,
        )
        for name, check in LOAD_CHECKS.items():
            check(name, getattr(arguments, name))
        options = LoadOptions.of(arguments)
        chosen_strategy(change_strategy, on_stored_duplicates)
        rejects = opening_rejects(on_error, reject_path, object_storage_conn_id)
        target = TableTarget.named_by(arguments, self._client, create_table=create_table)
        try:
            return target.load(partial(rows_in, rows), options, rejects).to_xcom()
        except ServiceInsertInDoubtError as error:
            raise AirflowFailException(str(error)) from error

    def to_arrow(
        self,
        *,
        data_table_id: str | None = None,
        data_table_name: str | None = None,
        project_id: str | None = None,
        project_name: str | None = None,
        filter: RowFilter | Mapping[str, Any] | None = None,
        search: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> Any:
        """Read rows into an Arrow table. Safe to repeat. Needs the extra ``arrow``.

        ``polars.from_arrow`` makes a polars DataFrame of the table.

        :param data_table_id: id of the table; give either the id or the name.
        :param data_table_name: exact, case-sensitive name of the table.
        :param project_id: id of the project in which to look up the name; None (the default) for any project.
        :param project_name: exact name of that project, instead of its id.
        :param filter: ``{"type": "and" | "or", "filters": [{"columnName", "condition", "value"}]}``; None for all rows.
        :param search: text that a row must contain in any column, regardless of the case of A to Z, or with ``%`` a
            pattern for a whole value; None for all rows.
        :param columns: columns to read, in order; None (the default) for all of them, including those of the service.
        :returns: a ``pyarrow.Table``: ``id`` as int64, numbers as float64, dates as timestamps of milliseconds in UTC.
        :raises ServiceInputError: pyarrow is not installed, a column is unknown, or the filter has no condition or a
            value that does not fit its column.
        :raises ServiceLookupError: no table has the name, or several do.
        :raises ServiceError: a column that is read was renamed or deleted in the meantime.
        """
        arguments = _named(data_table_id, data_table_name, project_id, project_name)
        return arrow_table(*self._read(arguments, filter, search, columns))

    def to_pandas(
        self,
        *,
        data_table_id: str | None = None,
        data_table_name: str | None = None,
        project_id: str | None = None,
        project_name: str | None = None,
        filter: RowFilter | Mapping[str, Any] | None = None,
        search: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> Any:
        """Read rows into a pandas DataFrame. Safe to repeat. Needs the extra ``pandas``.

        The arguments are those of :meth:`to_arrow`.

        :returns: a ``pandas.DataFrame`` whose types do not depend on the values: ``id`` as int64, numbers as float64
            (null is NaN), booleans as ``boolean`` (null is ``pd.NA``), dates as ``datetime64[ms, UTC]`` (null is
            ``NaT``), text as pandas reads it from Arrow.
        :raises: the same errors as :meth:`to_arrow`; ServiceInputError also if pandas is not installed.
        """
        arguments = _named(data_table_id, data_table_name, project_id, project_name)
        return pandas_frame(*self._read(arguments, filter, search, columns))

    def _read(
        self,
        arguments: SimpleNamespace,
        filter: RowFilter | Mapping[str, Any] | None,
        search: str | None,
        columns: Sequence[str] | None,
    ) -> tuple[dict[str, str], Iterable[Row]]:
        require_row_filter(filter)
        table = data_table_in(arguments, self._client)
        types = chosen_types(column_types(table), columns, with_system_columns=True)
        rows = matching_rows(self._client, table, filter, types, search=search)
        return types, Progress("Read").counting(rows)


def _named(
    data_table_id: str | None, data_table_name: str | None, project_id: str | None, project_name: str | None
) -> SimpleNamespace:
    arguments = SimpleNamespace(
        data_table_id=data_table_id, data_table_name=data_table_name, project_id=project_id, project_name=project_name
    )
    for reference in (DATA_TABLE, PROJECT):
        reference.check(arguments, are_rendered=True)
    return arguments
