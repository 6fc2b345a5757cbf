"""Upsert rows: read, compare, and write only the differences, in few calls and bounded memory.

An upsert must leave the right rows behind wherever it is interrupted, because its task is then repeated, perhaps while
its last call is still on the way:

- The source and the stored rows with its keys are on disk (``spool``) before anything is written. From there they are
  compared and written chunk by chunk, so memory does not depend on their number.
- Each chunk is changed, then inserted, and deleted last, so that a newer row exists for every row that is deleted. Rows
  are deleted by their ids, and only if these are lower than those of the rows that were just inserted: on SQLite, the
  service reuses the highest id after its row was deleted.
- A repeat compares again, and so writes only what is missing. Rows that an earlier attempt inserted late then have the
  same key as others, and ``on_stored_duplicates`` says what becomes of them.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_service._airflow import metrics
from airflow_provider_service._core.rows.batches import (
    Progress,
    any_of,
    any_of_in_url,
    exactly_in_url,
    fits_in_url,
    insert_in_batches,
)
from airflow_provider_service._core.rows.options import chosen_strategy
from airflow_provider_service._core.rows.upsert_plan import Key, key_of, plan_upsert
from airflow_provider_service.client.errors import ServiceForbiddenError, ServiceUnexpectedResponseError

if TYPE_CHECKING:
    from airflow_provider_service._core.rows.options import ChangeStrategy, OnStoredDuplicates
    from airflow_provider_service._core.rows.spool import Spool
    from airflow_provider_service._core.rows.upsert_plan import UpsertPlan
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import RowFilter
    from airflow_provider_service.client.resources._data_table_rows import Row

log = logging.getLogger(__name__)

#: Up to this number, the service finds every whole number by equality.
MAX_FOUND_NUMBER = 2**53
#: Up to this number of rows, only the stored rows with their keys may be read instead of the whole table.
MAX_SEARCHED_KEYS = 10_000
#: Up to this number of filtered reads, searching for the keys is cheaper than reading a table of unknown size.
MAX_FILTERED_READS = 25
#: From this number of filtered reads on, it pays to find out first whether reading the whole table takes fewer.
MIN_READS_TO_PROBE = 3
#: Maximum number of calls with which ``auto`` updates rows in place: about a second.
MAX_UPDATE_CALLS = 100
#: Number of inserted rows whose ids are returned to find out the lowest.
MAX_RETURNED_IDS = 1_000
#: Calls between two log lines of progress.
CALLS_A_LINE = 500


@dataclass(frozen=True)
class LoadResult:
    """Numbers of rows of the table; ``deleted`` is None if those that a replace deleted could not be counted."""

    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    deleted: int | None = 0


def upsert_rows(
    client: Resources,
    table_id: str,
    spool: Spool,
    types: Mapping[str, str],
    key_columns: Sequence[str],
    *,
    on_stored_duplicates: OnStoredDuplicates = "remove_copies",
    change_strategy: ChangeStrategy = "auto",
    delete_missing: bool = False,
) -> LoadResult:
    """Update the rows whose keys exist, insert the others, and delete the rest if requested. Safe to repeat.

    Not atomic: a change that another writer makes between reading and writing is not detected.
    """
    strategy = chosen_strategy(change_strategy, on_stored_duplicates)
    if delete_missing:
        require_deletable(client, table_id)
    filters = None if delete_missing else _key_filters(client, table_id, spool.requested, types, key_columns)
    reads = [None] if filters is None else filters
    rows = chain.from_iterable(client.data_table_rows.list(table_id, filter=filter) for filter in reads)
    for row in Progress("Read and compared").counting(rows):
        checked_row(row, table_id)
        spool.store(row, key_of(row, key_columns), with_others=delete_missing)
    if on_stored_duplicates == "fail":
        for requested, stored in spool.compared():
            plan_upsert(requested, stored, key_columns, on_stored_duplicates)
    stored_count, other_count = spool.counts()
    total = len(spool.requested)
    progress = Progress("Compared and written", total)
    inserted = updated = unchanged = deleted = 0
    for requested, stored in spool.compared():
        plan = plan_upsert(requested, stored, key_columns, on_stored_duplicates)
        with_first_id = bool(other_count or (stored_count and progress.count + len(requested) < total))
        # The service reuses the highest id after its row was deleted, so an inserted row can have the id of an old one.
        spool.forget_from(write_plan(client, table_id, plan, strategy, with_first_id=with_first_id))
        inserted, updated = inserted + len(plan.inserts), updated + len(plan.changes)
        unchanged, deleted = unchanged + plan.unchanged, deleted + len(plan.surplus)
        progress.reach(progress.count + len(requested))
    progress.report()
    if delete_missing:
        deleted += _delete_others(client, table_id, spool)
    return LoadResult(inserted, updated, unchanged, deleted)


def _key_filters(
    client: Resources, table_id: str, keys: Collection[Key], types: Mapping[str, str], key_columns: Sequence[str]
) -> list[RowFilter] | None:
    """The filters that find the rows with one of the keys, and perhaps others; None to read the whole table instead."""
    if len(keys) > MAX_SEARCHED_KEYS:
        return None
    # Filters cannot be nested, so only one column of the key is searched for.
    values: dict[str, set[Any]] = {name: set() for name in key_columns}
    for key in keys:
        for name, value in zip(key_columns, key, strict=True):
            values[name].add(value)
    findable = [name for name in key_columns if all(_is_findable(value, types[name]) for value in values[name])]
    if not findable:
        return None
    sharpest = max(findable, key=lambda name: len(values[name]))
    filters = list(islice(any_of_in_url(sharpest, values[sharpest]), MAX_FILTERED_READS + 1))
    if len(filters) > MAX_FILTERED_READS:
        return None
    if len(filters) >= MIN_READS_TO_PROBE:
        # No table has more rows than its highest id.
        most_pages = -(-edge_id(client, table_id, "desc") // client.transport.config.page_size)
        if most_pages < len(filters):
            return None
    return filters


def _is_findable(value: Any, column_type: str) -> bool:
    # The service never finds dates by equality, nor some numbers with more digits than a double has.
    if column_type == "number":
        return value is None or abs(value) <= MAX_FOUND_NUMBER
    return column_type == "boolean" or (column_type == "string" and fits_in_url(value))


def edge_id(client: Resources, table_id: str, direction: Literal["asc", "desc"]) -> int:
    """The lowest or the highest id in a table; 0 if it is empty."""
    rows = client.data_table_rows.list(table_id, sort_by=f"id:{direction}", limit=1)
    return next((int(checked_row(row, table_id)["id"]) for row in rows), 0)


def checked_row(row: Row, table_id: str) -> Row:
    if any(isinstance(value, (list, dict)) for value in row.values()):
        raise ServiceUnexpectedResponseError(
            "a row holds a value that no column has", method="GET", path=f"/data-tables/{table_id}/rows"
        )
    return row


def write_plan(
    client: Resources, table_id: str, plan: UpsertPlan, strategy: ChangeStrategy, *, with_first_id: bool
) -> int | None:
    """Change, insert, and delete last, so that a newer row exists for every row that is deleted.

    Return the id of the first inserted row, which no row that was there before reaches; None if it is not known. It is
    found out to delete rows, or for ``with_first_id``.
    """
    updates = [(values, condition) for values, ids in plan.equal_changes() for condition in any_of("id", ids)]
    inserts, old_ids = plan.inserts, plan.surplus
    replaced_ids = [row["id"] for row, _ in plan.changes]
    if _replaces(client, table_id, strategy, len(updates), replaced_ids):
        inserts, old_ids = [*inserts, *plan.replacements()], [*old_ids, *replaced_ids]
        updates = []
    for number, (values, condition) in enumerate(updates, start=1):
        client.data_table_rows.update(table_id, filter=condition, data=values)
        metrics.count(metrics.ROWS_UPDATED, len(condition["filters"]))
        if number % CALLS_A_LINE == 0 or number == len(updates):
            log.info("Updated %d of %d groups of rows with equal changes", number, len(updates))
    first_id = _insert(client, table_id, inserts, with_first_id=with_first_id or bool(old_ids))
    ids_to_delete = [row_id for row_id in old_ids if first_id is None or row_id < first_id]
    _delete_rows(client, table_id, ids_to_delete)
    if ids_to_delete:
        log.info("Deleted %d rows that have a newer row with the same key", len(ids_to_delete))
    return first_id


def _replaces(
    client: Resources, table_id: str, strategy: ChangeStrategy, update_calls: int, replaced_ids: Sequence[int]
) -> bool:
    """Whether the changed rows are inserted anew, instead of changed in place."""
    if not update_calls or (strategy != "replace" and update_calls <= MAX_UPDATE_CALLS):
        return False
    in_place = (
        f"{len(replaced_ids)} rows change in place, with a call for each of {update_calls} groups of equal changes"
    )
    if strategy == "update":
        few = 1 + len(list(exactly_in_url(replaced_ids)))
        log.info("%s; 'auto' and 'replace' would take about %d calls and give the rows new ids", in_place, few)
        return False
    try:
        require_deletable(client, table_id)
    except ServiceForbiddenError as error:
        if strategy == "replace":
            raise
        log.warning("%s, because the key may not delete rows: %s", in_place, error)
        return False
    return True


def require_deletable(client: Resources, table_id: str) -> None:
    """Fail before rows are duplicated if the key may insert but not delete."""
    # No row has this id.
    client.data_table_rows.delete(table_id, next(iter(exactly_in_url([0]))), dry_run=True)


def _insert(client: Resources, table_id: str, rows: Sequence[Row], *, with_first_id: bool) -> int | None:
    ids: list[int] = []
    # The service inserts 10,000 rows in a third of the time if it need not return their ids.
    first = rows[:MAX_RETURNED_IDS] if with_first_id else []
    for _ in insert_in_batches(client, table_id, first, note_ids=lambda some: ids.extend(row["id"] for row in some)):
        pass
    for inserted in insert_in_batches(client, table_id, rows[len(first) :]):
        # A load writes many plans and logs its own progress.
        if len(first) + inserted < len(rows):
            log.info("Inserted %d of %d rows", len(first) + inserted, len(rows))
    return min(ids, default=None)


def _delete_others(client: Resources, table_id: str, spool: Spool) -> int:
    _, other_count = spool.counts()
    if not other_count:
        return 0
    progress = Progress("Deleted", other_count)
    for ids in spool.other_ids():
        _delete_rows(client, table_id, ids)
        progress.reach(progress.count + len(ids))
    progress.report()
    return progress.count


def _delete_rows(client: Resources, table_id: str, ids: Sequence[int]) -> None:
    for condition in exactly_in_url(ids):
        client.data_table_rows.delete(table_id, condition)
    metrics.count(metrics.ROWS_DELETED, len(ids))
