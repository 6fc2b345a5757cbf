"""Data tables: their store, their columns and rows, row filters, and the values that columns accept.

The service keeps tables in SQLite. Two of its quirks show through the API and are simulated here: a date is stored as
``YYYY-MM-DD HH:MM:SS.mmm`` but compared with ``YYYY-MM-DDTHH:MM:SS.mmmZ`` as text, and a search sees numbers as SQLite
prints them (``2`` is ``2.0``). When a stored date is read back, years below 100 become years around 2000.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from airflow_provider_service.simulator._clock import stamp
from airflow_provider_service.simulator._host import Host
from airflow_provider_service.simulator._validation import ApiError, Param

COLUMN_TYPES = ("string", "number", "boolean", "date")
SYSTEM_COLUMNS = {"id": "number", "createdAt": "date", "updatedAt": "date"}

Row = dict[str, Any]
Predicate = Callable[[Row], bool]
# The query parameter that carries a filter.
FILTER = Param("filter", "json")

# The bodies of updates and upserts take only the conditions of the published contract; queries take all.
BODY_CONDITIONS = ("eq", "neq", "like", "ilike", "gt", "gte", "lt", "lte")
CONDITIONS = (*BODY_CONDITIONS, "isEmpty", "isNotEmpty")

# ---------------------------------------------------------------- the tables

_SORT_KEYS: dict[str, Callable[[Table], Any]] = {
    "name": lambda table: table.name.lower(),
    "createdAt": lambda table: table.created_at,
    "updatedAt": lambda table: table.updated_at,
    "size": lambda table: table.size_bytes,
}
_SORTS = tuple(f"{key}:{direction}" for key in _SORT_KEYS for direction in ("asc", "desc"))


class TableStore:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._tables: dict[str, Table] = {}

    def get(self, table_id: str) -> Table:
        table = self._tables.get(table_id)
        if table is None:
            raise ApiError(404, f"Could not find the data table: '{table_id}'")
        return table

    def find(self, filter_: Any, sort_by: str | None = None) -> Sequence[Table]:
        """The matching tables, sorted; without ``sort_by``, the most recently updated first."""
        wanted = _read_list_filter(filter_)
        if sort_by is not None and sort_by not in _SORTS:
            raise ApiError(400, f"sortBy must be one of: {', '.join(_SORTS)}")
        key, _, direction = (sort_by or "updatedAt:desc").partition(":")
        matching = [table for table in reversed(self._tables.values()) if _matches(table, wanted)]
        return sorted(matching, key=_SORT_KEYS[key], reverse=direction == "desc")

    def create(self, name: str, columns: Sequence[Mapping[str, str]], project_id: str) -> Table:
        name = _check_name(name)
        for column in columns:
            check_column_name(column["name"])
            if column["type"] not in COLUMN_TYPES:
                expected = " | ".join(map(repr, COLUMN_TYPES))
                raise ApiError(400, f"Invalid enum value. Expected {expected}, received '{column['type']}'")
        self._check_free(name, project_id)
        if len({column["name"].lower() for column in columns}) < len(columns):
            raise ApiError(500, "Internal server error")
        table = Table(self._host, name, project_id)
        for column in columns:
            table.add_column(column["name"], column["type"])
        self._tables[table.id] = table
        return table

    def rename(self, table_id: str, name: str) -> Table:
        """Rename a table; its own name counts as taken."""
        table = self.get(table_id)
        name = _check_name(name)
        self._check_free(name, table.project_id)
        table.rename(name)
        return table

    def delete(self, table_id: str) -> None:
        del self._tables[self.get(table_id).id]

    def delete_project(self, project_id: str) -> None:
        self._tables = {table.id: table for table in self._tables.values() if table.project_id != project_id}

    def _check_free(self, name: str, project_id: str) -> None:
        if any(table.name == name and table.project_id == project_id for table in self._tables.values()):
            raise ApiError(409, f"Data table with name '{name}' already exists in this project")


def _check_name(name: str) -> str:
    name = name.strip()
    if not name:
        raise ApiError(400, "String must contain at least 1 character(s)")
    return name


def _read_list_filter(value: Any) -> Mapping[str, list[str]]:
    """The wanted texts by key: ``id`` and ``name`` are a text or a list of them, ``projectId`` a text."""
    refused = ApiError(400, "Invalid filter fields")
    if not isinstance(value, dict):
        raise refused
    wanted: dict[str, list[str]] = {}
    for key, text_or_list in value.items():
        texts = text_or_list if isinstance(text_or_list, list) and key != "projectId" else [text_or_list]
        if key not in ("id", "name", "projectId") or not all(isinstance(text, str) for text in texts):
            raise refused
        wanted[key] = texts
    return wanted


def _matches(table: Table, wanted: Mapping[str, list[str]]) -> bool:
    return (
        table.id in wanted.get("id", [table.id])
        and table.project_id in wanted.get("projectId", [table.project_id])
        # Several names must all occur in one name, which is a quirk of the service.
        and all(text.lower() in table.name.lower() for text in wanted.get("name", ()))
    )


# ---------------------------------------------------------------- one table

_RESERVED = {**dict.fromkeys((name.lower() for name in SYSTEM_COLUMNS), "system"), "dryrunstate": "testing"}


class Table:
    """A data table. Rows are dicts in ascending id order, so that an offset is a list index."""

    def __init__(self, host: Host, name: str, project_id: str) -> None:
        self._host = host
        self.id = host.new_id()
        self.name: str = name
        self.project_id = project_id
        self.created_at: str = host.stamp()
        self.updated_at: str = self.created_at
        self.columns: list[dict[str, Any]] = []
        self.rows: list[Row] = []
        self._size: int | None = None

    @property
    def types(self) -> dict[str, str]:
        return {**{column["name"]: column["type"] for column in self.columns}, **SYSTEM_COLUMNS}

    @property
    def size_bytes(self) -> int:
        if self._size is None:
            self._size = 4096 + sum(len(str(value)) for row in self.rows for value in row.values())
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
        return [{**column, "index": index} for index, column in enumerate(self.columns)]

    def column(self, column_id: str) -> dict[str, Any]:
        for column in self.list_columns():
            if column["id"] == column_id:
                return column
        raise ApiError(404, f"Could not find the column '{column_id}' in the data table: {self.id}")

    def add_column(self, name: str, column_type: str, index: int | None = None) -> dict[str, Any]:
        """Add a column at ``index`` (default and at most: the end); existing rows get null."""
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
        names = (*(column["name"] for column in self.columns), *SYSTEM_COLUMNS)
        return {name: row[name] for name in names}

    def select(self, filter_: Any, *, sort_by: str | None = None, search: str | None = None) -> Sequence[Row]:
        """The matching rows, sorted; the table's own list if there is no filter, search or sort order."""
        rows: Sequence[Row] = self.rows
        predicate = compile_filter(filter_, self.types, None if search is None else self._search(search))
        if predicate is not None:
            rows = [row for row in rows if predicate(row)]
        return rows if sort_by is None else self._sorted(rows, sort_by)

    def _search(self, text: str) -> Predicate:
        matches = pattern(text, ignore_case=True)
        return lambda row: any(
            row[column["name"]] is not None and matches(searchable(column["type"], row[column["name"]]))
            for column in self.columns
        )

    def _sorted(self, rows: Iterable[Row], sort_by: str) -> list[Row]:
        if ":" not in sort_by:
            raise ApiError(400, "Invalid sort format, expected <columnName>:<asc/desc>")
        name, direction = (part.strip().lower() for part in sort_by.split(":")[:2])
        if not name:
            raise ApiError(400, "String must contain at least 1 character(s)")
        if direction not in ("asc", "desc"):
            raise ApiError(400, "Invalid sort direction")
        # SQLite ignores the case of column names; an unknown column is an error of SQLite, not a refusal.
        column = next((column for column in self.types if column.lower() == name), None)
        if column is None:
            raise ApiError(500, "Internal server error")
        column_type = self.types[column]

        def key(row: Row) -> tuple[bool, Any]:
            value = row[column]
            return (False, 0) if value is None else (True, comparable(column_type, value))

        return sorted(rows, key=key, reverse=direction == "desc")

    def insert(self, data: Iterable[Mapping[str, Any]]) -> list[Row]:
        """Insert rows, all or none."""
        rows = list(data)
        for row in rows:
            self._check_columns(row)
        values = [self._coerce(row) for row in rows]
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
        predicate = compile_filter(filter_, self.types)
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
        count = len(self.rows)
        self.rows = []
        if count:
            self._touch()
        return count

    def _dry_run(self, pairs: Iterable[tuple[Row, Row]]) -> list[Row]:
        return [
            {**self.show(row), "dryRunState": state}
            for before, after in pairs
            for state, row in (("before", before), ("after", after))
        ]

    def _values(self, data: Mapping[str, Any]) -> Row:
        if not data:
            raise ApiError(400, "data must not be empty")
        self._check_columns(data)
        return self._coerce(data)

    def _check_columns(self, data: Mapping[str, Any]) -> None:
        names = {column["name"] for column in self.columns}
        for name in data:
            if name not in names:
                raise invalid(f"unknown column name '{name}'")

    def _coerce(self, data: Mapping[str, Any]) -> Row:
        types = self.types
        return {name: coerce(name, types[name], value) for name, value in data.items()}


