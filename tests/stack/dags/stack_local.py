"""Runs in processes of the scheduler: one that waits there, a deferred one, and a mapped group of five."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, task_group

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator


def run(name: str, part: Any, *, deferrable: bool = False) -> None:
    """Run the workflow that the run's configuration names."""
    ServiceRunWorkflowOperator(
        task_id=name,
        workflow_id="{{ params.workflow_id }}",
        payload={"part": part},
        deferrable=deferrable,
        poll_interval=1,
        timeout=3600,
    )


with DAG(
    "stack_local",
    schedule=None,
    catchup=False,
    default_args={"executor": "LocalExecutor", "retries": 20, "retry_delay": timedelta(seconds=1)},
    params={"workflow_id": ""},
):
    run("blocking", 0)
    run("deferred", 1, deferrable=True)

    @task_group
    def five(part: int) -> None:
        """Each waits in a process of the scheduler."""
        run("mapped", part)

    five.expand(part=[2, 3, 4, 5, 6])
