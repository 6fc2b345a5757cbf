"""Export a data table to a CSV file, with one page in memory at a time, and pass its path to the next task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_service.operators.row_reads import ServiceReadRowsOperator

with DAG(
    "example_service_export_table",
    schedule=None,
    catchup=False,
    params={"table": "airflow_example_orders", "folder": "/tmp"},  # noqa: S108 - the user names the folder
    tags=["service", "example"],
) as dag:
    export = ServiceReadRowsOperator(
        task_id="export",
        data_table_name="{{ params.table }}",
        sort_by="order_id:asc",
        path="{{ params.folder }}/{{ params.table }}.csv",
    )

    @task
    def count_lines(exported: dict[str, Any]) -> int:
        """Count the lines of the file, as an example of a task that reads it."""
        with Path(exported["path"]).open() as lines:
            return sum(1 for _ in lines)

    count_lines(export.output)