def check_reserved(name: str, *, status: int) -> None:
    kind = _RESERVED.get(name.lower())
    if kind:
        raise ApiError(status, f'Column name "{name}" is reserved as a {kind} column name.')


def check_column_name(name: str) -> None:
    if len(name) > 63:
        raise ApiError(400, "String must contain at most 63 character(s)")
    if not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_]*", name):
        raise ApiError(
            400,
            "Only alphabetical characters and non-leading numbers and underscores are allowed for column names, "
            "and the maximum length is 63 characters.",
        )
    check_reserved(name, status=400)


# ---------------------------------------------------------------- filters

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


def check_filter(value: Any) -> Mapping[str, Any]:
    refused = ApiError(400, "Invalid filter fields")
    if not isinstance(value, dict) or value.get("type", "and") not in ("and", "or"):
        raise refused
    conditions = value.get("filters", [])
    if not isinstance(conditions, list):
        raise refused
    for condition in conditions:
        if not (
            isinstance(condition, dict)
            and isinstance(condition.get("columnName"), str)
            and condition["columnName"]
            and condition.get("condition", "eq") in CONDITIONS
            and "value" in condition
            and not isinstance(condition["value"], (dict, list))
        ):
            raise refused
    return value


def compile_filter(value: Any, types: Mapping[str, str], search: Predicate | None = None) -> Predicate | None:
    """Build the predicate of a filter and a search; None if it has no condition."""
    described = check_filter(value)
    tests = [_compile(condition, types) for condition in described.get("filters", [])]
    if search is not None:
        # The service writes "a OR b AND search", which binds the search to the last condition.
        last = tests.pop() if tests else lambda _row: True
        tests.append(lambda row: last(row) and search(row))
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    combine = any if described.get("type", "and") == "or" else all
    return lambda row: combine(test(row) for test in tests)


