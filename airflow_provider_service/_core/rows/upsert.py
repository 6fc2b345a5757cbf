"""Upsert rows: read, compare, and write only the differences, in few calls and bounded memory.

Write the plan of an upsert in an order that loses no row wherever it is interrupted.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
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
    may_fit_in_urls,
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

#: Maximum number of calls with which ``auto`` updates rows in place: about a second.
MAX_UPDATE_CALLS = 100
#: Number of inserted rows whose ids are returned to find out the lowest.
MAX_RETURNED_IDS = 1_000
#: Calls between two log lines of progress.
CALLS_A_LINE = 500


def write_plan(
    client: Resources, table_id: str, plan: UpsertPlan, strategy: ChangeStrategy, *, with_first_id: bool = False
) -> int | None:
    """Write a plan: change, insert, and delete last, so that a newer row exists for every row that is deleted.

    :param with_first_id: find out the id of the first inserted row even if the plan deletes no row.
    :returns: that id: no row that was there before has it or a higher one. None if it is not known.
    :raises ServiceApiError: a call failed; earlier writes stay, and the next upsert completes the rest.
    """
    updates = [(values, condition) for values, ids in plan.equal_changes() for condition in any_of("id", ids)]
    replaced = [change.row["id"] for change in plan.changes]
    if _replaces(client, table_id, strategy, len(updates), replaced):
        inserts = [*plan.inserts, *(change.replacement for change in plan.changes)]
        ids_to_delete = [*plan.surplus, *replaced]
    else:
        _update(client, table_id, updates)
        inserts, ids_to_delete = plan.inserts, plan.surplus
    first_id = _insert(client, table_id, inserts, with_first_id=with_first_id or bool(ids_to_delete))
    _delete(client, table_id, [one for one in ids_to_delete if first_id is None or one < first_id])
    return first_id


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


def _replaces(
    client: Resources, table_id: str, strategy: ChangeStrategy, update_calls: int, replaced: Sequence[int]
) -> bool:
    if not update_calls or (strategy != "replace" and update_calls <= MAX_UPDATE_CALLS):
        return False
    in_place = f"{len(replaced)} rows change in place, with a call for each of {update_calls} groups of equal changes"
    if strategy == "update":
        few = 1 + len(list(exactly_in_url(replaced)))
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
    """Fail before rows are duplicated if the key may insert but not delete.

    :raises ServiceForbiddenError: the key may not delete rows.
    """
    # No row has this id.
    client.data_table_rows.delete(table_id, next(iter(exactly_in_url([0]))), dry_run=True)


def _update(client: Resources, table_id: str, updates: Sequence[tuple[Row, RowFilter]]) -> None:
    for number, (values, condition) in enumerate(updates, start=1):
        client.data_table_rows.update(table_id, filter=condition, data=values)
        metrics.count(metrics.ROWS_UPDATED, len(condition["filters"]))
        if number % CALLS_A_LINE == 0 or number == len(updates):
            log.info("Updated %d of %d groups of rows with equal changes", number, len(updates))


def delete_rows(client: Resources, table_id: str, ids: Sequence[int]) -> None:
    """Delete exactly the rows with these ids."""
    for condition in exactly_in_url(ids):
        client.data_table_rows.delete(table_id, condition)
    metrics.count(metrics.ROWS_DELETED, len(ids))


def _delete(client: Resources, table_id: str, ids: Sequence[int]) -> None:
    delete_rows(client, table_id, ids)
    if ids:
        log.info("Deleted %d rows that have a newer row with the same key", len(ids))


#: Up to this number, the service finds every whole number by equality.
MAX_FOUND_NUMBER = 2**53
#: Up to this number of rows, only the stored rows with their keys may be read instead of the whole table.
MAX_SEARCHED_KEYS = 10_000
#: Up to this number of filtered reads, searching for the keys is cheaper than reading a table of unknown size.
MAX_FILTERED_READS = 25
#: From this number of filtered reads on, it pays to find out first whether reading the whole table takes fewer.
MIN_READS_TO_PROBE = 3


@dataclass(frozen=True)
class LoadResult:
    """Numbers of rows of the table that were inserted, changed, left unchanged, and deleted.

    ``deleted`` is None if the rows that a replace deleted could not be counted.
    """

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

    The table is read at most once, and rows are compared and written chunk by chunk. Not atomic: a change that another
    writer makes between reading and writing is not detected.

    :param spool: the rows, checked, by their key.
    :param types: type by column name.
    :param key_columns: columns that identify a row.
    :param on_stored_duplicates: what to do if several stored rows have the same key, for example because the insert of
        an earlier attempt arrived late: ``"remove_copies"`` updates all and deletes those that then equal a newer one
        in every column, ``"keep_newest"`` deletes all but the one inserted last, ``"update_all"`` keeps them all,
        ``"fail"`` writes nothing.
    :param change_strategy: how rows change: ``"update"`` changes them in place, one call for each group of equal
        changes, ``"replace"`` inserts the new rows and then deletes the old ones, in few calls, and gives them new ids,
        ``"auto"`` updates up to 100 groups and replaces more, unless the key may not delete rows.
    :param delete_missing: finally, delete the rows with keys that the source lacks.
    :raises ServiceInputError: several stored rows have the same key, and the policy is to fail; nothing was written.
    """
    strategy = chosen_strategy(change_strategy, on_stored_duplicates)
    if delete_missing:
        require_deletable(client, table_id)
    _read_stored(client, table_id, spool, types, key_columns, with_others=delete_missing)
    if on_stored_duplicates == "fail":
        for requested, stored in spool.compared():
            plan_upsert(requested, stored, key_columns, on_stored_duplicates)
    has_others, has_stored, total = spool.other_count() > 0, spool.stored_count() > 0, len(spool.requested)
    progress = Progress("Compared and written", total)
    inserted = updated = unchanged = deleted = 0
    for requested, stored in spool.compared():
        plan = plan_upsert(requested, stored, key_columns, on_stored_duplicates)
        with_first_id = has_others or (has_stored and progress.count + len(requested) < total)
        # The service reuses the highest id after its row was deleted, so an inserted row can have the id of an old one.
        spool.forget_from(write_plan(client, table_id, plan, strategy, with_first_id=with_first_id))
        inserted, updated = inserted + len(plan.inserts), updated + len(plan.changes)
        unchanged, deleted = unchanged + plan.unchanged, deleted + len(plan.surplus)
        progress.reach(progress.count + len(requested))
    progress.report()
    if delete_missing:
        deleted += _delete_others(client, table_id, spool)
    return LoadResult(inserted, updated, unchanged, deleted)


def _read_stored(
    client: Resources,
    table_id: str,
    spool: Spool,
    types: Mapping[str, str],
    key_columns: Sequence[str],
    *,
    with_others: bool,
) -> None:
    is_few = not with_others and len(spool.requested) <= MAX_SEARCHED_KEYS
    keys: Collection[Any] | None = list(spool.requested) if is_few else None
    progress = Progress("Read and compared")
    for row in progress.counting(stored_rows(client, table_id, keys, types, key_columns)):
        spool.store(row, key_of(row, key_columns), with_others=with_others)


def _delete_others(client: Resources, table_id: str, spool: Spool) -> int:
    others = spool.other_count()
    if not others:
        return 0
    progress = Progress("Deleted", others)
    for ids in spool.other_ids():
        delete_rows(client, table_id, ids)
        progress.reach(progress.count + len(ids))
    progress.report()
    return progress.count


def stored_rows(
    client: Resources, table_id: str, keys: Collection[Key] | None, types: Mapping[str, str], key_columns: Sequence[str]
) -> Iterator[Row]:
    """Read at least the rows of the table that have one of the keys; with None, all rows."""
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
    """Return a row that the service has read, after a check of its values.

    :raises ServiceUnexpectedResponseError: it holds a value that no column can have.
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
