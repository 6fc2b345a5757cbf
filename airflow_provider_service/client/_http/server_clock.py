"""The difference between the server's clock and ours, derived from the dates of its answers."""

from __future__ import annotations

import email.utils
from datetime import timedelta

# A date outside these years cannot come from a clock, and arithmetic with it can exceed the range of Python's dates.
_YEARS = range(1970, 9000)


class ServerClock:
    """Learns the offset of the server's clock from the ``Date`` header of its answers.

    A date counts whole seconds and was written at some time between the request and its answer, so each answer only
    gives a range for the offset. Several answers together narrow it down to a fraction of a second, and slow answers do
    no harm. When a clock is set, the old values no longer fit and are discarded.
    """

    def __init__(self) -> None:
        self._bounds: tuple[float, float] | None = None

    @property
    def offset(self) -> timedelta | None:
        """The server's time minus ours, to about a second; None before the first dated answer."""
        bounds = self._bounds
        return timedelta(seconds=sum(bounds) / 2) if bounds else None

    @property
    def certain_offset(self) -> timedelta | None:
        """The part of the offset that is certain, however slow the answers were; 0 if the clocks may agree."""
        if self._bounds is None:
            return None
        least, most = self._bounds
        return timedelta(seconds=max(least, 0.0) + min(most, 0.0))

    def learn(self, date: str | None, sent: float, answered: float) -> None:
        """Take the date of an answer into account.

        :param date: value of the ``Date`` header; anything but a plausible date is ignored.
        :param sent: our time when the request was sent, in seconds since 1970.
        :param answered: our time when the answer's headers had arrived.
        """
        try:
            written = email.utils.parsedate_to_datetime(date or "")
            if written.year not in _YEARS:
                return
            second = written.timestamp()
        except (TypeError, ValueError, IndexError, OverflowError):
            return
        least, most = second - answered, second + 1 - sent
        known = self._bounds
        if known and least <= known[1] and known[0] <= most:
            least, most = max(least, known[0]), min(most, known[1])
        if least <= most:  # not if our own clock was set back in the meantime
            self._bounds = least, most
