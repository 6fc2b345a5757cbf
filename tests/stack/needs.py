"""What the example DAGs expect to find: workflows on the service, connections of Airflow, and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.simulator._samples import chain, webhook
from tests.databases import Postgres
from tests.runs.workflows import FORM, SCHEDULE, puts_out

from . import workflows
from .airflow_api import AirflowApi

#: The rows of the table that an example reads.
SALES = """
    SELECT 'a-' || n AS sale_id, 'north' AS region, 1.5 * n AS amount, n % 2 = 0 AS paid, now() AS sold_at
    FROM generate_series(1, 30) AS n
"""
SECRET = "the passphrase of the webhook that takes invoices"


def meet(client: ServiceClient, api: AirflowApi, database: Postgres, folder: Path) -> dict[str, dict[str, Any]]:
    """Create what the examples need; return the configuration of their runs, by DAG.

    :param database: for the table that one of them reads.
    :param folder: for the files that they read and write.
    """
    _put(client, "Nightly inventory", SCHEDULE, puts_out('{"articles": 7}'))
    _put(client, "Approve an order", FORM, puts_out('{"approved": true}'))
    _put(client, "Sync region", webhook(workflows.path()), puts_out('{"rows": 3}'))
    _take_invoices(client, api)
    _be_healthy(client)
    _sell(database, api)
    invoice = folder / "invoice.pdf"
    invoice.write_bytes(b"%PDF-")
    return {
        "example_service_send_file": {"invoice": str(invoice)},
        "example_service_deploy_folder": {"copies": str(folder / "copies")},
    }


def _put(client: ServiceClient, name: str, *nodes: dict[str, Any]) -> str:
    body = chain(name, [{**node, "webhookId": workflows.path()} for node in nodes])
    made = client.workflows.create(name, body["nodes"], body["connections"], {"availableInMCP": True})
    client.workflows.activate(made.id)
    return made.id


def _take_invoices(client: ServiceClient, api: AirflowApi) -> None:
    data = {"keyType": "passphrase", "secret": SECRET, "publicKey": "", "privateKey": "", "algorithm": "HS256"}
    credential = client.credentials.create("invoices", "jwtAuth", data)
    node = webhook("invoices/:customer", authentication="jwtAuth")
    _put(client, "Book invoice", {**node, "credentials": {"jwtAuth": {"id": credential.id, "name": "invoices"}}})
    api.set_connection(
        {
            "connection_id": "invoices_webhook",
            "conn_type": "generic",
            "password": SECRET,
            "extra": json.dumps({"algorithm": "HS256"}),
        }
    )


def _sell(database: Postgres, api: AirflowApi) -> None:
    database.run_sql(f"DROP TABLE IF EXISTS sales; CREATE TABLE sales AS {SALES}")
    api.set_connection(
        {
            "connection_id": "airflow_example_shop",
            "conn_type": "postgres",
            "host": database.host,
            "port": database.port,
            "login": database.user,
            "password": database.password,
            "schema": "postgres",
        }
    )


def _be_healthy(client: ServiceClient) -> None:
    """A workflow that is critical, and has succeeded."""
    workflow_id = _put(client, "Critical", webhook(workflows.path(), responseMode="lastNode"))
    client.workflows.update_tags(workflow_id, [client.tags.create("critical").id])
    client.webhooks.call(client.webhooks.find(client.workflows.get(workflow_id)))
