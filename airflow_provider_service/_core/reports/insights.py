"""The report on the insights of a time range."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from airflow_provider_service._core.reports.report import Bar, Chart, Figure, Report, Series, Table, shown

if TYPE_CHECKING:
    from airflow_provider_service.client.models import InsightsFigure, InsightsSummary

_LABELS = {
    "total": "Executions",
    "failed": "Failed",
    "failure_rate": "Failure rate",
    "time_saved": "Time saved",
    "average_run_time": "Average run time",
}


def figures_of(summary: InsightsSummary) -> Mapping[str, InsightsFigure]:
    """The figures by name."""
    return {name: getattr(summary, name) for name in _LABELS}


def insights_report(
    summary: InsightsSummary, range_start: datetime | None, range_end: datetime | None, *, made_at: datetime, url: str
) -> Report:
    """The report on a time range.

    :param range_start: start of the range; None if the service chose it, seven days ago.
    :param range_end: end of the range; None if the service chose it, now.
    :param url: page of the service.
    """
    figures = figures_of(summary)
    total, failed = float(summary.total.value), float(summary.failed.value)
    bars = [_bar("this period", total, failed), *_previous(summary)]
    return Report(
        title="Insights",
        message=f"{shown(total)} production executions from {_named(range_start, '7 days ago')} to "
        f"{_named(range_end, 'now')}; {shown(failed)} failed.",
        made_at=made_at,
        url=url,
        figures=[Figure(_LABELS[name], _shown(figure), _change(figure)) for name, figure in figures.items()],
        parts=[
            Chart("Executions", [Series("succeeded", "good"), Series("failed", "bad")], bars),
            Table(
                "Figures",
                ("figure", "value", "unit", "change"),
                [(_LABELS[name], one.value, one.unit, one.deviation) for name, one in figures.items()],
                note="The change is that from the previous period. The figures lag behind the executions.",
            ),
        ],
    )


def _bar(label: str, total: float, failed: float) -> Bar:
    return Bar(label, [max(total - failed, 0.0), max(failed, 0.0)])


def _previous(summary: InsightsSummary) -> list[Bar]:
    before = [
        float(one.value) - float(one.deviation) for one in (summary.total, summary.failed) if one.deviation is not None
    ]
    return [_bar("previous period", *before)] if len(before) == 2 else []


def _named(moment: datetime | None, otherwise: str) -> str:
    return otherwise if moment is None else f"{moment:%Y-%m-%d %H:%M %Z}".strip()


def _shown(figure: InsightsFigure) -> str:
    value = float(figure.value)
    if figure.unit == "ratio":
        return f"{100 * value:.4g} %"
    if figure.unit == "count":
        return shown(value)
    unit = {"millisecond": "ms", "minute": "min"}.get(figure.unit, figure.unit)
    return f"{shown(value)} {unit}"


def _change(figure: InsightsFigure) -> str:
    if figure.deviation is None:
        return ""
    change = float(figure.deviation)
    return f"{'-' if change < 0 else '+'}{shown(abs(change))} from the previous period"
