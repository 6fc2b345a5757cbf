"""Run a workflow that has only a schedule of its own, after the data that it needs has arrived."""

from __future__ import annotations

from airflow.sdk import DAG, task

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

with DAG("example_service_nightly", schedule=None, catchup=False, tags=["service", "example"]) as dag:
    # The connection needs an mcp_api_key, because no webhook starts this workflow.
    sync = ServiceRunWorkflowOperator(
        task_id="sync",
        workflow_name="Nightly inventory",
        enable_mcp=True,
        return_output="last_node",
        deferrable=True,
        poll_interval=1,
        timeout=120,
        retries=2,
    )

    @task
    def use(result: dict[str, list[dict[str, int]]]) -> int:
        """Read the output of the workflow's last node."""
        [inventory] = result["output"]
        return inventory["articles"]

    use(sync.output)
