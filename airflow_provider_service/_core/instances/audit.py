"""A security audit by a task or a command: its arguments, its output, and its result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.arguments import as_list, read_count, read_seconds, require, require_choice
from airflow_provider_service._core.reports.report import require_report_place, write_report
from airflow_provider_service._core.reports.sections import CATEGORIES, ID_RANK, audit_report, findings_of, rank

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.resources._audit import AuditReports

_MAX_SHOWN_LOCATIONS = 20


@dataclass(frozen=True)
class Audited:
    reports: AuditReports
    fail_on: Sequence[str]

    def lines(self) -> Iterator[str]:
        for title, report in self.reports.items():
            yield title
            for section in report.sections:
                yield f"  {section.title}: {section.description}"
                yield f"    Recommendation: {section.recommendation}"
                places = section.location or []
                for place in places[:_MAX_SHOWN_LOCATIONS]:
                    names = sorted((name for name in place if rank(name) < ID_RANK), key=rank)
                    yield "    - " + ", ".join(str(place[name]) for name in names)
                if len(places) > _MAX_SHOWN_LOCATIONS:
                    yield f"    and {len(places) - _MAX_SHOWN_LOCATIONS} more"

    def write_report(self, path: str | None, *, made_at: datetime, base_url: str) -> str | None:
        return write_report(path, lambda: audit_report(self.reports, self.fail_on, made_at=made_at, base_url=base_url))

    def to_result(self, *, report_path: str | None, url: str) -> dict[str, Any]:
        found = findings_of(self.reports)
        return {
            "findings": sum(map(len, found.values())),
            "by_category": {
                category: {
                    "sections": len(sections),
                    "locations": sum(len(section.location or ()) for section in sections),
                    "titles": [section.title for section in sections],
                }
                for category, sections in found.items()
            },
            "report_path": report_path,
            "url": url,
        }

    @property
    def failure(self) -> str | None:
        """Why the audit counts as a failure; None if it does not."""
        found = findings_of(self.reports)
        risky = [
            f"{category}: {', '.join(section.title for section in found[category])}"
            for category in self.fail_on
            if category in found
        ]
        return f"the audit has findings in {'; '.join(risky)}" if risky else None


def audit(
    client: Resources,
    *,
    categories: object,
    days_abandoned_workflow: int | str | None,
    fail_on: object,
    report_path: str | None,
    timeout: timedelta | float,
) -> Audited:
    seconds = read_seconds("timeout", timeout)
    days = None if days_abandoned_workflow is None else read_count("days_abandoned_workflow", days_abandoned_workflow)
    chosen = None if categories is None else _known("categories", categories)
    require(chosen != [], "categories must not be an empty list; None audits all of them")
    failing = _known("fail_on", fail_on)
    unseen = [category for category in failing if chosen is not None and category not in chosen]
    require(not unseen, f"fail_on names {', '.join(unseen)}, which categories does not include")
    require_report_place(report_path)
    return Audited(client.audit.generate(categories=chosen, days_abandoned_workflow=days, timeout=seconds), failing)


def _known(name: str, categories: object) -> list[Any]:
    listed = as_list(name, categories)
    for category in listed:
        require_choice(name, category, CATEGORIES)
    return listed
