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

Key = tuple[Any, ...]

MAX_SHOWN_KEYS = 5


@dataclass(frozen=True)
class RowChange:
    """A stored row and the values that it must get."""

    row: Row
    values: Row

    @property
    def replacement(self) -> Row:
        """The row after the change, with every column that can be written."""
        return {**_own_columns(self.row), **self.values}


@dataclass
class UpsertPlan:
    """The changes to write.

    - ``inserts``: rows with keys that the table lacks.
    - ``changes``: rows that differ from the given values.
    - ``unchanged``: number of rows that already have the given values.
    - ``surplus``: ids of rows to delete, because a newer row with their key stays.
    """

    inserts: list[Row] = field(default_factory=list)
    changes: list[RowChange] = field(default_factory=list)
    unchanged: int = 0
    surplus: list[int] = field(default_factory=list)

    def equal_changes(self) -> list[tuple[Row, list[int]]]:
        """Values to write, each with the ids of all rows that get them: one call can change many rows."""
        groups: dict[str, tuple[Row, list[int]]] = {}
        for change in self.changes:
            groups.setdefault(to_json(change.values), (change.values, []))[1].append(change.row["id"])
        return list(groups.values())


def plan_upsert(
    requested: Mapping[Key, Row],
    stored: Iterable[Row],
    key_columns: Sequence[str],
    on_stored_duplicates: OnStoredDuplicates,
) -> UpsertPlan:
    """Compare the requested rows with the stored ones.

    :param requested: rows by key, in the types of the columns.
    :param stored: rows of the table, at least those with a requested key; a row may occur twice.
    :raises ServiceInputError: several stored rows have the same key, and the policy is to fail.
    """
    found = _by_requested_key(stored, requested, key_columns)
    doubled = {key: list(rows) for key, rows in found.items() if len(rows) > 1}
    if doubled and on_stored_duplicates == "fail":
        raise ServiceInputError(_several_rows(doubled, key_columns))
    plan = UpsertPlan(inserts=[row for key, row in requested.items() if key not in found])
    for key, rows in found.items():
        kept = rows.values() if len(rows) == 1 else _kept(rows, requested[key], on_stored_duplicates)
        _plan_key(plan, requested[key], kept, rows)
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
    """The values of the key columns."""
    return tuple(row.get(name) for name in key_columns)


def _by_requested_key(
    stored: Iterable[Row], requested: Mapping[Key, Row], key_columns: Sequence[str]
) -> dict[Key, dict[int, Row]]:
    # By id, because a page can repeat a row while others delete rows: it must not count as a copy of itself.
    found: dict[Key, dict[int, Row]] = {}
    for row in stored:
        key = key_of(row, key_columns)
        if key in requested:
            found.setdefault(key, {})[row["id"]] = row
    return found


def _plan_key(plan: UpsertPlan, given: Row, kept: Iterable[Row], rows: Mapping[int, Row]) -> None:
    stay = set()
    for row in kept:
        stay.add(row["id"])
        values = {name: value for name, value in given.items() if row.get(name) != value}
        if values:
            plan.changes.append(RowChange(row, values))
        else:
            plan.unchanged += 1
    plan.surplus += [row_id for row_id in rows if row_id not in stay]


def _kept(rows: Mapping[int, Row], given: Row, on_stored_duplicates: OnStoredDuplicates) -> Iterable[Row]:
    # The service reuses the highest id after its row is deleted. A row is deleted only if a newer one stays, so that a
    # delete that is repeated, or arrives late, never hits another row with the same id.
    if on_stored_duplicates == "keep_newest":
        return [rows[max(rows)]]
    if on_stored_duplicates == "remove_copies":
        # Later rows replace earlier ones that would have the same values after the upsert.
        return {to_json({**_own_columns(rows[row_id]), **given}): rows[row_id] for row_id in sorted(rows)}.values()
    return rows.values()


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
