"""Make a data table equal to the result of a query, every night: workflows then read it without the database."""

from __future__ import annotations

from airflow.sdk import DAG

from airflow_provider_service.transfers.sql_to_data_table import SqlToServiceDataTableOperator

with DAG(
    "example_service_query_to_table",
    schedule=None,
    catchup=False,
    params={"sql_conn_id": "airflow_example_shop", "table": "airflow_example_sales"},
    tags=["service", "example"],
) as dag:
    # Safe to retry: rows that exist and have not changed are not written again.
    SqlToServiceDataTableOperator(
        task_id="load",
        sql="SELECT sale_id, region, amount, paid, sold_at FROM sales",
        sql_conn_id="{{ params.sql_conn_id }}",
        data_table_name="{{ params.table }}",
        create_table=True,
        column_types={"amount": "number", "paid": "boolean", "sold_at": "date"},
        key_columns="sale_id",
        delete_missing=True,
        max_active_tis_per_dag=1,
        retries=2,
    )
