"""An example of each operator that no example DAG shows; the API reference shows them.

tests/docs/test_operator_examples.py runs the tasks in this order.
"""

from datetime import timedelta

from airflow.sdk import DAG

from airflow_provider_service.operators.community_packages import ServiceInstallCommunityPackageOperator
from airflow_provider_service.operators.credentials import ServiceCreateCredentialOperator
from airflow_provider_service.operators.desired_state import (
    ServiceEnsureProjectsOperator,
    ServiceEnsureVariablesOperator,
)
from airflow_provider_service.operators.executions import ServiceRetryExecutionOperator, ServiceStopExecutionOperator
from airflow_provider_service.operators.generic import ServiceOperator
from airflow_provider_service.operators.rows import (
    ServiceDeleteRowsOperator,
    ServiceInsertRowsOperator,
    ServiceUpdateRowsOperator,
)
from airflow_provider_service.operators.source_control import ServicePushSourceControlOperator
from airflow_provider_service.operators.tags import ServiceCreateTagOperator
from airflow_provider_service.operators.users import ServiceInviteUsersOperator
from airflow_provider_service.operators.variables import (
    ServiceCreateVariableOperator,
    ServiceDeleteVariableOperator,
    ServiceUpdateVariableOperator,
)
from airflow_provider_service.operators.workflows import (
    ServiceArchiveWorkflowOperator,
    ServiceDeactivateWorkflowOperator,
    ServiceSetWorkflowTagsOperator,
    ServiceTransferWorkflowOperator,
    ServiceUnarchiveWorkflowOperator,
)
from airflow_provider_service.sensors.health import ServiceWorkflowHealthSensor
from airflow_provider_service.sensors.rows import ServiceRowSensor
from airflow_provider_service.sensors.source_control import ServiceSourceControlSensor
from airflow_provider_service.transfers.data_table_to_object_storage import ServiceDataTableToObjectStorageOperator
from airflow_provider_service.transfers.data_table_to_sql import ServiceDataTableToSqlOperator
from airflow_provider_service.transfers.object_storage_to_data_table import ObjectStorageToServiceDataTableOperator
from airflow_provider_service.transfers.sql_to_data_table import SqlToServiceDataTableOperator

with DAG("operators_one_by_one", schedule=None, params={"execution_id": "1", "folder": "/data"}) as dag:
    # Only the failed node and those after it run again.
    ServiceRetryExecutionOperator(
        task_id="retry", execution_id="{{ params.execution_id }}", deferrable=True, poll_interval=1
    )
    ServiceStopExecutionOperator(task_id="stop", execution_id="{{ params.execution_id }}", if_missing="ignore")
    ServiceWorkflowHealthSensor(
        task_id="wait_until_healthy",
        workflow_name="Nightly sync",
        window=timedelta(hours=24),
        max_failure_rate=0.6,
        deferrable=True,
    )

    ServiceCreateTagOperator(task_id="create_tag", name="nightly")
    ServiceSetWorkflowTagsOperator(
        task_id="set_tags", workflow_name="Nightly sync", tags=["nightly", "critical"], create_missing=True
    )
    ServiceSetWorkflowTagsOperator(task_id="add_tag", workflow_name="Nightly sync", tags=["nightly"], mode="add")
    ServiceDeactivateWorkflowOperator(task_id="deactivate", workflow_name="Nightly sync")
    ServiceArchiveWorkflowOperator(task_id="archive", workflow_name="Nightly sync")
    ServiceUnarchiveWorkflowOperator(task_id="unarchive", workflow_name="Nightly sync")
    ServiceInviteUsersOperator(task_id="invite", users=["ana@example.com"])
    ServiceEnsureProjectsOperator(task_id="projects", projects={"Sales": {"ana@example.com": "project:editor"}})
    ServiceTransferWorkflowOperator(task_id="transfer", workflow_name="Nightly sync", destination_project_name="Sales")
    ServiceSourceControlSensor(task_id="wait_for_changes", direction="push", deferrable=True)
    ServicePushSourceControlOperator(task_id="push", commit_message="{{ dag.dag_id }}, {{ run_id }}")

    ServiceCreateVariableOperator(task_id="create_variable", key="STAGE", value="test")
    ServiceUpdateVariableOperator(task_id="update_variable", key="STAGE", value="production")
    ServiceDeleteVariableOperator(task_id="delete_variable", key="STAGE")
    ServiceEnsureVariablesOperator(task_id="variables", variables={"STAGE": "production", "REGION": "eu"})
    ServiceCreateCredentialOperator(
        task_id="create_credential",
        name="Orders",
        credential_type="httpHeaderAuth",
        data_conn_id="orders",
        data_conn_fields={"name": "login", "value": "password"},
    )
    ServiceInstallCommunityPackageOperator(task_id="install", name="n8n-nodes-example", version="1.0.0")
    # Any method of the hook: hook.tags.list().
    ServiceOperator(task_id="list_tags", resource="tags", action="list")

    ServiceInsertRowsOperator(
        task_id="insert",
        data_table_name="stock",
        rows=[{"sku": "a", "amount": 1}, {"sku": "b", "amount": 0}],
        retries=0,
    )
    ServiceUpdateRowsOperator(
        task_id="update",
        data_table_name="stock",
        filter={"filters": [{"columnName": "sku", "condition": "eq", "value": "a"}]},
        data={"amount": 2},
    )
    ServiceRowSensor(task_id="wait_for_rows", data_table_name="stock", min_rows=2, deferrable=True)
    ServiceDeleteRowsOperator(
        task_id="delete",
        data_table_name="stock",
        filter={"filters": [{"columnName": "amount", "condition": "eq", "value": 0}]},
    )

    SqlToServiceDataTableOperator(
        task_id="load_query",
        sql="SELECT sku, amount FROM articles WHERE amount > ?",
        parameters=[0],
        sql_conn_id="shop",
        data_table_name="stock",
        key_columns=["sku"],
        delete_missing=True,
    )
    ServiceDataTableToObjectStorageOperator(
        task_id="export", data_table_name="stock", columns=["sku", "amount"], path="{{ params.folder }}/stock.jsonl"
    )
    ObjectStorageToServiceDataTableOperator(
        task_id="load_file",
        path="{{ params.folder }}/stock.jsonl",
        data_table_name="copy of stock",
        create_table=True,
        mode="replace",
    )
    ServiceDataTableToSqlOperator(
        task_id="to_database",
        data_table_name="copy of stock",
        columns=["sku", "amount"],
        sql_conn_id="shop",
        sql_table="stock",
        mode="replace",
    )
