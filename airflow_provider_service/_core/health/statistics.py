"""Statistics on the executions of workflows, and the thresholds that they breach. Nothing here reads or sends."""

from __future__ import annotations

import statistics
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_service.client._constraints import ExecutionStatus

if TYPE_CHECKING:
    from airflow_provider_service._core.health.check import HealthCheck

#: Up to this many runs of a workflow, the statistics on durations are exact; above, a sample of this size is used.
MAX_DURATIONS = 10_000

# The service marks a lost execution as crashed. A person or a time limit has ended a canceled one: that says nothing
# about the workflow. The service's own insights count in the same way.
FAILURES: tuple[ExecutionStatus, ...] = ("error", "crashed")


@dataclass(frozen=True)
class ExecutionStatistics:
    """Statistics on the runs of one workflow that started within a window. Times are in seconds.

    :param runs: runs that succeeded or failed; those that are active or were canceled are neither.
    :param failure_rate: share of the runs that failed, from 0 to 1; like the durations, None without runs.
    :param success_age: time since the end of the last success; None without one.
    :param duration_p95: the shortest duration that 95 % of the runs did not exceed.
    """

    runs: int
    succeeded: int
    failed: int
    canceled: int
    failure_rate: float | None
    success_age: float | None
    duration_median: float | None
    duration_p95: float | None
    last_success_at: datetime | None


class Tally:
    """Counts the executions of one workflow, one at a time and in any order, in bounded memory.

    :param random: chooses which durations stay in the sample once there are too many.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._counts = {"success": 0, "error": 0, "crashed": 0, "canceled": 0}
        self._last_success: datetime | None = None
        self._durations = array("d")
        self._measured = 0

    def count(self, status: str, started_at: datetime | None, stopped_at: datetime | None) -> None:
        if status not in self._counts:
            return
        self._counts[status] += 1
        if status == "canceled" or stopped_at is None:
            return
        if status == "success" and (self._last_success is None or stopped_at > self._last_success):
            self._last_success = stopped_at
        if started_at is not None:
            # A clock that was set back in the meantime must not make durations negative.
            self._keep(max((stopped_at - started_at).total_seconds(), 0.0))

    def _keep(self, seconds: float) -> None:
        self._measured += 1
        if len(self._durations) < MAX_DURATIONS:
            self._durations.append(seconds)
            return
        place = self._random.randrange(self._measured)
        if place < MAX_DURATIONS:
            self._durations[place] = seconds

    def statistics(self, now: datetime) -> ExecutionStatistics:
        succeeded = self._counts["success"]
        failed = sum(self._counts[status] for status in FAILURES)
        durations = sorted(self._durations)
        age = max((now - self._last_success).total_seconds(), 0.0) if self._last_success else None
        return ExecutionStatistics(
            runs=succeeded + failed,
            succeeded=succeeded,
            failed=failed,
            canceled=self._counts["canceled"],
            failure_rate=failed / (succeeded + failed) if succeeded + failed else None,
            success_age=age,
            duration_median=statistics.median(durations) if durations else None,
            # The duration of a run, not a value between those of two: of 19 runs it is the longest.
            duration_p95=durations[(95 * len(durations) + 99) // 100 - 1] if durations else None,
            last_success_at=self._last_success,
        )


class Breach(NamedTuple):
    """A breached threshold, by its name, which is that of the argument.

    :param value: the measured value; None for the age of a success if there is none.
    :param text: value and limit in words.
    """

    threshold: str
    value: float | None
    limit: float
    text: str


def breaches(check: HealthCheck, found: ExecutionStatistics) -> list[Breach]:
    """The breached thresholds. Without runs, no rate or duration is too high."""
    breached = []
    measured: tuple[tuple[str, str, float | None, Callable[[float], str]], ...] = (
        ("max_failure_rate", "failure rate", found.failure_rate, "{:.4g}".format),
        ("max_age_of_success", "age of the last success", found.success_age, span),
        ("max_duration_median", "median duration", found.duration_median, span),
        ("max_duration_p95", "95th percentile of the duration", found.duration_p95, span),
    )
    for threshold, what, value, shown in measured:
        limit = getattr(check, threshold)
        if limit is not None and value is not None and value > limit:
            text = f"{what} {shown(value)}, above {threshold} {shown(limit)}"
            breached.append(Breach(threshold, value, limit, text))
    if check.max_age_of_success is not None and found.success_age is None:
        text = f"no success, max_age_of_success is {span(check.max_age_of_success)}"
        breached.append(Breach("max_age_of_success", None, check.max_age_of_success, text))
    if check.min_runs is not None and found.runs < check.min_runs:
        text = f"{found.runs} runs, below min_runs {check.min_runs}"
        breached.append(Breach("min_runs", found.runs, check.min_runs, text))
    return breached


def span(seconds: float) -> str:
    """A length of time in the largest unit that it has at least two of."""
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.4g} {unit}"
    return f"{seconds:.4g} s"


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
    def __init__(self, start: datetime, end: datetime) -> None:
        lengths = (length for length in _LENGTHS if end - start <= MAX_SLICES * length)
        self.length = next(lengths, None) or _WEEK * ceil((end - start) / (MAX_SLICES * _WEEK))
        self._first = self._number(start)
        self._counts = [[0, 0] for _ in range(self._first, self._number(end) + 1)]

    def _number(self, moment: datetime) -> int:
        return (moment - _ORIGIN) // self.length

    def count(self, status: str, started_at: datetime) -> None:
        if status != "success" and status not in FAILURES:
            return
        # What starts while executions are read may be later than the window, and counts at its end.
        place = min(max(self._number(started_at) - self._first, 0), len(self._counts) - 1)
        self._counts[place][status in FAILURES] += 1

    def slices(self) -> Iterator[tuple[datetime, list[int]]]:
        """The start of each slice with its numbers of successes and failures, from the oldest to the newest."""
        for place, counts in enumerate(self._counts):
            yield _ORIGIN + (self._first + place) * self.length, counts
