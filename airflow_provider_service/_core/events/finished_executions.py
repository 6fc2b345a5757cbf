"""Find the executions that have ended since the last poll, and report each once.

Executions end in any order, and an execution that starts while the lists are read may be in none of them. Therefore, a
cursor keeps the ids of active executions, and every poll rereads those that began since the poll before the last one.
In queue mode, no list shows an execution that waits for a worker, so younger ones may be listed before it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any

from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._constraints import ACTIVE_STATUSES, ENDED_STATUSES
from airflow_provider_service.client._execution_data import read_state
from airflow_provider_service.client.errors import ServiceApiError, ServiceInvalidRequestError, ServiceNotFoundError

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client.models import Execution

log = logging.getLogger(__name__)

#: Ids of workflows; None for all.
Workflows = frozenset[str] | None
#: Workflows up to which the executions of each are listed; for more, they are selected from a list of all.
MOST_LISTED_SEPARATELY = 20
#: Ids below the newest among which executions may end that no list has shown before.
LATE_WITHIN = 5000
#: Possible difference between the clocks of the hosts of a service.
HOSTS_SKEW = timedelta(minutes=1)


@dataclass(frozen=True)
class Snapshot:
    """What one poll has seen of all executions after an id, and of the active ones up to it."""

    base_url: str
    since: int
    #: The highest existing id, of any workflow.
    newest: int
    active: list[Execution]
    #: The oldest first.
    ended: list[Execution]
    #: Ids of executions that were not kept.
    gone: frozenset[int] = frozenset()
    #: Ids of ended executions that are older than others of earlier polls, but appear for the first time.
    late: frozenset[int] = frozenset()

    def of(self, workflows: Workflows) -> Snapshot:
        active = [execution for execution in self.active if is_of(execution, workflows)]
        ended = [execution for execution in self.ended if is_of(execution, workflows)]
        return replace(self, active=active, ended=ended)

    def with_read(self, by_id: Mapping[int, Execution | None], workflows: Workflows) -> Snapshot:
        """The snapshot of some workflows, extended by what :func:`read` has read of them."""
        own = {number: execution for number, execution in by_id.items() if execution and is_of(execution, workflows)}
        return replace(self.with_more(own.values()), gone=self.gone.union(by_id.keys() - own.keys()))

    def with_more(self, executions: Iterable[Execution]) -> Snapshot:
        """The snapshot, extended by executions that were read after it. If both contain one, the snapshot's is kept."""
        contained = set(_numbers(self.active, self.ended))
        more = {execution.number: execution for execution in executions if execution.number not in contained}
        active, ended = list(self.active), list(self.ended)
        for execution in more.values():
            (ended if execution.status in ENDED_STATUSES else active).append(execution)
        ended.sort(key=lambda execution: execution.number)
        return replace(self, newest=max((self.newest, *more)), active=active, ended=ended)


@dataclass
class Cursor:
    """How far the ends of executions of some workflows have been reported. Airflow stores it by these names."""

    #: Address of the service whose ids these are.
    base_url: str
    #: Executions up to this id that are not ``open`` have been reported, or ended before the watch began.
    floor: int
    #: The highest id that the last poll saw.
    ceiling: int
    #: Those reported whose ends a later poll may contain again: also a poll of another triggerer, which cannot know
    #: which older ones are late.
    reported: set[int] = field(default_factory=set)
    #: Those that have not been seen to end.
    open: set[int] = field(default_factory=set)

    @classmethod
    def beginning(cls, snapshot: Snapshot) -> Cursor:
        """Create a cursor that begins now: executions that have already ended count as reported."""
        cursor = cls(snapshot.base_url, snapshot.since, snapshot.since, reported=set(_numbers(snapshot.ended)))
        cursor._see(snapshot)
        return cursor

    def unseen(self, snapshot: Snapshot) -> list[int]:
        """The open executions that a snapshot does not contain, so that it is unknown whether they have ended."""
        return sorted(self.open - set(_numbers(snapshot.active, snapshot.ended)))

    def is_ahead_of(self, snapshot: Snapshot) -> bool:
        """Whether the newest execution that was seen no longer exists, although it was kept after its end."""
        return snapshot.newest < self.ceiling and self.ceiling not in self.open

    def unreported(self, snapshot: Snapshot) -> list[Execution]:
        older = (self.open | snapshot.late) - self.reported
        new = [execution for execution in snapshot.ended if execution.number not in self.reported]
        return [execution for execution in new if execution.number > self.floor or execution.number in older]

    def advance(self, snapshot: Snapshot) -> None:
        """Move on to the next poll, after all of a snapshot has been reported."""
        # No execution has a higher id than the newest one, even if one had before: a new database starts again at 1.
        is_anew = snapshot.newest < self.ceiling
        self.ceiling = min(self.ceiling, snapshot.newest)
        self.floor = self.ceiling
        self._see(snapshot)
        oldest = self.floor if is_anew else snapshot.newest - LATE_WITHIN
        self.reported = {number for number in self.reported if oldest < number <= snapshot.newest}

    def _see(self, snapshot: Snapshot) -> None:
        self.ceiling = max((self.ceiling, *_numbers(snapshot.active, snapshot.ended)))
        self.open = self.open.union(_numbers(snapshot.active)) - snapshot.gone - self.reported

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "reported": sorted(self.reported), "open": sorted(self.open)}

    @classmethod
    def from_json(cls, stored: Any) -> Cursor | None:
        """Read a stored cursor. Return None if the value is not a cursor."""
        try:
            reported, open_ = set(map(int, stored["reported"])), set(map(int, stored["open"]))
            return cls(str(stored["base_url"]), int(stored["floor"]), int(stored["ceiling"]), reported, open_)
        except (KeyError, TypeError, ValueError):
            return None


