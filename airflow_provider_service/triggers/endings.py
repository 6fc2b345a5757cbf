"""Which executions have ended since the last look, each told once.

Executions end in any order, and one that starts while the lists are read may be in none of them. So a cursor keeps the
ids that were active, and every look reads again what began since the look before the last.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_service.client.errors import ServiceNotFoundError
from airflow_provider_service.waiting import ACTIVE_STATUSES, ENDED_STATUSES

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client.models.executions import Execution


class Snapshot(NamedTuple):
    """What one look saw: the active executions and those that have ended, oldest first."""

    active: list[Execution]
    ended: list[Execution]

    def of_workflow(self, workflow_id: str) -> Snapshot:
        """The part of one workflow."""
        return Snapshot(*([one for one in part if one.workflow_id == workflow_id] for part in self))


@dataclass
class Cursor:
    """How far the endings of executions have been told.

    :param floor: executions up to this id that are not in ``open`` have been told, or ended before the beginning.
    :param ceiling: highest id that the last look saw.
    :param told: ids above the floor that have been told.
    :param open: ids that were active at the last look.
    """

    floor: int
    ceiling: int
    told: set[int] = field(default_factory=set)
    open: set[int] = field(default_factory=set)

    @classmethod
    def beginning(cls, snapshot: Snapshot) -> Cursor:
        """Begin now: what has ended is not told, what is active will be."""
        highest = max(map(number, (*snapshot.active, *snapshot.ended)), default=0)
        ended = set(map(number, snapshot.ended))
        return cls(highest, highest, open=set(map(number, snapshot.active)) - ended)

    def untold(self, snapshot: Snapshot) -> list[Execution]:
        """The executions of a snapshot whose end has not been told."""
        return [
            one
            for one in snapshot.ended
            if number(one) not in self.told and (number(one) > self.floor or number(one) in self.open)
        ]

    def tell(self, execution: Execution) -> None:
        """Note that the end of an execution has been told."""
        self.told.add(number(execution))

    def advance(self, snapshot: Snapshot) -> None:
        """Move on to the next look, after all of a snapshot has been told."""
        seen = set(map(number, (*snapshot.active, *snapshot.ended)))
        self.floor, self.ceiling = self.ceiling, max({self.ceiling, *seen})
        self.open = set(map(number, snapshot.active)) - self.told
        self.told = {one for one in self.told if one > self.floor}

    def to_json(self) -> dict[str, Any]:
        """The cursor as it is kept between restarts."""
        return {
            "floor": self.floor,
            "ceiling": self.ceiling,
            "told": sorted(self.told),
            "open": sorted(self.open),
        }

    @classmethod
    def from_json(cls, kept: Any) -> Cursor | None:
        """Read a kept cursor; None when it is none."""
        try:
            return cls(int(kept["floor"]), int(kept["ceiling"]), set(kept["told"]), set(kept["open"]))
        except (KeyError, TypeError, ValueError):
            return None


def number(execution: Execution) -> int:
    """The execution's id as the number it is."""
    return int(execution.id)


def look(client: ServiceClient, cursor: Cursor | None, workflow_id: str | None = None) -> Snapshot:
    """Read what is active, and what has ended since a cursor; without one, only the newest that has ended.

    :param workflow_id: look at one workflow only.
    """
    active = [
        one for status in ACTIVE_STATUSES for one in client.executions.list(status=status, workflow_id=workflow_id)
    ]
    ended = list(_ended_since(client, cursor, workflow_id))
    known = set(map(number, (*active, *ended)))
    ended += _ended_of(client, (cursor.open - known) if cursor else ())
    return Snapshot(active, sorted(ended, key=number))


def _ended_since(client: ServiceClient, cursor: Cursor | None, workflow_id: str | None) -> Iterable[Execution]:
    listed = client.executions.list(workflow_id=workflow_id, limit=None if cursor else 1)
    for execution in listed:
        if cursor and number(execution) <= cursor.floor:
            return
        if execution.status in ENDED_STATUSES:
            yield execution


def _ended_of(client: ServiceClient, ids: Iterable[int]) -> Iterable[Execution]:
    for execution_id in ids:
        try:
            execution = client.executions.get(execution_id)
        except ServiceNotFoundError:
            continue  # it was not kept, so how it ended is not known
        if execution.status in ENDED_STATUSES:
            yield execution
