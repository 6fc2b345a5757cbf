"""Assets of data tables and workflows: their addresses, what Airflow does with them, and when operators emit them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any
from urllib.parse import urlsplit

import pytest
from airflow.providers.common.compat.sdk import Asset, AssetAlias

from airflow_provider_service.assets.service import (
    convert_asset_to_openlineage,
    create_asset,
    data_table_asset,
    sanitize_uri,
    workflow_asset,
)
from airflow_provider_service.operators.row_reads import ServiceReadRowsOperator
from airflow_provider_service.operators.rows import (
    ServiceDeleteRowsOperator,
    ServiceInsertRowsOperator,
    ServiceUpsertRowsOperator,
)
from airflow_provider_service.transfers.object_storage_to_data_table import ObjectStorageToServiceDataTableOperator
from tests.operators.conftest import table as table
from tests.operators.conftest import task_instance as task_instance

FILTER = {"type": "and", "filters": [{"columnName": "sku", "condition": "eq", "value": "a"}]}


@pytest.mark.parametrize(
    ("base_url", "uri"),
    [
        ("https://n8n.example.com", "service://n8n.example.com/data_tables/7"),
        ("http://N8N.example.com:5678/", "service://n8n.example.com:5678/data_tables/7"),
        ("https://user:secret@n8n.example.com/prefix", "service://n8n.example.com/prefix/data_tables/7"),
        ("http://[::1]:5678", "service://[::1]:5678/data_tables/7"),
    ],
)
def test_addresses_are_those_of_the_service_without_secrets(base_url: str, uri: str) -> None:
    asset = data_table_asset(base_url, "7", extra={"a": 1})
    assert (asset.uri, asset.extra) == (uri, {"a": 1})
    assert asset.uri == Asset(uri).uri == sanitize_uri(urlsplit(uri)).geturl()
    namespace, _, name = uri.partition("/data_tables/")
    dataset = convert_asset_to_openlineage(asset, lineage_context=None)
    assert (dataset.namespace, dataset.name) == (namespace, f"data_tables/{name}")


def test_a_workflow() -> None:
    assert workflow_asset("https://s", "a.b-c_1").uri == "service://s/workflows/a.b-c_1"


@pytest.mark.parametrize("hostile", ["a b/c", "../x", "", "x?y"])
def test_an_id_that_could_make_another_address_is_refused(hostile: str) -> None:
    with pytest.raises(ValueError, match="cannot be used as an id"):
        workflow_asset("https://s", hostile)


@pytest.mark.parametrize(
    "uri", ["service://s/rows/7", "service:///data_tables/7", "service://s/data_tables/", "service://s"]
)
def test_other_addresses_are_refused(uri: str) -> None:
    with pytest.raises(ValueError, match="an asset of the service is service://host/data_tables/id or"):
        sanitize_uri(urlsplit(uri))


@pytest.mark.parametrize("given", [{}, {"data_table_id": "1", "workflow_id": "2"}])
def test_an_asset_is_of_one_object(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="give either data_table_id or workflow_id"):
        create_asset(base_url="https://s", **given)


class Outlets:
    """Records what a task emits, as Airflow's accessors do."""

    def __init__(self) -> None:
        self.added: list[tuple[str, dict[str, Any]]] = []
        self.extra: dict[str, Any] = {}

    def add(self, asset: Asset, extra: dict[str, Any]) -> None:
        self.added.append((asset.uri, extra))


class OutletEvents:
    """What a task emits, by the alias or address of the outlet; before Airflow 3.2, aliases cannot be keys."""

    def __init__(self) -> None:
        self.by_name: defaultdict[str, Outlets] = defaultdict(Outlets)

    def __getitem__(self, outlet: Asset | AssetAlias) -> Outlets:
        return self.by_name[outlet.name if isinstance(outlet, AssetAlias) else outlet.uri]


@pytest.fixture
def emit(simulator, task_instance):
    """``emit(Operator, outlets=[...], ...)`` executes a task and returns what it emits, by alias or address."""

    def run(operator, **arguments):
        emitted = OutletEvents()
        task = operator(task_id="task", **arguments)
        with task.hook:
            task.execute({"ti": task_instance, "task": task, "outlet_events": emitted})
        return emitted.by_name

    return run


def test_tasks_that_write_a_table_emit_its_asset_to_the_aliases_among_their_outlets(emit, simulator, table, tmp_path):
    alias, known = AssetAlias("stock"), data_table_asset(simulator.base_url, table.id)
    path = tmp_path / "rows.jsonl"
    path.write_text('{"sku": "c"}\n')
    named = {"data_table_id": table.id, "outlets": [alias, known, Asset("service://other/data_tables/1")]}
    rows = [{"sku": "a", "stock": 1}]
    for operator, arguments, counts in (
        (ServiceInsertRowsOperator, {"rows": rows}, {"inserted": 1}),
        (
            ServiceUpsertRowsOperator,
            {"rows": rows, "key_columns": "sku"},
            {"inserted": 0, "updated": 0, "unchanged": 1, "deleted": 0},
        ),
        (ServiceDeleteRowsOperator, {"filter": FILTER}, {"deleted": 1}),
        (
            ObjectStorageToServiceDataTableOperator,
            {"path": str(path), "mode": "append"},
            {"rows": 1, "rejected": 0, "inserted": 1, "updated": 0, "unchanged": 0, "deleted": 0},
        ),
    ):
        emitted = emit(operator, **named, **arguments)
        assert emitted["stock"].added == [(known.uri, counts)]
        assert {name: outlet.extra for name, outlet in emitted.items() if name != "stock"} == {known.uri: counts}


def test_nothing_is_emitted_by_tasks_that_only_read_or_preview(emit, table):
    named = {"data_table_id": table.id, "outlets": [AssetAlias("stock")]}
    assert emit(ServiceReadRowsOperator, **named) == {}
    assert emit(ServiceDeleteRowsOperator, filter=FILTER, preview=True, **named) == {}
    assert emit(ServiceInsertRowsOperator, data_table_id=table.id, rows=[{"sku": "a"}]) == {}


def test_airflow_knows_the_scheme() -> None:
    from airflow.providers_manager import ProvidersManager

    manager = ProvidersManager()

    def known(kind: str) -> Any:
        return getattr(manager, f"asset_{kind}", None) or getattr(manager, f"dataset_{kind}")

    assert known("uri_handlers")["service"] is sanitize_uri
    assert known("factories")["service"] is create_asset
    assert known("to_openlineage_converters")["service"] is convert_asset_to_openlineage
