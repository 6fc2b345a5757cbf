"""The ids of the workflows that watchers watch, read once for all watchers and renewed every few polls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_service._core.waits.faults import FaultTolerance

if TYPE_CHECKING:
    from airflow_provider_service._core.events.finished_executions import Snapshot, Workflows
    from airflow_provider_service._core.events.selection import Selection
    from airflow_provider_service.client import ServiceClient

#: After how many polls the workflows of a tag or a project are read again.
POLLS_TO_RENEWAL = 10


@dataclass
class _Found:
    """The workflows of a selection, as they were read.

    :param workflows: their ids.
    :param due: number of the poll that reads them again.
    :param faults: tolerates the faults of later reads.
    :param seen: ids of the workflows that are known to belong, or not to belong, to the selection.
    """

    workflows: Workflows
    due: int
    faults: FaultTolerance
    seen: set[str | None] = field(default_factory=set)


class Members:
    """The workflows of all selections of a poll."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, Selection], _Found] = {}
        self._finding = asyncio.Lock()

    async def of(
        self,
        selection: Selection,
        snapshot: Snapshot,
        poll: int,
        find: Callable[[Callable[[ServiceClient], Workflows]], Awaitable[Workflows]],
    ) -> Workflows:
        """The workflows of a selection.

        :param snapshot: what the poll saw: a workflow that is new in it may belong to the selection.
        :param poll: number of the poll.
        :param find: calls a function with a client.
        """
        seen = {one.workflow_id for one in (*snapshot.active, *snapshot.ended)}
        key = snapshot.base_url, selection
        async with self._finding:
            found = self._found.get(key)
            if found is None:
                workflows, faults = await find(selection.find), FaultTolerance(f"the workflows of {selection}", None)
                found = self._found[key] = _Found(workflows, poll + POLLS_TO_RENEWAL, faults)
            elif selection.changes and (poll >= found.due or not found.seen.issuperset(seen)):
                try:
                    found.workflows, found.due = await find(selection.find), poll + POLLS_TO_RENEWAL
                except Exception as error:  # noqa: BLE001 - whatever it is, it may have passed by the next poll
                    found.faults.tolerates(error)
                    return found.workflows
                found.faults.succeeded()
            found.seen.update(seen)
            return found.workflows
