"""The guide's example of a nightly run; tests/docs/test_task_pages.py runs it."""

from datetime import datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_service.notifications.workflow import ServiceNotifier
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

with DAG("nightly_sync", schedule="0 2 * * *", start_date=datetime(2026, 1, 1), catchup=False) as dag:
    ServiceRunWorkflowOperator(
        task_id="sync",
        workflow_name="Nightly sync",
        payload={"day": "{{ ds }}"},
        deferrable=True,
        timeout=timedelta(hours=2),
        retries=2,
        on_failure_callback=ServiceNotifier(
            workflow_name="Alert", message="{{ ti.task_id }} of {{ ti.dag_id }} has failed"
        ),
    )
