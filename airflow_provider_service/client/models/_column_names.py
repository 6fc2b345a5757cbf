"""Names of a data table's columns: those that the service reserves, and the allowed form of all others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from airflow_provider_service.client._texts import shown
from airflow_provider_service.client.errors import ServiceInputError

#: Columns that every row has and that cannot be written.
SYSTEM_COLUMNS = ("id", "createdAt", "updatedAt")

MAX_NAME_CHARS = 63
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*")
_RESERVED = frozenset(name.lower() for name in (*SYSTEM_COLUMNS, "dryRunState"))


def require_new_name(name: object) -> None:
    """Refuse a name that a user's column cannot have.

    :raises ServiceInputError: the name is reserved, in upper or lower case, or is not well formed.
    """
    if isinstance(name, str) and name.lower() in _RESERVED:
        raise ServiceInputError(
            f"{name!r} cannot be the name of a column: the service reserves {', '.join(SYSTEM_COLUMNS)} and "
            f"dryRunState, in any case, and adds the first three to every table itself; nothing was sent"
        )
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > MAX_NAME_CHARS:
        raise ServiceInputError(
            f"{shown(name)} cannot be the name of a column: a letter must come first, then letters, digits and "
            f"underscores, {MAX_NAME_CHARS} characters at most; nothing was sent"
        )


def require_row(row: object, place: str) -> None:
    """Refuse a row that cannot be inserted into any table.

    :param place: how messages refer to the row, e.g. ``"row 3"``.
    :raises ServiceInputError: it is not a mapping, or has a value for a system column.
    """
    if not isinstance(row, Mapping):
        raise ServiceInputError(
            f"{place} is {type(row).__name__}, not a mapping of columns to values",
            not_done="nothing was written",
        )
    require_writable(row, place)


def require_writable(names: Iterable[str], place: str) -> None:
    """Refuse values for the columns that only the service writes.

    :param names: columns that are given values.
    :param place: where they are, for the message, e.g. ``"row 3"``.
    :raises ServiceInputError: one of the names is a system column.
    """
    written = [name for name in SYSTEM_COLUMNS if name in names]
    if written:
        raise ServiceInputError(
            f"{place} has a value for {' and '.join(map(repr, written))}, which only the service writes: leave it "
            f"out, or give the column another name",
            not_done="nothing was written",
        )


def require_sortable(sort_by: str, columns: Iterable[str]) -> None:
    """Refuse a sort order that the service would answer with an internal error.

    :param sort_by: ``column:asc`` or ``column:desc``.
    :param columns: the table's own columns.
    :raises ServiceInputError: the text is not well formed, or names a column that the table lacks.
    """
    name, _, direction = sort_by.partition(":")
    if direction.strip().lower() not in ("asc", "desc"):
        raise ServiceInputError(
            f"sort_by must be a column, then ':asc' or ':desc', such as 'id:desc', not {shown(sort_by)}; "
            "nothing was sent"
        )
    known = [*columns, *SYSTEM_COLUMNS]
    if name.strip() not in known:
        raise ServiceInputError(
            f"sort_by names the column {shown(name)}, which the table lacks; it has {', '.join(known)}; "
            "nothing was sent"
        )
