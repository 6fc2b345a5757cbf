"""Operator for insights."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_service._core.arguments import as_rendered, read_moment
from airflow_provider_service._core.references import PROJECT
from airflow_provider_service.client._clock import clock
from airflow_provider_service.links.service import INSIGHTS_PAGE
from airflow_provider_service.operators._base import ServiceBaseOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated
    from airflow_provider_service.operators.results import InsightsResult

__all__ = ["ServiceGetInsightsOperator"]


class ServiceGetInsightsOperator(ServiceBaseOperator):
    """Read statistics on production executions in a time range. Safe to repeat. The service computes them with a delay.

    :param range_start: start of the range, as text or as a datetime with a time zone; None (the default) for seven days
        ago.
    :param range_end: end of the range, in the same form; None (the default) for now.
    :param project_id: id of the project whose executions to count; None (the default) for all projects. An unknown id
        yields zeros.
    :param project_name: exact name of that project, instead of its id.
    :param report_path: file for a readable report: a path, or an address of object storage such as
        ``s3://my_conn@bucket/report.html``. Its suffix chooses the format: ``.md``, ``.html`` or ``.json``. The
        directory must exist, and an existing file is replaced. None (the default) for no report.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: an :class:`InsightsResult` with ``{"value", "unit", "deviation"}`` for each statistic. The deviation is
        the change from the previous period, or None if there was no such period.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (
        *ServiceBaseOperator.template_fields,
        "range_start",
        "range_end",
        *PROJECT.fields,
        "report_path",
    )
    references = (PROJECT,)

    def __init__(
        self,
        *,
        range_start: Templated[datetime | str | None] = None,
        range_end: Templated[datetime | str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        report_path: Templated[str | None] = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.range_start = as_rendered(range_start)
        self.range_end = as_rendered(range_end)
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.report_path = as_rendered(report_path)
        self.check_arguments()

    def perform(self, context: Context) -> InsightsResult:
        from airflow_provider_service._core.reports.report import require_report_place, shown, write_report
        from airflow_provider_service._core.reports.sections import figures_of, insights_report

        require_report_place(self.report_path)
        url = self.link_page(context, INSIGHTS_PAGE)
        start, end = read_moment("range_start", self.range_start), read_moment("range_end", self.range_end)
        summary = self.hook.insights.get_summary(
            start_date=start, end_date=end, project_id=PROJECT.id_in(self, self.hook)
        )
        made_at = clock().utcnow()
        insights = figures_of(summary)
        values = ", ".join(f"{name} {shown(float(insight.value))} {insight.unit}" for name, insight in insights.items())
        self.log.info("Insights: %s: %s", values, url)
        path = write_report(self.report_path, lambda: insights_report(summary, start, end, made_at=made_at, url=url))
        result: dict[str, Any] = {
            name: {"value": insight.value, "unit": insight.unit, "deviation": insight.deviation}
            for name, insight in insights.items()
        }
        return cast("InsightsResult", {**result, "report_path": path, "url": url})