def _compile(condition: Mapping[str, Any], types: Mapping[str, str]) -> Predicate:
    column = condition["columnName"]
    if column not in types:
        raise invalid(f"unknown column name '{column}'")
    column_type = types[column]
    value = coerce(column, column_type, condition["value"])
    name = condition.get("condition", "eq")
    if name in ("eq", "neq"):
        return _equality(column, column_type, value, wanted=name == "eq")
    if name in ("isEmpty", "isNotEmpty"):
        empty = (None, "")
        return lambda row: (row[column] in empty) == (name == "isEmpty")
    if value is None:
        raise invalid(f"{name.upper()} filter value cannot be null or undefined")
    if name in _ORDER:
        compare = _ORDER[name]
        return lambda row: row[column] is not None and compare(comparable(column_type, row[column]), value)
    if not isinstance(value, str) or not isinstance(condition["value"], str):
        raise invalid(f"{name.upper()} filter value must be a string")
    matches = pattern(value, ignore_case=name == "ilike")
    return lambda row: row[column] is not None and matches(comparable(column_type, row[column]))


def _equality(column: str, column_type: str, value: Any, *, wanted: bool) -> Predicate:
    if value is None:
        return lambda row: (row[column] is None) == wanted
    if column_type == "date":
        # The stored text and the compared text are never equal: see the quirks at the top.
        return lambda _row: not wanted
    if column_type == "number":
        # SQLite compares the stored double with the filter's text.
        number = float(value) if abs(value) >= 2**63 else value
        return lambda row: (row[column] is not None and float(row[column]) == number) == wanted
    return lambda row: (row[column] == value) == wanted


