"""Every week, stop executions that hang, and delete failed executions that are no longer needed."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_service.operators.execution_selections import (
    ServiceDeleteExecutionsOperator,
    ServiceStopExecutionsOperator,
)

with DAG(
    "example_service_housekeeping",
    schedule="@weekly",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    tags=["service", "example"],
) as dag:
    stop_hanging = ServiceStopExecutionsOperator(
        task_id="stop_hanging", all_workflows=True, status="running", older_than=timedelta(days=1)
    )

    # With preview=True, it only reports what it would delete.
    delete_failed = ServiceDeleteExecutionsOperator(
        task_id="delete_failed",
        all_workflows=True,
        status=["error", "crashed"],
        older_than=timedelta(days=30),
        max_deletions=5_000,
    )

    stop_hanging >> delete_failed
