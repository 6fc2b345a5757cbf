"""The clock of all waits. The testing kit replaces it with one that does not wait."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Real time."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that no change of the machine's clock affects."""
        return time.monotonic()

    def pause(self, stopped: threading.Event, seconds: float, deadline: float) -> bool:
        """Let time pass between two looks of a worker; whether the wait was given up meanwhile.

        :param stopped: set from outside to give up.
        :param seconds: until the next look.
        :param deadline: end of the wait, in seconds since the epoch.
        """
        return stopped.wait(max(0.0, min(seconds, deadline - self.now())))

    async def sleep(self, seconds: float, deadline: float) -> None:
        """Let time pass between two rounds of a poller.

        :param seconds: until the next round.
        :param deadline: nearest end of a wait, in seconds since the epoch.
        """
        await asyncio.sleep(max(0.0, seconds))


_current = Clock()


def clock() -> Clock:
    """The clock by which waits go now."""
    return _current


@contextmanager
def going_by(other: Clock) -> Iterator[None]:
    """Let all waits of this process go by another clock."""
    global _current
    before, _current = _current, other
    try:
        yield
    finally:
        _current = before
