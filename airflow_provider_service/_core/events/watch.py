"""Report the ends that the shared poll has seen, and store the watcher's position. Runs in the triggerer."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.events.finished_executions import Cursor, Snapshot, Workflows
from airflow_provider_service._core.events.poll import PolledExecutions, until_it_works
from airflow_provider_service._core.waits.faults import FaultTolerance
from airflow_provider_service._core.waits.outcome import judge
from airflow_provider_service.client._clock import clock

if TYPE_CHECKING:
    from airflow_provider_service._core.events.selection import Selection
    from airflow_provider_service._core.runs.output import WantedOutput
    from airflow_provider_service._core.waits.outcome import Outcome

log = logging.getLogger(__name__)

# A triggerer that exits waits for what is in progress, but may no longer get an answer.
WRITE_SECONDS = 5.0


class Watcher:
    """Reports the end of each execution of a selection once.

    :param statuses: final statuses to report.
    :param wanted: the output to report with a success; None for no output.
    :param pause: seconds between two attempts to read the stored position.
    """

    def __init__(
        self, selection: Selection, statuses: Sequence[str], wanted: WantedOutput | None, pause: float
    ) -> None:
        self._selection, self._statuses, self._wanted, self._pause = selection, statuses, wanted, pause

    async def ends(
        self, polls: AsyncIterator[PolledExecutions], asset_state: Any, key: str
    ) -> AsyncIterator[dict[str, Any]]:
        """Report the ends that the polls have seen, as the payloads of events.

        :param asset_state: the store in which Airflow keeps the state of an asset; None if there is none.
        :param key: key of the cursor in that store.
        """
        store = _CursorStore(asset_state, key)
        position = FaultTolerance(f"the position of the watch of {self._selection}", None)
        faults = FaultTolerance(f"executions for the watch of {self._selection}", None)
        cursor, is_caught_up = await until_it_works(store.read, self._pause, position), False
        async for polled in polls:
            known = cursor if cursor and cursor.base_url == polled.snapshot.base_url else None
            try:
                workflows = await polled.members(self._selection)
                snapshot = await self._seen(polled, known, workflows, is_caught_up)
            except Exception as error:  # noqa: BLE001 - whatever it is, it may have passed by the next poll
                faults.tolerates(error)
                continue
            faults.succeeded()
            is_caught_up = True
            if known is None:
                known = self._beginning(snapshot, cursor)
            else:
                for execution in known.unreported(snapshot):
                    outcome = judge(execution, snapshot.base_url) if execution.status in self._statuses else None
                    if outcome:
                        yield {**outcome.to_xcom(), **await self._output_of(polled, outcome)}
                    known.mark_reported(execution)
                known.advance(snapshot)
            store.write_once_persisted(known, polled)
            cursor = known

    async def _output_of(self, polled: PolledExecutions, outcome: Outcome) -> dict[str, Any]:
        if self._wanted is None or outcome.verdict != "succeeded":
            return {}
        return await polled.output(outcome.execution_id, self._wanted)

    def _beginning(self, snapshot: Snapshot, kept: Cursor | None) -> Cursor:
        if kept:
            log.warning(
                "The selection %s was watched at %s; the watch starts from scratch at %s",
                *(self._selection, kept.base_url, snapshot.base_url),
            )
        return Cursor.beginning(snapshot)

    async def _seen(
        self, polled: PolledExecutions, cursor: Cursor | None, workflows: Workflows, is_caught_up: bool
    ) -> Snapshot:
        snapshot = polled.snapshot.of(workflows)
        if cursor is None:
            return snapshot
        if not is_caught_up:
            # The shared poll began with its first subscriber, which may be later than the stored cursor.
            snapshot = snapshot.with_more(await polled.listed(cursor.floor, workflows))
        # The watchers of other workflows read the executions of those.
        snapshot = snapshot.with_read(await polled.read(cursor.unseen(snapshot)), workflows)
        if cursor.is_ahead_of(snapshot):
            log.warning(
                "Execution %d was seen at %s, but now %d is the newest: later ones were deleted, or the service "
                "has another database. The watch of %s continues from there",
                *(cursor.ceiling, snapshot.base_url, snapshot.newest, self._selection),
            )
        return snapshot


class _CursorStore:
    """Stores a cursor in the state of an asset, if Airflow keeps one."""

    def __init__(self, store: Any, key: str) -> None:
        self._store, self._key = store, key
        self._kept: Any = None

    async def read(self) -> Cursor | None:
        """The cursor that was written last, possibly by an earlier triggerer."""
        if self._store is not None:
            try:
                self._kept = await self._store.aget(self._key)
            except ValueError as error:  # several assets have this watcher
                log.warning(
                    "Airflow keeps no state for this watcher, so after a restart it starts from scratch: %s", error
                )
                self._store = None
        return Cursor.from_json(self._kept)

    def write_once_persisted(self, cursor: Cursor, polled: PolledExecutions) -> None:
        """Write a cursor once all events of its poll are in Airflow's database, unless it is already stored."""
        state = cursor.to_json()
        if self._store is not None and state != self._kept:
            polled.once_persisted(partial(self._write, state))

    async def _write(self, state: dict[str, Any]) -> None:
        if state == self._kept:  # by the previous poll
            return
        try:
            await clock().wait_for(self._store.aset(self._key, state), WRITE_SECONDS)
            self._kept = state
        except Exception as error:  # noqa: BLE001 - whatever it is, a later poll writes what is missing
            log.error("The position of the watch could not be stored; a restart might repeat events: %r", error)
