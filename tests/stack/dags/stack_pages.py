"""Runs that stay, or end, in every state that a page shows."""

from __future__ import annotations

from airflow.sdk import DAG

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

with DAG(
    "stack_pages",
    schedule=None,
    catchup=False,
    params={"workflows": {}},
):
    for ending in ("runs", "waits", "fails", "succeeds"):
        ServiceRunWorkflowOperator(
            task_id=ending,
            workflow_id=f"{{{{ params.workflows['{ending}'] }}}}",
            payload={"task": ending},
            deferrable=ending != "runs",
            poll_interval=1,
            timeout=3600,
            retries=0,
        )
