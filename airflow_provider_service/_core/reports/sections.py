"""The reports on a security audit, with what counts as a finding in it, and on the insights of a time range."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.reports.report import Bar, Cell, Chart, Figure, Link, Report, Series, Table, shown
from airflow_provider_service.links.service import CREDENTIALS_PAGE, WORKFLOW_PAGE, WORKFLOWS_PAGE, page_url

if TYPE_CHECKING:
    from airflow_provider_service.client.models import AuditSection, InsightsFigure, InsightsSummary
    from airflow_provider_service.client.resources._audit import AuditReports


CATEGORIES = ("credentials", "database", "nodes", "filesystem", "instance")
# The columns that come first, in this order; others follow, and ids come last.
_FIRST = ("name", "workflowName", "nodeName", "nodeType", "packageUrl", "filePath")
ID_RANK = len(_FIRST) + 1
#: What an audit found: the sections of each category that has any.
Findings = Mapping[str, Sequence["AuditSection"]]


def findings_of(reports: AuditReports) -> Findings:
    findings = {}
    for title, report in reports.items():
        # A title is, for example, "Credentials Risk Report"; ``risk`` is the category itself.
        category = report.risk if report.risk in CATEGORIES else title.partition(" ")[0].lower()
        # One section of the report on the instance always describes its settings.
        findings[category] = [section for section in report.sections if section.location or not _settings(section)]
    return {category: sections for category, sections in findings.items() if sections}


def _settings(section: AuditSection) -> Any:
    return (section.model_extra or {}).get("settings")


def audit_report(reports: AuditReports, risky: Sequence[str], *, made_at: datetime, base_url: str) -> Report:
    """The report on an audit, in which findings of the risky categories fail the task."""
    findings = findings_of(reports)
    places = {name: sum(len(section.location or ()) for section in sections) for name, sections in findings.items()}
    count = sum(map(len, findings.values()))
    failing = [category for category in risky if category in findings]
    message = f"Findings: {count}, in {len(findings)} {'category' if len(findings) == 1 else 'categories'}."
    if failing:
        message += f" Those in {', '.join(failing)} fail the task."
    bars = [Bar(category, [number]) for category, number in sorted(places.items(), key=lambda place: -place[1])]
    return Report(
        title="Security audit",
        message=message,
        tone="bad" if failing else "plain" if count else "good",
        made_at=made_at,
        url=page_url(base_url, WORKFLOWS_PAGE),
        figures=[
            Figure("Findings", count, tone="bad" if failing else "plain"),
            Figure("Categories with findings", len(findings)),
            Figure("Places", sum(places.values())),
        ],
        parts=[
            *([Chart("Places by category", [Series("places")], bars)] if bars else []),
            *(_table(category, section, base_url) for category, sections in findings.items() for section in sections),
            *(
                Table(section.title, ("Setting", "Value"), _flat(_settings(section)), note=section.description)
                for report in reports.values()
                for section in report.sections
                if _settings(section)
            ),
        ],
    )


def _table(category: str, section: AuditSection, base_url: str) -> Table:
    rows = section.location or []
    names = sorted(dict.fromkeys(name for row in rows for name in row), key=rank)
    return Table(
        f"{category}: {section.title}",
        [_title(name) for name in names],
        [[_linked(name, row, base_url) for name in names] for row in rows],
        note=f"{section.description} Recommendation: {section.recommendation}",
    )


def rank(name: str) -> int:
    """The position of a column: names that people know come first, and ids of the service, ``ID_RANK``, last."""
    if name in _FIRST:
        return _FIRST.index(name)
    return len(_FIRST) + (name.lower().endswith("id") or name == "kind")


def _title(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).removesuffix(" Name")
    return words[:1].upper() + words[1:].lower()


def _linked(name: str, row: Mapping[str, Any], base_url: str) -> Cell:
    value = _cell(row.get(name))
    if not isinstance(value, str):
        return value
    if name == "workflowName" and row.get("workflowId"):
        return Link(value, page_url(base_url, WORKFLOW_PAGE, str(row["workflowId"])))
    if name == "name" and row.get("kind") == "credential":
        return Link(value, page_url(base_url, CREDENTIALS_PAGE))
    return Link(value, value) if name == "packageUrl" else value


def _flat(settings: Any, name: str = "") -> list[tuple[str, str | int | float | None]]:
    if not isinstance(settings, Mapping):
        return [(name, _cell(settings))]
    return [row for key, inner in settings.items() for row in _flat(inner, f"{name}.{key}" if name else str(key))]


def _cell(value: Any) -> str | int | float | None:
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


_LABELS = {
    "total": "Executions",
    "failed": "Failed",
    "failure_rate": "Failure rate",
    "time_saved": "Time saved",
    "average_run_time": "Average run time",
}


def figures_of(summary: InsightsSummary) -> Mapping[str, InsightsFigure]:
    return {name: getattr(summary, name) for name in _LABELS}


def insights_report(
    summary: InsightsSummary, range_start: datetime | None, range_end: datetime | None, *, made_at: datetime, url: str
) -> Report:
    """The report on a time range; None for a start or an end that the service chose, seven days ago and now."""
    figures = figures_of(summary)
    total, failed = summary.total, summary.failed
    bars = [_bar("this period", float(total.value), float(failed.value))]
    before = [float(one.value) - float(one.deviation) for one in (total, failed) if one.deviation is not None]
    if len(before) == 2:
        bars.append(_bar("previous period", *before))
    return Report(
        title="Insights",
        message=f"{shown(float(total.value))} production executions from {_moment(range_start, '7 days ago')} to "
        f"{_moment(range_end, 'now')}; {shown(float(failed.value))} failed.",
        made_at=made_at,
        url=url,
        figures=[Figure(_LABELS[name], _value(figure), _change(figure)) for name, figure in figures.items()],
        parts=[
            Chart("Executions", [Series("succeeded", "good"), Series("failed", "bad")], bars),
            Table(
                "Figures",
                ("figure", "value", "unit", "change"),
                [(_LABELS[name], figure.value, figure.unit, figure.deviation) for name, figure in figures.items()],
                note="The change is that from the previous period. The figures lag behind the executions.",
            ),
        ],
    )


def _bar(label: str, total: float, failed: float) -> Bar:
    return Bar(label, [max(total - failed, 0.0), max(failed, 0.0)])


def _moment(moment: datetime | None, otherwise: str) -> str:
    return otherwise if moment is None else f"{moment:%Y-%m-%d %H:%M %Z}".strip()


def _value(figure: InsightsFigure) -> str:
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
