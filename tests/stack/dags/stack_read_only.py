"""Every kind of task that writes files, for a worker that may write to few folders."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from airflow_provider_service.operators.backups import ServiceBackupOperator, ServiceRestoreOperator
from airflow_provider_service.operators.data_tables import ServiceCreateDataTableOperator
from airflow_provider_service.operators.instances import ServiceDeployWorkflowsOperator, ServiceExportWorkflowsOperator
from airflow_provider_service.operators.row_reads import ServiceReadRowsOperator
from airflow_provider_service.operators.rows import ServiceUpsertRowsOperator
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.sensors.execution import ServiceExecutionSensor
from airflow_provider_service.transfers.data_table_to_object_storage import ServiceDataTableToObjectStorageOperator
from airflow_provider_service.transfers.object_storage_to_data_table import ObjectStorageToServiceDataTableOperator

TABLE = "read_only"
FOLDER = "{{ params.folder }}"

with DAG(
    "stack_read_only",
    schedule=None,
    catchup=False,
    default_args={"queue": "read-only", "retries": 3, "retry_delay": timedelta(seconds=1)},
    params={"workflow_id": "", "folder": ""},
):
    runs = [
        ServiceRunWorkflowOperator(
            task_id=name,
            workflow_id="{{ params.workflow_id }}",
            payload={"part": part},
            return_output="last_node",
            output_path=f"{FOLDER}/{name}.json",
            deferrable=name == "deferred",
            poll_interval=1,
        )
        for part, name in enumerate(("blocking", "deferred"))
    ]
    ServiceExecutionSensor(
        task_id="sensor", execution_id="{{ ti.xcom_pull('blocking')['execution_id'] }}", poke_interval=1
    ).set_upstream(runs)

    create = ServiceCreateDataTableOperator(task_id="create", name=TABLE, columns={"key": "string", "text": "string"})
    upsert = ServiceUpsertRowsOperator(
        task_id="upsert",
        data_table_name=TABLE,
        key_columns=["key"],
        rows=[{"key": str(number), "text": "x" * 100} for number in range(500)],
    )
    read = ServiceReadRowsOperator(task_id="read", data_table_name=TABLE, path=f"{FOLDER}/rows.csv")
    unload = ServiceDataTableToObjectStorageOperator(
        task_id="unload", data_table_name=TABLE, path=f"{FOLDER}/rows.parquet"
    )
    load = ObjectStorageToServiceDataTableOperator(
        task_id="load",
        path=f"{FOLDER}/rows.parquet",
        data_table_name=TABLE,
        mode="replace",
        column_mapping={"id": None, "createdAt": None, "updatedAt": None},
    )
    back_up = ServiceBackupOperator(task_id="back_up", path=f"{FOLDER}/backup.zip", report_path=f"{FOLDER}/backup.md")
    check = ServiceRestoreOperator(task_id="check", path=f"{FOLDER}/backup.zip", on_conflict="skip", preview=True)
    export = ServiceExportWorkflowsOperator(
        task_id="export", path=f"{FOLDER}/workflows", workflow_names=["Read-only root"]
    )
    deploy = ServiceDeployWorkflowsOperator(task_id="deploy", source=f"{FOLDER}/workflows")
    create >> upsert >> [read, unload] >> load >> back_up >> check
    export >> deploy

    ServiceReadRowsOperator(task_id="elsewhere", data_table_name=TABLE, path="/elsewhere.csv").set_upstream(load)
