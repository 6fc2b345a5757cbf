"""Read executions by id, a few at once and the slow ones apart, so that an answer that hangs delays no others."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextvars import Context
from functools import partial
from typing import Generic, Protocol, TypeVar

from airflow_provider_service.client._clock import clock

MAX_READS_AT_ONCE = 5
# In addition to those, this many slow reads, which may take as long as the connection's timeout allows.
MAX_SLOW_READS_AT_ONCE = 8
# A read that takes longer than this no longer delays other reads.
PATIENCE_SECONDS = 5.0


class Reader(Protocol):
    """A wait that needs an execution to be read."""

    #: Whether its last read was slow.
    is_slow: bool


R = TypeVar("R", bound=Reader)


class _Lane(OrderedDict[R, None]):
    """The queued readers in order, and the readers whose reads are open."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.open: set[R] = set()
        self._limit = limit

    @property
    def has_room(self) -> bool:
        return len(self.open) < self._limit


class Reads(Generic[R]):
    """Reads that are queued and reads that are open, within one event loop.

    A read that is open for longer than ``PATIENCE_SECONDS`` makes room for another, unless too many are slow. The next
    time, a reader that was slow queues behind the other slow ones.

    :param read: makes the read of a reader, and raises nothing.
    """

    def __init__(self, read: Callable[[R], Awaitable[None]]) -> None:
        self._read = read
        self._lane, self._slow_lane = _Lane[R](MAX_READS_AT_ONCE), _Lane[R](MAX_SLOW_READS_AT_ONCE)
        # The event loop keeps only weak references to tasks.
        self._tasks: set[asyncio.Task[None]] = set()

    def __bool__(self) -> bool:
        """Whether any read is open."""
        return bool(self._tasks)

    def is_open(self, reader: R) -> bool:
        """Whether the read of this reader is open."""
        return reader in self._lane.open or reader in self._slow_lane.open

    def add(self, reader: R, *, first: bool = False) -> None:
        """Queue the read of a reader, unless it is already queued or open.

        :param first: queue it before all others.
        """
        if self.is_open(reader):
            return
        lane = self._slow_lane if reader.is_slow and not first else self._lane
        lane.setdefault(reader)
        if first:
            self._slow_lane.pop(reader, None)
            lane.move_to_end(reader, last=False)
        self._start()

    def drop(self, reader: R) -> None:
        """Cancel the read of this reader if it has not begun."""
        self._lane.pop(reader, None)
        self._slow_lane.pop(reader, None)

    def _start(self) -> None:
        for reader in [one for one in self._lane.open if one.is_slow]:
            if self._slow_lane.has_room:
                self._lane.open.remove(reader)
                self._slow_lane.open.add(reader)
        for lane in (self._lane, self._slow_lane):
            while lane and lane.has_room:
                reader, _ = lane.popitem(last=False)
                lane.open.add(reader)
                # The task must not run in the context of the trigger that happens to call this.
                task = Context().run(asyncio.create_task, self._run(reader))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _run(self, reader: R) -> None:
        begin = clock().monotonic()
        patience = clock().call_later(PATIENCE_SECONDS, partial(self._set_apart, reader))
        try:
            await self._read(reader)
        finally:
            patience.cancel()
            reader.is_slow = clock().monotonic() - begin >= PATIENCE_SECONDS
            self._lane.open.discard(reader)
            self._slow_lane.open.discard(reader)
        self._start()

    def _set_apart(self, reader: R) -> None:
        reader.is_slow = True
        self._start()
