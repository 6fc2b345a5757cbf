"""Submit a form that starts a workflow, as a person would on its page, and act on what the workflow decides."""

from __future__ import annotations

from airflow.sdk import DAG, task

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

with DAG("example_service_approval", schedule=None, catchup=False, tags=["service", "example"]) as dag:
    submit = ServiceRunWorkflowOperator(
        task_id="submit",
        workflow_name="Approve an order",
        payload={"order": "{{ params.order }}", "amount": "{{ params.amount }}"},
        start="mcp",
        return_output="last_node",
        deferrable=True,
        poll_interval=1,
        timeout=120,
        params={"order": "4711", "amount": 250},
    )

    @task.short_circuit
    def is_approved(result: dict[str, list[dict[str, bool]]]) -> bool:
        """Skip what follows unless the order was approved."""
        [decision] = result["output"]
        return decision["approved"]

    @task
    def ship(order: str) -> str:
        """Stand for the rest of the pipeline."""
        return f"order {order} is on its way"

    is_approved(submit.output) >> ship("4711")
