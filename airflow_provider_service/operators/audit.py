"""Operator on the security audit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.arguments import as_list, read_count, read_seconds, require, require_choice
from airflow_provider_service.client.clock import clock
from airflow_provider_service.links import WORKFLOWS_PAGE, ServicePageLink
from airflow_provider_service.operators._base import ServiceBaseOperator
from airflow_provider_service.operators._report import require_report_place, write_report
from airflow_provider_service.reports.audit import CATEGORIES, audit_report, findings_of
from airflow_provider_service.task_arguments import LONG_CALL_SECONDS, as_rendered

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service.client.models.audit import AuditReport, AuditSection
    from airflow_provider_service.task_arguments import Duration, TaskArguments, Templated

#: XCom key under which a task that fails leaves what it would have returned.
AUDIT_KEY = "audit"

_MAX_LOCATIONS_IN_LOG = 20


class ServiceGenerateAuditOperator(ServiceBaseOperator):
    """Audit the instance, log a readable report, and fail on the findings that matter. Safe to repeat.

    :param categories: categories to audit: credentials, database, nodes, filesystem, instance; None, the default, for
        all of them.
    :param days_abandoned_workflow: number of days without an execution after which a workflow counts as abandoned;
        None (the default) for the server's own default.
    :param fail_on: categories whose findings fail the task; none by default.
    :param report_path: file for a report that people read: a path, or an address of object storage such as
        ``s3://my_conn@bucket/report.html``. Its suffix chooses the format: ``.md``, ``.html`` or ``.json``. The
        directory must exist, and an existing file is replaced. It is written even if the task then fails. None (the
        default) for no report.
    :param timeout: how long to wait for the report: a timedelta, or seconds; 300 by default.
    :param service_conn_id: Airflow connection of type ``service``; ``service_default`` by default.
    :returns: ``{"findings", "by_category", "report_path", "url"}``: the number of findings, and ``{"sections",
        "locations", "titles"}`` for each category that has any. The list of the instance's settings is not a finding. A
        task that fails on findings leaves the same under the XCom key ``audit``.
    """

    template_fields: Sequence[str] = (
        *ServiceBaseOperator.template_fields,
        "categories",
        "days_abandoned_workflow",
        "fail_on",
        "report_path",
    )
    operator_extra_links = (ServicePageLink(),)
    checks = {"timeout": read_seconds}

    def __init__(
        self,
        *,
        categories: Templated[Sequence[str] | None] = None,
        days_abandoned_workflow: Templated[int | str | None] = None,
        fail_on: Templated[Sequence[str]] = (),
        report_path: Templated[str | None] = None,
        timeout: Duration = LONG_CALL_SECONDS,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.categories = as_rendered(categories)
        self.days_abandoned_workflow = as_rendered(days_abandoned_workflow)
        self.fail_on = as_rendered(fail_on)
        self.report_path = as_rendered(report_path)
        self.timeout = timeout
        self.check_arguments()

    def perform(self, context: Context) -> dict[str, Any]:
        """Generate the report, log it, and fail on the findings that ``fail_on`` names."""
        timeout = read_seconds("timeout", self.timeout)
        days = self.days_abandoned_workflow
        if days is not None:
            days = read_count("days_abandoned_workflow", days)
        categories = None if self.categories is None else _known("categories", self.categories)
        require(categories != [], "categories must not be an empty list; None audits all of them")
        fail_on = _known("fail_on", self.fail_on)
        _require_audited(fail_on, categories)
        require_report_place(self.report_path)
        url = self.link_to(context, ServicePageLink(), WORKFLOWS_PAGE)
        reports = self.hook.audit.generate(categories=categories, days_abandoned_workflow=days, timeout=timeout)
        for title, report in reports.items():
            self.log.info("%s\n%s", title, "\n".join(_lines(report)))
        found = findings_of(reports)
        made_at = clock().utcnow()
        result = {
            "findings": sum(map(len, found.values())),
            "by_category": {category: _summary(sections) for category, sections in found.items()},
            "report_path": write_report(
                self.report_path, lambda: audit_report(reports, fail_on, made_at=made_at, url=url)
            ),
            "url": url,
        }
        risky = [f"{category}: {', '.join(_titles(found[category]))}" for category in fail_on if category in found]
        if risky:
            context["ti"].xcom_push(key=AUDIT_KEY, value=result)
            raise AirflowFailException(f"the audit has findings in {'; '.join(risky)}")
        self.log.info("The audit has %d findings in %d categories: %s", result["findings"], len(found), url)
        return result


def _known(name: str, categories: object) -> list[Any]:
    listed = as_list(name, categories)
    for category in listed:
        require_choice(name, category, CATEGORIES)
    return listed


def _require_audited(fail_on: Sequence[str], categories: Sequence[str] | None) -> None:
    unseen = [category for category in fail_on if categories is not None and category not in categories]
    require(not unseen, f"fail_on names {', '.join(unseen)}, which categories does not include")


def _titles(sections: Sequence[AuditSection]) -> list[str]:
    return [section.title for section in sections]


def _summary(sections: Sequence[AuditSection]) -> dict[str, Any]:
    return {
        "sections": len(sections),
        "locations": sum(len(section.location or ()) for section in sections),
        "titles": _titles(sections),
    }


def _lines(report: AuditReport) -> Iterator[str]:
    for section in report.sections:
        yield f"  {section.title}: {section.description}"
        yield f"    Recommendation: {section.recommendation}"
        places = section.location or []
        for place in places[:_MAX_LOCATIONS_IN_LOG]:
            yield "    - " + ", ".join(f"{name} {value}" for name, value in place.items())
        if len(places) > _MAX_LOCATIONS_IN_LOG:
            yield f"    and {len(places) - _MAX_LOCATIONS_IN_LOG} more"
