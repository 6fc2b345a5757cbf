"""Instances that hold something of every kind, and what they hold, in a form that can be compared."""

from __future__ import annotations

from typing import Any

from airflow_provider_service._core.instances.apply import apply_plan
from airflow_provider_service._core.instances.export import ExportSelection, exported
from airflow_provider_service._core.instances.plan import DeploymentTarget, make_plan
from airflow_provider_service._core.instances.source import read_source
from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client._lookup import create_tag

from .workflows import address, calling, child, node, webhook, workflow

COLUMNS = {"s": "string", "n": "number", "b": "boolean", "d": "date"}
ROWS: list[dict[str, Any]] = [
    {"s": 'ü\n"\u2028,x', "n": 0.1, "b": True, "d": "2026-01-02T03:04:05.678Z"},
    {"s": "", "n": 2**53 + 2, "b": False, "d": None},
    {"s": None, "n": 1e300, "b": None, "d": "1969-12-31T23:59:59.999Z"},
    {"s": " =1+1 ", "n": -2, "b": None, "d": None},
    {"s": "2026-01-02", "n": None, "b": None, "d": "9999-12-31T23:59:59.999Z"},
]


def definitions(credential_id: str, table_id: str) -> list[dict[str, Any]]:
    """Workflows that name each other, a credential and a table."""
    held = {"httpHeaderAuth": {"id": credential_id, "name": "mail"}}
    rows = node("Rows", "dataTable", {"dataTableId": address(table_id)}, typeVersion=1.1)
    get = node("Get", "httpRequest", {"url": "http://127.0.0.1:9"}, typeVersion=4.2, credentials=held)
    return [
        child(tags=["nightly"]),
        workflow("orders", webhook("orders"), get, rows, calling("child"), active=True, tags=["b", "nightly"]),
        workflow("idle", webhook("idle"), settings={"errorWorkflow": {"name": "child"}}, description="why"),
    ]


def fill(client: ServiceClient) -> None:
    """Create something of every kind that needs no license."""
    credential = client.credentials.create("mail", "httpHeaderAuth", {"name": "X-Key", "value": "top-secret"})
    create_tag(client, "unused")
    stock = client.data_tables.create("stock", [{"name": name, "type": kind} for name, kind in COLUMNS.items()])
    client.data_table_rows.insert(stock.id, ROWS)
    client.data_tables.create("empty", [{"name": "x", "type": "string"}])
    target = DeploymentTarget(client)
    apply_plan(make_plan(read_source(definitions(credential.id, stock.id)), target), target)


def state_of(client: ServiceClient) -> dict[str, Any]:
    """What an instance holds, without ids and dates."""
    listed = sorted(client.data_tables.list(), key=lambda one: one.name)
    return {
        "workflows": {
            definition["name"]: {**definition, "id": None} for _, definition in exported(client, ExportSelection())
        },
        "tags": sorted(one.name for one in client.tags.list()),
        "tables": {
            one.name: {
                "columns": [(c.name, c.type) for c in sorted(one.columns or [], key=lambda c: c.index)],
                "rows": [
                    {key: value for key, value in row.items() if key not in ("id", "createdAt", "updatedAt")}
                    for row in client.data_table_rows.list(one.id)
                ],
            }
            for one in listed
        },
    }
