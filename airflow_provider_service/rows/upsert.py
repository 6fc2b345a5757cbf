"""Upsert many rows by a plan: read, compare, and write only the differences, in few calls."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_service.client.errors import ServiceUnexpectedResponseError
from airflow_provider_service.rows.batches import any_of_in_url, fits_in_url, may_fit_in_urls
from airflow_provider_service.rows.checked import CheckedRows, check_key_columns
from airflow_provider_service.rows.options import chosen_strategy
from airflow_provider_service.rows.upsert_plan import Key, plan_upsert
from airflow_provider_service.rows.upsert_writes import write_plan
from airflow_provider_service.rows.values import column_types

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models.data_table_rows import Row, RowFilter
    from airflow_provider_service.client.models.data_tables import DataTable
    from airflow_provider_service.rows.options import ChangeStrategy, OnDuplicate, OnStoredDuplicates

#: The service finds every whole number up to this one by equality.
MAX_FOUND_NUMBER = 2**53
#: Up to this number of filtered reads, searching for the keys is cheaper than reading a table of unknown size.
MAX_FILTERED_READS = 25
#: From this number of filtered reads, one more call that tells whether the whole table takes fewer pays off.
MIN_READS_TO_PROBE = 3


@dataclass(frozen=True)
class UpsertResult:
    """Numbers of rows that were inserted, changed, left unchanged, and removed as duplicates of their key."""

    inserted: int
    updated: int
    unchanged: int
    removed: int


def upsert_rows(
    client: Resources,
    table: DataTable,
    rows: Iterable[Mapping[str, Any]],
    key_columns: Sequence[str],
    *,
    on_duplicate: OnDuplicate = "last",
    on_stored_duplicates: OnStoredDuplicates = "remove_copies",
    change_strategy: ChangeStrategy = "update",
) -> UpsertResult:
    """Make the table contain the given rows: stored rows with a given key are updated, the other rows are inserted.

    All input is checked against the table's columns before anything is written. Values that the service cannot store
    exactly are compared as it stores them, and reported in one warning. Safe to repeat. Not atomic: a change that
    another writer makes between reading and writing is not noticed.

    :param table: the table with its columns.
    :param rows: mappings of columns to values; every row has a value, or None, for each key column.
    :param key_columns: columns that identify a row.
    :param on_duplicate: what to do if input rows have the same key: use the ``"last"`` one, or ``"fail"``.
    :param on_stored_duplicates: what to do if several stored rows have the same key, for example because the insert of
        an earlier attempt arrived late: ``"remove_copies"`` updates all and deletes those that then equal a newer one
        in every column, ``"keep_newest"`` deletes all but the one inserted last, ``"update_all"`` keeps them all,
        ``"fail"`` writes nothing.
    :param change_strategy: how rows change: ``"update"`` changes them in place, one call for each group of equal
        changes, ``"replace"`` inserts the new rows and then deletes the old ones, in few calls, and gives them new
        ids, ``"auto"`` updates up to 100 groups and replaces more.
    :raises ServiceInputError: the table cannot store the keys or values, or the options cannot be combined; nothing
        was written.
    """
    strategy = chosen_strategy(change_strategy, on_stored_duplicates)
    types = column_types(table)
    wanted = _by_key(rows, types, key_columns, on_duplicate)
    plan = plan_upsert(
        wanted, stored_rows(client, table.id, wanted, types, key_columns), key_columns, on_stored_duplicates
    )
    write_plan(client, table.id, plan, strategy)
    return UpsertResult(
        inserted=len(plan.inserts), updated=len(plan.changes), unchanged=plan.unchanged, removed=len(plan.surplus)
    )


def _by_key(
    rows: Iterable[Mapping[str, Any]], types: Mapping[str, str], key_columns: Sequence[str], on_duplicate: OnDuplicate
) -> dict[Key, Row]:
    wanted: dict[Key, Row] = {}
    check_key_columns(key_columns, types)
    checked = CheckedRows(types, key_columns, on_duplicate, wanted, {})
    for number, given in enumerate(rows, start=1):
        checked.add(number, given)
    checked.report()
    return wanted


def stored_rows(
    client: Resources, table_id: str, keys: Collection[Key] | None, types: Mapping[str, str], key_columns: Sequence[str]
) -> Iterator[Row]:
    """The rows of the table that may have one of the keys, possibly among others; None for all rows."""
    filters = None if keys is None else _key_filters(keys, types, key_columns)
    if filters is not None and len(filters) >= MIN_READS_TO_PROBE:
        # No table has more rows than its highest id.
        most_pages = -(-edge_id(client, table_id, "desc") // client.transport.config.page_size)
        filters = None if most_pages < len(filters) else filters
    pages = [None] if filters is None else filters
    found = chain.from_iterable(client.data_table_rows.list(table_id, filter=one) for one in pages)
    return (checked_row(row, table_id) for row in found)


def edge_id(client: Resources, table_id: str, direction: Literal["asc", "desc"]) -> int:
    """The lowest or the highest id in a table; 0 if it is empty."""
    rows = client.data_table_rows.list(table_id, sort_by=f"id:{direction}", limit=1)
    return next((int(checked_row(row, table_id)["id"]) for row in rows), 0)


def checked_row(row: Row, table_id: str) -> Row:
    """The row, if the service may have read it from a table.

    :raises ServiceUnexpectedResponseError: it holds what no column does.
    """
    if any(isinstance(value, (list, dict)) for value in row.values()):
        raise ServiceUnexpectedResponseError(
            "a row holds a value that no column has", method="GET", path=f"/data-tables/{table_id}/rows"
        )
    return row


def _key_filters(keys: Collection[Key], types: Mapping[str, str], key_columns: Sequence[str]) -> list[RowFilter] | None:
    # Filters cannot be nested, so only one column of the key is searched for.
    values = {name: {key[position] for key in keys} for position, name in enumerate(key_columns)}
    findable = [name for name in key_columns if all(_is_findable(value, types[name]) for value in values[name])]
    if not findable:
        return None
    sharpest = max(findable, key=lambda name: len(values[name]))
    if not may_fit_in_urls(sharpest, values[sharpest], MAX_FILTERED_READS):
        return None
    filters = list(islice(any_of_in_url(sharpest, values[sharpest]), MAX_FILTERED_READS + 1))
    return filters if len(filters) <= MAX_FILTERED_READS else None


def _is_findable(value: Any, column_type: str) -> bool:
    # The service never finds dates by equality, nor some numbers with more digits than a double has.
    if column_type == "number":
        return value is None or abs(value) <= MAX_FOUND_NUMBER
    return column_type == "boolean" or (column_type == "string" and fits_in_url(value))
