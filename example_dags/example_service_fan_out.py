"""Run a workflow once for each of 100 parts, all at the same time, without occupying workers while they wait."""

from __future__ import annotations

from airflow.sdk import DAG, task

from airflow_provider_service.operators.deployment import ServiceCreateOrUpdateWorkflowOperator
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.operators.workflows import ServiceActivateWorkflowOperator

# The workflow as the service exports it. It answers with the id of its execution, so no run has to search for it.
WORKFLOW = {
    "name": "Airflow example: fan out",
    "nodes": [
        {
            "id": "start",
            "name": "Start",
            "type": "n8n-nodes-base.webhook",
            "webhookId": "0a516069-00e2-59bc-9054-651c86c2ef36",
            "typeVersion": 2,
            "position": [0, 0],
            "parameters": {
                "httpMethod": "POST",
                "path": "airflow-example-fan-out",
                "options": {"responseData": '={{ {"executionId": $execution.id} }}'},
            },
        },
        {
            "id": "work",
            "name": "Work",
            "type": "n8n-nodes-base.wait",
            "typeVersion": 1.1,
            "position": [200, 0],
            "parameters": {"resume": "timeInterval", "amount": 1, "unit": "seconds"},
        },
    ],
    "connections": {"Start": {"main": [[{"node": "Work", "type": "main", "index": 0}]]}},
    "settings": {},
}

with DAG(
    "example_service_fan_out", schedule=None, catchup=False, params={"parts": 100}, tags=["service", "example"]
) as dag:
    put_in_place = ServiceCreateOrUpdateWorkflowOperator(task_id="put_in_place", definition=WORKFLOW)
    # Running a workflow does not activate it: this task does so once for all 100 runs.
    activate = ServiceActivateWorkflowOperator(
        task_id="activate", workflow_id="{{ ti.xcom_pull(task_ids='put_in_place')['workflow_id'] }}"
    )

    @task
    def parts(params: dict[str, int]) -> list[dict[str, int]]:
        """Return the payload of each run."""
        return [{"part": number} for number in range(params["parts"])]

    # All deferred waits of a triggerer share their requests.
    run = ServiceRunWorkflowOperator.partial(
        task_id="run",
        workflow_id="{{ ti.xcom_pull(task_ids='activate')['workflow_id'] }}",
        deferrable=True,
        poll_interval=2,
        timeout=600,
        retries=2,
    ).expand(payload=parts())

    @task
    def gather(results: list[dict[str, str]]) -> int:
        """Count the runs that succeeded."""
        return sum(result["status"] == "success" for result in results)

    put_in_place >> activate >> run
    gather(run.output)
