"""Operator for the health of workflows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, cast

from airflow.providers.common.compat.sdk import AirflowSkipException

from airflow_provider_service._core.arguments import as_rendered, read_moment, require
from airflow_provider_service._core.health.check import CHECKS, DAY, NAMES, REFERENCES, HealthCheck
from airflow_provider_service.client.errors import ServiceUnhealthyError
from airflow_provider_service.links.service import ServicePageLink
from airflow_provider_service.operators._base import ServiceBaseOperator

if TYPE_CHECKING:
    from datetime import datetime

    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import Duration, TaskArguments, Templated
    from airflow_provider_service.operators.results import HealthResult

__all__ = ["ServiceWorkflowHealthCheckOperator"]

#: XCom key under which a task that fails or is skipped leaves its result.
HEALTH_KEY = "health"


class ServiceWorkflowHealthCheckOperator(ServiceBaseOperator):
    """Check the recent executions of workflows against thresholds. Safe to repeat: it only reads.

    The task computes statistics from the executions that started within the window, and checks each workflow separately
    against every threshold. A threshold of None, the default, is not checked. ``success`` counts as a success;
    ``error`` and ``crashed`` count as failures. Active and canceled executions count as neither, and executions that a
    person ran in the editor do not count at all.

    Choose a workflow, a tag, a project, or ``all_workflows=True``. Archived workflows are left out.

    :param workflow_id: id of the workflow.
    :param workflow_name: exact name of the workflow, instead of its id; archived ones do not count.
    :param tag_id: id of a tag; all workflows that have it are checked, even if they are inactive and did not run.
    :param tag_name: exact name of the tag, instead of its id.
    :param project_id: id of a project; its active workflows are checked, and those that ran within the window. With
        ``workflow_name`` or a tag, the project in which to look.
    :param project_name: exact name of the project, instead of its id.
    :param all_workflows: True to check the active workflows of every project, and those that ran within the window;
        False by default.
    :param window: length of the window, in seconds or as a timedelta; 24 hours by default.
    :param window_end: the end of the window: a datetime, or text, in which a missing time zone means UTC, for example
        ``"{{ data_interval_end }}"``. None (the default) for now, by the clock of the service; a later time means now.
    :param max_failure_rate: highest share of the runs that may have failed, from 0 to 1.
    :param max_age_of_success: seconds, or a timedelta, from the end of the last success to that of the window, at most
        ``window``; a workflow without a success in the window breaches it.
    :param min_runs: lowest number of runs that succeeded or failed.
    :param max_duration_median: highest median of the duration from start to end of a run, in seconds, or a timedelta.
    :param max_duration_p95: highest 95th percentile of that duration, in seconds, or a timedelta.
    :param on_breach: what to do if a threshold is breached: ``"fail"`` (the default), ``"skip"`` or ``"report"``. A
        task that fails is retried according to its ``retries``, and each attempt reads the statistics anew.
    :param report_path: file for a readable report: a path, or an address of object storage such as
        ``s3://my_conn@bucket/report.html``. Its suffix chooses the format: ``.md``, ``.html`` or ``.json``. The
        directory must exist, and an existing file is replaced. It is written even if the task then fails or is skipped.
        None (the default) for no report.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`HealthResult`. ``workflows`` holds the statistics of at most 50 workflows, unhealthy ones first:
        ``{"workflow_id", "name", "runs", "succeeded", "failed", "canceled", "failure_rate", "success_age",
        "duration_median", "duration_p95", "last_success_at", "breaches", "url"}``, with ``{"threshold", "value",
        "limit"}`` for each breach and all times in seconds. A task that fails or is skipped leaves its result under the
        XCom key ``health``.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    :raises ServiceUnhealthyError: a workflow breaches a threshold, with ``on_breach="fail"``.
    """

    template_fields: Sequence[str] = (*ServiceBaseOperator.template_fields, *NAMES, "window_end", "report_path")
    references = REFERENCES
    checks = CHECKS

    def __init__(
        self,
        *,
        workflow_id: Templated[str | None] = None,
        workflow_name: Templated[str | None] = None,
        tag_id: Templated[str | None] = None,
        tag_name: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        all_workflows: bool = False,
        window: Duration = DAY,
        window_end: Templated[datetime | str | None] = None,
        max_failure_rate: float | None = None,
        max_age_of_success: Duration | None = None,
        min_runs: int | None = None,
        max_duration_median: Duration | None = None,
        max_duration_p95: Duration | None = None,
        on_breach: Literal["fail", "skip", "report"] = "fail",
        report_path: Templated[str | None] = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.workflow_id = as_rendered(workflow_id)
        self.workflow_name = as_rendered(workflow_name)
        self.tag_id = as_rendered(tag_id)
        self.tag_name = as_rendered(tag_name)
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.all_workflows = all_workflows
        self.window = window
        self.window_end = as_rendered(window_end)
        self.max_failure_rate = max_failure_rate
        self.max_age_of_success = max_age_of_success
        self.min_runs = min_runs
        self.max_duration_median = max_duration_median
        self.max_duration_p95 = max_duration_p95
        self.on_breach = on_breach
        self.report_path = as_rendered(report_path)
        self.check_arguments()

    def perform(self, context: Context) -> HealthResult:
        from airflow_provider_service._core.health.reading import perform
        from airflow_provider_service._core.reports.report import require_report_place, write_report

        check = HealthCheck.of(self)
        require(check.judges or self.on_breach == "report", "give at least one threshold, or on_breach='report'")
        require_report_place(self.report_path)
        health = perform(check, self.hook.client, window_end=read_moment("window_end", self.window_end))
        ServicePageLink().push(context, health.url)
        for line in health.table():
            self.log.info("%s", line)
        report_path = write_report(self.report_path, health.to_report)
        result = cast("HealthResult", {**health.to_xcom(), "report_path": report_path})
        if health.is_healthy or self.on_breach == "report":
            log = self.log.info if health.is_healthy else self.log.warning
            log("Workflow health: %s", health.message)
            return result
        context["ti"].xcom_push(key=HEALTH_KEY, value=result)
        if self.on_breach == "skip":
            raise AirflowSkipException(health.message)
        raise ServiceUnhealthyError(health.message)
