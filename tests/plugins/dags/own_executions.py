"""A task for every way in which an execution becomes a task's own, with the ids that the run's configuration names."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG

from airflow_provider_service.operators.executions import ServiceRetryExecutionOperator
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.sensors.execution import ServiceExecutionSensor

POLLS: dict[str, Any] = {"deferrable": False, "poll_interval": 0.2, "retries": 0}

with DAG("own_executions", schedule=None, catchup=False) as dag:
    ServiceRunWorkflowOperator(task_id="webhook", workflow_id="{{ dag_run.conf['webhook'] }}", **POLLS)
    ServiceRunWorkflowOperator(task_id="form", workflow_name="Form", start="mcp", payload={"order": "7"}, **POLLS)
    ServiceRunWorkflowOperator(task_id="schedule", workflow_name="Schedule", start="mcp", **POLLS)
    ServiceRunWorkflowOperator(
        task_id="bridge", workflow_id="{{ dag_run.conf['called'] }}", start="bridge", timeout=60, **POLLS
    )
    ServiceRetryExecutionOperator(task_id="retry", execution_id="{{ dag_run.conf['failed'] }}", **POLLS)
    ServiceExecutionSensor(task_id="sensor", execution_id="{{ dag_run.conf['failed'] }}", poke_interval=0.2, retries=0)
