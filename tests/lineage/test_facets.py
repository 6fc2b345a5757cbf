"""What tasks report, in the classes of the real OpenLineage provider."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from airflow.providers.openlineage.extractors.base import DefaultExtractor
from airflow.providers.openlineage.sqlparser import DatabaseInfo
from airflow.providers.sqlite.hooks.sqlite import SqliteHook

from airflow_provider_service._core.lineage import of_file, of_query, of_sql_table, parent_headers
from airflow_provider_service.client.errors import ServiceError
from airflow_provider_service.operators.rows import (
    ServiceDeleteRowsOperator,
    ServiceInsertRowsOperator,
    ServiceUpdateRowsOperator,
)
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.transfers.data_table_to_sql import ServiceDataTableToSqlOperator
from airflow_provider_service.transfers.object_storage_to_data_table import ObjectStorageToServiceDataTableOperator
from airflow_provider_service.transfers.sql_to_data_table import SqlToServiceDataTableOperator
from tests.operators.conftest import FakeTaskInstance
from tests.operators.conftest import table as table
from tests.transfers.conftest import query as query

FILTER = {"type": "and", "filters": [{"columnName": "sku", "condition": "eq", "value": "a"}]}


def names(datasets: list[Any]) -> list[tuple[str, str]]:
    return [(one.namespace, one.name) for one in datasets]


def extracted(task: Any) -> tuple[Any, Any]:
    """What the provider's own extractor makes of a task: before it has run, and after."""
    extractor = DefaultExtractor(task)
    before = extractor.extract()
    with task.hook:
        try:
            task.execute({"ti": FakeTaskInstance(), "task": task})
        except ServiceError:
            return before, extractor.extract_on_failure(FakeTaskInstance())
        return before, extractor.extract_on_complete(FakeTaskInstance())


@pytest.fixture
def namespace(simulator: ServiceSimulator) -> str:
    return simulator.base_url.replace("http://", "service://")


def test_a_table_that_is_given_by_its_id_is_known_before(namespace, table) -> None:
    rows = [{"sku": "a"}, {"sku": "b"}]
    before, after = extracted(ServiceInsertRowsOperator(task_id="t", data_table_id=table.id, rows=rows))
    assert names(before.outputs) == names(after.outputs) == [(namespace, f"data_tables/{table.id}")]
    assert after.outputs[0].outputFacets["outputStatistics"].rowCount == 2
    assert after.inputs == []
    before, after = extracted(ServiceInsertRowsOperator(task_id="t", data_table_name="stock", rows=rows))
    assert before.outputs == []
    assert names(after.outputs) == [(namespace, f"data_tables/{table.id}")]


def test_nothing_is_asked_for_lineage(simulator, table) -> None:
    task = ServiceInsertRowsOperator(task_id="t", data_table_id=table.id, rows=[{"sku": "a"}])
    simulator.clear_requests()
    DefaultExtractor(task).extract()
    assert simulator.requests == []


def test_a_table_is_an_output_even_if_its_changed_rows_cannot_be_counted(
    namespace, simulator, client, table, monkeypatch
) -> None:
    small = {"conn_type": "n8n", "host": simulator.base_url, "password": simulator.api_key}
    monkeypatch.setenv("AIRFLOW_CONN_SMALL", json.dumps({**small, "extra": {"max_answer_mib": 1}}))
    client.data_table_rows.insert(table.id, [{"sku": "a", "shop": "x" * 2000}] * 600)
    options = {"data_table_id": table.id, "filter": FILTER, "data": {"stock": 1}, "service_conn_id": "small"}
    _, after = extracted(ServiceUpdateRowsOperator(task_id="t", **options))
    [output] = after.outputs
    assert names([output]) == [(namespace, f"data_tables/{table.id}")]
    assert "outputStatistics" not in output.outputFacets


def test_a_preview_reads_the_table(namespace, table) -> None:
    task = ServiceDeleteRowsOperator(task_id="t", data_table_id=table.id, filter=FILTER, preview=True)
    _, after = extracted(task)
    assert (names(after.inputs), after.outputs) == ([(namespace, f"data_tables/{table.id}")], [])


def test_a_load_reads_a_file_and_writes_the_columns_that_it_creates(namespace, simulator, tmp_path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"sku": "a", "price": 1}\n')
    task = ObjectStorageToServiceDataTableOperator(
        task_id="t", path=str(path), data_table_name="made", create_table=True, key_columns="sku"
    )
    before, after = extracted(task)
    assert (names(before.inputs), before.outputs) == ([("file", str(path))], [])
    assert names(after.inputs) == [("file", str(path))]
    [output] = after.outputs
    assert [(one.name, one.type) for one in output.facets["schema"].fields] == [("sku", "string"), ("price", "number")]
    assert output.outputFacets["outputStatistics"].rowCount == 1


