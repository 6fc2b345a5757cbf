"""The clock of the package: whatever waits, measures or expires takes its time from here, so that tests replace it.

Only sockets wait in real time: a limit on the wire is measured by this clock, but a server that says nothing is given
the seconds that are left as they pass in the world. Whoever replaces the clock therefore shortens no answer that hangs.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from datetime import UTC, datetime
from typing import Protocol, TypeVar

T = TypeVar("T")
C = TypeVar("C", bound="Clock")


class Timer(Protocol):
    """A planned call of a function."""

    def cancel(self) -> object:
        """Do not call it."""
        ...


class Clock:
    """Real time."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def utcnow(self) -> datetime:
        """The date and time in UTC."""
        return datetime.fromtimestamp(self.now(), UTC)

    def monotonic(self) -> float:
        """Seconds that no change of the machine's clock affects."""
        return time.monotonic()

    def wait(self, event: threading.Event, seconds: float, deadline: float = math.inf) -> bool:
        """Wait for an event; whether it was set in time.

        :param seconds: longest time to wait; at most the rest until the deadline counts.
        :param deadline: end of the polling that this is a pause of, in seconds since the epoch.
        """
        return event.wait(max(0.0, min(seconds, deadline - self.now())))

    def sleep(self, seconds: float, deadline: float = math.inf) -> None:
        """Let time pass, as :meth:`wait` for an event that never comes."""
        self.wait(threading.Event(), seconds, deadline)

    async def async_sleep(self, seconds: float, deadline: float = math.inf) -> None:
        """Let time pass in an event loop.

        :param seconds: how long.
        :param deadline: the nearest end of the polling that this is a pause of, in seconds since the epoch. It does not
            shorten the pause: a clock that skips pauses must not skip it.
        """
        await asyncio.sleep(max(0.0, seconds))

    async def wait_for(self, work: Awaitable[T], seconds: float) -> T:
        """Limit the time of work in an event loop.

        :raises asyncio.TimeoutError: it took longer, and was cancelled.
        """
        return await asyncio.wait_for(work, seconds)

    def call_later(self, seconds: float, call: Callable[[], object]) -> Timer:
        """Plan a call of a function in the running event loop, in no context."""
        return asyncio.get_running_loop().call_later(seconds, call, context=Context())


_current: Clock = Clock()


def clock() -> Clock:
    """The clock by which this process goes now."""
    return _current


@contextmanager
def using(other: C) -> Iterator[C]:
    """Let this process go by another clock."""
    global _current
    before, _current = _current, other
    try:
        yield other
    finally:
        _current = before
