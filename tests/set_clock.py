"""A clock that a test sets, by which pauses take no time."""

from __future__ import annotations

import math
import threading

from airflow_provider_service.client._clock import Clock


class SetClock(Clock):
    """Stands still until somebody pauses, which takes no real time, or a test lets time pass.

    :param flows: whether real time passes, too.
    """

    def __init__(self, *, flows: bool = False) -> None:
        self._flows, self._began, self._passed = flows, super().now(), 0.0
        #: How long each pause took.
        self.pauses: list[float] = []

    def now(self) -> float:
        return (super().now() if self._flows else self._began) + self._passed

    def monotonic(self) -> float:
        return (super().monotonic() if self._flows else self._began) + self._passed

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._passed += seconds

    def wait(self, event: threading.Event, seconds: float, deadline: float = math.inf) -> bool:
        if not event.is_set():
            self.pauses.append(seconds)
            self.advance(max(0.0, min(seconds, deadline - self.now())))
        return event.is_set()

    async def async_sleep(self, seconds: float, deadline: float = math.inf) -> None:
        self.pauses.append(seconds)
        self.advance(seconds)
        await super().async_sleep(0)
