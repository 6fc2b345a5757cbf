"""Rows of a source: rename their columns to those of the table, and choose types for missing columns."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from airflow_provider_service._airflow.arguments import repeated, require_mapping
from airflow_provider_service._core.rows.options import COLUMN_TYPES
from airflow_provider_service._core.rows.values import check_columns
from airflow_provider_service.client._constraints import SYSTEM_COLUMNS, require_new_name
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import ServiceInputError

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
    """Ignore the names of a source's columns."""


def require_distinct(names: Iterable[str], owner: str, hint: str = "") -> None:
    """Refuse columns with the same name, since only one would be kept.

    :param owner: what has the columns, for the message.
    :param hint: a remedy, for the message.
    :raises ServiceInputError: several columns have the same name.
    """
    doubled = sorted(repeated(names))
    if doubled:
        listed = ", ".join(map(shown, doubled))
        raise ServiceInputError(f"{owner} has several columns named {listed}{hint}", not_done="nothing was written")


class MappedColumns:
    """Renames and leaves out the columns of rows.

    :param mapping: name in the table by name in the source, None for a column that is left out; columns that it does
        not name keep their names. None if the source has no mapping: all columns keep their names.
    :raises ServiceInputError: two columns would get the same name.
    """

    def __init__(self, mapping: Mapping[str, str | None] | None) -> None:
        self._stay = mapping is None
        self._mapping = dict(mapping or {})
        self._unused = set(self._mapping)
        targets = [name for name in self._mapping.values() if name is not None]
        if len(set(targets)) < len(targets):
            raise ServiceInputError(f"column_mapping gives several columns the same name: {shown(self._mapping)}")

    def apply(self, row: SourceRow, place: str) -> SourceRow:
        """Return the row with the column names of the table.

        :param place: how messages refer to the row, e.g. ``"row 3"``.
        :raises ServiceInputError: the row is not a mapping, or a column would get the name of another, or of one that
            only the service writes.
        """
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
                raise ServiceInputError(
                    f"the source has a column {source!r}, and only the service writes {name!r}: rename it, for example "
                    f"with column_mapping={{{source!r}: 'source_{name}'}}, or leave it out with "
                    f"column_mapping={{{source!r}: None}}",
                    not_done="nothing was written",
                )
            if name in mapped:
                raise ServiceInputError(
                    f"{place} has several columns that become {name!r} through column_mapping",
                    not_done="nothing was written",
                )
            mapped[name] = value
        return mapped

    def require_used(self) -> None:
        """Require that the source has every column that the mapping names.

        :raises ServiceInputError: no row had one of them.
        """
        if self._unused:
            names = ", ".join(map(repr, sorted(self._unused)))
            raise ServiceInputError(
                f"column_mapping names {names}, which the source lacks", not_done="nothing was written"
            )


class GrowingTypes(dict[str, str]):
    """The types by name of the columns that a table has, and of those that are to be added.

    :param stored: types of the columns that the table has.
    :param may_grow: whether the table may get more columns.
    :param declared: types of further columns; without one, the first value of the column that is not null decides.
    """

    def __init__(self, stored: Mapping[str, str], *, may_grow: bool, declared: Mapping[str, str] | None = None) -> None:
        super().__init__(stored)
        self._stored, self._may_grow, self._declared = dict(stored), may_grow, dict(declared or {})
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
        """Collect the columns of a row that the table lacks.

        :param place: how messages refer to the row, e.g. ``"row 3"``.
        :raises ServiceInputError: no column can have the name, or no column can hold the value.
        """
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
                self[name] = type_of_value(value, f"{place}, column {name!r}")
                self._undecided.discard(name)

    def undo(self) -> None:
        """Take back what the last row has added or decided, because that row is left out."""
        if self._before is not None:
            self.clear()
            self.update(self._before[0])
            self._undecided, self._before = self._before[1], None

    def require_known(self, row: SourceRow, place: str) -> None:
        """Refuse columns that the table lacks, unless they can be added; none is added yet.

        :param place: how messages refer to the row, whose values are None.
        :raises ServiceInputError: the row has such a column.
        """
        self._absent -= row.keys()
        if self._may_grow:
            self.grow(row, place)
            self.undo()
        else:
            check_columns(row, self, place)

    def require_declared(self) -> None:
        """Require that the table has every column whose type was declared, or the source has named it.

        :raises ServiceInputError: neither has one of them.
        """
        if self._absent:
            names = ", ".join(map(shown, sorted(self._absent)))
            raise ServiceInputError(
                f"column_types names {names}, which neither the table nor the source has",
                not_done="nothing was written",
            )

    @property
    def added(self) -> dict[str, str]:
        """The columns that the table lacks, in the order in which they first appeared; string if all is null."""
        return {name: kind for name, kind in self.items() if name not in self._stored}

    def _add(self, name: str) -> None:
        try:
            require_new_name(name)
        except ServiceInputError as error:
            raise ServiceInputError(f"{error}; give it another name with column_mapping") from error
        alike = [known for known in self if known.lower() == name.lower()]
        if alike:
            raise ServiceInputError(
                f"the columns {alike[0]!r} and {name!r} differ only in case, which the service does not distinguish: "
                "rename one with column_mapping",
                not_done="nothing was written",
            )
        self[name] = self._declared.get(name, "string")
        if name not in self._declared:
            self._undecided.add(name)


def type_of_value(value: Any, place: str) -> str:
    """Choose the type of a new column by its first value.

    :param place: where the value is, for the message.
    :raises ServiceInputError: no type of column holds such values.
    """
    for kinds, column_type in TYPES_OF_VALUES:
        if isinstance(value, kinds):
            return column_type
    raise ServiceInputError(
        f"{place}: no column holds a value of type {type(value).__name__}: convert it to text, or leave the column out "
        "with column_mapping",
        not_done="nothing was written",
    )
