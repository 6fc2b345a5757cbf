"""The guide's example of a maintenance window; tests/docs/test_task_pages.py runs it."""

from airflow.sdk import DAG, task

from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.operators.workflows import (
    ServiceActivateWorkflowOperator,
    ServiceDeactivateWorkflowOperator,
)

with DAG("maintenance_window", schedule=None) as dag:

    @task
    def active() -> list[str]:
        """Return the ids of the active workflows that use the database."""
        with ServiceHook() as service:
            return [workflow.id for workflow in service.workflows.list(active=True, tags="uses-database")]

    @task
    def maintain() -> None:
        """Do what needs silence."""

    ids = active()
    off = ServiceDeactivateWorkflowOperator.partial(task_id="deactivate").expand(workflow_id=ids)
    on = ServiceActivateWorkflowOperator.partial(task_id="activate", trigger_rule="all_done").expand(workflow_id=ids)
    off >> maintain() >> on
