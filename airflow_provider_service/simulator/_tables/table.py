"""One data table: its columns and its rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from airflow_provider_service.simulator._host import Host
from airflow_provider_service.simulator._tables.filters import Predicate, Row, compile_filter, pattern
from airflow_provider_service.simulator._tables.types import SYSTEM_COLUMNS, coerce, comparable, invalid, searchable
from airflow_provider_service.simulator._validation import ApiError

_EMPTY_SIZE = 4096
_RESERVED = {**dict.fromkeys((name.lower() for name in SYSTEM_COLUMNS), "system"), "dryrunstate": "testing"}


class Table:
    """A data table. Rows are dicts in ascending id order, so that an offset is a list index."""

    def __init__(self, host: Host, name: str, project_id: str) -> None:
        self._host = host
        self.id = host.new_id()
        self.name = name
        self.project_id = project_id
        self.created_at = self.updated_at = host.stamp()
        self.columns: list[dict[str, Any]] = []
        self.rows: list[Row] = []
        self._size: int | None = None

    @property
    def types(self) -> dict[str, str]:
        """Column name to type, system columns included."""
        return {**{column["name"]: column["type"] for column in self.columns}, **SYSTEM_COLUMNS}

    @property
    def size_bytes(self) -> int:
        """Approximate size; 4096 when empty."""
        if self._size is None:
            self._size = _EMPTY_SIZE + sum(len(str(value)) for row in self.rows for value in row.values())
        return self._size

    def describe(self) -> dict[str, Any]:
        """The table as the service shows it; as in the service, ``columns`` are in no useful order (here by name)."""
        return {
            "updatedAt": self.updated_at,
            "createdAt": self.created_at,
            "id": self.id,
            "name": self.name,
            "projectId": self.project_id,
            "columns": sorted(self.list_columns(), key=lambda column: column["name"]),
            "sizeBytes": self.size_bytes,
        }

    def rename(self, name: str) -> None:
        """Rename the table; the service records the time of this change without milliseconds."""
        self.name = name
        self.updated_at = self._stamp_of_seconds()

    def _stamp_of_seconds(self) -> str:
        return f"{self._host.stamp()[:19]}.000Z"

    def _touch(self) -> None:
        self.updated_at = self._host.stamp()
        self._size = None

    # ------------------------------------------------------------ columns

    def list_columns(self) -> list[dict[str, Any]]:
        """The columns by index."""
        return [{**column, "index": index} for index, column in enumerate(self.columns)]

    def column(self, column_id: str) -> dict[str, Any]:
        """One column with its index.

        :raises ApiError: 404
        """
        for column in self.list_columns():
            if column["id"] == column_id:
                return column
        raise ApiError(404, f"Could not find the column '{column_id}' in the data table: {self.id}")

    def add_column(self, name: str, column_type: str, index: int | None = None) -> dict[str, Any]:
        """Add a column at ``index`` (default and at most: the end); existing rows get null.

        :raises ApiError: 409 reserved or taken name, 500 a name that differs only in case
        """
        self._check_new_name(name)
        now = self._host.stamp()
        column = {
            "updatedAt": now,
            "createdAt": now,
            "id": self._host.new_id(),
            "dataTableId": self.id,
            "name": name,
            "type": column_type,
        }
        self.columns.insert(len(self.columns) if index is None else index, column)
        for row in self.rows:
            row[name] = None
        self._touch()
        return self.column(column["id"])

    def change_column(self, column_id: str, *, name: str | None = None, index: int | None = None) -> dict[str, Any]:
        """Rename and/or move a column.

        :raises ApiError: 404, 409 (its own name counts as taken), 400 index beyond the columns
        """
        position = self.column(column_id)["index"]
        if index is not None and index >= len(self.columns):
            raise invalid("tried to move column to an index larger than column count")
        if name is not None:
            self._check_new_name(name)
            old = self.columns[position]["name"]
            for row in self.rows:
                row[name] = row.pop(old)
            self.columns[position]["name"] = name
        if index is not None:
            self.columns.insert(index, self.columns.pop(position))
        changed = self.columns[position if index is None else index]
        changed["updatedAt"] = self._stamp_of_seconds()
        return self.column(column_id)

    def delete_column(self, column_id: str) -> None:
        """Remove a column and its values.

        :raises ApiError: 404
        """
        column = self.columns.pop(self.column(column_id)["index"])
        for row in self.rows:
            del row[column["name"]]
        self._touch()

    def _check_new_name(self, name: str) -> None:
        check_reserved(name, status=409)
        for column in self.columns:
            if column["name"] == name:
                text = f"Data table column with name '{name}' already exists in data table '{self.name}'"
                raise ApiError(409, text)
            if column["name"].lower() == name.lower():
                raise ApiError(500, "Internal server error")

    # ------------------------------------------------------------ rows

    def show(self, row: Row) -> Row:
        """A row in the service's format: user columns, then system columns."""
        names = (*(column["name"] for column in self.columns), *SYSTEM_COLUMNS)
        return {name: row[name] for name in names}

    def select(self, filter_: Any, *, sort_by: str | None = None, search: str | None = None) -> Sequence[Row]:
        """The matching rows, sorted; the table's own list if there is no filter, search or sort order.

        :raises ApiError: 400 bad filter or sort, 500 sort by an unknown column
        """
        rows: Sequence[Row] = self.rows
        matches = None if search is None else partial(self._found, matches=pattern(search, ignore_case=True))
        predicate = compile_filter(filter_, self.types, matches)
        if predicate is not None:
            rows = [row for row in rows if predicate(row)]
        return rows if sort_by is None else self._sorted(rows, sort_by)

    def _found(self, row: Row, matches: Callable[[str], bool]) -> bool:
        return any(
            row[column["name"]] is not None and matches(searchable(column["type"], row[column["name"]]))
            for column in self.columns
        )

    def _sorted(self, rows: Iterable[Row], sort_by: str) -> list[Row]:
        name, separator, rest = sort_by.partition(":")
        direction = rest.partition(":")[0].strip().lower()
        name = name.strip()
        if not separator:
            raise ApiError(400, "Invalid sort format, expected <columnName>:<asc/desc>")
        if not name:
            raise ApiError(400, "String must contain at least 1 character(s)")
        if direction not in ("asc", "desc"):
            raise ApiError(400, "Invalid sort direction")
        # SQLite ignores the case of column names; an unknown column is an error of SQLite, not a refusal.
        found = next(((known, kind) for known, kind in self.types.items() if known.lower() == name.lower()), None)
        if found is None:
            raise ApiError(500, "Internal server error")
        column, column_type = found

        def key(row: Row) -> tuple[bool, Any]:
            value = row[column]
            return (False, 0) if value is None else (True, comparable(column_type, value))

        return sorted(rows, key=key, reverse=True) if direction == "desc" else sorted(rows, key=key)

    def insert(self, data: Iterable[Mapping[str, Any]]) -> list[Row]:
        """Insert rows, all or none.

        :raises ApiError: 400 unknown column or a value its column does not accept
        """
        given = list(data)
        for row in given:
            self._check_columns(row)
        values = [self._coerce(row) for row in given]
        now = self._host.stamp()
        next_id = self.rows[-1]["id"] + 1 if self.rows else 1
        blank = dict.fromkeys((column["name"] for column in self.columns), None)
        added = [
            {**blank, **row, "id": next_id + offset, "createdAt": now, "updatedAt": now}
            for offset, row in enumerate(values)
        ]
        self.rows.extend(added)
        self._touch()
        return added

    def update(self, filter_: Any, data: Mapping[str, Any], *, dry_run: bool = False) -> list[Row]:
        """Write ``data`` into every matching row and return them (copies before and after if ``dry_run``)."""
        values = self._values(data)
        rows = self.select(filter_)
        change = {**values, "updatedAt": self._host.stamp()}
        if dry_run:
            return self._dry_run((row, {**row, **change}) for row in rows)
        for row in rows:
            row.update(change)
        if rows:
            self._touch()
        return list(rows)

    def upsert(self, filter_: Any, data: Mapping[str, Any], *, dry_run: bool = False) -> list[Row]:
        """Update every matching row, or insert ``data`` (without the filter's values) if none matches."""
        values = self._values(data)
        if self.select(filter_):
            return self.update(filter_, data, dry_run=dry_run)
        if not dry_run:
            return self.insert([data])
        now = self._host.stamp()
        before = dict.fromkeys(("id", "createdAt", "updatedAt", *values), None)
        after = {"id": 0, "createdAt": now, "updatedAt": now, **values}
        return [{**before, "dryRunState": "before"}, {**after, "dryRunState": "after"}]

    def delete(self, filter_: Any, *, dry_run: bool = False) -> list[Row]:
        """Delete every matching row and return them.

        :raises ApiError: 400, also if the filter has no condition
        """
        predicate: Predicate | None = compile_filter(filter_, self.types)
        if predicate is None:
            raise ApiError(400, "At least one filter condition is required for delete operations")
        doomed = [row for row in self.rows if predicate(row)]
        if dry_run:
            return self._dry_run((row, dict.fromkeys(row, None)) for row in doomed)
        if doomed:
            ids = {row["id"] for row in doomed}
            self.rows = [row for row in self.rows if row["id"] not in ids]
            self._touch()
        return doomed

    def clear(self) -> int:
        """Delete every row and return their number."""
        count = len(self.rows)
        self.rows = []
        if count:
            self._touch()
        return count

    def _dry_run(self, pairs: Iterable[tuple[Row, Row]]) -> list[Row]:
        states = ("before", "after")
        return [
            {**self.show(row), "dryRunState": state} for pair in pairs for state, row in zip(states, pair, strict=True)
        ]

    def _values(self, data: Mapping[str, Any]) -> Row:
        if not data:
            raise ApiError(400, "data must not be empty")
        self._check_columns(data)
        return self._coerce(data)

    def _check_columns(self, data: Mapping[str, Any]) -> None:
        known = {column["name"] for column in self.columns}
        for name in data:
            if name not in known:
                raise invalid(f"unknown column name '{name}'")

    def _coerce(self, data: Mapping[str, Any]) -> Row:
        types = self.types
        return {name: coerce(name, types[name], value) for name, value in data.items()}


def check_reserved(name: str, *, status: int) -> None:
    """Refuse the service's own column names, regardless of case.

    :raises ApiError: ``status``
    """
    kind = _RESERVED.get(name.lower())
    if kind:
        raise ApiError(status, f'Column name "{name}" is reserved as a {kind} column name.')


def check_column_name(name: str) -> None:
    """Refuse a column name of a new table that is not well formed.

    :raises ApiError: 400
    """
    if len(name) > 63:
        raise ApiError(400, "String must contain at most 63 character(s)")
    if not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_]*", name):
        raise ApiError(
            400,
            "Only alphabetical characters and non-leading numbers and underscores are allowed for column names, "
            "and the maximum length is 63 characters.",
        )
    check_reserved(name, status=400)
