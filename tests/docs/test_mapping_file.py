"""The mapping on the page about instances, with which workflows are promoted."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.operators.instances import ServicePromoteWorkflowsOperator
from airflow_provider_service.simulator import ServiceSimulator
from tests.instances.workflows import address, node, webhook, workflow
from tests.operators.conftest import execute, link, task_instance

from .test_documentation import BLOCKS

__all__ = ["execute", "link", "task_instance"]

[MAPPING] = [text for page, kind, text in BLOCKS if (page.name, kind) == ("instances.md", "yaml")]
MAIL, COLUMNS = {"name": "X", "value": "y"}, [{"name": "n", "type": "number"}]


def fill(client: ServiceClient, mail: str, stock: str, sales: str) -> tuple[str, str, str]:
    """Create what the workflow names; the ids."""
    project = client.projects.create(sales)
    credential = client.credentials.create(mail, "httpHeaderAuth", MAIL, project_id=project.id)
    table = client.data_tables.create(stock, COLUMNS, project_id=project.id)
    return credential.id, table.id, project.id


def test_the_mapping_leads_to_production(
    execute, client: ServiceClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "production.yaml").write_text(MAPPING)
    mail, stock, sales = fill(client, "Mail (staging)", "stock_staging", "Sales (staging)")
    held = {"httpHeaderAuth": {"id": mail, "name": "Mail (staging)"}}
    parameters = {"url": "https://prices.test", "options": {"timeout": 1}}
    nodes = [
        webhook("orders"),
        node("Get prices", "httpRequest", parameters, typeVersion=4.2, credentials=held),
        node("Rows", "dataTable", {"dataTableId": address(stock)}),
    ]
    content = workflow("Orders (staging)", *nodes)
    made = client.workflows.create(**content, project_id=sales)
    client.workflows.update_tags(made.id, [client.tags.create("staging").id])
    with ServiceSimulator() as production:
        monkeypatch.setenv("AIRFLOW_CONN_PRODUCTION", production.connection_json())
        with ServiceClient(ServiceConfig(base_url=production.base_url, api_key=production.api_key)) as there:
            fill(there, "Mail", "stock", "Sales")
            done = execute(
                ServicePromoteWorkflowsOperator,
                source_conn_id="service_default",
                service_conn_id="production",
                project_name="Sales (staging)",
                mapping_path=str(tmp_path / "production.yaml"),
            )
            assert done["created"] == ["Orders"]
            [orders] = there.workflows.list(name="Orders")
            _, get, rows = orders.nodes or []
            assert get["parameters"] == {"url": "https://prices.example.com", "options": {"timeout": 10000}}
            assert get["credentials"]["httpHeaderAuth"]["name"] == "Mail"
            assert rows["parameters"]["dataTableId"]["cachedResultName"] == "stock"
            assert [tag.name for tag in orders.tags or ()] == ["production"]
