"""What the service allows: ids, columns, statuses and modes. Operators import it without the models of answers.

Users of the service can choose ids as freely as names. A model keeps whatever id the service sent, so that one odd
object does not make a list unusable. Only ids that pass these checks become part of the path of a file, a member of an
archive, an address or a definition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import ServiceInputError

#: How many characters an id, or a name in its place, may have.
MAX_ID_CHARS = 300
#: Why an id is refused.
NOT_PLAIN = (
    "cannot be used as an id: the service's ids consist of letters, digits, '-', '_' and '.'; others could lead out of "
    "a folder or to another address"
)

# Compiled when they are first used, since every DAG file imports this module.
# Ids that the service generates (16 letters and digits, UUIDs, numbers), and plain ones that people choose.
_PLAIN = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}"
# What the service also accepts in place of an id: names of roles and packages, and e-mail addresses.
_NAME = r"(@[A-Za-z0-9~_-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~_-][A-Za-z0-9._~:-]*"
_SIDE_OF_EMAIL = r"[^\s./\\%?#;@\x00-\x1f\x7f][^\s/\\%?#;@\x00-\x1f\x7f]*"
_EMAIL = f"{_SIDE_OF_EMAIL}@{_SIDE_OF_EMAIL}"


def is_plain_id(value: object) -> bool:
    """Whether an id has 1 to 100 letters, digits, ``-``, ``_`` and ``.``, and does not begin with ``.``."""
    return isinstance(value, str) and re.fullmatch(_PLAIN, value) is not None


def plain_id(value: str) -> str:
    if not is_plain_id(value):
        raise ServiceInputError(f"{shown(value)} {NOT_PLAIN}")
    return value


def is_addressable(value: str) -> bool:
    """Whether a text can be a segment of an address: a plain id, name of a role or package, or e-mail address."""
    is_well_formed = is_plain_id(value) or re.fullmatch(_NAME, value) or re.fullmatch(_EMAIL, value)
    return bool(is_well_formed) and len(value) <= MAX_ID_CHARS


#: Columns that every row has and that cannot be written.
SYSTEM_COLUMNS = ("id", "createdAt", "updatedAt")

MAX_NAME_CHARS = 63
_COLUMN_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*")
_RESERVED = frozenset(name.lower() for name in (*SYSTEM_COLUMNS, "dryRunState"))


def require_new_name(name: object) -> None:
    if isinstance(name, str) and name.lower() in _RESERVED:
        raise ServiceInputError(
            f"{name!r} cannot be the name of a column: the service reserves {', '.join(SYSTEM_COLUMNS)} and "
            f"dryRunState, in any case, and adds the first three to every table itself; nothing was sent"
        )
    if not isinstance(name, str) or not _COLUMN_NAME.fullmatch(name) or len(name) > MAX_NAME_CHARS:
        raise ServiceInputError(
            f"{shown(name)} cannot be the name of a column: a letter must come first, then letters, digits and "
            f"underscores, {MAX_NAME_CHARS} characters at most; nothing was sent"
        )


def require_row(row: object, place: str) -> None:
    if not isinstance(row, Mapping):
        raise ServiceInputError(
            f"{place} is {type(row).__name__}, not a mapping of columns to values", not_done="nothing was written"
        )
    require_writable(row, place)


def require_writable(names: Iterable[str], place: str) -> None:
    written = [name for name in SYSTEM_COLUMNS if name in names]
    if written:
        raise ServiceInputError(
            f"{place} has a value for {' and '.join(map(repr, written))}, which only the service writes: leave it "
            f"out, or give the column another name",
            not_done="nothing was written",
        )


def require_sortable(sort_by: str, columns: Iterable[str]) -> None:
    """Refuse a sort order that the service would answer with an internal error."""
    name, _, direction = sort_by.partition(":")
    if direction.strip().lower() not in ("asc", "desc"):
        raise ServiceInputError(
            f"sort_by must be a column, then ':asc' or ':desc', such as 'id:desc', not {shown(sort_by)}; "
            "nothing was sent"
        )
    sortable = [*columns, *SYSTEM_COLUMNS]
    if name.strip() not in sortable:
        raise ServiceInputError(
            f"sort_by names the column {shown(name)}, which the table lacks; it has {', '.join(sortable)}; "
            "nothing was sent"
        )


ExecutionStatus = Literal["canceled", "crashed", "error", "new", "running", "success", "unknown", "waiting"]

FAILED_STATUSES: tuple[ExecutionStatus, ...] = ("error", "canceled", "crashed")
ENDED_STATUSES: tuple[ExecutionStatus, ...] = ("success", *FAILED_STATUSES)
# In the order in which executions progress: one that progresses while the lists are read appears in a later list.
ACTIVE_STATUSES: tuple[ExecutionStatus, ...] = ("waiting", "new", "running")


#: ``production`` runs the published version, ``manual`` the draft.
Mode = Literal["production", "manual"]
MODES = get_args(Mode)