def pattern(text: str, *, ignore_case: bool) -> Callable[[str], bool]:
    """A LIKE match: ``%`` is the only wildcard; a text without it may occur anywhere."""
    wildcard = text if "%" in text else f"%{text}%"
    flags = re.DOTALL | (re.IGNORECASE | re.ASCII if ignore_case else 0)
    expression = re.compile(".*".join(re.escape(part) for part in wildcard.split("%")), flags)
    return lambda candidate: expression.fullmatch(candidate) is not None


# ---------------------------------------------------------------- values

_DATE_HINT = (
    ' <br/><br/> Consider using <a href="https://moment.github.io/luxon/api-docs/index.html#datetimefromformat"'
    ' target="_blank"><code>DateTime.fromFormat</code></a> to work with custom date formats.'
)
_ISO = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>\d\d)(?:-(?P<day>\d\d)"
    r"(?:[T ](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?)?"
    r"(?P<offset>Z|[+-]\d\d:?\d\d)?)?)?)?"
)


def invalid(text: str) -> ApiError:
    return ApiError(400, f"Validation error with data table request: {text}")


def coerce(column: str, column_type: str, value: Any) -> Any:
    """Turn ``value`` into what the column stores: str, number, bool, ISO date text, or None."""
    if value is None:
        return None
    try:
        return _COERCE[column_type](value)
    except ValueError as error:
        text = _js_text(value)
        expected, hint = ("dateTime", _DATE_HINT) if column_type == "date" else (column_type, "")
        raise invalid(
            f"value '{text}' does not match column type '{column_type}': "
            f"'{column}' expects a {expected} but we got '{text}'{hint}"
        ) from error


def comparable(column_type: str, stored: Any) -> Any:
    return f"{stored[:10]} {stored[11:23]}" if column_type == "date" else stored


def searchable(column_type: str, stored: Any) -> str:
    if column_type == "number":
        return sqlite_number(stored)
    if column_type == "boolean":
        return "1" if stored else "0"
    return str(comparable(column_type, stored))


def sqlite_number(value: float) -> str:
    """Write a number as SQLite prints a REAL: 15 significant digits, always with a point."""
    text = f"{float(value):.15g}"
    mantissa, exponent, power = text.partition("e")
    return (mantissa if "." in mantissa else f"{mantissa}.0") + exponent + power


def _js_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return str(value)


def _to_string(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**63 else sqlite_number(value)


def _to_number(value: Any) -> int | float:
    number = _parse_number(value) if isinstance(value, str) else float(value)
    # A double, returned with the fewest digits that distinguish it: above 2**53, whole numbers lose digits.
    return int(Decimal(repr(number))) if number.is_integer() and abs(number) < 1e21 else number


def _parse_number(text: str) -> float:
    text = text.strip()
    if not text:
        return 0.0
    if re.fullmatch(r"0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+", text):
        return float(int(text, 0))
    is_number = re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text)
    if not is_number or math.isinf(float(text)):
        raise ValueError(text)
    return float(text)


def _to_boolean(value: Any) -> bool:
    if isinstance(value, str):
        word = value.strip().lower()
        if word in ("true", "false"):
            return word == "true"
        if not word:
            raise ValueError(value)
        value = _parse_number(word)
    if value in (0, 1):
        return bool(value)
    raise ValueError(value)


def _to_date(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    text = value.strip()
    match = _ISO.fullmatch(text)
    if match:
        return stamp(_from_iso(match))
    for form in ("%Y/%m/%d", "%m/%d/%Y", "%b %d, %Y", "%B %d, %Y"):
        with suppress(ValueError):
            return stamp(datetime.strptime(text, form).replace(tzinfo=UTC))
    raise ValueError(text)


def _from_iso(match: re.Match[str]) -> datetime:
    part = match.groupdict()
    year = int(part["year"])
    moment = datetime(
        year if year >= 100 else year + (1900 if year >= 50 else 2000),
        int(part["month"] or 1),
        int(part["day"] or 1),
        int(part["hour"] or 0),
        int(part["minute"] or 0),
        int(part["second"] or 0),
        int((part["fraction"] or "")[:6].ljust(6, "0")),
        tzinfo=UTC,
    )
    offset = part["offset"]
    if not offset or offset == "Z":
        return moment
    minutes = int(offset[1:3]) * 60 + int(offset[-2:])
    return moment - timedelta(minutes=minutes if offset[0] == "+" else -minutes)


_COERCE: dict[str, Callable[[Any], Any]] = {
    "string": _to_string,
    "number": _to_number,
    "boolean": _to_boolean,
    "date": _to_date,
}
