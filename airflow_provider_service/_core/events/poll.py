"""The poll of executions that all watchers of a connection share."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_service._core.daemon_threads import in_daemon_thread
from airflow_provider_service._core.events.finished_executions import ExecutionPoll, Snapshot, listed_of, read
from airflow_provider_service._core.events.members import Members
from airflow_provider_service._core.waits.faults import PAGE_RETRY_SECONDS, FaultTolerance
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client.errors import ServiceError

if TYPE_CHECKING:
    from airflow.triggers.shared_stream import AdvanceItem, SharedStreamProducer

    from airflow_provider_service._core.events.finished_executions import Workflows
    from airflow_provider_service._core.events.selection import Selection
    from airflow_provider_service._core.runs.output import WantedOutput
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
# none of its ends then counts as reported. So many seconds after the poll, no further execution is read by its id,
READ_SECONDS = 30.0
# and so many seconds after it, no output.
OUTPUT_SECONDS = 60.0
# Executions that one subscriber reads before it is the turn of another one.
READ_TOGETHER = 20
OUTPUT_KEYS = ("output", "output_items")


class PolledExecutions:
    """What one poll has seen, what its subscribers read in addition, and what they store afterwards."""

    def __init__(self, number: int, snapshot: Snapshot, config: ServiceConfig, members: Members) -> None:
        self.number, self.snapshot, self._config, self._members = number, snapshot, config, members
        now = clock().monotonic()
        self._read_until, self._output_until = now + READ_SECONDS, now + OUTPUT_SECONDS
        self._asked: set[int] = set()
        self._found: dict[int, Execution | None] = {}
        self._reading = asyncio.Lock()
        self._writes: list[Callable[[], Awaitable[None]]] = []

    async def members(self, selection: Selection) -> Workflows:
        """The workflows of a selection."""
        return await self._members.of(selection, self.snapshot, self.number, partial(_with_client, self._config))

    async def listed(self, since: int, workflows: Workflows) -> list[Execution]:
        """The executions of some workflows after an id, for a subscriber whose cursor is older than the poll."""
        return await _with_client(self._config, partial(listed_of, since=since, workflows=workflows))

    async def read(self, ids: Sequence[int]) -> Mapping[int, Execution | None]:
        """Read executions by id, each once for all subscribers. The value is None if there is no such execution.

        Those that cannot be read now, or in time, are left out.
        """
        # In random order, so that a slow service does not leave out the same ones at each poll.
        rest = random.sample(ids, len(ids))
        while rest and clock().monotonic() < self._read_until:
            some, rest = rest[:READ_TOGETHER], rest[READ_TOGETHER:]
            async with self._reading:
                unread = [one for one in some if one not in self._asked]
                if unread:
                    action = partial(read, ids=unread, until=self._read_until)
                    self._found.update(await _with_client(self._config, action))
                    self._asked.update(unread)
        found = {one: self._found[one] for one in ids if one in self._found}
        if len(found) < len(ids) and clock().monotonic() >= self._read_until:
            log.warning("The service is slow; whether %d executions have ended is read later", len(ids) - len(found))
        return found

    async def output(self, execution_id: str, wanted: WantedOutput) -> dict[str, Any]:
        """Read the output of a node. If it cannot be read, or not in time, log why, and return None as the output."""
        left = self._output_until - clock().monotonic()
        if left > 0:
            action = partial(_output, execution_id=execution_id, wanted=wanted)
            with suppress(TimeoutError):
                return await clock().wait_for(_with_client(self._config, action), left)
        log.warning(
            "The output of execution %s is left out: more than %g s have passed since the poll that saw its end",
            *(execution_id, OUTPUT_SECONDS),
        )
        return dict.fromkeys(OUTPUT_KEYS)

    def once_persisted(self, write: Callable[[], Awaitable[None]]) -> None:
        """Register a function to call once the events of this poll are in Airflow's database."""
        self._writes.append(write)

    async def persisted(self) -> None:
        """Call the registered functions."""
        await asyncio.gather(*(write() for write in self._writes))


class EventPoll(SharedStreamProducer):
    """Polls for all watchers of a connection. Airflow tells it which events are in its database."""

    def __init__(self, kwargs: dict[str, Any]) -> None:
        self._service_conn_id, self._pause = kwargs["service_conn_id"], kwargs["poll_interval"]
        self._polls, self._polls_in_doubt = 0, 0
        self._members = Members()

    async def open_stream(self) -> AsyncIterator[tuple[PolledExecutions, PolledExecutions]]:
        """Poll until closed."""
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
        """Let the watchers store what has been reported."""
        for item in batch:
            if item.outcome.failed:
                # The events of one watcher may be lost, but it is unknown of which. That watcher has received all polls
                # so far and receives no more, so cursors of these polls must not be stored. Later cursors belong to
                # other watchers.
                self._polls_in_doubt = self._polls
            elif item.broker_payload.number > self._polls_in_doubt:
                await item.broker_payload.persisted()


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
