"""Tasks whose lineage the real OpenLineage provider writes down; tests/dags/test_lineage.py runs them."""

from __future__ import annotations

from airflow.providers.common.compat.sdk import DAG, AssetAlias

from airflow_provider_service.operators.rows import ServiceUpsertRowsOperator
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.transfers.data_table_to_object_storage import ServiceDataTableToObjectStorageOperator

with DAG("lineage", schedule=None) as dag:
    write = ServiceUpsertRowsOperator(
        task_id="write",
        data_table_name="stock",
        rows=[{"sku": "a", "stock": 1}],
        key_columns="sku",
        outlets=[AssetAlias("stock")],
    )
    export = ServiceDataTableToObjectStorageOperator(
        task_id="export", data_table_name="stock", path="{{ dag_run.conf['path'] }}"
    )
    run = ServiceRunWorkflowOperator(task_id="run", workflow_name="works", poll_interval=0.1)
    deferred = ServiceRunWorkflowOperator(task_id="deferred", workflow_name="fails", deferrable=True, poll_interval=0.1)
    write >> export >> [run, deferred]
