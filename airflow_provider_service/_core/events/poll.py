"""The poll of executions that all watchers of a connection share, and what each watcher reports of it.

Runs in the triggerer. An event counts as reported only once it is in Airflow's database, so a watcher stores its
position, the cursor, after all events of a poll have got there.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_service._core.daemon_threads import in_daemon_thread
from airflow_provider_service._core.events.finished_executions import (
    Cursor,
    ExecutionPoll,
    Snapshot,
    Workflows,
    listed_of,
    read,
)
from airflow_provider_service._core.events.selection import Members
from airflow_provider_service._core.waits.outcome import judge
from airflow_provider_service._core.waits.watch import PAGE_RETRY_SECONDS, FaultTolerance
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client.errors import ServiceError

if TYPE_CHECKING:
    from airflow.triggers.shared_stream import AdvanceItem, SharedStreamProducer

    from airflow_provider_service._core.events.selection import Selection
    from airflow_provider_service._core.runs.output import WantedOutput
    from airflow_provider_service._core.waits.outcome import Outcome
    from airflow_provider_service.client import ServiceClient, ServiceConfig
    from airflow_provider_service.client.models import Execution
else:
    try:
        from airflow.triggers.shared_stream import SharedStreamProducer
    except ImportError:  # before Airflow 3.3 each watcher polls alone
        SharedStreamProducer = object

T = TypeVar("T")

log = logging.getLogger(__name__)

# Airflow ends a watcher that takes longer for a poll than [triggerer] shared_stream_ack_timeout, by default 300 s, and
# none of its ends then counts as reported. Hence these limits.
#: Seconds after a poll within which its watchers read further executions by their ids.
EVENT_READ_SECONDS = 30.0
#: Seconds after a poll within which its watchers read outputs.
EVENT_OUTPUT_SECONDS = 60.0
#: Seconds for which a watcher's position is written; a triggerer that exits may no longer get an answer.
WRITE_SECONDS = 5.0
#: Executions that one watcher reads before it is the turn of another one.
READ_TOGETHER = 20
OUTPUT_KEYS = ("output", "output_items")


class PolledExecutions:
    """What one poll has seen, what its subscribers read in addition, and what they store afterwards."""

    def __init__(self, number: int, snapshot: Snapshot, config: ServiceConfig, members: Members) -> None:
        self.number, self.snapshot, self._config, self._members = number, snapshot, config, members
        now = clock().monotonic()
        self._read_until, self._output_until = now + EVENT_READ_SECONDS, now + EVENT_OUTPUT_SECONDS
        self._asked: set[int] = set()
        self._by_id: dict[int, Execution | None] = {}
        self._reading = asyncio.Lock()
        #: To be called once the events of this poll are in Airflow's database.
        self.writes: list[Callable[[], Awaitable[None]]] = []

    async def members(self, selection: Selection) -> Workflows:
        return await self._members.of(selection, self.snapshot, self.number, partial(_with_client, self._config))

    async def listed(self, since: int, workflows: Workflows) -> list[Execution]:
        """The executions of some workflows after an id, for a subscriber whose cursor is older than the poll."""
        return await _with_client(self._config, partial(listed_of, since=since, workflows=workflows))

    async def read(self, ids: Sequence[int]) -> Mapping[int, Execution | None]:
        """Read each once for all subscribers: None if it does not exist, left out if it cannot be read in time."""
        # In random order, so that a slow service does not leave out the same ones at each poll.
        waiting = random.sample(ids, len(ids))
        while waiting and clock().monotonic() < self._read_until:
            some, waiting = waiting[:READ_TOGETHER], waiting[READ_TOGETHER:]
            async with self._reading:
                unread = [number for number in some if number not in self._asked]
                if unread:
                    action = partial(read, ids=unread, until=self._read_until)
                    self._by_id.update(await _with_client(self._config, action))
                    self._asked.update(unread)
        by_id = {number: self._by_id[number] for number in ids if number in self._by_id}
        if len(by_id) < len(ids) and clock().monotonic() >= self._read_until:
            log.warning("The service is slow; whether %d executions have ended is read later", len(ids) - len(by_id))
        return by_id

    async def output(self, execution_id: str, wanted: WantedOutput) -> dict[str, Any]:
        """Read the output of a node. If it cannot be read, or not in time, log why, and return None as the output."""
        remaining = self._output_until - clock().monotonic()
        if remaining > 0:
            action = partial(_output, execution_id=execution_id, wanted=wanted)
            with suppress(TimeoutError):
                return await clock().wait_for(_with_client(self._config, action), remaining)
        log.warning(
            "The output of execution %s is left out: more than %g s have passed since the poll that saw its end",
            *(execution_id, EVENT_OUTPUT_SECONDS),
        )
        return dict.fromkeys(OUTPUT_KEYS)


class EventPoll(SharedStreamProducer):
    """Polls for all watchers of a connection. Airflow tells it which events are in its database."""

    def __init__(self, kwargs: dict[str, Any]) -> None:
        self._service_conn_id, self._pause = kwargs["service_conn_id"], kwargs["poll_interval"]
        self._polls, self._polls_in_doubt = 0, 0
        self._members = Members()

    async def open_stream(self) -> AsyncIterator[tuple[PolledExecutions, PolledExecutions]]:
        poll = ExecutionPoll()
        faults = FaultTolerance(f"executions for the watches at connection '{self._service_conn_id}'", None)
        while True:
            polled = await until_it_works(partial(self._poll_once, poll, faults), self._pause, faults)
            yield polled, polled
            await clock().async_sleep(self._pause)

    async def _poll_once(self, poll: ExecutionPoll, faults: FaultTolerance) -> PolledExecutions:
        from airflow_provider_service._airflow.connection import config_for

        # The connection is read again each time, so that a changed key is picked up.
        config = await config_for(self._service_conn_id)
        # A service that refuses a part of the requests would hardly ever answer for all lists; one that is away is not
        # called more often.
        is_away = faults.in_trouble and not getattr(faults.last_error, "retry_after", None)
        snapshot = await _with_client(config, poll.snapshot, retry_seconds=0.0 if is_away else PAGE_RETRY_SECONDS)
        self._polls += 1
        return PolledExecutions(self._polls, snapshot, config, self._members)

    async def advance(self, batch: Sequence[AdvanceItem]) -> None:
        for item in batch:
            if item.outcome.failed:
                # The events of one watcher may be lost, but it is unknown of which. That watcher has received all polls
                # so far and receives no more, so cursors of these polls must not be stored. Later cursors belong to
                # other watchers.
                self._polls_in_doubt = self._polls
            elif item.broker_payload.number > self._polls_in_doubt:
                await asyncio.gather(*(write() for write in item.broker_payload.writes))


async def _with_client(config: ServiceConfig, action: Callable[[ServiceClient], T], *, retry_seconds: float = 0.0) -> T:
    def act() -> T:
        # Imported here because DAG files import this module, and in a thread because it would block the event loop.
        from airflow_provider_service.client import ServiceClient

        with ServiceClient(config.model_copy(update={"retry_deadline": retry_seconds})) as client:
            client.transport.retry_level = logging.DEBUG  # the watch logs that reading fails
            return action(client)

    return await in_daemon_thread(act, name="service-watcher")


def _output(client: ServiceClient, execution_id: str, wanted: WantedOutput) -> dict[str, Any]:
    from airflow_provider_service._core.runs.output import no_output, read_output

    try:
        output = read_output(client, execution_id, wanted)
    except ServiceError as error:  # the end is reported in any case
        log.warning("The output of execution %s cannot be read: %s", execution_id, error)
        output = no_output()
    # An event has no output_path: several triggerers may report it, so it writes no file.
    return {name: output[name] for name in OUTPUT_KEYS}


async def until_it_works(action: Callable[[], Awaitable[T]], pause: float, faults: FaultTolerance) -> T:
    """Repeat an action until it works. A watcher has no task that could fail, so it logs what is wrong."""
    while True:
        try:
            result = await action()
        except Exception as error:  # noqa: BLE001 - whatever it is, it may pass
            faults.tolerates(error)
            await clock().async_sleep(max(pause, faults.asked_pause))
        else:
            faults.succeeded()
            return result


class Watcher:
    """Reports the end of each execution of a selection once. ``pause`` seconds pass between reads of its position."""

    def __init__(
        self, selection: Selection, statuses: Sequence[str], wanted: WantedOutput | None, pause: float
    ) -> None:
        self._selection, self._statuses, self._wanted, self._pause = selection, statuses, wanted, pause

    async def ends(
        self, polls: AsyncIterator[PolledExecutions], asset_state: Any, key: str
    ) -> AsyncIterator[dict[str, Any]]:
        store = _CursorStore(asset_state, key)
        reading = FaultTolerance(f"the position of the watch of {self._selection}", None)
        faults = FaultTolerance(f"executions for the watch of {self._selection}", None)
        cursor, is_caught_up = await until_it_works(store.read, self._pause, reading), False
        async for polled in polls:
            base_url = polled.snapshot.base_url
            position = cursor if cursor and cursor.base_url == base_url else None
            try:
                workflows = await polled.members(self._selection)
                snapshot = await self._seen(polled, position, workflows, is_caught_up)
            except Exception as error:  # noqa: BLE001 - whatever it is, it may have passed by the next poll
                faults.tolerates(error)
                continue
            faults.succeeded()
            is_caught_up = True
            if position is None:
                if cursor:
                    log.warning(
                        "The selection %s was watched at %s; the watch starts from scratch at %s",
                        *(self._selection, cursor.base_url, base_url),
                    )
                position = Cursor.beginning(snapshot)
            else:
                for execution in position.unreported(snapshot):
                    outcome = judge(execution, base_url) if execution.status in self._statuses else None
                    if outcome:
                        yield {**outcome.to_xcom(), **await self._output_of(polled, outcome)}
                    position.reported.add(execution.number)
                position.advance(snapshot)
            store.write_once_persisted(position, polled)
            cursor = position

    async def _output_of(self, polled: PolledExecutions, outcome: Outcome) -> dict[str, Any]:
        if self._wanted is None or outcome.verdict != "succeeded":
            return {}
        return await polled.output(outcome.execution_id, self._wanted)

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
    def __init__(self, store: Any, key: str) -> None:
        self._store, self._key = store, key
        self._stored: Any = None

    async def read(self) -> Cursor | None:
        if self._store is not None:
            try:
                self._stored = await self._store.aget(self._key)
            except ValueError as error:  # several assets have this watcher
                log.warning(
                    "Airflow keeps no state for this watcher, so after a restart it starts from scratch: %s", error
                )
                self._store = None
        return Cursor.from_json(self._stored)

    def write_once_persisted(self, cursor: Cursor, polled: PolledExecutions) -> None:
        """Write a cursor once all events of its poll are in Airflow's database, unless it is already stored."""
        state = cursor.to_json()
        if self._store is not None and state != self._stored:
            polled.writes.append(partial(self._write, state))

    async def _write(self, state: dict[str, Any]) -> None:
        if state == self._stored:  # by the previous poll
            return
        try:
            await clock().wait_for(self._store.aset(self._key, state), WRITE_SECONDS)
            self._stored = state
        except Exception as error:  # noqa: BLE001 - whatever it is, a later poll writes what is missing
            log.error("The position of the watch could not be stored; a restart might repeat events: %r", error)
