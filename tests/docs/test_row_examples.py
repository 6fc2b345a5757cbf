"""The guide's examples of data tables do what the guide says."""

from __future__ import annotations

from typing import Any

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.simulator import ServiceSimulator
from tests.runs.task_run import TaskRun

from .row_examples import upsert_of_prices


def test_rows_are_changed_in_place_and_then_unchanged(simulator: ServiceSimulator, client: ServiceClient) -> None:
    table = client.data_tables.create(
        "prices", [{"name": "sku", "type": "string"}, {"name": "price", "type": "number"}]
    )
    client.data_table_rows.insert(table.id, [{"sku": f"sku-{number}", "price": 0} for number in range(200)])
    ids = [row["id"] for row in client.data_table_rows.list(table.id)]
    prices = [{"sku": f"sku-{number}", "price": number + 1} for number in range(200)]
    run = TaskRun(lambda **arguments: upsert_of_prices(prices), {})
    results: list[dict[str, Any]] = []
    for attempt in (1, 2):
        simulator.clear_requests()
        results.append(run.attempt(attempt))
    run.close()

    assert [(one["updated"], one["unchanged"]) for one in results] == [(200, 0), (0, 200)]
    assert {request.method for request in simulator.requests} == {"GET"}
    assert [row["id"] for row in client.data_table_rows.list(table.id)] == ids
    assert {row["sku"]: row["price"] for row in client.data_table_rows.list(table.id)} == {
        row["sku"]: row["price"] for row in prices
    }
