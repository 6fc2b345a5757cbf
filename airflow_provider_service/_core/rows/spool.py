"""Keep rows in a temporary SQLite file, so that any number of them is checked and compared in bounded memory."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, MutableMapping
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.arguments import BATCH_BYTES, BATCH_ROWS
from airflow_provider_service.client.errors import ServiceError

if TYPE_CHECKING:
    from types import TracebackType

    from airflow_provider_service._core.rows.upsert_plan import Key
    from airflow_provider_service.client.resources._data_table_rows import Row

# What SQLite reports if the temporary file cannot be written.
_NO_SPACE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)

#: Memory of SQLite's cache, in KiB.
CACHE_KIB = 8 * 1024


class Spool:
    """A temporary file without a name for the rows of one load: it is gone with the process, however that ends."""

    def __init__(self, *, chunk_rows: int = BATCH_ROWS) -> None:
        self.chunk_rows = chunk_rows
        # For an empty name, SQLite makes a file that only this user can read, and unlinks it as soon as it is open. Its
        # folder is that of SQLITE_TMPDIR or TMPDIR, or else /var/tmp or /tmp.
        self._db = sqlite3.connect("", isolation_level=None)
        # Nothing needs to survive this process.
        for setting in ("temp_store=FILE", "journal_mode=OFF", "synchronous=OFF", f"cache_size=-{CACHE_KIB}"):
            self._db.execute(f"PRAGMA {setting}")
        self._db.execute("CREATE TABLE stored (id INTEGER PRIMARY KEY, key TEXT, row TEXT)")
        self._db.execute("CREATE TABLE others (id INTEGER PRIMARY KEY)")
        self.requested: SpooledMapping = SpooledMapping(self._db, "requested", chunk_rows)
        self.rounded_keys: SpooledMapping = SpooledMapping(self._db, "rounded", chunk_rows)
        self.rejected_keys: SpooledMapping = SpooledMapping(self._db, "rejected", chunk_rows)
        self._db.execute("BEGIN")  # one transaction, which is never committed

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()
        # The rows may come from a database of SQLite, too, whose other errors are its own.
        if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF in _NO_SPACE:
            raise ServiceError(
                f"rows could not be kept in a temporary file: {error}. It needs space for all rows of the source and "
                "those that they are compared with; SQLITE_TMPDIR or TMPDIR chooses its folder"
            ) from error

    def store(self, row: Row, key: Key, *, with_others: bool) -> None:
        """Keep a row of the table if its key is requested. It replaces a row with the same id."""
        if key in self.requested:
            values = (row["id"], key_text(key), json.dumps(row))
            self._db.execute("INSERT OR REPLACE INTO stored VALUES (?, ?, ?)", values)
        elif with_others and key not in self.rejected_keys:
            self._db.execute("INSERT OR IGNORE INTO others VALUES (?)", (row["id"],))

    def compared(self) -> Iterator[tuple[dict[Key, Row], list[Row]]]:
        """Yield chunks of the requested rows by key, each with the stored rows of the same keys, ordered by id."""
        self._db.execute("CREATE INDEX IF NOT EXISTS stored_key ON stored (key)")
        query = (
            "SELECT stored.row FROM requested JOIN stored ON stored.key = requested.key "
            "WHERE requested.n > ? AND requested.n <= ? ORDER BY stored.id"
        )
        first = 0
        for last, chunk in self.requested.chunks():
            with closing(self._db.execute(query, (first, last))) as rows:
                yield chunk, [json.loads(row) for (row,) in rows]
            first = last

    def other_ids(self) -> Iterator[list[int]]:
        with closing(self._db.execute("SELECT id FROM others ORDER BY id")) as rows:
            ids = (row_id for (row_id,) in rows)
            while chunk := list(islice(ids, self.chunk_rows)):
                yield chunk

    def forget_from(self, first_id: int | None) -> None:
        """Forget the stored rows with an id or a higher one, because new rows have these ids now; None for none."""
        self._db.execute("DELETE FROM stored WHERE id >= ?", (first_id,))
        self._db.execute("DELETE FROM others WHERE id >= ?", (first_id,))

    def counts(self) -> tuple[int, int]:
        """Numbers of stored rows whose key is requested, and of those whose key the source lacks."""
        [(stored, others)] = self._db.execute("SELECT (SELECT count(*) FROM stored), (SELECT count(*) FROM others)")
        return int(stored), int(others)


class SpooledMapping(MutableMapping[Any, Any]):
    """A mapping of keys to JSON values in a database table; a key keeps its place when its value is replaced."""

    def __init__(self, db: sqlite3.Connection, name: str, chunk_rows: int) -> None:
        db.execute(f"CREATE TABLE {name} (n INTEGER PRIMARY KEY, key TEXT UNIQUE, value TEXT)")
        self._db = db
        self._get = f"SELECT value FROM {name} WHERE key = ?"  # noqa: S608 - the names are constants
        self._set = (
            f"INSERT INTO {name} (key, value) VALUES (?, ?) "  # noqa: S608
            "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        )
        self._delete = f"DELETE FROM {name} WHERE key = ?"  # noqa: S608
        self._count = f"SELECT count(*) FROM {name}"  # noqa: S608
        self._chunk = f"SELECT n, key, value FROM {name} WHERE n > ? ORDER BY n LIMIT {chunk_rows}"  # noqa: S608

    def __getitem__(self, key: Key) -> Any:
        for (value,) in self._db.execute(self._get, (key_text(key),)):
            return json.loads(value)
        raise KeyError(key)

    def __setitem__(self, key: Key, value: Any) -> None:
        self._db.execute(self._set, (key_text(key), json.dumps(value)))

    def __delitem__(self, key: Key) -> None:
        if not self._db.execute(self._delete, (key_text(key),)).rowcount:
            raise KeyError(key)

    def __iter__(self) -> Iterator[Key]:
        for _, chunk in self.chunks():
            yield from chunk

    def __len__(self) -> int:
        [(count,)] = self._db.execute(self._count)
        return int(count)

    def values(self) -> Iterable[Any]:  # type: ignore[override]
        """Yield the values in order, with one chunk in memory at a time."""
        for _, chunk in self.chunks():
            yield from chunk.values()

    def chunks(self) -> Iterator[tuple[int, dict[Key, Any]]]:
        """Yield the mapping in chunks and in order, each after the number of its last entry."""
        last = 0
        while True:
            entries: dict[Key, Any] = {}
            size = 0
            with closing(self._db.execute(self._chunk, (last,))) as rows:
                for number, key, value in rows:
                    last = number
                    entries[tuple(json.loads(key))] = json.loads(value)
                    size += len(value)
                    if size >= BATCH_BYTES:
                        break
            if not entries:
                return
            yield last, entries


def key_text(key: Key) -> str:
    """A key as text; keys that are equal in Python, such as 5 and 5.0, have the same text."""
    return json.dumps([int(value) if isinstance(value, float) and value.is_integer() else value for value in key])
