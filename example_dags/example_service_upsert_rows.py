"""Fill a data table from mapped tasks: one task reads each source, and another upserts each batch."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_service.operators.data_tables import ServiceCreateDataTableOperator
from airflow_provider_service.operators.rows import ServiceUpsertRowsOperator

TABLE = "airflow_example_orders"

with DAG("example_service_upsert_rows", schedule=None, catchup=False, tags=["service", "example"]) as dag:
    create_table = ServiceCreateDataTableOperator(
        task_id="create_table",
        name=TABLE,
        columns={"order_id": "string", "region": "string", "amount": "number", "paid": "boolean"},
    )

    @task
    def read_orders(region: str) -> list[dict[str, Any]]:
        """Read the orders of a region; this example makes them up."""
        return [
            {"order_id": f"{region}-{number}", "region": region, "amount": 10.5 * number, "paid": number % 2 == 0}
            for number in range(1, 6)
        ]

    batches = read_orders.expand(region=["north", "south", "west"])

    # Safe to retry: rows that exist and have not changed are not written again.
    upsert = ServiceUpsertRowsOperator.partial(
        task_id="upsert", data_table_name=TABLE, key_columns=["order_id"], max_active_tis_per_dagrun=1
    ).expand(rows=batches)

    create_table >> upsert
