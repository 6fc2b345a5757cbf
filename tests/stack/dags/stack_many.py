"""Many mapped runs of workflows that the run's configuration names, deferred or not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

QUICK_RETRIES = {"retries": 50, "retry_delay": timedelta(seconds=1)}


@task
def plan(params: dict[str, Any]) -> list[dict[str, Any]]:
    """The workflow and the payload of each run."""
    workflows = params["workflows"]
    return [
        {"workflow_id": workflows[number % len(workflows)], "payload": {"part": number}}
        for number in range(params["runs"])
    ]


for dag_id, deferrable in (("stack_many", True), ("stack_many_in_worker", False)):
    with DAG(dag_id, schedule=None, catchup=False, default_args=QUICK_RETRIES, params={"workflows": [], "runs": 1}):
        ServiceRunWorkflowOperator.partial(
            task_id="run", deferrable=deferrable, poll_interval=2, timeout=3600
        ).expand_kwargs(plan())
