"""The guide's example of a backfill; tests/docs/test_guide_dags.py runs it."""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

with DAG("import_orders", schedule="@daily", start_date=datetime(2026, 1, 1), catchup=False, max_active_runs=5) as dag:
    ServiceRunWorkflowOperator(
        task_id="import",
        workflow_name="Import orders",
        payload={"day": "{{ ds }}"},
        deferrable=True,
        poll_interval=1,
        retries=2,
    )
