"""Time that passes at once: whoever waits for an execution moves the simulated service's clock instead of waiting."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_provider_service.waits.clock import Clock, going_by

if TYPE_CHECKING:
    from airflow_provider_service.simulator import ServiceSimulator

# Between two looks whether the reads of a poller's round have been answered.
_BREATH_SECONDS = 0.02


class PassingTime(Clock):
    """The clock of the waits and of a simulated service: both move together when a wait pauses.

    :param simulator: the simulated service.
    """

    def __init__(self, simulator: ServiceSimulator) -> None:
        self._simulator = simulator
        self._passed = 0.0

    def now(self) -> float:
        """Seconds since the epoch, with the time that has passed at once."""
        return time.time() + self._passed

    def monotonic(self) -> float:
        """Seconds that only go forward, with the time that has passed at once."""
        return time.monotonic() + self._passed

    def pause(self, stopped: threading.Event, seconds: float, deadline: float) -> bool:
        """Let the time of a pause pass at once."""
        self._pass(seconds, deadline)
        return stopped.is_set()

    async def sleep(self, seconds: float, deadline: float) -> None:
        """Let the time until the next round pass at once, when the reads of this one have been answered."""
        from airflow_provider_service.waits.poller import THREAD_NAME

        quiet = 0
        while quiet < 2:  # the end of a read can begin another
            await asyncio.sleep(_BREATH_SECONDS)
            quiet = 0 if any(one.name == THREAD_NAME for one in threading.enumerate()) else quiet + 1
        self._pass(max(seconds, _BREATH_SECONDS), deadline)

    def _pass(self, seconds: float, deadline: float) -> None:
        """Let as many pauses pass as nothing happens in, but none beyond the deadline."""
        left = max(deadline - self.now(), 0.0)
        pauses = math.inf if (ahead := self._seconds_to_next_event()) is None else max(1, math.ceil(ahead / seconds))
        step = min(pauses * seconds, left)
        if step == math.inf:  # nothing will ever happen, and no deadline ends the wait
            step = seconds
        self._simulator.in_loop(lambda: self._simulator.clock.advance(step))
        self._passed += step

    def _seconds_to_next_event(self) -> float | None:
        """Seconds until the service carries out what is due next; None if nothing is."""

        def look() -> float | None:
            state = self._simulator.state
            state.settle()
            due = state.schedule.next_due()
            return None if due is None else (due - state.clock.now()).total_seconds()

        return self._simulator.in_loop(look)


@contextmanager
def time_passes_at(simulator: ServiceSimulator) -> Iterator[None]:
    """Let waits of this process pass at once, and move the clock of a simulated service accordingly."""
    with going_by(PassingTime(simulator)):
        yield
