"""The guide's example of a branch; tests/docs/test_task_pages.py runs it."""

from __future__ import annotations

from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, task

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

with DAG("branch_on_output", schedule=None, catchup=False, render_template_as_native_obj=True) as dag:
    check = ServiceRunWorkflowOperator(
        task_id="check", workflow_name="Check stock", return_output="last_node", deferrable=True, poll_interval=1
    )

    @task.branch
    def choose(result: dict[str, Any]) -> str:
        """Return the id of the task that runs next."""
        [stock] = result["output"]
        return "order" if stock["missing"] else "done"

    order = ServiceRunWorkflowOperator(
        task_id="order",
        workflow_name="Order articles",
        payload="{{ ti.xcom_pull(task_ids='check')['output'][0] }}",
        deferrable=True,
        poll_interval=1,
    )

    choose(check.output) >> [order, EmptyOperator(task_id="done")]
