"""Runs whose tasks end in every way: with attempts left, in their last attempt, and in the triggerer."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

with DAG("stack_endings", schedule=None, catchup=False, params={"workflow_id": ""}):
    for name, retries in (("retried", 20), ("last", 0), ("deferred", 20)):
        ServiceRunWorkflowOperator(
            task_id=name,
            workflow_id="{{ params.workflow_id }}",
            payload={"task": name, "run": "{{ run_id }}"},
            deferrable=name == "deferred",
            poll_interval=1,
            timeout=3600,
            retries=retries,
            retry_delay=timedelta(seconds=5),
        )
