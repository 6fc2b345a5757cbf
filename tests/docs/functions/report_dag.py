"""The guide's example of a run whose output is used; tests/docs/test_task_pages.py runs it."""

from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

with DAG("daily_report", schedule=None) as dag:
    report = ServiceRunWorkflowOperator(
        task_id="report",
        workflow_name="Build report",
        payload={"day": "2026-01-31", "requested_by": "{{ run_id }}"},
        return_output="last_node",
        deferrable=True,
        timeout=3600,
        retries=2,
    )

    @task
    def count_orders(result: dict[str, Any]) -> int:
        """Use the items of the last node."""
        [item] = result["output"]
        return int(item["orders"])

    count_orders(report.output)