def _numbers(*parts: Iterable[Execution]) -> Iterator[int]:
    return (execution.number for execution in chain(*parts))


class _Unlisted:
    """The ids that no list has shown: such executions wait for a worker, were not kept, or the key may not see them."""

    def __init__(self) -> None:
        self._ids: set[int] = set()
        self._newest, self._latest_start = 0, datetime.min.replace(tzinfo=UTC) + HOSTS_SKEW

    def appeared(self, seen: list[Execution]) -> frozenset[int]:
        """Record what a poll has seen. Return which of these ids are in it and have ended since the last poll."""
        late = frozenset(
            execution.number for execution in seen if execution.number in self._ids and self._has_just_ended(execution)
        )
        newest = max(_numbers(seen), default=0)
        oldest = newest - LATE_WITHIN
        self._ids.update(range(max(self._newest, oldest) + 1, newest))
        self._ids = {number for number in self._ids.difference(_numbers(seen)) if oldest < number < newest}
        self._newest = newest
        starts = [execution.started_at for execution in seen if execution.started_at]
        self._latest_start = max([self._latest_start, *starts])
        return late

    def _has_just_ended(self, execution: Execution) -> bool:
        if execution.stopped_at is None or execution.status not in ENDED_STATUSES:
            return False
        # Those that ended long ago appear when the key is given access to them, or when others are deleted.
        return execution.stopped_at > self._latest_start - HOSTS_SKEW


class ExecutionPoll:
    def __init__(self) -> None:
        self._last: Snapshot | None = None
        self._next_since = 0
        self._unlisted = _Unlisted()

    def snapshot(self, client: ServiceClient) -> Snapshot:
        """Read what is active and, except in the first poll, what has ended since the poll before the last one."""
        last = self._last if self._last and self._last.base_url == client.base_url else None
        page_size = client.transport.config.page_size
        if last is None:
            self._unlisted = _Unlisted()
        # This is read first: what starts while the lists are read has a higher id, and ends after the watch began.
        first = [] if last else list(listed(client, math.inf, at_least=page_size))
        since = self._next_since if last else max(_numbers(first), default=0)
        seen = [*first, *_active(client), *(listed(client, since, at_least=page_size) if last else ())]
        newest = max((0 if last else since, *_numbers(seen)))
        late = self._unlisted.appeared(seen)

        active, ended = {}, {}
        for execution in seen:
            number = execution.number
            if execution.status not in ENDED_STATUSES:
                active[number] = execution
            elif number > since or number in late:
                ended[number] = execution
        still_active = [execution for number, execution in active.items() if number not in ended]
        self._next_since = last.newest if last else since
        self._last = Snapshot(
            client.base_url, since, newest, still_active, [ended[number] for number in sorted(ended)], late=late
        )
        return self._last


def _active(client: ServiceClient) -> Iterator[Execution]:
    # What begins to wait before the list of running ones is read appears only if that of waiting ones is read again.
    for status in (*ACTIVE_STATUSES, "waiting"):
        try:
            yield from client.executions.list(status=status)
        except ServiceInvalidRequestError as error:
            log.debug("An older server does not list status %r: %s", status, error)


def listed(
    client: ServiceClient, since: float, workflow_id: str | None = None, *, at_least: int = 1
) -> Iterator[Execution]:
    """The executions after an id, newest first, and the next older one; without those that are running.

    ``at_least`` so many are listed even if they are older: the rest of a page costs no request.
    """
    for count, execution in enumerate(client.executions.list(workflow_id=workflow_id), 1):
        yield execution
        if execution.number <= since and count >= at_least:
            return


def listed_of(client: ServiceClient, since: int, workflows: Workflows) -> list[Execution]:
    if workflows is None or len(workflows) > MOST_LISTED_SEPARATELY:
        return [execution for execution in listed(client, since) if is_of(execution, workflows)]
    return [execution for workflow_id in sorted(workflows) for execution in listed(client, since, workflow_id)]


def is_of(execution: Execution, workflows: Workflows) -> bool:
    return workflows is None or execution.workflow_id in workflows


def read(client: ServiceClient, ids: Iterable[int], until: float = math.inf) -> Mapping[int, Execution | None]:
    """Read executions one by one. Those that were not kept are None; those that cannot be read now are left out.

    No read begins after ``until``, a time of the monotonic clock.
    """
    by_id: dict[int, Execution | None] = {}
    for execution_id in ids:
        if clock().monotonic() >= until:
            break
        try:
            by_id[execution_id], _ = read_state(client, execution_id)
        except ServiceNotFoundError:
            by_id[execution_id] = None  # how it ended is not known
        except ServiceApiError as error:
            log.warning("Cannot read whether execution %s has ended; trying again: %s", execution_id, error)
    return by_id
