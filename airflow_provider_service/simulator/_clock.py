"""The simulator's clock, whose source and offset tests can set, and the ``Date`` header of answers."""

from __future__ import annotations

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
    """The date and time of this machine, in UTC."""
    return datetime.now(UTC)


class Clock:
    """The time of a source, which is real time unless a test sets another, plus an offset."""

    def __init__(self, source: Callable[[], datetime] = real_time) -> None:
        self.source = source
        self._offset = timedelta()

    def now(self) -> datetime:
        """The simulated date and time, timezone-aware, in UTC."""
        return self.source() + self._offset

    def advance(self, seconds: float) -> None:
        """Move the clock forward; everything that falls due in between happens at its own time.

        :param seconds: seconds to add, not negative
        :raises ValueError: ``seconds`` is negative
        """
        if seconds < 0:
            raise ValueError("the clock cannot go back")
        self._offset += timedelta(seconds=seconds)

    def shift(self, seconds: float) -> None:
        """Make the clock wrong, as on a badly maintained server; scheduled actions keep their date and time.

        :param seconds: seconds to add; negative ones set the clock back
        """
        self._offset += timedelta(seconds=seconds)


class DateLayer:
    """ASGI layer that dates every answer by the simulated clock.

    :param now: the clock's date and time
    """

    def __init__(self, app: ASGIApp, now: Callable[[], datetime]) -> None:
        self._app = app
        self._now = now

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add a ``Date`` header to an answer that has none."""

        async def dated(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", [])]
                if not any(name.lower() == b"date" for name, _ in headers):
                    headers.append((b"date", format_datetime(self._now(), usegmt=True).encode()))
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, dated)
