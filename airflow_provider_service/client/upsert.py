"""Upsert of many rows as a plan: read, compare, write only what differs, in few calls."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.client.row_batches import any_of, any_of_in_url, insert_in_batches
from airflow_provider_service.client.row_values import column_types, typed_row
from airflow_provider_service.client.transport import to_json

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models.data_table_rows import Row, RowFilter
    from airflow_provider_service.client.models.data_tables import DataTable

log = logging.getLogger(__name__)

#: Filtered reads up to which asking for the keys is cheaper than reading a table of unknown size.
MAX_FILTERED_READS = 25

Key = tuple[Any, ...]
OnDuplicate = Literal["last", "fail"]


@dataclass(frozen=True)
class UpsertResult:
    """Rows of the table that were inserted, changed, and left as they were."""

    inserted: int
    updated: int
    unchanged: int


@dataclass
class _Plan:
    """What must be written; changes are grouped by equal data, since one call can serve many ids."""

    inserts: list[Row] = field(default_factory=list)
    updates: dict[str, tuple[Row, list[int]]] = field(default_factory=dict)
    unchanged: int = 0

    def change(self, row_id: int, changes: Row) -> None:
        self.updates.setdefault(to_json(changes), (changes, []))[1].append(row_id)


def upsert_rows(
    client: Resources,
    table: DataTable,
    rows: Iterable[Mapping[str, Any]],
    key_columns: Sequence[str],
    *,
    on_duplicate: OnDuplicate = "last",
) -> UpsertResult:
    """Make the table hold the given rows: rows of a known key get the given values, the others are inserted.

    All input is checked against the table's columns before anything is sent. All rows that match a key are updated,
    and only in the columns that differ. Safe to repeat. Not atomic: a row that another writer inserts or deletes
    between the reading and the writing is not seen.

    :param table: the table with its columns.
    :param rows: columns to values; every row has a value, or None, for each key column.
    :param key_columns: columns that tell rows apart.
    :param on_duplicate: what to do with input rows of the same key: the last one counts, or fail.
    :raises ServiceInputError: keys or values that the table can not hold; nothing was written.
    """
    types = column_types(table)
    wanted = _by_key(rows, types, key_columns, on_duplicate)
    plan = _compare(wanted, _stored(client, table.id, wanted, types, key_columns), key_columns)
    updated = _update(client, table.id, plan)
    inserted = 0
    for inserted in insert_in_batches(client, table.id, plan.inserts):
        log.info("Inserted %d of %d rows", inserted, len(plan.inserts))
    return UpsertResult(inserted=inserted, updated=updated, unchanged=plan.unchanged)


def _by_key(
    rows: Iterable[Mapping[str, Any]], types: Mapping[str, str], key_columns: Sequence[str], on_duplicate: OnDuplicate
) -> dict[Key, Row]:
    missing = [name for name in key_columns if name not in types]
    if missing or not key_columns:
        raise ServiceInputError(
            f"key_columns must name columns of the table, which has {', '.join(types)}; got {list(key_columns)}"
        )
    wanted: dict[Key, Row] = {}
    duplicates = 0
    for number, given in enumerate(rows, start=1):
        row = typed_row(given, types, f"row {number}")
        absent = [name for name in key_columns if name not in row]
        if absent:
            raise ServiceInputError(f"row {number} has no value for the key columns {', '.join(absent)}")
        key = _key(row, key_columns)
        if key in wanted:
            if on_duplicate == "fail":
                raise ServiceInputError(f"row {number} repeats the key {dict(zip(key_columns, key, strict=True))}")
            duplicates += 1
        wanted[key] = row
    if duplicates:
        log.warning("%d input rows were dropped, since a later row has the same key", duplicates)
    return wanted


def _key(row: Mapping[str, Any], key_columns: Sequence[str]) -> Key:
    return tuple(row[name] for name in key_columns)


def _stored(
    client: Resources, table_id: str, wanted: Mapping[Key, Row], types: Mapping[str, str], key_columns: Sequence[str]
) -> Iterable[Row]:
    """The rows of the table that may carry a wanted key, and others."""
    filters = _key_filters(wanted, types, key_columns)
    if filters is None:
        return client.data_table_rows.list(table_id)
    return chain.from_iterable(client.data_table_rows.list(table_id, filter=one) for one in filters)


def _key_filters(
    wanted: Mapping[Key, Row], types: Mapping[str, str], key_columns: Sequence[str]
) -> list[RowFilter] | None:
    # A filter can not nest, so it asks for one column of the key. The server never finds dates by equality.
    values = {
        name: {key[position] for key in wanted}
        for position, name in enumerate(key_columns)
        if types[name] in ("string", "number", "boolean")
    }
    if not values:
        return None
    sharpest = max(values, key=lambda name: len(values[name]))
    filters = list(islice(any_of_in_url(sharpest, values[sharpest]), MAX_FILTERED_READS + 1))
    return filters if len(filters) <= MAX_FILTERED_READS else None


def _compare(wanted: Mapping[Key, Row], stored: Iterable[Row], key_columns: Sequence[str]) -> _Plan:
    plan = _Plan()
    found: set[Key] = set()
    for row in stored:
        key = _key(row, key_columns)
        given = wanted.get(key)
        if given is None:
            continue
        found.add(key)
        changes = {name: value for name, value in given.items() if row.get(name) != value}
        if changes:
            plan.change(row["id"], changes)
        else:
            plan.unchanged += 1
    plan.inserts = [row for key, row in wanted.items() if key not in found]
    return plan


def _update(client: Resources, table_id: str, plan: _Plan) -> int:
    updated = 0
    for changes, ids in plan.updates.values():
        for condition, count in _with_counts(ids):
            client.data_table_rows.update(table_id, filter=condition, data=changes)
            updated += count
    if updated:
        log.info("Updated %d rows in %d groups of equal changes", updated, len(plan.updates))
    return updated


def _with_counts(ids: Sequence[int]) -> Iterator[tuple[RowFilter, int]]:
    return ((condition, len(condition["filters"])) for condition in any_of("id", ids))
