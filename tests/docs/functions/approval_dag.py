"""The guide's example of a person who approves; tests/docs/test_guide_dags.py runs it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

with DAG("human_approval", schedule=None, catchup=False) as dag:
    ask = ServiceRunWorkflowOperator(
        task_id="ask",
        workflow_name="Ask for approval",
        payload={"release": "{{ params.release }}"},
        return_output="last_node",
        deferrable=True,
        timeout=timedelta(days=3),
        params={"release": "2026-01"},
    )

    @task.short_circuit
    def is_approved(result: dict[str, Any]) -> bool:
        """Skip what follows unless the person approved."""
        [decision] = result["output"]
        return decision["approved"]

    publish = ServiceRunWorkflowOperator(task_id="publish", workflow_name="Publish", deferrable=True)

    is_approved(ask.output) >> publish
