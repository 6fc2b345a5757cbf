"""The guide's examples of data tables do what the guide says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.simulator import ServiceSimulator
from scripts.dag_runner import run_dag
from tests.runs.task_run import TaskRun
from tests.shop import shop

from .row_examples import upsert_of_prices


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.usefixtures("database")
def test_a_table_is_kept_equal_to_a_query(
    simulator: ServiceSimulator, client: ServiceClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = ("a-1", "north", 10.5, 1, "2026-01-02"), ("a-2", "south", None, 0, None)
    for sales in ([first, second], [second]):
        monkeypatch.setenv("AIRFLOW_CONN_SHOP", shop(tmp_path / "shop.sqlite", sales))
        state, tasks = run_dag(Path(__file__).parent / "functions" / "load_dag.py")
        assert state == "success", tasks

    [table] = client.data_tables.list()
    [row] = client.data_table_rows.list(table.id)
    assert {name: row[name] for name in ("sale_id", "region", "amount", "paid", "sold_at")} == {
        "sale_id": "a-2", "region": "south", "amount": None, "paid": False, "sold_at": None,
    }  # fmt: skip
