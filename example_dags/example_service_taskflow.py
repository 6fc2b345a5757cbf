"""Run a workflow as a TaskFlow function: what it returns goes to the workflow, and what comes back is the output."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, task

with DAG("example_service_taskflow", schedule=None, catchup=False, tags=["service", "example"]) as dag:

    @task
    def collect() -> list[str]:
        """The regions to sync."""
        return ["eu", "us"]

    @task.service_workflow(workflow_name="Sync region", deferrable=True, poll_interval=1, retries=2)
    def sync(region: str, run_id: str | None = None) -> dict[str, Any]:
        """The payload of one run of the workflow."""
        return {"region": region, "requested_by": run_id}

    @task
    def total(outputs: Any) -> int:
        """Add up what the last nodes of all runs put out."""
        return sum(item["rows"] for items in outputs for item in items)

    total(sync.expand(region=collect()))
