"""The clock of the package. Whatever waits, measures time or expires uses it, so that tests can replace it.

Only sockets wait in real time. This clock measures the time limit of an exchange, but the operating system measures the
timeout of each read and write. Replacing the clock therefore does not shorten the wait for a server that hangs.
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

# A signal that arrives just before the operating system begins a wait does not interrupt it, and Python runs the
# handler only after the wait. A wait of hours must not keep a task that is killed from noticing that.
_SIGNAL_SECONDS = 0.5


class Timer(Protocol):
    def cancel(self) -> object: ...


class Clock:
    """Real time."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def utcnow(self) -> datetime:
        return datetime.fromtimestamp(self.now(), UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, event: threading.Event, seconds: float, deadline: float = math.inf) -> bool:
        """Wait for an event until the deadline, in seconds since the epoch, and return whether it was set in time."""
        end = time.monotonic() + max(0.0, min(seconds, deadline - self.now()))
        while not event.is_set() and (left := end - time.monotonic()) > 0:
            event.wait(min(left, _SIGNAL_SECONDS))
        return event.is_set()

    def sleep(self, seconds: float, deadline: float = math.inf) -> None:
        """Sleep until the deadline, in seconds since the epoch."""
        self.wait(threading.Event(), seconds, deadline)

    async def async_sleep(self, seconds: float, deadline: float = math.inf) -> None:
        """Sleep in an event loop; the deadline only tells a clock that skips pauses how far it may skip."""
        await asyncio.sleep(max(0.0, seconds))

    async def wait_for(self, work: Awaitable[T], seconds: float) -> T:
        return await asyncio.wait_for(work, seconds)

    def call_later(self, seconds: float, call: Callable[[], object]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, call, context=Context())


_current: Clock = Clock()


def clock() -> Clock:
    return _current


@contextmanager
def using(other: C) -> Iterator[C]:
    global _current
    before, _current = _current, other
    try:
        yield other
    finally:
        _current = before
