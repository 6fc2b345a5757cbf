"""The main job: run a workflow and wait for it, fill a data table, pull from source control, and audit the instance."""

from __future__ import annotations

from airflow.sdk import DAG, task

from airflow_provider_service.operators.audit import ServiceGenerateAuditOperator
from airflow_provider_service.operators.data_tables import ServiceCreateDataTableOperator
from airflow_provider_service.operators.deployment import ServiceCreateOrUpdateWorkflowOperator
from airflow_provider_service.operators.rows import ServiceUpsertRowsOperator
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.operators.source_control import ServicePullSourceControlOperator
from airflow_provider_service.operators.workflows import ServiceActivateWorkflowOperator
from airflow_provider_service.sensors.execution import ServiceExecutionSensor

TABLE = "airflow_example_stock"
WORKFLOW = {
    "name": "Airflow example: main job",
    "nodes": [
        {
            "id": "start",
            "name": "Start",
            "type": "n8n-nodes-base.webhook",
            "webhookId": "36f51fdc-99fd-5952-ad8b-9e789617e1ee",
            "typeVersion": 2,
            "position": [0, 0],
            "parameters": {"httpMethod": "POST", "path": "airflow-example-main-job", "options": {}},
        },
        {
            "id": "work",
            "name": "Work",
            "type": "n8n-nodes-base.wait",
            "typeVersion": 1.1,
            "position": [200, 0],
            "parameters": {"resume": "timeInterval", "amount": 2, "unit": "seconds"},
        },
    ],
    "connections": {"Start": {"main": [[{"node": "Work", "type": "main", "index": 0}]]}},
    "settings": {},
}

with DAG(
    "example_service_main_job",
    schedule=None,
    catchup=False,
    # Source control is not part of every plan of the service.
    params={"pull": True},
    tags=["service", "example"],
) as dag:
    put_in_place = ServiceCreateOrUpdateWorkflowOperator(task_id="put_workflow_in_place", definition=WORKFLOW)
    activate = ServiceActivateWorkflowOperator(
        task_id="activate_workflow", workflow_id="{{ ti.xcom_pull(task_ids='put_workflow_in_place')['workflow_id'] }}"
    )

    create_table = ServiceCreateDataTableOperator(
        task_id="create_table", name=TABLE, columns={"sku": "string", "stock": "number"}
    )
    fill_table = ServiceUpsertRowsOperator(
        task_id="fill_table",
        data_table_name=TABLE,
        key_columns=["sku"],
        rows=[{"sku": f"A-{number}", "stock": number} for number in range(1, 101)],
    )

    @task.short_circuit(ignore_downstream_trigger_rules=False)
    def has_source_control(params: dict[str, bool]) -> bool:
        """Skip the pull if the plan does not include source control."""
        return params["pull"]

    pull = ServicePullSourceControlOperator(task_id="pull_source_control")
    audit = ServiceGenerateAuditOperator(task_id="generate_audit", trigger_rule="none_failed")

    start = ServiceRunWorkflowOperator(
        task_id="start_workflow",
        workflow_id="{{ ti.xcom_pull(task_ids='activate_workflow')['workflow_id'] }}",
        payload={"requested_by": "{{ run_id }}"},
        wait_for_completion=False,
    )
    wait = ServiceExecutionSensor(
        task_id="wait_for_execution",
        execution_id="{{ ti.xcom_pull(task_ids='start_workflow')['execution_id'] }}",
        deferrable=True,
        poke_interval=1,
        timeout=120,
    )

    put_in_place >> activate >> start >> wait
    create_table >> fill_table >> start
    has_source_control() >> pull >> audit
