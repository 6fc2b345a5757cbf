"""The options of reads, upserts and loads of rows, and which of them cannot be combined.

This module loads nothing heavy, because an operator checks its options while Airflow parses the DAG file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypedDict, get_args

from airflow_provider_service._core.arguments import (
    one_of,
    optional,
    require,
    require_flag,
    require_mapping,
    require_source,
)
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from airflow_provider_service._core.arguments import Check

#: What to do if several input rows have the same key.
OnDuplicate = Literal["last", "fail"]
#: What to do if several stored rows have the same key.
OnStoredDuplicates = Literal["remove_copies", "keep_newest", "update_all", "fail"]
#: How rows are changed.
ChangeStrategy = Literal["update", "replace", "auto"]
#: How a transfer writes rows into a table.
LoadMode = Literal["append", "upsert", "replace"]
#: What a transfer does with a row that the table cannot store.
OnError = Literal["fail", "skip"]

#: The types that a column of a data table can have.
COLUMN_TYPES = ("string", "number", "boolean", "date")

_REJECT_ENDINGS = (".jsonl", ".jsonl.gz")
# With the other two, a task that died between inserting and deleting would leave duplicate rows for good.
_REPAIRING = ("remove_copies", "keep_newest")

#: The check of each option of a load that is not a template field, by its argument's name.
LOAD_CHECKS: Mapping[str, Check] = {
    "mode": optional(one_of(*get_args(LoadMode))),
    "delete_missing": require_flag,
    "allow_empty": require_flag,
    "create_table": require_flag,
    "add_columns": require_flag,
    "on_duplicate": one_of(*get_args(OnDuplicate)),
    "on_stored_duplicates": one_of(*get_args(OnStoredDuplicates)),
    "change_strategy": one_of(*get_args(ChangeStrategy)),
    "on_error": one_of(*get_args(OnError)),
}


class LoadedRows(TypedDict):
    """Numbers of rows that were read, left out and changed, and the columns that were added.

    ``deleted`` is None if ``mode="replace"`` could not count the rows.
    """

    data_table_id: str
    rows: int
    rejected: int
    inserted: int
    updated: int
    unchanged: int
    deleted: int | None
    added_columns: list[str]


def chosen_strategy(change_strategy: ChangeStrategy, on_stored_duplicates: OnStoredDuplicates) -> ChangeStrategy:
    if on_stored_duplicates in _REPAIRING:
        return change_strategy
    if change_strategy == "replace":
        raise ServiceInputError(
            "change_strategy='replace' needs on_stored_duplicates "
            f"{' or '.join(map(repr, _REPAIRING))}, not {on_stored_duplicates!r}: a task that dies between inserting "
            "and deleting would leave duplicate rows for good; nothing was written"
        )
    return "update"


def chosen_mode(mode: LoadMode | None, key_columns: object, delete_missing: bool = False) -> LoadMode:
    chosen = mode or ("upsert" if key_columns else None)
    if chosen is None:
        raise ServiceInputError(
            "give key_columns, which make it an upsert, or mode: 'replace' for a table that then has exactly these "
            "rows, or 'append', which is not safe to repeat"
        )
    if (chosen == "upsert") != bool(key_columns):
        raise ServiceInputError(
            f"mode={chosen!r} {'needs' if chosen == 'upsert' else 'does not take'} key_columns; nothing was written"
        )
    if delete_missing and chosen != "upsert":
        raise ServiceInputError(f"delete_missing has no effect with mode={chosen!r}; nothing was written")
    return chosen


def require_rows(count: int, mode: LoadMode, delete_missing: bool, *, allow_empty: bool) -> None:
    """Refuse to replace all rows of a table by none."""
    if delete_missing or mode == "replace":
        option = "delete_missing=True" if delete_missing else f"mode={mode!r}"
        loss = f"{option} would delete all rows of the table"
        require_source(count, "there are no rows to write", loss, allow_empty=allow_empty)


def require_rejects(on_error: OnError, path: object) -> None:
    if on_error == "fail":
        require(path is None, "reject_path has no effect with on_error='fail'")
        return
    require(path is not None, "on_error='skip' needs reject_path, for the rows that are left out")
    require(str(path).endswith(_REJECT_ENDINGS), f"reject_path must end in {' or '.join(_REJECT_ENDINGS)}, not {path}")


def require_row_filter(filter: object) -> None:
    """Refuse a row filter without conditions, which the service would take for all rows; None is allowed."""
    if filter is not None:
        require_mapping("filter", filter)
        require(filter.get("filters"), "filter must contain at least one condition in 'filters'")  # type: ignore[attr-defined]
