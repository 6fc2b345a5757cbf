"""The guide's DAG with this provider; tests/docs/test_from_http_operators.py runs it."""

from datetime import datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

with DAG("sync_orders", schedule="0 2 * * *", start_date=datetime(2026, 1, 1), catchup=False) as dag:
    ServiceRunWorkflowOperator(
        task_id="sync",
        workflow_name="Sync orders",
        payload={"day": "{{ ds }}"},
        deferrable=True,
        timeout=timedelta(hours=2),
        retries=2,
    )
