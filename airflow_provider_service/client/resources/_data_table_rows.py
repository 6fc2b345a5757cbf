"""Rows of data tables."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Literal, NotRequired, TypedDict, get_args, overload

from pydantic import AfterValidator
from typing_extensions import Unpack

from airflow_provider_service.client._constraints import require_row, require_writable
from airflow_provider_service.client._http.paging import follow_cursor, follow_ids, is_any_of_several
from airflow_provider_service.client._models import ServiceModel
from airflow_provider_service.client.errors import ServiceInvalidRequestError, ServiceServerError
from airflow_provider_service.client.resources._base import CallOptions, Resource, json_text, require, without_none

#: A row: its columns by name, and ``id``, ``createdAt`` and ``updatedAt``.
Row = dict[str, Any]

#: Ids of rows are 64-bit numbers in every database that the service uses.
_MAX_ROW_ID = 2**63 - 1


def _require_id(row: Row) -> Row:
    row_id = row.get("id")
    if isinstance(row_id, bool) or not isinstance(row_id, int) or not 0 < row_id <= _MAX_ROW_ID:
        raise ValueError("the id of a row is not a whole number from 1")
    return row


# A row in a list of rows, where each has an id.
StoredRow = Annotated[Row, AfterValidator(_require_id)]

Comparison = Literal["eq", "neq", "like", "ilike", "gt", "gte", "lt", "lte", "isEmpty", "isNotEmpty"]


class Condition(TypedDict):
    """One condition of a filter; ``value`` is required, and None means null."""

    columnName: str
    condition: NotRequired[Comparison]
    value: Any


class RowFilter(TypedDict):
    """Conditions that rows must meet: all of them, unless ``type`` is ``"or"``."""

    type: NotRequired[Literal["and", "or"]]
    filters: list[Condition]


class InsertedRows(ServiceModel):
    """How many rows were inserted."""

    success: bool
    inserted_rows: int


class ClearedRows(ServiceModel):
    """How many rows were deleted by a clear."""

    deleted_count: int


_INSERTED: Any = InsertedRows | list[StoredRow]
_CHANGED: Any = bool | list[Row]
# What the service says about any mistake in a filter.
_FILTER_REFUSED = "Invalid filter fields"
#: Comparisons that n8n 2.40 added.
ADDED_COMPARISONS = ("isEmpty", "isNotEmpty")


class DataTableRows(Resource):
    """Rows of data tables: plain dicts, because the user defines their columns.

    A filter is ``{"type": "and", "filters": [{"columnName": ..., "condition": "eq", "value": ...}]}``. The type is
    ``"and"`` (the default) or ``"or"``. The condition is ``"eq"`` (the default), ``"neq"``, ``"gt"``, ``"gte"``,
    ``"lt"``, ``"lte"``, ``"like"``, ``"ilike"`` or, except in updates and upserts, ``"isEmpty"`` or ``"isNotEmpty"``,
    which n8n has from 2.40 on. A value of None means null.

    The methods send a filter as it is. The service cuts a date in it to milliseconds. If its database is SQLite, a
    comparison with a date tells days apart, but takes all times of a day for earlier than the value: an ``"lt"`` with
    8:00 of a day deletes that whole day. The operators, the transfers and ``hook.data_tables`` compare dates exactly.
    Give dates with an offset, ``2026-01-02T03:04:05Z``: without one, the service assumes its own current time zone.
    """

    def list(
        self,
        data_table_id: str,
        *,
        filter: RowFilter | Mapping[str, Any] | None = None,
        sort_by: str | None = None,
        search: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Row]:
        """Iterate over rows, with one page in memory at a time: ``GET /data-tables/{dataTableId}/rows``.

        Rows are read by id, so none is missed because others are deleted meanwhile. With another ``sort_by``, the
        service counts rows instead: then rows are missed, or come twice, if others are written between two pages. If a
        filter of the type ``"or"`` finds more than a page, its conditions are read side by side, with a page of each in
        memory: a row that meets several conditions is read once for each of them, so many that overlap take many calls.

        :param filter: only rows that meet it.
        :param sort_by: column, then ``:asc`` or ``:desc``; by default ``id:asc``. The service answers 500 if the
            table lacks the column.
        :param search: only rows with this text in any column, regardless of the case of A to Z. With the wildcard
            ``%``, it is a pattern for the whole value.
        :param limit: maximum number of rows; None for all.
        :raises ServiceInputError: a search, and a filter of the type ``"or"`` with several conditions: the service
            would search only among the rows that meet the last one.
        :raises ServiceNotFoundError: no such table.
        """
        require(
            not search or not is_any_of_several(filter),
            "a search cannot be combined with a filter of the type 'or' with several conditions, because the service "
            "would search only among the rows that meet the last one; read the rows of each condition by themselves",
        )
        query = {"filter": json_text(filter), "sortBy": sort_by, "search": search}
        is_by_id = sort_by in (None, "id:asc")
        rows = self._pages(
            StoredRow,
            "/data-tables/{}/rows",
            data_table_id,
            scope="dataTableRow:read",
            query=query,
            limit=limit,
            follow=partial(follow_ids, filter=filter) if is_by_id else follow_cursor,
        )
        return rows if sort_by is None and filter is None else _explaining(rows, sort_by)

    @overload
    def insert(
        self, data_table_id: str, data: Sequence[Mapping[str, Any]], *, return_type: Literal["count"] = "count"
    ) -> InsertedRows: ...

    @overload
    def insert(
        self, data_table_id: str, data: Sequence[Mapping[str, Any]], *, return_type: Literal["id", "all"]
    ) -> builtins.list[Row]: ...

    def insert(
        self,
        data_table_id: str,
        data: Sequence[Mapping[str, Any]],
        *,
        return_type: Literal["count", "id", "all"] = "count",
    ) -> InsertedRows | builtins.list[Row]:
        """Insert rows, all or none: ``POST /data-tables/{dataTableId}/rows``.

        Not safe to repeat: it would insert the rows again.

        :param data: at least one row; a column left out is null. The server accepts bodies of up to 16 MiB by default.
        :param return_type: what to return: how many rows (``InsertedRows``), rows with ``id`` only, or whole rows.
        :raises ServiceInputError: a row is not a mapping, or has a value for a column that only the service writes.
        :raises ServiceInvalidRequestError: a row does not fit the columns, or the storage is full.
        :raises ServicePayloadTooLargeError: the body is too large; insert fewer rows at a time.
        :raises ServiceNotFoundError: no such table.
        """
        is_list = isinstance(data, Sequence) and not isinstance(data, (str, bytes))
        require(is_list and len(data) > 0, "data must be a list of at least one row")
        for number, row in enumerate(data, start=1):
            require_row(row, f"row {number}")
        body = {"data": data, "returnType": return_type}
        inserted: InsertedRows | builtins.list[Row] = self._call(
            _INSERTED, "POST", "/data-tables/{}/rows", data_table_id, scope="dataTableRow:create", body=body
        )
        return inserted

    def update(
        self,
        data_table_id: str,
        filter: RowFilter | Mapping[str, Any],
        data: Mapping[str, Any],
        *,
        return_data: bool | None = None,
        dry_run: bool | None = None,
    ) -> bool | builtins.list[Row]:
        """Update every row that meets a filter: ``PATCH /data-tables/{dataTableId}/rows/update``.

        Safe to repeat without ``return_data``: a repeat may find other rows, or none, to return.

        :param filter: at least one condition.
        :param data: new values by column; at least one.
        :param return_data: return the updated rows.
        :param dry_run: change nothing and return each match twice, with ``dryRunState`` before and after.
        :returns: True, even if no row met the filter; with ``return_data`` or ``dry_run``, the rows.
        :raises ServiceInvalidRequestError: a column is unknown, or a value has the wrong type.
        :raises ServiceNotFoundError: no such table.
        """
        body = without_none(filter=_conditions(filter), data=_values(data), returnData=return_data, dryRun=dry_run)
        return self._change(
            "PATCH",
            "/data-tables/{}/rows/update",
            data_table_id,
            scope="dataTableRow:update",
            body=body,
            repeatable=bool(dry_run) or not return_data,
        )

    def upsert(
        self,
        data_table_id: str,
        filter: RowFilter | Mapping[str, Any],
        data: Mapping[str, Any],
        *,
        return_data: bool | None = None,
        dry_run: bool | None = None,
    ) -> bool | builtins.list[Row]:
        """Update all matching rows, or insert one when none match: ``POST /data-tables/{dataTableId}/rows/upsert``.

        Not safe to repeat: two simultaneous calls can both insert.

        :param filter: at least one condition. Its values are not added to an inserted row: repeat them in ``data``.
        :param data: values of one row by column; at least one.
        :param return_data: return the written rows.
        :param dry_run: change nothing and return each row twice, with ``dryRunState`` before and after.
        :returns: True; with ``return_data`` or ``dry_run``, the rows.
        :raises ServiceInvalidRequestError: a column is unknown, or a value has the wrong type.
        :raises ServiceNotFoundError: no such table.
        """
        body = without_none(filter=_conditions(filter), data=_values(data), returnData=return_data, dryRun=dry_run)
        return self._change(
            "POST", "/data-tables/{}/rows/upsert", data_table_id, scope="dataTableRow:upsert", body=body
        )

    def delete(
        self,
        data_table_id: str,
        filter: RowFilter | Mapping[str, Any],
        *,
        return_data: bool | None = None,
        dry_run: bool | None = None,
    ) -> bool | builtins.list[Row]:
        """Delete every row that meets a filter: ``DELETE /data-tables/{dataTableId}/rows/delete``.

        Safe to repeat without ``return_data``: a repeat finds no row to return.

        :param filter: at least one condition; it is part of the URL, which limits its length.
        :param return_data: return the deleted rows.
        :param dry_run: delete nothing and return each match twice, with ``dryRunState`` before and after.
        :returns: True, even if no row met the filter; with ``return_data`` or ``dry_run``, the rows.
        :raises ServiceNotFoundError: no such table.
        """
        query = {"filter": json_text(_conditions(filter)), "returnData": return_data, "dryRun": dry_run}
        return self._change(
            "DELETE",
            "/data-tables/{}/rows/delete",
            data_table_id,
            scope="dataTableRow:delete",
            query=query,
            repeatable=bool(dry_run) or not return_data,
        )

    def clear(self, data_table_id: str) -> ClearedRows:
        """Delete ALL rows; ids start at 1 again: ``DELETE /data-tables/{dataTableId}/rows/clear``.

        Safe to repeat; the count is that of the last call.

        :raises ServiceNotFoundError: no such table.
        """
        return self._call(
            ClearedRows, "DELETE", "/data-tables/{}/rows/clear", data_table_id, scope="dataTableRow:delete"
        )

    def _change(
        self, method: str, path: str, data_table_id: str, **options: Unpack[CallOptions]
    ) -> bool | builtins.list[Row]:
        changed: bool | builtins.list[Row] = self._call(_CHANGED, method, path, data_table_id, **options)
        return changed


def _conditions(filter: RowFilter | Mapping[str, Any]) -> RowFilter | Mapping[str, Any]:
    require(isinstance(filter, Mapping) and bool(filter.get("filters")), "filter must contain at least one condition")
    conditions = filter["filters"]
    if not isinstance(conditions, Sequence) or not all(isinstance(condition, Mapping) for condition in conditions):
        return filter  # the service says what is wrong
    # In a body, unlike in a URL, the service has no default.
    return {**filter, "filters": [{**part, "condition": part.get("condition", "eq")} for part in conditions]}


def _values(data: Mapping[str, Any]) -> Mapping[str, Any]:
    require(isinstance(data, Mapping) and len(data) > 0, "data must be one object with at least one column")
    require_writable(data, "data")
    return data


def _explaining(rows: Iterator[Row], sort_by: str | None) -> Iterator[Row]:
    try:
        yield from rows
    except ServiceServerError as error:
        if sort_by is None or error.status != HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        hint = f"The service answers this when the table lacks the column of sort_by, here {sort_by!r}"
        raise error.with_hint(hint) from error
    except ServiceInvalidRequestError as error:
        if error.server_message != _FILTER_REFUSED:
            raise
        older = ", ".join(comparison for comparison in get_args(Comparison) if comparison not in ADDED_COMPARISONS)
        hint = (
            f"Each of the filters has a columnName, a value and, unless it is eq, a condition: {older}; "
            f"from n8n 2.40 on also {' and '.join(ADDED_COMPARISONS)}"
        )
        raise error.with_hint(hint) from error
