"""Plan an upsert by comparing the given rows with the stored ones."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_service.client._constraints import SYSTEM_COLUMNS
from airflow_provider_service.client._http.encoding import to_json
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from airflow_provider_service._core.rows.options import OnStoredDuplicates
    from airflow_provider_service.client.resources._data_table_rows import Row

log = logging.getLogger(__name__)

#: The values of the key columns of a row.
Key = tuple[Any, ...]

#: Keys with several stored rows that an error shows as examples.
MAX_SHOWN_KEYS = 5


@dataclass
class UpsertPlan:
    """The changes to write."""

    inserts: list[Row]
    #: Stored rows, each with the values that it must get.
    changes: list[tuple[Row, Row]] = field(default_factory=list)
    unchanged: int = 0
    #: Ids of rows to delete, because a newer row with their key stays.
    surplus: list[int] = field(default_factory=list)

    def equal_changes(self) -> list[tuple[Row, list[int]]]:
        """Values to write, each with the ids of all rows that get them: one call can change many rows."""
        groups: dict[str, tuple[Row, list[int]]] = {}
        for row, values in self.changes:
            groups.setdefault(to_json(values), (values, []))[1].append(row["id"])
        return list(groups.values())

    def replacements(self) -> list[Row]:
        return [{**_own_columns(row), **values} for row, values in self.changes]


def plan_upsert(
    requested: Mapping[Key, Row],
    stored: Iterable[Row],
    key_columns: Sequence[str],
    on_stored_duplicates: OnStoredDuplicates,
) -> UpsertPlan:
    """Compare the requested rows with the stored ones, of which at least those with a requested key are given."""
    # By id, because a page can repeat a row while others delete rows: it must not count as a copy of itself.
    stored_by_key: dict[Key, dict[int, Row]] = {}
    for row in stored:
        key = key_of(row, key_columns)
        if key in requested:
            stored_by_key.setdefault(key, {})[row["id"]] = row
    doubled = {key: list(rows) for key, rows in stored_by_key.items() if len(rows) > 1}
    if doubled and on_stored_duplicates == "fail":
        raise ServiceInputError(_several_rows(doubled, key_columns))
    plan = UpsertPlan(inserts=[row for key, row in requested.items() if key not in stored_by_key])
    for key, rows in stored_by_key.items():
        staying = rows if len(rows) == 1 else _staying(rows, requested[key], on_stored_duplicates)
        for row in staying.values():
            values = {name: value for name, value in requested[key].items() if row.get(name) != value}
            if values:
                plan.changes.append((row, values))
            else:
                plan.unchanged += 1
        plan.surplus += [row_id for row_id in rows if row_id not in staying]
    if doubled:
        log.warning(
            "%d keys have several rows in the table, %d in all: on_stored_duplicates=%r removes %d of them",
            len(doubled),
            sum(map(len, doubled.values())),
            on_stored_duplicates,
            len(plan.surplus),
        )
    return plan


def key_of(row: Mapping[str, Any], key_columns: Sequence[str]) -> Key:
    return tuple(row.get(name) for name in key_columns)


def _staying(rows: Mapping[int, Row], given: Row, on_stored_duplicates: OnStoredDuplicates) -> Mapping[int, Row]:
    """The rows of one key, by id, that are not deleted."""
    # The service reuses the highest id after its row is deleted. A row is deleted only if a newer one stays, so that a
    # delete that is repeated, or arrives late, never hits another row with the same id.
    if on_stored_duplicates == "keep_newest":
        return {max(rows): rows[max(rows)]}
    if on_stored_duplicates == "remove_copies":
        # Later rows replace earlier ones that would have the same values after the upsert.
        distinct = {to_json({**_own_columns(rows[row_id]), **given}): row_id for row_id in sorted(rows)}
        return {row_id: rows[row_id] for row_id in distinct.values()}
    return rows


def _own_columns(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in SYSTEM_COLUMNS}


def _several_rows(doubled: Mapping[Key, Sequence[int]], key_columns: Sequence[str]) -> str:
    examples = [
        f"{shown(dict(zip(key_columns, key, strict=True)))} has the rows {', '.join(map(str, ids[:10]))}"
        for key, ids in list(doubled.items())[:MAX_SHOWN_KEYS]
    ]
    more = f", and {len(doubled) - MAX_SHOWN_KEYS} more keys" if len(doubled) > MAX_SHOWN_KEYS else ""
    return (
        f"the table has several rows with the same key: {'; '.join(examples)}{more}. Nothing was written; delete the "
        "surplus rows, or choose another on_stored_duplicates"
    )
