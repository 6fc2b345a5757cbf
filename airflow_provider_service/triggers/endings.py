"""Which executions have ended since the last look, each told once.

Executions end in any order, and one that starts while the lists are read may be in none of them. So a cursor keeps the
ids that were active, and every look reads again what began since the look before the last.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_service.client.errors import ServiceInvalidRequestError, ServiceNotFoundError
from airflow_provider_service.client.statuses import ACTIVE_STATUSES, ENDED_STATUSES

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client.models.executions import Execution

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Snapshot:
    """What one look saw.

    :param base_url: address of the service.
    :param since: of the executions up to this id, only those that the cursor had open are in ``ended``.
    :param active: the active executions.
    :param ended: executions that have ended, oldest first.
    """

    base_url: str
    since: int
    active: list[Execution]
    ended: list[Execution]

    def of_workflow(self, workflow_id: str) -> Snapshot:
        """The part of one workflow."""
        active, ended = ([one for one in part if one.workflow_id == workflow_id] for part in (self.active, self.ended))
        return Snapshot(self.base_url, self.since, active, ended)


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
        """Begin now: what has ended counts as told."""
        cursor = cls(snapshot.since, snapshot.since, told=set(map(number, snapshot.ended)))
        cursor._see(snapshot)
        return cursor

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
        self.floor = self.ceiling
        self._see(snapshot)
        self.told = {one for one in self.told if one > self.floor}

    def _see(self, snapshot: Snapshot) -> None:
        self.ceiling = max((self.ceiling, *map(number, snapshot.active), *map(number, snapshot.ended)))
        self.open = set(map(number, snapshot.active)) - self.told

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
    """Read what is active, and what has ended since a cursor; without one, nothing that has ended.

    :param workflow_id: look at one workflow only.
    """
    # Before all else: what starts while the lists are read gets a higher id, and ends after the beginning.
    since = cursor.floor if cursor else max(map(number, client.executions.list(limit=1)), default=0)
    seen = list(_active(client, workflow_id))
    if cursor:
        seen += _since(client, cursor, workflow_id)
        known = set(map(number, seen))
        seen += _read(client, sorted(cursor.open - known))
    ended = {number(one): one for one in seen if one.status in ENDED_STATUSES}
    active = {number(one): one for one in seen if one.status not in ENDED_STATUSES and number(one) not in ended}
    return Snapshot(client.base_url, since, list(active.values()), [ended[id_] for id_ in sorted(ended)])


def _active(client: ServiceClient, workflow_id: str | None) -> Iterator[Execution]:
    for status in ACTIVE_STATUSES:
        try:
            yield from client.executions.list(status=status, workflow_id=workflow_id)
        except ServiceInvalidRequestError as error:
            log.debug("An older server does not list status %r: %s", status, error)


def _since(client: ServiceClient, cursor: Cursor, workflow_id: str | None) -> Iterator[Execution]:
    for execution in client.executions.list(workflow_id=workflow_id):
        if number(execution) <= cursor.floor:
            return
        yield execution


def _read(client: ServiceClient, ids: Iterable[int]) -> Iterator[Execution]:
    for execution_id in ids:
        try:
            yield client.executions.get(execution_id)
        except ServiceNotFoundError:
            continue  # it was not kept, so how it ended is not known
