"""The guide's example of a maintenance window; tests/docs/test_task_pages.py runs it."""

from airflow.sdk import DAG, task

from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.operators.workflows import (
    ServiceActivateWorkflowOperator,
    ServiceDeactivateWorkflowOperator,
)

with DAG("maintenance_window", schedule=None) as dag:

    @task
    def active() -> list[dict[str, str | None]]:
        """Return the active workflows that use the database, with their active versions."""
        with ServiceHook() as service:
            found = service.workflows.list(active=True, tags="uses-database")
            return [{"workflow_id": one.id, "version_id": one.active_version_id} for one in found]

    @task
    def maintain() -> None:
        """Do what needs silence."""

    before = active()
    ids = before.map(lambda one: one["workflow_id"])
    off = ServiceDeactivateWorkflowOperator.partial(task_id="deactivate").expand(workflow_id=ids)
    on = ServiceActivateWorkflowOperator.partial(task_id="activate", trigger_rule="all_done").expand_kwargs(before)
    off >> maintain() >> on
