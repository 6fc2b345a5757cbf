"""Every night, pull the instance's content from source control, then audit the instance and fail on risks."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_service.operators.audit import ServiceGenerateAuditOperator
from airflow_provider_service.operators.source_control import ServicePullSourceControlOperator

with DAG(
    "example_service_nightly_audit",
    schedule="0 2 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
    tags=["service", "example"],
) as dag:
    # If local changes conflict with the pull, the task fails and names them; force=True would discard them.
    pull = ServicePullSourceControlOperator(task_id="pull", auto_publish="published")

    # A finding in one of these categories fails the task; the report is logged in any case.
    audit = ServiceGenerateAuditOperator(task_id="audit", fail_on=["credentials", "filesystem"], retries=0)

    pull >> audit
