"""A task whose first attempt fails with the workflow that it runs, and which is tried once more."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

with DAG("several_attempts", schedule=None, catchup=False) as dag:
    ServiceRunWorkflowOperator(
        task_id="webhook",
        workflow_id="{{ dag_run.conf['webhook'] }}",
        deferrable=False,
        poll_interval=0.2,
        retries=1,
        retry_delay=timedelta(0),
    )
