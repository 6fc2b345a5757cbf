"""The simulator's clock, whose source and offset tests can set, the ``Date`` header of answers, and the schedule."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from starlette.types import ASGIApp, Message, Receive, Scope, Send


def stamp(moment: datetime) -> str:
    """Write ``moment`` as the service does: UTC, milliseconds, ``Z``."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def epoch_milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def real_time() -> datetime:
    return datetime.now(UTC)


class Clock:
    """The time of a source, which is real time unless a test sets another, plus an offset."""

    def __init__(self, source: Callable[[], datetime] = real_time) -> None:
        self.source = source
        self._offset = timedelta()

    def now(self) -> datetime:
        return self.source() + self._offset

    def advance(self, seconds: float) -> None:
        """Move the clock forward; everything that falls due in between happens at its own time."""
        if seconds < 0:
            raise ValueError("the clock cannot go back")
        self._offset += timedelta(seconds=seconds)

    def shift(self, seconds: float) -> None:
        """Make the clock wrong, also by negative seconds; scheduled actions keep their date and time."""
        self._offset += timedelta(seconds=seconds)


def with_date(app: ASGIApp, now: Callable[[], datetime]) -> ASGIApp:
    async def layer(scope: Scope, receive: Receive, send: Send) -> None:
        async def dated(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", [])]
                if not any(name.lower() == b"date" for name, _ in headers):
                    headers.append((b"date", format_datetime(now(), usegmt=True).encode()))
                message = {**message, "headers": headers}
            await send(message)

        await app(scope, receive, dated)

    return layer


Action = Callable[[datetime], None]


class Schedule:
    """A heap of actions by due time. Nothing runs until :meth:`run_due` is called."""

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, int, Action]] = []
        self._count = 0

    def at(self, moment: datetime, action: Action) -> None:
        self._count += 1
        heapq.heappush(self._heap, (moment, self._count, action))

    def run_due(self, now: datetime) -> None:
        """Carry out everything due by ``now`` in order of time, including actions added in the meantime."""
        while self._heap and self._heap[0][0] <= now:
            moment, _, action = heapq.heappop(self._heap)
            action(moment)

    def next_due(self) -> datetime | None:
        return self._heap[0][0] if self._heap else None

    def postpone(self, moment: datetime) -> None:
        """Postpone everything to ``moment`` at the earliest: a server that is down does nothing."""
        self._heap = [(max(due, moment), count, action) for due, count, action in self._heap]
        heapq.heapify(self._heap)
