"""The simulator's clock: real time plus an offset that tests may advance."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone


def stamp(moment: datetime) -> str:
    """Write ``moment`` as the service does: UTC, milliseconds, ``Z``."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def epoch_milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


class Clock:
    """Real time plus an offset; it never goes back."""

    def __init__(self) -> None:
        self._offset = timedelta()

    def now(self) -> datetime:
        """The simulated moment, timezone-aware, in UTC."""
        return datetime.now(timezone.utc) + self._offset

    def advance(self, seconds: float) -> None:
        """Move the clock forward; whatever falls due in between happens at its own moment.

        :param seconds: seconds to add, not negative
        :raises ValueError: ``seconds`` is negative
        """
        if seconds < 0:
            raise ValueError("the clock cannot go back")
        self._offset += timedelta(seconds=seconds)
