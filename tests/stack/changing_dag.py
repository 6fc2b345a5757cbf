"""A DAG file that is rewritten while its runs last: with other constants."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

DAG_ID = "stack_changing"
VERSION = 1
NAME = "before"

with DAG(DAG_ID, schedule=None, catchup=False, params={"workflow_id": ""}):
    for name in ("deferred", "deferred_fails", "killed", f"deferred_{NAME}", NAME):
        ServiceRunWorkflowOperator(
            task_id=name,
            workflow_id="{{ params.workflow_id }}",
            payload={"task": name, "version": VERSION},
            deferrable=name.startswith("deferred"),
            poll_interval=1,
            timeout=3600,
            retries=20,
            retry_delay=timedelta(seconds=1),
        )
