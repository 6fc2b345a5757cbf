"""The runs of all workflows over a window, counted by slices of equal length. Nothing here reads or sends."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from math import ceil

from airflow_provider_service._core.health.statistics import FAILURES

#: A window is as long as at most so many slices. Those at its start and end are only partly in it.
MAX_SLICES = 30

_WEEK = timedelta(days=7)
_LENGTHS = (
    *(timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 15, 30)),
    *(timedelta(hours=hours) for hours in (1, 2, 3, 6, 12)),
    *(timedelta(days=days) for days in (1, 2)),
)
# A Monday: slices begin at round times of the day in UTC, and weeks at its start.
_ORIGIN = datetime.min.replace(tzinfo=UTC)


class History:
    """Counts runs by the slice of time in which they started.

    :param start: start of the window.
    :param end: end of the window.
    """

    def __init__(self, start: datetime, end: datetime) -> None:
        lengths = (length for length in _LENGTHS if end - start <= MAX_SLICES * length)
        self.length = next(lengths, None) or _WEEK * ceil((end - start) / (MAX_SLICES * _WEEK))
        self._first = self._number(start)
        self._counts = [[0, 0] for _ in range(self._first, self._number(end) + 1)]

    def _number(self, moment: datetime) -> int:
        return (moment - _ORIGIN) // self.length

    def count(self, status: str, started_at: datetime) -> None:
        """Count one execution, unless it neither succeeded nor failed."""
        if status != "success" and status not in FAILURES:
            return
        # What starts while executions are read may be later than the window, and counts at its end.
        place = min(max(self._number(started_at) - self._first, 0), len(self._counts) - 1)
        self._counts[place][status in FAILURES] += 1

    def slices(self) -> Iterator[tuple[datetime, list[int]]]:
        """The start of each slice with its numbers of successes and failures, from the oldest to the newest."""
        for place, counts in enumerate(self._counts):
            yield _ORIGIN + (self._first + place) * self.length, counts
