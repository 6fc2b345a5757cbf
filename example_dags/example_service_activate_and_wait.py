"""Deploy a workflow, activate it, start it, and wait for the execution without occupying a worker."""

from __future__ import annotations

from airflow.sdk import DAG

from airflow_provider_service.operators.deployment import ServiceCreateOrUpdateWorkflowOperator
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.operators.workflows import ServiceActivateWorkflowOperator
from airflow_provider_service.sensors.execution import ServiceExecutionSensor

# The workflow as the service exports it: a webhook starts it, and it then waits for a second.
WORKFLOW = {
    "name": "Airflow example: activate and wait",
    "nodes": [
        {
            "id": "start",
            "name": "Start",
            "type": "n8n-nodes-base.webhook",
            "webhookId": "8ad7f168-e30b-5570-bd15-c8a4fd53064e",
            "typeVersion": 2,
            "position": [0, 0],
            "parameters": {"httpMethod": "POST", "path": "airflow-example-activate-and-wait", "options": {}},
        },
        {
            "id": "rest",
            "name": "Rest",
            "type": "n8n-nodes-base.wait",
            "typeVersion": 1.1,
            "position": [200, 0],
            "parameters": {"resume": "timeInterval", "amount": 1, "unit": "seconds"},
        },
    ],
    "connections": {"Start": {"main": [[{"node": "Rest", "type": "main", "index": 0}]]}},
    "settings": {},
}

with DAG("example_service_activate_and_wait", schedule=None, catchup=False, tags=["service", "example"]) as dag:
    put_in_place = ServiceCreateOrUpdateWorkflowOperator(task_id="put_in_place", definition=WORKFLOW)

    activate = ServiceActivateWorkflowOperator(
        task_id="activate", workflow_id="{{ ti.xcom_pull(task_ids='put_in_place')['workflow_id'] }}"
    )

    start = ServiceRunWorkflowOperator(
        task_id="start",
        workflow_id="{{ ti.xcom_pull(task_ids='activate')['workflow_id'] }}",
        payload={"requested_by": "{{ run_id }}"},
        wait_for_completion=False,
    )

    wait = ServiceExecutionSensor(
        task_id="wait",
        execution_id="{{ ti.xcom_pull(task_ids='start')['execution_id'] }}",
        deferrable=True,
        poke_interval=1,
        timeout=120,
    )

    put_in_place >> activate >> start >> wait
