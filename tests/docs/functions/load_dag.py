"""The guide's example of a transfer; tests/docs/test_row_examples.py runs it."""

from datetime import datetime

from airflow.sdk import DAG

from airflow_provider_service.transfers.sql_to_data_table import SqlToServiceDataTableOperator

with DAG("sales_to_n8n", schedule="@daily", start_date=datetime(2026, 1, 1), catchup=False) as dag:
    SqlToServiceDataTableOperator(
        task_id="load",
        sql="SELECT sale_id, region, amount, paid, sold_at FROM sales",
        sql_conn_id="shop",
        data_table_name="sales",
        create_table=True,
        column_types={"amount": "number", "paid": "boolean", "sold_at": "date"},
        key_columns="sale_id",  # a row is updated if the table has one with its key, and inserted if not
        delete_missing=True,  # rows of the table that the query does not return are deleted
        max_active_tis_per_dag=1,  # one task writes the table at a time
        retries=2,
    )
