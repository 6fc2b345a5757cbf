"""Write a data table to a Parquet file, which may be in object storage, and pass its address to the next task."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, ObjectStoragePath, task

from airflow_provider_service.transfers.data_table_to_object_storage import ServiceDataTableToObjectStorageOperator

with DAG(
    "example_service_table_to_parquet",
    schedule=None,
    catchup=False,
    # The folder may be an address such as s3://conn_id@bucket/exports.
    params={"table": "airflow_example_orders", "folder": "/tmp"},  # noqa: S108 - the user names the folder
    tags=["service", "example"],
) as dag:
    # Safe to retry: the file is replaced when it is complete.
    export = ServiceDataTableToObjectStorageOperator(
        task_id="export",
        data_table_name="{{ params.table }}",
        path="{{ params.folder }}/{{ params.table }}.parquet",
        retries=2,
    )

    @task
    def count_rows(exported: dict[str, Any]) -> int:
        """Count the rows of the file, as an example of a task that reads it."""
        from pyarrow import parquet

        with ObjectStoragePath(exported["path"]).open("rb") as file:
            return int(parquet.ParquetFile(file).metadata.num_rows)

    count_rows(export.output)