def test_a_database_that_does_not_say_what_it_is_leaves_the_rest(namespace, table, query) -> None:
    query("CREATE TABLE sales (sku TEXT)")
    load = SqlToServiceDataTableOperator(
        task_id="t",
        sql="SELECT sku FROM sales",
        sql_conn_id="shop",
        data_table_id=table.id,
        mode="replace",
        allow_empty=True,
    )
    _, after = extracted(load)
    assert (after.inputs, names(after.outputs)) == ([], [(namespace, f"data_tables/{table.id}")])
    unload = ServiceDataTableToSqlOperator(
        task_id="t",
        sql_table="sales",
        sql_conn_id="shop",
        data_table_id=table.id,
        columns=["sku"],
        mode="replace",
        allow_empty=True,
    )
    _, after = extracted(unload)
    assert (names(after.inputs), after.outputs) == ([(namespace, f"data_tables/{table.id}")], [])


class KnownHook(SqliteHook):
    """A hook that says what database it is, as those of servers do."""

    def get_openlineage_database_info(self, connection):
        return DatabaseInfo(scheme="postgres", authority="db.example.com:5432", database="shop")

    def get_openlineage_database_dialect(self, connection):
        return "postgres"

    def get_openlineage_default_schema(self):
        return "public"


def test_tables_of_a_database_have_the_names_that_openlineage_gives_them(query) -> None:
    query("CREATE TABLE sales (sku TEXT)")
    hook = KnownHook("shop")
    found = of_query(hook, "SELECT s.sku FROM sales s JOIN stock.levels l ON l.sku = s.sku", "shop")
    assert sorted(names(found.inputs)) == [
        ("postgres://db.example.com:5432", "shop.public.sales"),
        ("postgres://db.example.com:5432", "shop.stock.levels"),
    ]
    written = of_sql_table(hook, "sales", "shop")
    assert names(written.outputs) == [("postgres://db.example.com:5432", "shop.public.sales")]
    assert (written.inputs, written.job_facets) == ([], {})


@pytest.mark.parametrize(
    ("address", "dataset"),
    [
        ("s3://my_conn@bucket/a/b.parquet", ("s3://bucket", "a/b.parquet")),
        ("/data/x.csv", ("file", "/data/x.csv")),
        ("file:///data/x.csv", ("file", "/data/x.csv")),
        ("/data/a#b?.csv", ("file", "/data/a#b?.csv")),
        ("s3://my_conn@bucket/a#b?.csv", ("s3://bucket", "a#b?.csv")),
        ("https://files.example.com/x.csv?signature=secret", ("https://files.example.com", "x.csv")),
    ],
)
def test_files(address: str, dataset: tuple[str, str]) -> None:
    assert names(of_file(address, is_output=True).outputs) == [dataset]
    assert names(of_file(address, is_output=False).inputs) == [dataset]


def test_a_workflow_that_has_not_been_started_reads_and_writes_nothing(simulator: ServiceSimulator) -> None:
    # Of anything but a lineage, the provider warns in the log of the task.
    extractor = DefaultExtractor(ServiceRunWorkflowOperator(task_id="t", workflow_id="w"))
    found = (extractor.extract(), extractor.extract_on_complete(FakeTaskInstance()))
    assert [(one.inputs, one.outputs, one.run_facets) for one in found] == [([], [], {})] * 2


def test_without_openlineage_nothing_is_reported(monkeypatch: pytest.MonkeyPatch, simulator, table) -> None:
    tasks = (
        ServiceInsertRowsOperator(task_id="t", data_table_id=table.id, rows=[{"sku": "a"}]),
        ServiceRunWorkflowOperator(task_id="t", workflow_id="w"),
    )
    for name in [one for one in sys.modules if one.startswith("airflow.providers.openlineage")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage", None)
    for task in tasks:
        assert task.get_openlineage_facets_on_start() is None
        assert task.get_openlineage_facets_on_complete(FakeTaskInstance()) is None
    assert parent_headers(FakeTaskInstance()) == {}


def test_no_header_is_sent_unless_openlineage_is_in_use() -> None:
    assert parent_headers(FakeTaskInstance()) == {}
