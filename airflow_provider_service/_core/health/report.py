"""The findings of a health check: as a message, a table in the log, a result and a report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from airflow_provider_service._core.health.statistics import Breach, ExecutionStatistics, History, span
from airflow_provider_service._core.reports.report import Bar, Cell, Chart, Figure, Link, Report, Series, Table, Tone
from airflow_provider_service._core.text_table import cut, text_table
from airflow_provider_service.client._models import wire_time
from airflow_provider_service.client._values import one_line

#: Workflows in a result or a table, in a message, and in the chart of a report; the unhealthy ones come first.
MAX_WORKFLOWS = 50
MAX_NAMED = 10
MAX_BARS = 20

_INCOMPLETE = "the workflow does not keep all its executions, so the statistics are incomplete"
_COLUMNS = ("workflow", "runs", "failed", "canceled", "last success", "median", "95th", "breached")
_REPORT_COLUMNS = (
    "workflow",
    "state",
    "runs",
    "failed",
    "canceled",
    "failure rate",
    "last success",
    "median",
    "95th percentile",
    "reasons",
)


@dataclass(frozen=True)
class Member:
    workflow_id: str
    name: str
    keeps_executions: bool
    statistics: ExecutionStatistics
    breaches: list[Breach]
    url: str

    def to_xcom(self) -> dict[str, Any]:
        last_success = self.statistics.last_success_at
        return {
            "workflow_id": self.workflow_id,
            "name": self.name,
            **{name: _rounded(value) for name, value in asdict(self.statistics).items()},
            "last_success_at": None if last_success is None else wire_time(last_success),
            "breaches": [
                {"threshold": breach.threshold, "value": breach.value, "limit": breach.limit}
                for breach in self.breaches
            ],
            "url": self.url,
        }

    @property
    def reasons(self) -> str:
        doubts = [] if self.keeps_executions else [_INCOMPLETE]
        return "; ".join([*(breach.text for breach in self.breaches), *doubts])

    @property
    def times(self) -> list[str]:
        seconds = (self.statistics.success_age, self.statistics.duration_median, self.statistics.duration_p95)
        return ["-" if length is None else span(length) for length in seconds]


@dataclass(frozen=True)
class Health:
    """The findings of a check.

    :param window: length of the window, in seconds.
    :param is_judged: whether there are thresholds.
    :param history: the runs of all workflows over the window.
    :param url: page with their executions.
    """

    window_start: datetime
    window_end: datetime
    made_at: datetime
    window: float
    is_judged: bool
    members: list[Member]
    history: History
    url: str

    @property
    def unhealthy(self) -> list[Member]:
        breaching = [member for member in self.members if member.breaches]
        return sorted(breaching, key=lambda member: -len(member.breaches))

    @property
    def is_healthy(self) -> bool:
        return not self.unhealthy

    @property
    def message(self) -> str:
        unhealthy, checked = self.unhealthy, len(self.members)
        if not self.is_judged:
            return f"no thresholds are set; runs that failed {self._over}: {self._failed_of_runs}; workflows: {checked}"
        if not unhealthy:
            return f"no threshold is breached {self._over}; workflows: {checked}"
        are = "is" if len(unhealthy) == 1 else "are"
        named = ", ".join(
            f"'{one_line(member.name)}' ({member.reasons}) {member.url}" for member in unhealthy[:MAX_NAMED]
        )
        more = f", and {len(unhealthy) - MAX_NAMED} more" if len(unhealthy) > MAX_NAMED else ""
        return f"{len(unhealthy)} of {checked} workflows {are} unhealthy {self._over}: {named}{more}"

    @property
    def _over(self) -> str:
        if self.window_end == self.made_at:
            return f"over the last {span(self.window)}"
        return f"over the {span(self.window)} before {_minute(self.window_end)}"

    @property
    def _failed_of_runs(self) -> str:
        return f"{self._total('failed')} of {self._total('runs')}"

    @property
    def _failure_rate(self) -> float | None:
        runs = self._total("runs")
        return self._total("failed") / runs if runs else None

    def _total(self, name: str) -> int:
        return sum(getattr(member.statistics, name) for member in self.members)

    def _ordered(self) -> list[Member]:
        healthy = [member for member in self.members if not member.breaches]
        healthy.sort(key=lambda member: (-member.statistics.failed, -member.statistics.runs))
        return [*self.unhealthy, *healthy]

    def table(self) -> Iterator[str]:
        rows = []
        for member in self._ordered()[:MAX_WORKFLOWS]:
            figures = (member.statistics.runs, member.statistics.failed, member.statistics.canceled)
            breached = ", ".join(breach.threshold for breach in member.breaches) or "-"
            rows.append((cut(one_line(member.name)), *map(str, figures), *member.times, breached))
        yield from text_table(_COLUMNS, rows)
        if len(self.members) > MAX_WORKFLOWS:
            yield f"and {len(self.members) - MAX_WORKFLOWS} more workflows"

    def to_xcom(self) -> dict[str, Any]:
        return {
            "healthy": self.is_healthy,
            "message": self.message,
            "checked": len(self.members),
            "unhealthy": len(self.unhealthy),
            "runs": self._total("runs"),
            "failed": self._total("failed"),
            "failure_rate": _rounded(self._failure_rate),
            "window_start": wire_time(self.window_start),
            "window_end": wire_time(self.window_end),
            "workflows": [member.to_xcom() for member in self._ordered()[:MAX_WORKFLOWS]],
            "more": len(self.members) > MAX_WORKFLOWS,
            "url": self.url,
        }

    def to_report(self) -> Report:
        unhealthy, checked = len(self.unhealthy), len(self.members)
        tone: Tone = ("bad" if unhealthy else "good") if self.is_judged else "plain"
        return Report(
            title="Health of workflows",
            message=f"Workflows that breach a threshold {self._over}: {unhealthy} of {checked}."
            if self.is_judged
            else f"No thresholds are set. Runs that failed {self._over}: {self._failed_of_runs}.",
            tone=tone,
            made_at=self.made_at,
            url=self.url,
            figures=[
                Figure("Workflows", checked),
                Figure("Unhealthy", unhealthy if self.is_judged else "not judged", tone=tone),
                Figure("Runs", self._total("runs"), f"since {_minute(self.window_start)}"),
                Figure("Failed", self._total("failed")),
                Figure("Failure rate", _percent(self._failure_rate)),
            ],
            parts=[*self._charts(), Table("Workflows", _REPORT_COLUMNS, list(map(self._row, self._ordered())))],
        )

    def _row(self, member: Member) -> tuple[Cell, ...]:
        healthy = "healthy" if self.is_judged else "not judged"
        return (
            Link(member.name, member.url),
            "unhealthy" if member.breaches else healthy,
            member.statistics.runs,
            member.statistics.failed,
            member.statistics.canceled,
            _percent(member.statistics.failure_rate),
            *member.times,
            member.reasons,
        )

    def _charts(self) -> list[Chart]:
        ran = [member for member in self.members if member.statistics.runs]
        if not ran:
            return []
        ran.sort(key=lambda member: -member.statistics.runs)
        more = len(ran) - MAX_BARS
        incomplete = sum(not member.keeps_executions for member in self.members)
        over_time = (
            f"All runs by their start. Each bar covers {span(self.history.length.total_seconds())}, the first and the "
            f"last only what is in the window: from {_minute(self.window_start)} to {_minute(self.window_end)}. "
            "Executions that the service has deleted are not included."
            f"{f' Workflows that do not keep all their executions: {incomplete}.' if incomplete else ''}"
        )
        series = (Series("succeeded", "good"), Series("failed", "bad"))
        return [
            Chart(
                "Runs by workflow",
                series,
                [Bar(one.name, [one.statistics.succeeded, one.statistics.failed]) for one in ran[:MAX_BARS]],
                f"The {MAX_BARS} workflows with most runs; {more} more have fewer." if more > 0 else "",
            ),
            Chart(
                "Runs over time (UTC)",
                series,
                [Bar(f"{start:%Y-%m-%d %H:%M}", counts) for start, counts in self.history.slices()],
                over_time,
            ),
        ]


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M %Z}"


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{100 * rate:.4g} %"
