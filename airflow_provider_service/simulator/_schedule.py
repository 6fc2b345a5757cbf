"""The schedule: a heap of actions that are carried out lazily, each with its own date and time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import datetime

Action = Callable[[datetime], None]


class Schedule:
    """Actions by due time. Nothing runs until :meth:`run_due` is called."""

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, int, Action]] = []
        self._count = 0

    def at(self, moment: datetime, action: Action) -> None:
        """Schedule ``action(moment)`` for ``moment``."""
        self._count += 1
        heapq.heappush(self._heap, (moment, self._count, action))

    def run_due(self, now: datetime) -> None:
        """Carry out everything due by ``now`` in order of time, including actions added in the meantime."""
        while self._heap and self._heap[0][0] <= now:
            moment, _, action = heapq.heappop(self._heap)
            action(moment)

    def next_due(self) -> datetime | None:
        """The date and time of the next action; None if there is none."""
        return self._heap[0][0] if self._heap else None

    def postpone(self, moment: datetime) -> None:
        """Postpone everything to ``moment`` at the earliest: a server that is down does nothing."""
        self._heap = [(max(due, moment), count, action) for due, count, action in self._heap]
        heapq.heapify(self._heap)
