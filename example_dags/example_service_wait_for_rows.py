"""Wait until a data table holds orders that are paid, without holding a worker, and hand them to the next task."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_service.sensors.rows import ServiceRowSensor

with DAG("example_service_wait_for_rows", schedule=None, catchup=False, tags=["service", "example"]) as dag:
    paid = ServiceRowSensor(
        task_id="paid",
        data_table_name="airflow_example_orders",
        filter={"filters": [{"columnName": "paid", "condition": "eq", "value": True}]},
        return_rows=True,
        deferrable=True,
        poke_interval=60,
        timeout=3600,
    )

    @task
    def ship(found: dict[str, Any]) -> int:
        """Use the rows, as an example of a task that ships orders."""
        return len(found["rows"])

    ship(paid.output)
