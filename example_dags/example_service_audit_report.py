"""Every week, write a report on the security of the instance and one on its executions, for people to read."""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG

from airflow_provider_service.operators.audit import ServiceGenerateAuditOperator
from airflow_provider_service.operators.insights import ServiceGetInsightsOperator

with DAG(
    "example_service_audit_report",
    schedule="@weekly",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    # A folder, or an address of object storage such as s3://my_conn@bucket/reports.
    params={"folder": "/tmp"},  # noqa: S108 - the user names the folder
    tags=["service", "example"],
) as dag:
    # The report is written first, so it exists even if a finding then fails the task.
    audit = ServiceGenerateAuditOperator(
        task_id="audit",
        fail_on=["database", "filesystem"],
        report_path="{{ params.folder }}/service-audit.html",
        retries=0,
    )

    insights = ServiceGetInsightsOperator(
        task_id="insights",
        report_path="{{ params.folder }}/service-insights.md",
    )
