"""Load a source of rows into a table: create what is missing, and leave out rows that do not fit.

The source is read once, and kept on disk while it is checked: nothing is written before every row has been checked, and
memory does not depend on their number. A load that inserts and deletes inserts first, so that no row is ever missing.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from typing import IO, TYPE_CHECKING, Any, cast

from airflow_provider_service._airflow import metrics
from airflow_provider_service._core.arguments import require, require_mapping, text_or_texts
from airflow_provider_service._core.object_storage import require_place, whole_file
from airflow_provider_service._core.references import PROJECT, data_table_in
from airflow_provider_service._core.rows.batches import Progress, insert_in_batches
from airflow_provider_service._core.rows.options import chosen_mode, require_rejects, require_rows
from airflow_provider_service._core.rows.source_rows import (
    CheckedRows,
    GrowingTypes,
    MappedColumns,
    ReadRows,
    check_key_columns,
)
from airflow_provider_service._core.rows.spool import Spool
from airflow_provider_service._core.rows.upsert import LoadResult, edge_id, require_deletable, upsert_rows
from airflow_provider_service._core.rows.values import column_types
from airflow_provider_service.client._lookup import find_data_table
from airflow_provider_service.client.errors import (
    ServiceApiError,
    ServiceError,
    ServiceForbiddenError,
    ServiceInputError,
)

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
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import Condition, DataTable, RowFilter
    from airflow_provider_service.client.resources._data_table_rows import Row

log = logging.getLogger(__name__)

#: Range of ids that one call deletes when a table is replaced, so that the call ends before its timeout.
DELETED_IDS = 100_000

#: Opens the file for the rows that are left out.
OpenRejects = Callable[[], Any]


def opening_rejects(on_error: OnError, path: StoredPath | None, conn_id: str | None) -> OpenRejects | None:
    """Return what opens the file for the rows that are left out, or None if every row must fit."""
    require_rejects(on_error, path)
    if path is None:
        return None
    require_place("reject_path", path, conn_id=conn_id)
    return partial(whole_file, "reject_path", path, conn_id=conn_id)


@dataclass(frozen=True)
class LoadOptions:
    """Options of a load. The transfers document each as an argument of the same name."""

    mode: LoadMode | None = None
    key_columns: Sequence[str] = ()
    delete_missing: bool = False
    allow_empty: bool = False
    column_mapping: Mapping[str, str | None] | None = None
    column_types: Mapping[str, str] | None = None
    add_columns: bool = False
    on_duplicate: OnDuplicate = "last"
    on_stored_duplicates: OnStoredDuplicates = "remove_copies"
    change_strategy: ChangeStrategy = "auto"

    @classmethod
    def of(cls, arguments: Any) -> LoadOptions:
        options = {option.name: getattr(arguments, option.name) for option in fields(cls)}
        for name in ("column_mapping", "column_types"):
            if options[name] is not None:
                require_mapping(name, options[name])
        keys = text_or_texts("key_columns", arguments.key_columns)
        return cls(**{**options, "key_columns": keys, "column_mapping": arguments.column_mapping or {}})


@dataclass(frozen=True)
class Loaded:
    """Numbers of rows that were read and left out, the columns that were added, and the changes of the table."""

    table: DataTable
    rows: int
    rejected: int
    added_columns: list[str]
    changes: LoadResult

    def to_xcom(self) -> LoadedRows:
        rows = {"data_table_id": self.table.id, "rows": self.rows, "rejected": self.rejected}
        return cast("LoadedRows", {**rows, **asdict(self.changes), "added_columns": self.added_columns})

    def __str__(self) -> str:
        changes = asdict(self.changes).items()
        counts = ", ".join(f"{'an unknown number' if count is None else count} {what}" for what, count in changes)
        return f"{self.rows} rows for {self.table.name}: {counts}, {self.rejected} left out"


@dataclass
class TableTarget:
    """A table to load into, which may not exist yet."""

    client: Resources
    table: DataTable | None
    name: str | None = None
    project_id: str | None = None
    _rejected: int = field(default=0, init=False)

    @classmethod
    def named_by(cls, arguments: Any, client: Resources, *, create_table: bool) -> TableTarget:
        if not create_table:
            return cls(client, data_table_in(arguments, client))
        require(
            arguments.data_table_name is not None,
            "create_table needs data_table_name: the service chooses the id of a new table",
        )
        name = str(arguments.data_table_name).strip()  # as the service does
        project_id = PROJECT.id_in(arguments, client)
        return cls(client, find_data_table(client, name, project_id=project_id), name=name, project_id=project_id)

    def load(self, read: ReadRows, options: LoadOptions, open_rejects: OpenRejects | None = None) -> Loaded:
        """Check all rows, and then write them."""
        mode = chosen_mode(options.mode, options.key_columns, options.delete_missing)
        stored = {} if self.table is None else column_types(self.table)
        may_grow = options.add_columns or self.table is None
        types = GrowingTypes(stored, may_grow=may_grow, declared=options.column_types)
        if options.key_columns and not may_grow:
            check_key_columns(options.key_columns, types)
        with Spool() as spool:
            checked = CheckedRows(
                types,
                options.key_columns,
                options.on_duplicate,
                spool.requested,
                spool.rounded_keys,
                spool.rejected_keys if options.delete_missing and self.table is not None else None,
            )
            count = self._spool(read, MappedColumns(options.column_mapping), types, checked, open_rejects)
            if options.key_columns and count > self._rejected:
                check_key_columns(options.key_columns, types)
            if self.table is not None:
                require_rows(len(spool.requested), mode, options.delete_missing, allow_empty=options.allow_empty)
            # In the order in which they first appeared; a column of nulls has the type string.
            added = {name: kind for name, kind in types.items() if name not in stored}
            table = self._with_columns(added)
            if mode == "append":
                changes = append_rows(self.client, table.id, spool)
            elif mode == "replace":
                changes = replace_rows(self.client, table.id, spool)
            else:
                changes = upsert_rows(
                    self.client,
                    table.id,
                    spool,
                    types,
                    options.key_columns,
                    on_stored_duplicates=options.on_stored_duplicates,
                    change_strategy=options.change_strategy,
                    delete_missing=options.delete_missing,
                )
        return Loaded(table, count, self._rejected, list(added), changes)

    def _spool(
        self,
        read: ReadRows,
        mapping: MappedColumns,
        types: GrowingTypes,
        checked: CheckedRows,
        open_rejects: OpenRejects | None,
    ) -> int:
        progress = Progress("Read and checked")
        columns: set[str] = set()

        def note(names: Iterable[str]) -> None:
            # Otherwise each row would be left out for the fault of a column.
            named = dict.fromkeys(names)
            columns.update(named)
            row = mapping.apply(named, "the source")
            types.require_known(row, "the source")
            if named:  # a DataFrame without columns has no rows
                checked.require_keys(row, "the source")

        with ExitStack() as stack:
            rows = stack.enter_context(closing(read(note)))
            rejects: IO[bytes] | None = None if open_rejects is None else stack.enter_context(open_rejects())
            for number, given in enumerate(progress.counting(rows), start=1):
                row = mapping.apply(given, f"row {number}")
                try:
                    types.grow(row, f"row {number}")
                    checked.add(number, row)
                except ServiceInputError as error:
                    if rejects is None:
                        raise
                    types.undo()
                    checked.leave_out(number, row, error.reason)
                    self._reject(rejects, number, given, error)
            if columns or progress.count:
                mapping.require_used()
            if columns:
                types.require_declared()
        progress.report()
        checked.report()
        if self._rejected:
            log.warning("%d of %d rows do not fit the table and were left out", self._rejected, progress.count)
        return progress.count

    def _reject(self, file: IO[bytes], number: int, given: Mapping[str, Any], error: ServiceInputError) -> None:
        if not self._rejected:
            log.warning("Row %d is left out: %s", number, error)
        self._rejected += 1
        values = {name: value if _is_json(value) else str(value) for name, value in given.items()}
        line = json.dumps({"row": number, "reason": error.reason, "values": values}, default=str)
        file.write(line.encode() + b"\n")

    def _with_columns(self, added: Mapping[str, str]) -> DataTable:
        """Add the columns to the table, which is created if it does not exist."""
        if self.table is None:
            if not added:
                rows = "rows that fit" if self._rejected else "rows"
                raise ServiceInputError(f"the source has no {rows}, so the columns of the new table are unknown")
            columns = [{"name": name, "type": kind} for name, kind in added.items()]
            table = self.client.data_tables.create(str(self.name), columns, project_id=self.project_id)
            log.info("Created the data table %s with the columns %s", table.name, added)
            return table
        for name, kind in added.items():
            self.client.data_table_columns.create(self.table.id, name, kind)  # type: ignore[arg-type]
            log.info("Added the column %s of type %s to %s", name, kind, self.table.name)
        return self.table


def _is_json(value: object) -> bool:
    """Whether JSON can hold a value and all that is in it, without the NaN that only Python reads."""
    try:
        json.dumps(value, allow_nan=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def append_rows(client: Resources, table_id: str, spool: Spool) -> LoadResult:
    """Insert the rows. NOT safe to repeat: a repeat inserts them again."""
    return LoadResult(inserted=_insert(client, table_id, spool))


def replace_rows(client: Resources, table_id: str, spool: Spool) -> LoadResult:
    """Insert the rows and then delete all others. Safe to repeat.

    In the meantime, a reader sees all old rows and more and more new ones, then fewer and fewer old ones; no row is
    ever missing. If the replacement is interrupted, the next one deletes the remaining old rows.
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
    for start, end in (*old, *ids.gaps):
        for first in range(start, end, DELETED_IDS):
            client.data_table_rows.delete(table_id, _between(first, min(first + DELETED_IDS, end)))
    if inserted:
        _require_own_rows(client, table_id, ids)
    known_counts = [count for count in counts if count is not None]
    if len(known_counts) < len(counts):
        return LoadResult(inserted=inserted, deleted=None)
    metrics.count(metrics.ROWS_DELETED, sum(known_counts))
    log.info("Rows deleted: %d", sum(known_counts))
    return LoadResult(inserted=inserted, deleted=sum(known_counts))


def _require_own_rows(client: Resources, table_id: str, ids: _Ids) -> None:
    """Fail if another replace has deleted new rows, of which it deletes the first one first.

    A workflow may delete rows as it processes them. Only another load leaves rows between the new ones or after them.
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


def _between(start: int, end: int | None) -> RowFilter:
    least: Condition = {"columnName": "id", "condition": "gte", "value": start}
    if end is None:
        return {"type": "and", "filters": [least]}
    below: Condition = {"columnName": "id", "condition": "lt", "value": end}
    return {"type": "and", "filters": [least, below]}
