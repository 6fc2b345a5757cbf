"""A check of the health of workflows: which ones, over which window, against which thresholds.

Statistics on the executions of one workflow, and the thresholds that they breach. Nothing here reads or sends.

The runs of all workflows over a window, counted by slices of equal length. Nothing here reads or sends.
"""

from __future__ import annotations

import statistics
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import partial
from math import ceil
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_service._core.arguments import (
    Check,
    optional,
    read_count,
    read_seconds,
    refuse,
    require,
    require_flag,
)
from airflow_provider_service._core.references import OPTIONAL_TAG, OPTIONAL_WORKFLOW, PROJECT
from airflow_provider_service.client._constraints import ExecutionStatus

if TYPE_CHECKING:
    from airflow_provider_service._core.references import Reference


#: The arguments that name workflows, a tag or a project. All are template fields.
REFERENCES = (OPTIONAL_WORKFLOW, OPTIONAL_TAG, PROJECT)
NAMES = tuple(name for reference in REFERENCES for name in reference.fields)
DAY = timedelta(hours=24)
#: Default time between two polls: health changes slowly, and a poll reads all executions of the window.
POLL_SECONDS = 300.0


def read_rate(name: str, value: float | str) -> float:
    """Read a part of a whole.

    :raises ServiceInputError: it is not a number from 0 to 1.
    """
    try:
        rate = -1.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        rate = -1.0
    if not 0 <= rate <= 1:
        refuse(name, "a number from 0 to 1", value)
    return rate


_READERS: Mapping[str, Check] = {
    "window": read_seconds,
    "max_failure_rate": optional(read_rate),
    "max_age_of_success": optional(read_seconds),
    "min_runs": optional(partial(read_count, least=1)),
    "max_duration_median": optional(read_seconds),
    "max_duration_p95": optional(read_seconds),
}
#: The check for each argument that is not a template field; the operator and the sensor share them.
CHECKS: Mapping[str, Check] = {"all_workflows": require_flag, **_READERS}


@dataclass(frozen=True)
class HealthCheck:
    """A check of the health of workflows. It contains only values that a trigger may store.

    :param workflow_id: the workflow.
    :param workflow_name: the workflow's exact name, instead of its id.
    :param tag_id: a tag, for all workflows that have it.
    :param tag_name: the tag's exact name, instead of its id.
    :param project_id: the project of the workflows; on its own, it selects all of them.
    :param project_name: the project's exact name, instead of its id.
    :param all_workflows: True for the workflows of every project.
    :param window: seconds before now within which an execution that counts has started.
    :param max_failure_rate: and the rest: the thresholds, as in :class:`~.statistics.Thresholds`.
    """

    workflow_id: str | None
    workflow_name: str | None
    tag_id: str | None
    tag_name: str | None
    project_id: str | None
    project_name: str | None
    all_workflows: bool
    window: float
    max_failure_rate: float | None
    max_age_of_success: float | None
    min_runs: int | None
    max_duration_median: float | None
    max_duration_p95: float | None

    @classmethod
    def of(cls, holder: object) -> HealthCheck:
        """The check whose values are attributes of an operator or a sensor.

        :raises ServiceInputError: a value is invalid, or some do not go together.
        """
        return cls.of_values(**{field.name: getattr(holder, field.name) for field in fields(cls)})

    @classmethod
    def of_values(cls, **given: Any) -> HealthCheck:
        """The check with these values, in which times may be timedeltas.

        :raises ServiceInputError: a value is invalid, or some do not go together.
        """
        require_flag("all_workflows", given["all_workflows"])
        read: dict[str, Any] = {name: read_one(name, given[name]) for name, read_one in _READERS.items()}
        one = cls(**{**given, **read})
        for name in NAMES:
            if given[name] is not None and not str(given[name]).strip():
                refuse(name, "text that is not empty", given[name])
        for reference in REFERENCES:
            reference.check(one, are_rendered=True)
        chosen = [*one._given(OPTIONAL_WORKFLOW), *one._given(OPTIONAL_TAG), *(["all_workflows"] * one.all_workflows)]
        require(
            len(chosen) == 1 or (not chosen and one._given(PROJECT)),
            "give either a workflow, a tag, a project, or all_workflows=True",
        )
        if one.max_age_of_success is not None:
            require(
                one.max_age_of_success <= one.window,
                "max_age_of_success must not be longer than window, since only executions within it are read",
            )
        return one

    @property
    def names_workflows(self) -> bool:
        """Whether every workflow is chosen by the user, so that it counts even if it is not active and did not run."""
        return bool(self._given(OPTIONAL_WORKFLOW) or self._given(OPTIONAL_TAG))

    def _given(self, reference: Reference) -> list[str]:
        return [name for name in reference.fields if getattr(self, name) is not None]

    def to_arguments(self) -> dict[str, Any]:
        """The check as arguments of a trigger, which Airflow stores."""
        return asdict(self)

    @property
    def thresholds(self) -> Thresholds:
        """The thresholds that every workflow must keep to."""
        return Thresholds(**{field.name: getattr(self, field.name) for field in fields(Thresholds)})


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
