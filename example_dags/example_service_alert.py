"""Send an alert to a workflow when a task fails; the workflow passes it on to chat, mail or a ticket system."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_service.notifications.workflow import ServiceNotifier
from airflow_provider_service.operators.deployment import ServiceCreateOrUpdateWorkflowOperator
from airflow_provider_service.operators.workflows import ServiceActivateWorkflowOperator

# The workflow as the service exports it. Add the nodes that send the message after this one.
WORKFLOW: dict[str, Any] = {
    "name": "Airflow example: alert",
    "nodes": [
        {
            "id": "alert",
            "name": "Alert",
            "type": "n8n-nodes-base.webhook",
            "webhookId": "5d0c4f3e-6f2c-5c0e-9d57-5a8f0c6f6c11",
            "typeVersion": 2,
            "position": [0, 0],
            "parameters": {"httpMethod": "POST", "path": "airflow-example-alert", "options": {}},
        },
    ],
    "connections": {},
    "settings": {},
}

alert = ServiceNotifier(
    workflow_name=WORKFLOW["name"],
    message="{{ ti.task_id }} of {{ ti.dag_id }} has failed",
    # A run that was started by hand or by an asset may have no logical date; {{ ds }} is then undefined.
    details={"logical_date": "{{ dag_run.logical_date or '' }}"},
)

with DAG("example_service_alert", schedule=None, catchup=False, tags=["service", "example"]) as dag:
    put_in_place = ServiceCreateOrUpdateWorkflowOperator(task_id="put_in_place", definition=WORKFLOW)

    activate = ServiceActivateWorkflowOperator(task_id="activate", workflow_name=WORKFLOW["name"])

    @task(on_failure_callback=alert)
    def load() -> None:
        """Fail."""
        raise ValueError("there is nothing to load")

    put_in_place >> activate >> load()
