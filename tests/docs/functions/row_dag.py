"""The guide's example of a wait for a row; tests/docs/test_task_pages.py runs it."""

from typing import Any

from airflow.sdk import DAG, PokeReturnValue, task

from airflow_provider_service.hooks.service import ServiceHook

READY = {"filters": [{"columnName": "state", "condition": "eq", "value": "ready"}]}

with DAG("wait_for_a_row", schedule=None) as dag:

    @task.sensor(poke_interval=60, timeout=3600, mode="reschedule")
    def ready() -> PokeReturnValue:
        """Wait until the table holds an order that is ready, and return it."""
        with ServiceHook() as service:
            [table] = [one for one in service.data_tables.list(filter={"name": "orders"}) if one.name == "orders"]
            found = list(service.data_table_rows.list(table.id, filter=READY, limit=1))
        return PokeReturnValue(is_done=bool(found), xcom_value=found[0] if found else None)

    @task
    def ship(order: dict[str, Any]) -> int:
        """Use the row."""
        return int(order["number"])

    ship(ready())
