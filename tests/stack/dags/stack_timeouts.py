"""Runs that take too long for their task, or for their DAG run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

OF_TASK = timedelta(seconds=24)
OF_RUN = timedelta(seconds=45)


def too_long(task_id: str, **limits: Any) -> ServiceRunWorkflowOperator:
    """A run that does not end on its own."""
    return ServiceRunWorkflowOperator(
        task_id=task_id,
        workflow_id="{{ params.workflow_id }}",
        payload={"task": task_id, "run": "{{ run_id }}"},
        deferrable=task_id == "deferred",
        poll_interval=1,
        retries=0,
        **limits,
    )


with DAG("stack_execution_timeout", schedule=None, catchup=False, params={"workflow_id": ""}):
    for name in ("deferred", "in_worker"):
        too_long(name, execution_timeout=OF_TASK)

with DAG("stack_dagrun_timeout", schedule=None, catchup=False, params={"workflow_id": ""}, dagrun_timeout=OF_RUN):
    for name in ("deferred", "in_worker"):
        too_long(name)
