"""Statistics on the executions of one workflow, and the thresholds that they breach. Nothing here reads or sends."""

from __future__ import annotations

import statistics
from array import array
from dataclasses import asdict, dataclass
from datetime import datetime
from random import Random
from typing import Any, NamedTuple

from airflow_provider_service.client._constraints import ExecutionStatus

#: Up to this many runs of a workflow, the statistics on durations are exact; above, a sample of this size is used.
MAX_DURATIONS = 10_000

# The service marks a lost execution as crashed. A person or a time limit has ended a canceled one: that says nothing
# about the workflow. The service's own insights count in the same way.
FAILURES: tuple[ExecutionStatus, ...] = ("error", "crashed")


@dataclass(frozen=True)
class ExecutionStatistics:
    """Statistics on the runs of one workflow that started within a window.

    :param runs: runs that succeeded or failed; those that are active or were canceled are neither.
    :param failure_rate: share of the runs that failed, from 0 to 1; None without runs.
    :param success_age: seconds since the end of the last success; None without one.
    :param duration_median: seconds; None without runs.
    :param duration_p95: the shortest duration, in seconds, that 95 % of the runs did not exceed; None without runs.
    :param last_success_at: the end of the last success; None without one.
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
        """Count one execution, unless it has not ended."""
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

    @property
    def _failed(self) -> int:
        return sum(self._counts[status] for status in FAILURES)

    @property
    def _runs(self) -> int:
        return self._counts["success"] + self._failed

    def statistics(self, now: datetime) -> ExecutionStatistics:
        """The statistics on the counted executions.

        :param now: date and time, by the clock of the service, to which the age of the last success is measured.
        """
        age = max((now - self._last_success).total_seconds(), 0.0) if self._last_success else None
        return ExecutionStatistics(
            runs=self._runs,
            succeeded=self._counts["success"],
            failed=self._failed,
            canceled=self._counts["canceled"],
            failure_rate=self._failed / self._runs if self._runs else None,
            success_age=age,
            duration_median=statistics.median(self._durations) if self._durations else None,
            duration_p95=_p95(self._durations),
            last_success_at=self._last_success,
        )


def _p95(values: array[float]) -> float | None:
    # The duration of a run, not a value between those of two: of 19 runs it is the longest.
    place = (95 * len(values) + 99) // 100
    return sorted(values)[place - 1] if values else None


class Breach(NamedTuple):
    """A breached threshold.

    :param threshold: its name, which is that of the argument.
    :param value: the measured value; None for the age of a success if there is none.
    :param limit: the threshold.
    :param text: both in words.
    """

    threshold: str
    value: float | None
    limit: float
    text: str

    def to_xcom(self) -> dict[str, Any]:
        """The breach as a task returns it."""
        return {"threshold": self.threshold, "value": self.value, "limit": self.limit}


@dataclass(frozen=True)
class Thresholds:
    """The limits for the statistics of each workflow; None for no limit. Times are in seconds."""

    max_failure_rate: float | None = None
    max_age_of_success: float | None = None
    min_runs: int | None = None
    max_duration_median: float | None = None
    max_duration_p95: float | None = None

    def __bool__(self) -> bool:
        return any(limit is not None for limit in asdict(self).values())

    def breached_by(self, statistics: ExecutionStatistics) -> list[Breach]:
        """The breached thresholds. Without runs, no rate or duration is too high."""
        found = [
            self._above("max_failure_rate", "failure rate", statistics.failure_rate, "{:.4g}".format),
            self._above("max_age_of_success", "age of the last success", statistics.success_age, span),
            self._above("max_duration_median", "median duration", statistics.duration_median, span),
            self._above("max_duration_p95", "95th percentile of the duration", statistics.duration_p95, span),
        ]
        if self.max_age_of_success is not None and statistics.success_age is None:
            text = f"no success, max_age_of_success is {span(self.max_age_of_success)}"
            found.append(Breach("max_age_of_success", None, self.max_age_of_success, text))
        if self.min_runs is not None and statistics.runs < self.min_runs:
            text = f"{statistics.runs} runs, below min_runs {self.min_runs}"
            found.append(Breach("min_runs", statistics.runs, self.min_runs, text))
        return [breach for breach in found if breach]

    def _above(self, threshold: str, what: str, value: float | None, shown: Any) -> Breach | None:
        limit = getattr(self, threshold)
        if limit is None or value is None or value <= limit:
            return None
        return Breach(threshold, value, limit, f"{what} {shown(value)}, above {threshold} {shown(limit)}")


def span(seconds: float) -> str:
    """A length of time in the largest unit that it has at least two of."""
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.4g} {unit}"
    return f"{seconds:.4g} s"
