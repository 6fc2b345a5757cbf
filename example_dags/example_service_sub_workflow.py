"""Run a workflow that only other workflows can start, through the bridge, which is installed if it is missing."""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG

from airflow_provider_service.operators.bridge import ServiceInstallBridgeOperator
from airflow_provider_service.operators.deployment import ServiceCreateOrUpdateWorkflowOperator
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

# As the service exports it: "When executed by another workflow", and one node that adds a field to each item.
DEFINITION = {
    "name": "Airflow example: sub-workflow",
    "nodes": [
        {
            "name": "When called",
            "type": "n8n-nodes-base.executeWorkflowTrigger",
            "typeVersion": 1.1,
            "position": [0, 0],
            "parameters": {"inputSource": "passthrough"},
        },
        {
            "name": "Greet",
            "type": "n8n-nodes-base.set",
            "typeVersion": 3.4,
            "position": [220, 0],
            "parameters": {
                "mode": "raw",
                "jsonOutput": '={{ {"region": $json.region, "done": true} }}',
                "options": {},
            },
        },
    ],
    "connections": {"When called": {"main": [[{"node": "Greet", "type": "main", "index": 0}]]}},
    "settings": {},
}

with DAG(
    "example_service_sub_workflow",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    catchup=False,
    tags=["service", "example"],
) as dag:
    put_in_place = ServiceCreateOrUpdateWorkflowOperator(task_id="put_in_place", definition=DEFINITION)
    install = ServiceInstallBridgeOperator(task_id="install")
    run = ServiceRunWorkflowOperator(
        task_id="run",
        workflow_name="Airflow example: sub-workflow",
        payload=[{"region": "north"}, {"region": "south"}],
        activate=True,  # publishes the draft, which is what the task before has deployed
        return_output="last_node",
        deferrable=True,
        poll_interval=1,
    )

    put_in_place >> install >> run
