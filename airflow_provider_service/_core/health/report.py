"""The findings of a health check, as a message, a result and a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from airflow_provider_service._core.health.check import Breach, ExecutionStatistics, History, span
from airflow_provider_service._core.reports.report import Bar, Cell, Chart, Figure, Link, Report, Series, Table, Tone
from airflow_provider_service._core.text_table import cut, text_table
from airflow_provider_service.client._models import wire_time
from airflow_provider_service.client._values import one_line

#: Workflows in a result or a table, in a message, and in the chart of a report; the unhealthy ones come first.
MAX_WORKFLOWS = 50
MAX_NAMED = 10
MAX_BARS = 20

_INCOMPLETE = "the workflow does not keep all its executions, so the statistics are incomplete"


@dataclass(frozen=True)
class Member:
    """One workflow of a check."""

    workflow_id: str
    name: str
    keeps_executions: bool
    statistics: ExecutionStatistics
    breaches: list[Breach]
    url: str

    def to_xcom(self) -> dict[str, Any]:
        """The workflow as a task returns it."""
        statistics = {name: _rounded(value) for name, value in asdict(self.statistics).items()}
        last_success = self.statistics.last_success_at
        return {
            "workflow_id": self.workflow_id,
            "name": self.name,
            **statistics,
            "last_success_at": None if last_success is None else wire_time(last_success),
            "breaches": [breach.to_xcom() for breach in self.breaches],
            "url": self.url,
        }

    def words(self) -> str:
        """The breaches in words."""
        return f"'{one_line(self.name)}' ({self.reasons()}) {self.url}"

    def reasons(self) -> str:
        """The breached thresholds, in words, and reasons to doubt the statistics."""
        reasons = [breach.text for breach in self.breaches]
        if not self.keeps_executions:
            reasons.append(_INCOMPLETE)
        return "; ".join(reasons)

    def cells(self) -> tuple[str, ...]:
        """The workflow as a row of a table."""
        statistics = self.statistics
        return (
            cut(one_line(self.name)),
            str(statistics.runs),
            str(statistics.failed),
            str(statistics.canceled),
            _shown(statistics.success_age),
            _shown(statistics.duration_median),
            _shown(statistics.duration_p95),
            ", ".join(breach.threshold for breach in self.breaches) or "-",
        )

    def row(self, *, is_judged: bool) -> tuple[Cell, ...]:
        """The workflow as a row of a report.

        :param is_judged: whether there are thresholds.
        """
        statistics = self.statistics
        healthy = "healthy" if is_judged else "not judged"
        return (
            Link(self.name, self.url),
            "unhealthy" if self.breaches else healthy,
            statistics.runs,
            statistics.failed,
            statistics.canceled,
            _percent(statistics.failure_rate),
            _shown(statistics.success_age),
            _shown(statistics.duration_median),
            _shown(statistics.duration_p95),
            self.reasons(),
        )


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

_SERIES = (Series("succeeded", "good"), Series("failed", "bad"))


@dataclass(frozen=True)
class Health:
    """The findings of a check.

    :param window: length of the window, in seconds.
    :param is_judged: whether there are thresholds.
    :param members: the workflows.
    :param history: their runs over the window.
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
        """The workflows that breach a threshold, those with most breaches first."""
        return sorted((one for one in self.members if one.breaches), key=lambda one: -len(one.breaches))

    @property
    def is_healthy(self) -> bool:
        """Whether every workflow keeps to every threshold."""
        return not self.unhealthy

    @property
    def message(self) -> str:
        """One line for the task's log."""
        unhealthy, checked = self.unhealthy, len(self.members)
        over = self._over
        if not self.is_judged:
            return f"no thresholds are set; runs that failed {over}: {self._failed_of_runs()}; workflows: {checked}"
        if not unhealthy:
            return f"no threshold is breached {over}; workflows: {checked}"
        are = "is" if len(unhealthy) == 1 else "are"
        named = ", ".join(one.words() for one in unhealthy[:MAX_NAMED])
        rest = len(unhealthy) - MAX_NAMED
        more = f", and {rest} more" if rest > 0 else ""
        return f"{len(unhealthy)} of {checked} workflows {are} unhealthy {over}: {named}{more}"

    @property
    def _over(self) -> str:
        if self.window_end == self.made_at:
            return f"over the last {span(self.window)}"
        return f"over the {span(self.window)} before {_minute(self.window_end)}"

    def _ordered(self) -> list[Member]:
        others = (one for one in self.members if not one.breaches)
        return [*self.unhealthy, *sorted(others, key=lambda one: (-one.statistics.failed, -one.statistics.runs))]

    def _shown(self) -> list[Member]:
        return self._ordered()[:MAX_WORKFLOWS]

    def _total(self, name: str) -> int:
        return sum(getattr(one.statistics, name) for one in self.members)

    def _failed_of_runs(self) -> str:
        return f"{self._total('failed')} of {self._total('runs')}"

    def table(self) -> Iterator[str]:
        """The statistics as lines of a table."""
        yield from text_table(_COLUMNS, [one.cells() for one in self._shown()])
        if len(self.members) > MAX_WORKFLOWS:
            yield f"and {len(self.members) - MAX_WORKFLOWS} more workflows"

    def to_xcom(self) -> dict[str, Any]:
        """What a task returns."""
        runs, failed = self._total("runs"), self._total("failed")
        return {
            "healthy": self.is_healthy,
            "message": self.message,
            "checked": len(self.members),
            "unhealthy": len(self.unhealthy),
            "runs": runs,
            "failed": failed,
            "failure_rate": _rounded(failed / runs) if runs else None,
            "window_start": wire_time(self.window_start),
            "window_end": wire_time(self.window_end),
            "workflows": [one.to_xcom() for one in self._shown()],
            "more": len(self.members) > MAX_WORKFLOWS,
            "url": self.url,
        }

    def to_report(self) -> Report:
        """The report for people, with all workflows."""
        runs, failed = self._total("runs"), self._total("failed")
        unhealthy, checked = len(self.unhealthy), len(self.members)
        tone: Tone = ("bad" if unhealthy else "good") if self.is_judged else "plain"
        over = self._over
        rows = [one.row(is_judged=self.is_judged) for one in self._ordered()]
        return Report(
            title="Health of workflows",
            message=f"Workflows that breach a threshold {over}: {unhealthy} of {checked}."
            if self.is_judged
            else f"No thresholds are set. Runs that failed {over}: {self._failed_of_runs()}.",
            tone=tone,
            made_at=self.made_at,
            url=self.url,
            figures=[
                Figure("Workflows", checked),
                Figure("Unhealthy", unhealthy if self.is_judged else "not judged", tone=tone),
                Figure("Runs", runs, f"since {_minute(self.window_start)}"),
                Figure("Failed", failed),
                Figure("Failure rate", _percent(failed / runs if runs else None)),
            ],
            parts=[*self._charts(), Table("Workflows", _REPORT_COLUMNS, rows)],
        )

    def _charts(self) -> list[Chart]:
        if not self._total("runs"):
            return []
        most = sorted((one for one in self.members if one.statistics.runs), key=lambda one: -one.statistics.runs)
        bars = [Bar(one.name, [one.statistics.succeeded, one.statistics.failed]) for one in most[:MAX_BARS]]
        more = len(most) - len(bars)
        note = f"The {MAX_BARS} workflows with most runs; {more} more have fewer." if more else ""
        slices = [Bar(f"{start:%Y-%m-%d %H:%M}", counts) for start, counts in self.history.slices()]
        return [
            Chart("Runs by workflow", _SERIES, bars, note),
            Chart("Runs over time (UTC)", _SERIES, slices, self._slices_note()),
        ]

    def _slices_note(self) -> str:
        length = span(self.history.length.total_seconds())
        window = f"from {_minute(self.window_start)} to {_minute(self.window_end)}"
        incomplete = sum(not one.keeps_executions for one in self.members)
        return (
            f"All runs by their start. Each bar covers {length}, the first and the last only what is in the window: "
            f"{window}. Executions that the service has deleted are not included."
            f"{f' Workflows that do not keep all their executions: {incomplete}.' if incomplete else ''}"
        )


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M %Z}"


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def _shown(seconds: float | None) -> str:
    return "-" if seconds is None else span(seconds)


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{100 * rate:.4g} %"
