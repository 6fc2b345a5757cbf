"""The examples of operators in the API reference run, one after the other."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing import run_task

from .operator_examples import dag


def rows(path: Path, table: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(f"SELECT sku, amount FROM {table} ORDER BY sku").fetchall()


def test_each_operator_does_what_its_example_says(
    simulator: ServiceSimulator, client: ServiceClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(shop)) as database:
        database.executescript(
            "CREATE TABLE articles (sku TEXT, amount REAL); CREATE TABLE stock (sku TEXT, amount REAL);"
            "INSERT INTO articles VALUES ('c', 3), ('d', 0); INSERT INTO stock VALUES ('old', 1);"
        )
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps({"conn_type": "sqlite", "host": str(shop)}))
    monkeypatch.setenv(
        "AIRFLOW_CONN_ORDERS", json.dumps({"conn_type": "generic", "login": "X-Key", "password": "a-secret"})
    )
    simulator.state.source_control.connect()
    workflow = simulator.create_webhook_workflow("Nightly sync", path="nightly")
    failed = simulator.start_execution(workflow["id"], status="error")
    table = client.data_tables.create(
        "stock", [{"name": "sku", "type": "string"}, {"name": "amount", "type": "number"}]
    )

    results = {
        task.task_id: run_task(task, params={"execution_id": failed, "folder": str(tmp_path)}).return_value
        for task in dag.tasks
    }

    assert results["retry"]["status"] == "success"
    assert {one["name"] for one in results["list_tags"]} == {"critical", "nightly"}
    assert client.workflows.get(workflow["id"]).active is False
    assert [(one.name, one.type) for one in client.projects.list() if one.name == "Sales"] == [("Sales", "team")]
    assert {one.key: one.value for one in client.variables.list()} == {"STAGE": "production", "REGION": "eu"}
    assert results["push"]["count"] == results["wait_for_changes"]["count"] > 0
    assert results["insert"]["inserted"] == results["wait_for_rows"]["count"] == 2
    assert [(row["sku"], row["amount"]) for row in client.data_table_rows.list(table.id)] == [("c", 3)]
    assert json.loads((tmp_path / "stock.jsonl").read_text()) == {"sku": "c", "amount": 3}
    assert rows(shop, "stock") == [("c", 3)]
