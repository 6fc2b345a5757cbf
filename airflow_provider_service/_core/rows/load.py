"""Write a stream of rows into a table: everything is checked before anything is written, in bounded memory."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from airflow_provider_service._airflow import metrics
from airflow_provider_service._core.rows.batches import insert_in_batches
from airflow_provider_service._core.rows.progress import Progress
from airflow_provider_service._core.rows.upsert import LoadResult, edge_id
from airflow_provider_service._core.rows.upsert_writes import require_deletable
from airflow_provider_service.client.errors import ServiceApiError, ServiceError, ServiceForbiddenError

if TYPE_CHECKING:
    from airflow_provider_service._core.rows.spool import Spool
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import Condition, RowFilter
    from airflow_provider_service.client.resources._data_table_rows import Row

log = logging.getLogger(__name__)

#: Range of ids that one call deletes when a table is replaced, so that the call ends before its timeout.
DELETED_IDS = 100_000


def append_rows(client: Resources, table_id: str, spool: Spool) -> LoadResult:
    """Insert the rows. NOT safe to repeat: a repeat inserts them again.

    :raises ServiceInsertInDoubtError: a call failed, and some rows were inserted, or may have been.
    :raises ServiceApiError: a call failed, and no row was inserted.
    """
    return LoadResult(inserted=_insert(client, table_id, spool))


def replace_rows(client: Resources, table_id: str, spool: Spool) -> LoadResult:
    """Insert the rows and then delete all others. Safe to repeat.

    In the meantime, a reader sees all old rows and more and more new ones, then fewer and fewer old ones; no row is
    ever missing. If the replacement is interrupted, the next one deletes the remaining old rows.

    :raises ServiceApiError: a call failed; no old row was deleted, or all new rows are there.
    :raises ServiceError: another load deleted rows that this one had inserted.
    """
    require_deletable(client, table_id)
    # The old rows are counted by reading them first: a delete that returns its rows cannot be repeated after a lost
    # answer.
    counts = [_count(client, table_id)]
    ids = _Ids()
    inserted = _insert(client, table_id, spool, ids)
    # The ids of the new rows show which rows are old; an earlier read would not, because the service reuses the highest
    # id after its row was deleted.
    oldest = edge_id(client, table_id, "asc")
    newest = ids.first if inserted else edge_id(client, table_id, "desc") + 1
    old = [(oldest, newest)] if oldest else []
    counts += [_count(client, table_id, *gap) for gap in ids.gaps]
    if inserted:  # a task that stalled and goes on must not delete the rows of the attempt that replaced it
        _require_own_rows(client, table_id, ids)
    for start, end in chain.from_iterable(_parts(*one, DELETED_IDS) for one in (*old, *ids.gaps)):
        client.data_table_rows.delete(table_id, _between(start, end))
    if inserted:
        _require_own_rows(client, table_id, ids)
    return LoadResult(inserted=inserted, deleted=_report_deleted(counts))


def _require_own_rows(client: Resources, table_id: str, ids: _Ids) -> None:
    """Fail if another replace has deleted new rows, of which it deletes the first one first.

    A workflow may delete rows as it processes them. Only another load leaves rows between the new ones or after them.

    :raises ServiceError: the first new row is gone, and others wrote to the table at the same time.
    """
    if any(client.data_table_rows.list(table_id, filter=_between(ids.first, ids.first + 1), limit=1)):
        return
    if ids.gaps or edge_id(client, table_id, "desc") > ids.last:
        raise ServiceError(
            "rows that this load inserted are gone, because another task wrote to the table at the same time; let only "
            "one task at a time write to it, and run this one again"
        )


class _Ids:
    """The ids of inserted rows: the first, the last, and the gaps between them."""

    def __init__(self) -> None:
        self.first = self.last = 0
        self.gaps: list[tuple[int, int]] = []

    def note(self, rows: Iterable[Row]) -> None:
        for row_id in sorted(row["id"] for row in rows):
            # The ids begin anew if others have deleted all rows.
            self.first = min(self.first or row_id, row_id)
            if self.last and row_id > self.last + 1:
                self.gaps.append((self.last + 1, row_id))  # an earlier attempt's rows, which arrived late
            self.last = row_id


def _insert(client: Resources, table_id: str, spool: Spool, ids: _Ids | None = None) -> int:
    progress = Progress("Inserted", len(spool.requested))
    note, rows = None if ids is None else ids.note, spool.requested.values()
    try:
        for inserted in insert_in_batches(
            client, table_id, rows, max_rows=spool.chunk_rows, note_ids=note, may_repeat=ids is not None
        ):
            progress.reach(inserted)
    finally:
        progress.report()
    return progress.count


def _count(client: Resources, table_id: str, start: int = 1, end: int | None = None) -> int | None:
    """Count the rows with ids from ``start`` to below ``end``, or to the last; None if they cannot be read."""
    progress = Progress("Counted")
    try:
        for _ in progress.counting(client.data_table_rows.list(table_id, filter=_between(start, end))):
            pass
    except ServiceForbiddenError:
        raise  # a replace has to read ids
    except ServiceApiError as error:
        log.warning("The rows that are to be deleted could not be counted: %s", error)
        return None
    return progress.count


def _report_deleted(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return None
    metrics.count(metrics.ROWS_DELETED, sum(known))
    log.info("Rows deleted: %d", sum(known))
    return sum(known)


def _parts(start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    return ((first, min(first + size, end)) for first in range(start, end, size))


def _between(start: int, end: int | None) -> RowFilter:
    least: Condition = {"columnName": "id", "condition": "gte", "value": start}
    if end is None:
        return {"type": "and", "filters": [least]}
    below: Condition = {"columnName": "id", "condition": "lt", "value": end}
    return {"type": "and", "filters": [least, below]}
