"""Check the given rows one by one, and keep them by key in the form in which the service stores them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.rows.upsert_plan import Key, key_of
from airflow_provider_service._core.rows.values import rounded_columns, typed_row
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from airflow_provider_service._core.rows.options import OnDuplicate
    from airflow_provider_service.client.resources._data_table_rows import Row

log = logging.getLogger(__name__)


@dataclass
class _Rounded:
    """Counts the values that lose precision in the service, and keeps the first."""

    count: int = 0
    first: str = ""

    def note(self, place: str, columns: Sequence[str], given: Mapping[str, Any], typed: Row) -> None:
        if columns and not self.count:
            name = columns[0]
            self.first = f"{place}, column {name!r}: {shown(given[name])} becomes {typed[name]}"
        self.count += len(columns)

    def report(self) -> None:
        if self.count:
            log.warning(
                "The service stores %d values less exactly than they were given, the first in %s. A number keeps 15 to "
                "17 digits and a date keeps milliseconds; a column of type string keeps everything",
                self.count,
                self.first,
            )


@dataclass
class CheckedRows:
    """Rows that fit the table, by key.

    :param types: type by column name.
    :param key_columns: columns that identify a row; empty if rows have no key.
    :param on_duplicate: what to do if rows have the same key: use the ``"last"`` one, or ``"fail"``.
    :param requested: receives the rows by key, with values of the columns' types, in the order in which the keys first
        appeared.
    :param rounded_keys: receives the keys that the service rounds, with the values that were given, as text.
    :param rejected_keys: receives the keys of rows that are left out; None if nobody needs them.
    """

    types: Mapping[str, str]
    key_columns: Sequence[str]
    on_duplicate: OnDuplicate
    requested: MutableMapping[Key, Row]
    rounded_keys: MutableMapping[Key, list[str]]
    rejected_keys: MutableMapping[Key, None] | None = None
    duplicates: int = field(default=0, init=False)
    _rounded: _Rounded = field(default_factory=_Rounded, init=False)

    def add(self, number: int, given: Mapping[str, Any]) -> None:
        """Check a row and keep it.

        :param number: its number, which messages name.
        :raises ServiceInputError: it does not fit the table, lacks a key column, or repeats a key that must be unique.
        """
        place = f"row {number}"
        row = typed_row(given, self.types, place)
        _require_no_nul(row, place)
        columns = rounded_columns(given, row, self.types)
        key = self._checked_key(place, given, row, columns) if self.key_columns else (number,)
        self._rounded.note(place, columns, given, row)
        self.requested[key] = row

    def leave_out(self, number: int, given: Mapping[str, Any], reason: str) -> None:
        """Keep only the key of a row that does not fit, so that no stored row with that key counts as missing.

        :param reason: why it does not fit.
        :raises ServiceInputError: its key cannot be read.
        """
        if self.rejected_keys is None:
            return
        try:
            key = typed_row({name: given[name] for name in self.key_columns}, self.types, f"row {number}")
        except (KeyError, ServiceInputError):
            raise ServiceInputError(
                f"{reason}; this row cannot be left out, because its key cannot be read, so delete_missing=True might "
                "delete the stored row of that key",
                not_done="nothing was written",
            ) from None
        self.rejected_keys[key_of(key, self.key_columns)] = None

    def report(self) -> None:
        """Warn about values that are stored less exactly than they were given, and about rows that were dropped."""
        self._rounded.report()
        if self.duplicates:
            log.warning("%d input rows were dropped because a later row has the same key", self.duplicates)

    def require_keys(self, row: Mapping[str, Any], place: str) -> None:
        """Require all key columns.

        :param place: how the message refers to the row, e.g. ``"row 3"``.
        :raises ServiceInputError: the row lacks one.
        """
        absent = [name for name in self.key_columns if name not in row]
        if absent:
            columns_of_row = ", ".join(map(shown, row)) or "no columns"
            raise ServiceInputError(
                f"{place} lacks the key columns {', '.join(absent)}; it has {columns_of_row}",
                not_done="nothing was written",
            )

    def _checked_key(self, place: str, given: Mapping[str, Any], row: Row, columns: Sequence[str]) -> Key:
        self.require_keys(row, place)
        key = key_of(row, self.key_columns)
        given_key = [str(given[name]) for name in self.key_columns]
        is_rounded = not set(self.key_columns).isdisjoint(columns)
        if key in self.requested:
            existing = self.rounded_keys.get(key)
            differs = (is_rounded or existing is not None) and existing != given_key
            _refuse_duplicate(place, dict(zip(self.key_columns, key, strict=True)), differs, self.on_duplicate)
            self.duplicates += 1
        if is_rounded:
            self.rounded_keys[key] = given_key
        return key


def checked_rows(rows: Iterable[Mapping[str, Any]], types: Mapping[str, str]) -> list[Row]:
    """Check all rows, and convert their values to the types of the columns; no column is a key.

    :param types: type by column name.
    :raises ServiceInputError: a row does not fit the table.
    """
    requested: dict[Key, Row] = {}
    checked = CheckedRows(types, (), "last", requested, {})
    for number, given in enumerate(rows, start=1):
        checked.add(number, given)
    checked.report()
    return list(requested.values())


def checked_values(values: Mapping[str, Any], types: Mapping[str, str]) -> Row:
    """Check new values of stored rows, convert them to the types of the columns, and warn if they lose precision.

    :param types: type by column name.
    :raises ServiceInputError: they do not fit the table.
    """
    typed, rounded = typed_row(values, types, "data"), _Rounded()
    rounded.note("data", rounded_columns(values, typed, types), values, typed)
    rounded.report()
    return typed


def check_key_columns(key_columns: Sequence[str], types: Mapping[str, str]) -> None:
    """Require at least one key column, and that the table has each of them.

    :raises ServiceInputError: there is none, or the table lacks one.
    """
    if not key_columns or any(name not in types for name in key_columns):
        raise ServiceInputError(
            f"key_columns must name columns of the table, which has {', '.join(types)}; got {list(key_columns)}",
            not_done="nothing was written",
        )


def _require_no_nul(row: Row, place: str) -> None:
    """Refuse text that PostgreSQL cannot store. The service would fail after earlier calls have written their rows."""
    name = next((name for name, value in row.items() if isinstance(value, str) and "\0" in value), None)
    if name is not None:
        raise ServiceInputError(
            f"{place}, column {name!r}: {shown(row[name])} holds the character NUL, which PostgreSQL cannot store",
            not_done="nothing was written",
        )


def _refuse_duplicate(place: str, key: Mapping[str, Any], was_given_otherwise: bool, on_duplicate: OnDuplicate) -> None:
    if was_given_otherwise:
        raise ServiceInputError(
            f"{place} has a key that the service cannot distinguish from the key of an earlier row: it stores both as "
            f"{shown(key)}; use a key column of type string",
            not_done="nothing was written",
        )
    if on_duplicate == "fail":
        raise ServiceInputError(f"{place} repeats the key {shown(key)}", not_done="nothing was written")
