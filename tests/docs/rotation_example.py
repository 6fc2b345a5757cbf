"""The guide's example of a credential that follows a connection; tests/docs/test_task_pages.py runs it."""

from airflow.sdk import DAG

from airflow_provider_service.operators.credentials import ServiceUpdateCredentialOperator

with DAG("rotate_a_secret", schedule=None):
    rotate = ServiceUpdateCredentialOperator(
        task_id="rotate",
        credential_name="Warehouse",
        credential_type="postgres",
        data_conn_id="warehouse",
        data_conn_fields={"host": "host", "user": "login", "password": "password", "database": "schema"},
        merge_data=True,  # the other fields stay as they are
    )
