"""Rows of a source: their columns get the names of the table and types, and rows that fit are kept by their key.

Each row is checked by itself, as it is read: nothing here holds more than one, and what is kept is in the form in which
the service stores it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.arguments import repeated, require_mapping
from airflow_provider_service._core.rows.options import COLUMN_TYPES
from airflow_provider_service._core.rows.upsert_plan import Key, key_of
from airflow_provider_service._core.rows.values import check_columns, not_written, rounded_columns, typed_row
from airflow_provider_service.client._constraints import SYSTEM_COLUMNS, require_new_name
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from airflow_provider_service._core.rows.options import OnDuplicate
    from airflow_provider_service.client.resources._data_table_rows import Row

log = logging.getLogger(__name__)

SourceRow = Mapping[str, Any]
#: Receives the names of a source's columns, which are known even without rows.
NoteColumns = Callable[[Iterable[str]], object]
#: Reads the rows of a source, each once.
ReadRows = Callable[[NoteColumns], Generator[Any, None, None]]

#: The type of a new column by the type of its first value that is not null; the first pair that fits counts.
#: A bool is an int in Python, and a datetime is a date.
TYPES_OF_VALUES: tuple[tuple[tuple[type, ...], str], ...] = (
    ((bool,), "boolean"),
    ((int, float, Decimal), "number"),
    ((date,), "date"),
    ((str,), "string"),
)


def ignore_columns(names: Iterable[str]) -> None:
    """Do nothing with the names of a source's columns."""


def require_distinct(names: Iterable[str], owner: str, hint: str = "") -> None:
    """Refuse columns with the same name, since only one would be kept."""
    doubled = sorted(repeated(names))
    if doubled:
        listed = ", ".join(map(shown, doubled))
        raise not_written(f"{owner} has several columns named {listed}{hint}")


class MappedColumns:
    def __init__(self, mapping: Mapping[str, str | None] | None) -> None:
        self._stay = mapping is None
        self._mapping = dict(mapping or {})
        self._unused = set(self._mapping)
        targets = [name for name in self._mapping.values() if name is not None]
        if len(set(targets)) < len(targets):
            raise ServiceInputError(f"column_mapping gives several columns the same name: {shown(self._mapping)}")

    def apply(self, row: SourceRow, place: str) -> SourceRow:
        if self._stay:
            return row
        require_mapping(place, row)
        self._unused -= row.keys()
        mapped: dict[str, Any] = {}
        for source, value in row.items():
            name = self._mapping.get(source, source)
            if name is None:
                continue
            if name in SYSTEM_COLUMNS:
                raise not_written(
                    f"the source has a column {source!r}, and only the service writes {name!r}: rename it, for example "
                    f"with column_mapping={{{source!r}: 'source_{name}'}}, or leave it out with "
                    f"column_mapping={{{source!r}: None}}"
                )
            if name in mapped:
                raise not_written(f"{place} has several columns that become {name!r} through column_mapping")
            mapped[name] = value
        return mapped

    def require_used(self) -> None:
        if self._unused:
            names = ", ".join(map(repr, sorted(self._unused)))
            raise not_written(f"column_mapping names {names}, which the source lacks")


class GrowingTypes(dict[str, str]):
    """The types by name of the columns that a table has, and of those that are to be added."""

    def __init__(self, stored: Mapping[str, str], *, may_grow: bool, declared: Mapping[str, str] | None = None) -> None:
        super().__init__(stored)
        self._may_grow, self._declared = may_grow, dict(declared or {})
        self._undecided: set[str] = set()
        self._absent = self._declared.keys() - stored.keys()
        self._before: tuple[dict[str, str], set[str]] | None = None
        for name, kind in self._declared.items():
            if kind not in COLUMN_TYPES:
                raise ServiceInputError(f"the type of column {name!r} must be one of {', '.join(COLUMN_TYPES)}")
            if stored.get(name, kind) != kind:
                raise ServiceInputError(
                    f"column_types says that {name!r} is {kind}, but in the table it is {stored[name]}; the service "
                    "cannot change the type of a column"
                )

    def grow(self, row: SourceRow, place: str) -> None:
        if not self._may_grow:
            return
        self._before = None
        for name, value in row.items():
            if name in self and (value is None or name not in self._undecided):
                continue
            if self._before is None:
                self._before = dict(self), set(self._undecided)
            if name not in self:
                self._add(name)
            if name in self._undecided and value is not None:
                self[name] = _type_of_value(value, f"{place}, column {name!r}")
                self._undecided.discard(name)

    def undo(self) -> None:
        """Take back what the last row has added or decided, because that row is left out."""
        if self._before is not None:
            self.clear()
            self.update(self._before[0])
            self._undecided, self._before = self._before[1], None

    def require_known(self, row: SourceRow, place: str) -> None:
        """Refuse columns that the table lacks, unless they can be added; none is added yet."""
        self._absent -= row.keys()
        if self._may_grow:
            self.grow(row, place)
            self.undo()
        else:
            check_columns(row, self, place)

    def require_declared(self) -> None:
        if self._absent:
            names = ", ".join(map(shown, sorted(self._absent)))
            raise not_written(f"column_types names {names}, which neither the table nor the source has")

    def _add(self, name: str) -> None:
        try:
            require_new_name(name)
        except ServiceInputError as error:
            raise ServiceInputError(f"{error}; give it another name with column_mapping") from error
        alike = [other for other in self if other.lower() == name.lower()]
        if alike:
            raise not_written(
                f"the columns {alike[0]!r} and {name!r} differ only in case, which the service does not distinguish: "
                "rename one with column_mapping"
            )
        self[name] = self._declared.get(name, "string")
        if name not in self._declared:
            self._undecided.add(name)


