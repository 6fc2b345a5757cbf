"""Find the rows that meet a filter, and compare dates exactly.

With SQLite, the service compares a date as text in another form than that in which it is stored, so it tells days apart
but not times of a day, and finds no date by equality. It is therefore asked for the rows of the days in question, and
what they hold is compared here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_service._core.rows.values import (
    MIN_YEAR,
    column_types,
    date_text,
    is_finer_than_milliseconds,
    typed_filter,
    types_of_stored_rows,
)
from airflow_provider_service.client._models import parse_moment, wire_time
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import ServiceError, ServiceInputError, ServiceUnexpectedResponseError

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import Condition, DataTable, RowFilter
    from airflow_provider_service.client.resources._data_table_rows import Row

_COMPARISONS: dict[str, Callable[[str, str], bool]] = {
    "eq": operator.eq,
    "neq": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}
_EARLIEST = datetime(MIN_YEAR, 1, 1, tzinfo=UTC)


class _DateCondition(NamedTuple):
    """A comparison with a date; the text of the date is in the form in which the service returns dates."""

    column: str
    comparison: str
    date: str

    def is_met(self, row: Row, table_id: str) -> bool:
        value = row.get(self.column)
        if value is None:
            return self.comparison == "neq"
        try:
            return _COMPARISONS[self.comparison](date_text(value), self.date)
        except (ValueError, OverflowError):
            raise ServiceUnexpectedResponseError(
                f"a row holds {shown(value)} in {shown(self.column)}, which is not a date",
                method="GET",
                path=f"/data-tables/{table_id}/rows",
            ) from None

    def widened(self) -> Condition:
        """A condition that the service decides, and that each row with such a date meets."""
        if self.comparison == "neq":
            return {"columnName": self.column, "condition": "neq", "value": self.date}
        if self.comparison in ("lt", "lte"):
            return {"columnName": self.column, "condition": "lte", "value": self.date}
        day_before = max(parse_moment(self.date) - timedelta(days=1), _EARLIEST)
        return {"columnName": self.column, "condition": "gte", "value": wire_time(day_before)}


def matching_rows(
    client: Resources,
    table: DataTable,
    filter: RowFilter | Mapping[str, Any] | None,
    columns: Iterable[str],
    *,
    sort_by: str | None = None,
    search: str | None = None,
) -> Iterator[Row]:
    """Yield the rows that meet a filter, each with all these columns, and with one page in memory at a time."""
    filter = typed_filter(filter, column_types(table))
    dates = _date_conditions(filter, table)
    rows = _rows_meeting(client, table, filter, dates, sort_by=sort_by, search=search)
    return with_columns(rows, table, columns)


def with_columns(rows: Iterable[Row], table: DataTable, columns: Iterable[str]) -> Iterator[Row]:
    """Yield the rows of a table, each of which has the columns, if only with null."""
    names = list(columns)
    for row in rows:
        if missing := [name for name in names if name not in row]:
            raise ServiceError(
                f"data table {table.name!r} no longer has the column {missing[0]!r}, which was renamed or deleted "
                "while the table was read; run the task again"
            )
        yield row


def exact_filters(
    client: Resources,
    table: DataTable,
    filter: RowFilter | Mapping[str, Any],
    of_ids: Callable[[Sequence[int]], Iterable[Mapping[str, Any]]],
) -> Iterable[Mapping[str, Any]]:
    """The filters for a change: the given one or, if it has dates, ``of_ids`` of the rows that meet it."""
    typed = typed_filter(filter, column_types(table))
    dates = _date_conditions(typed, table)
    if not dates:
        return [typed]
    return of_ids([row["id"] for row in _rows_meeting(client, table, typed, dates)])


def _rows_meeting(
    client: Resources, table: DataTable, filter: Any, dates: Mapping[int, _DateCondition], **options: Any
) -> Iterator[Row]:
    if not dates:
        return client.data_table_rows.list(table.id, filter=filter, **options)
    conditions = [
        dates[number].widened() if number in dates else condition for number, condition in enumerate(filter["filters"])
    ]
    rows = client.data_table_rows.list(table.id, filter={**filter, "filters": conditions}, **options)
    meets = any if filter.get("type") == "or" else all
    return (row for row in rows if meets(date.is_met(row, table.id) for date in dates.values()))


def _date_conditions(filter: Mapping[str, Any] | None, table: DataTable) -> dict[int, _DateCondition]:
    """The comparisons with dates, by their position. What is malformed is left to the service, which refuses it."""
    conditions = filter.get("filters") if isinstance(filter, Mapping) else None
    if not isinstance(conditions, Sequence) or isinstance(conditions, str):
        return {}
    types = types_of_stored_rows(column_types(table))
    dates = {
        number: _date_condition(condition)
        for number, condition in enumerate(conditions)
        if isinstance(condition, Mapping)
        and types.get(str(condition.get("columnName"))) == "date"
        and condition.get("condition", "eq") in _COMPARISONS
        and condition.get("value") is not None
    }
    if filter.get("type") == "or" and 0 < len(dates) < len(conditions):  # type: ignore[union-attr]
        raise ServiceInputError(
            "a filter of the type 'or' compares dates and other values; use a filter for each, or the type 'and'; "
            "nothing was sent"
        )
    return dates


def _date_condition(condition: Mapping[str, Any]) -> _DateCondition:
    comparison, value = condition.get("condition", "eq"), condition["value"]
    compared = f"the filter compares the dates of {shown(condition['columnName'])} with {shown(value)}, which is"
    try:
        date = date_text(value)
    except (ValueError, OverflowError):
        raise ServiceInputError(
            f"{compared} not a date and time such as 2026-01-31T00:00:00Z; nothing was sent"
        ) from None
    if is_finer_than_milliseconds(value):
        if comparison in ("eq", "neq"):
            raise ServiceInputError(
                f"{compared} finer than a millisecond, so no stored date equals it; give it as the service stores it, "
                f"{date}; nothing was sent"
            )
        # A stored date that equals the text is earlier than the value.
        comparison = {"gte": "gt", "lt": "lte"}.get(comparison, comparison)
    return _DateCondition(condition["columnName"], comparison, date)
