"""Run a workflow from a pipeline, wait for it in the triggerer, and use its output."""

from __future__ import annotations

from airflow.sdk import DAG, task

from airflow_provider_service.operators.deployment import ServiceCreateOrUpdateWorkflowOperator
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

# The workflow as the service exports it: a webhook starts it, it waits for a second, and outputs a report.
WORKFLOW = {
    "name": "Airflow example: run and wait",
    "nodes": [
        {
            "id": "start",
            "name": "Start",
            "type": "n8n-nodes-base.webhook",
            "webhookId": "375be8c2-2476-560e-9bfc-221250188ae4",
            "typeVersion": 2,
            "position": [0, 0],
            "parameters": {"httpMethod": "POST", "path": "airflow-example-run-and-wait", "options": {}},
        },
        {
            "id": "rest",
            "name": "Rest",
            "type": "n8n-nodes-base.wait",
            "typeVersion": 1.1,
            "position": [200, 0],
            "parameters": {"resume": "timeInterval", "amount": 1, "unit": "seconds"},
        },
        {
            "id": "report",
            "name": "Report",
            "type": "n8n-nodes-base.set",
            "typeVersion": 3.4,
            "position": [400, 0],
            "parameters": {"mode": "raw", "jsonOutput": '={{ {"day": $json.body.day, "orders": 3} }}', "options": {}},
        },
    ],
    "connections": {
        "Start": {"main": [[{"node": "Rest", "type": "main", "index": 0}]]},
        "Rest": {"main": [[{"node": "Report", "type": "main", "index": 0}]]},
    },
    "settings": {},
}

with DAG("example_service_run_and_wait", schedule=None, catchup=False, tags=["service", "example"]) as dag:
    # Whoever deploys a workflow decides that it is active; running it does not activate it.
    put_in_place = ServiceCreateOrUpdateWorkflowOperator(task_id="put_in_place", definition=WORKFLOW, activate=True)

    # A retry resumes an execution that was started, unless that execution failed.
    run = ServiceRunWorkflowOperator(
        task_id="run",
        workflow_id="{{ ti.xcom_pull(task_ids='put_in_place')['workflow_id'] }}",
        payload={"day": "2026-01-31", "requested_by": "{{ run_id }}"},
        return_output="last_node",
        deferrable=True,
        poll_interval=1,
        timeout=120,
        retries=2,
    )

    @task
    def use(result: dict[str, list[dict[str, str]]]) -> str:
        """Read the output of the workflow's last node."""
        [report] = result["output"]
        return f"{report['orders']} orders on {report['day']}"

    put_in_place >> run
    use(run.output)
