"""Upsert rows: read, compare, and write only the differences, in few calls and bounded memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_service._core.rows.batches import any_of_in_url, fits_in_url, may_fit_in_urls
from airflow_provider_service._core.rows.options import chosen_strategy
from airflow_provider_service._core.rows.progress import Progress
from airflow_provider_service._core.rows.upsert_plan import Key, key_of, plan_upsert
from airflow_provider_service._core.rows.upsert_writes import delete_rows, require_deletable, write_plan
from airflow_provider_service.client.errors import ServiceUnexpectedResponseError

if TYPE_CHECKING:
    from airflow_provider_service._core.rows.options import ChangeStrategy, OnStoredDuplicates
    from airflow_provider_service._core.rows.spool import Spool
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import RowFilter
    from airflow_provider_service.client.resources._data_table_rows import Row

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