def _type_of_value(value: Any, place: str) -> str:
    for kinds, column_type in TYPES_OF_VALUES:
        if isinstance(value, kinds):
            return column_type
    raise not_written(
        f"{place}: no column holds a value of type {type(value).__name__}: convert it to text, or leave the column out "
        "with column_mapping"
    )


@dataclass
class CheckedRows:
    """Rows that fit the table, by key."""

    types: Mapping[str, str]
    key_columns: Sequence[str]
    on_duplicate: OnDuplicate
    requested: MutableMapping[Key, Row]
    #: The keys that the service stores less exactly than they were given, as they were given.
    rounded_keys: MutableMapping[Key, list[str]]
    #: The keys of rows that do not fit; None if they are not needed.
    rejected_keys: MutableMapping[Key, None] | None = None
    duplicates: int = field(default=0, init=False)
    _rounded: int = field(default=0, init=False)
    _first_rounding: str = field(default="", init=False)

    def add(self, number: int, given: Mapping[str, Any]) -> None:
        place = f"row {number}"
        row = typed_row(given, self.types, place)
        for name, value in row.items():
            if isinstance(value, str) and "\0" in value:
                # The service would fail after earlier calls have written their rows.
                raise not_written(
                    f"{place}, column {name!r}: {shown(value)} holds the character NUL, which PostgreSQL cannot store"
                )
        rounded = rounded_columns(given, row, self.types)
        key = self._checked_key(place, given, row, rounded) if self.key_columns else (number,)
        if rounded and not self._rounded:
            self._first_rounding = _rounding(place, rounded[0], given, row)
        self._rounded += len(rounded)
        self.requested[key] = row

    def leave_out(self, number: int, given: Mapping[str, Any], reason: str) -> None:
        """Keep only the key of a row that does not fit, so that no stored row with that key counts as missing."""
        if self.rejected_keys is None:
            return
        try:
            key = typed_row({name: given[name] for name in self.key_columns}, self.types, f"row {number}")
        except (KeyError, ServiceInputError):
            raise not_written(
                f"{reason}; this row cannot be left out, because its key cannot be read, so delete_missing=True might "
                "delete the stored row of that key"
            ) from None
        self.rejected_keys[key_of(key, self.key_columns)] = None

    def report(self) -> None:
        if self._rounded:
            _warn_of_rounding(self._rounded, self._first_rounding)
        if self.duplicates:
            log.warning("%d input rows were dropped because a later row has the same key", self.duplicates)

    def require_keys(self, row: Mapping[str, Any], place: str) -> None:
        absent = [name for name in self.key_columns if name not in row]
        if absent:
            columns_of_row = ", ".join(map(shown, row)) or "no columns"
            raise not_written(f"{place} lacks the key columns {', '.join(absent)}; it has {columns_of_row}")

    def _checked_key(self, place: str, given: Mapping[str, Any], row: Row, rounded: Sequence[str]) -> Key:
        self.require_keys(row, place)
        key = key_of(row, self.key_columns)
        given_key = [str(given[name]) for name in self.key_columns]
        is_rounded = not set(self.key_columns).isdisjoint(rounded)
        if key in self.requested:
            named_key = shown(dict(zip(self.key_columns, key, strict=True)))
            earlier_key = self.rounded_keys.get(key)
            if (is_rounded or earlier_key is not None) and earlier_key != given_key:
                raise not_written(
                    f"{place} has a key that the service cannot distinguish from the key of an earlier row: it stores "
                    f"both as {named_key}; use a key column of type string"
                )
            if self.on_duplicate == "fail":
                raise not_written(f"{place} repeats the key {named_key}")
            self.duplicates += 1
        if is_rounded:
            self.rounded_keys[key] = given_key
        return key


def checked_rows(rows: Iterable[Mapping[str, Any]], types: Mapping[str, str]) -> list[Row]:
    """Check all rows, and convert their values to the types of the columns; no column is a key."""
    requested: dict[Key, Row] = {}
    checked = CheckedRows(types, (), "last", requested, {})
    for number, given in enumerate(rows, start=1):
        checked.add(number, given)
    checked.report()
    return list(requested.values())


def checked_values(values: Mapping[str, Any], types: Mapping[str, str]) -> Row:
    typed = typed_row(values, types, "data")
    rounded = rounded_columns(values, typed, types)
    if rounded:
        _warn_of_rounding(len(rounded), _rounding("data", rounded[0], values, typed))
    return typed


def check_key_columns(key_columns: Sequence[str], types: Mapping[str, str]) -> None:
    if not key_columns or any(name not in types for name in key_columns):
        raise not_written(
            f"key_columns must name columns of the table, which has {', '.join(types)}; got {list(key_columns)}"
        )


def _rounding(place: str, name: str, given: Mapping[str, Any], typed: Row) -> str:
    return f"{place}, column {name!r}: {shown(given[name])} becomes {typed[name]}"


def _warn_of_rounding(count: int, first: str) -> None:
    log.warning(
        "The service stores %d values less exactly than they were given, the first in %s. A number keeps 15 to 17 "
        "digits and a date keeps milliseconds; a column of type string keeps everything",
        count,
        first,
    )
