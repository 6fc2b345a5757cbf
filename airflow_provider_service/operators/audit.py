"""Operator for the security audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.arguments import LONG_CALL_SECONDS, as_rendered, read_seconds
from airflow_provider_service.client._clock import clock
from airflow_provider_service.links.service import WORKFLOWS_PAGE
from airflow_provider_service.operators._base import ServiceBaseOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated, TemplatedDuration
    from airflow_provider_service.operators.results import AuditResult

__all__ = ["ServiceGenerateAuditOperator"]

#: XCom key under which a task that fails leaves its result.
AUDIT_KEY = "audit"


class ServiceGenerateAuditOperator(ServiceBaseOperator):
    """Audit the instance, log the findings, and fail if chosen categories have any. Safe to repeat: it only reads.

    :param categories: categories to audit: credentials, database, nodes, filesystem and instance; None (the default)
        for all of them.
    :param days_abandoned_workflow: number of days without an execution after which a workflow counts as abandoned;
        None (the default) for the server's own default.
    :param fail_on: categories whose findings fail the task; none by default.
    :param report_path: file for a readable report: a path, or an address of object storage such as
        ``s3://my_conn@bucket/report.html``. Its suffix chooses the format: ``.md``, ``.html`` or ``.json``. The
        directory must exist, and an existing file is replaced. It is written even if the task then fails. None (the
        default) for no report.
    :param timeout: seconds, or a timedelta, to wait for the audit; 300 seconds by default.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: an :class:`AuditResult`: the number of findings, and ``{"sections", "locations", "titles"}`` for each
        category that has any. The list of the instance's settings is not a finding. A task that fails on findings
        leaves its result under the XCom key ``audit``.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (
        *ServiceBaseOperator.template_fields,
        "categories",
        "days_abandoned_workflow",
        "fail_on",
        "report_path",
        "timeout",
    )

    def __init__(
        self,
        *,
        categories: Templated[Sequence[str] | None] = None,
        days_abandoned_workflow: Templated[int | str | None] = None,
        fail_on: Templated[Sequence[str]] = (),
        report_path: Templated[str | None] = None,
        timeout: TemplatedDuration = LONG_CALL_SECONDS,
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

    def perform(self, context: Context) -> AuditResult:
        from airflow_provider_service._core.instances.audit import audit

        url = self.link_page(context, WORKFLOWS_PAGE)
        audited = audit(
            self.hook,
            categories=self.categories,
            days_abandoned_workflow=self.days_abandoned_workflow,
            fail_on=self.fail_on,
            report_path=self.report_path,
            timeout=read_seconds("timeout", self.timeout),
        )
        for line in audited.lines():
            self.log.info("%s", line)
        written = audited.write_report(self.report_path, made_at=clock().utcnow(), base_url=self.hook.config.base_url)
        result = cast("AuditResult", audited.to_result(report_path=written, url=url))
        if audited.failure:
            context["ti"].xcom_push(key=AUDIT_KEY, value=result)
            raise AirflowFailException(audited.failure)
        self.log.info(
            "The audit has %d findings in %d categories: %s", result["findings"], len(result["by_category"]), url
        )
        return result
