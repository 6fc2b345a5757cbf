"""A data table as the source: files in object storage, and tables of SQLite."""

from __future__ import annotations

import io
import json

import pyarrow.parquet as pq
import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.transfers.data_table_to_object_storage import ServiceDataTableToObjectStorageOperator
from airflow_provider_service.transfers.data_table_to_sql import ServiceDataTableToSqlOperator
from airflow_provider_service.transfers.object_storage_to_data_table import ObjectStorageToServiceDataTableOperator
from tests.s3 import Bucket

WRITE = ServiceDataTableToObjectStorageOperator
STORE = ServiceDataTableToSqlOperator
ROWS = [
    {"sku": "=a\r\n", "stock": 1.5, "active": True, "sold_at": "2026-01-02T03:04:05.678Z"},
    {"sku": "", "stock": 2**60, "active": False, "sold_at": None},
    {"sku": None, "stock": None, "active": None, "sold_at": None},
]
COLUMNS = ("sku", "stock", "active", "sold_at")


@pytest.fixture(autouse=True)
def filled(client, table):
    client.data_table_rows.insert(table.id, ROWS)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".parquet"])
def test_a_table_goes_to_object_storage_and_back(execute, table, held, bucket: Bucket, ending):
    before = held(*COLUMNS)
    path = bucket.address(f"out{ending}")
    result = execute(WRITE, data_table_id=table.id, path=path, neutralize_formulas=False)
    assert (result["count"], result["path"], bucket.keys()) == (3, path, [f"out{ending}"])
    mapping = dict.fromkeys(("id", "createdAt", "updatedAt"))
    execute(
        ObjectStorageToServiceDataTableOperator,
        path=path,
        data_table_id=table.id,
        column_mapping=mapping,
        mode="replace",
    )
    assert held(*COLUMNS) == before


def test_columns_and_rows_are_chosen(execute, table, bucket: Bucket):
    some = {"type": "and", "filters": [{"columnName": "stock", "condition": "gt", "value": 0}]}
    options = {"data_table_id": table.id, "columns": ["stock", "id"], "filter": some}
    execute(WRITE, path=f"s3://{bucket.name}/x.parquet", object_storage_conn_id=bucket.conn_id, **options)
    held = pq.read_table(io.BytesIO(bucket.read("x.parquet")))
    assert (held.schema.names, held.to_pydict()) == (["stock", "id"], {"stock": [1.5, float(2**60)], "id": [1, 2]})
    execute(WRITE, path=bucket.path("x.jsonl"), search="=a", columns=["sku"], data_table_id=table.id)
    assert json.loads(bucket.read("x.jsonl")) == {"sku": "=a\r\n"}


def test_a_failure_leaves_the_earlier_file(execute, table, simulator, bucket: Bucket):
    bucket.write("x.csv", b"earlier")
    simulator.inject("status", status=400, path="/rows$")
    with pytest.raises(AirflowFailException):
        execute(WRITE, data_table_id=table.id, path=bucket.address("x.csv"))
    assert (bucket.keys(), bucket.read("x.csv")) == (["x.csv"], b"earlier")


@pytest.mark.parametrize("mode", ["replace", "append"])
def test_a_table_goes_to_a_database(execute, table, query, mode):
    query("CREATE TABLE t (sku TEXT, amount REAL, active BOOLEAN, sold_at TEXT, shop TEXT)")
    for _ in range(2):
        options = {"sql_table": "t", "sql_conn_id": "shop", "column_mapping": {"stock": "amount"}, "mode": mode}
        assert execute(STORE, data_table_id=table.id, **options)["count"] == 3
    expected = [
        ("=a\r\n", 1.5, 1, "2026-01-02T03:04:05.678Z", None),
        ("", float(2**60), 0, None, None),
        (None, None, None, None, None),
    ]
    assert query("SELECT * FROM t") == expected * (2 if mode == "append" else 1)


def test_an_upsert_into_a_database(execute, table, query):
    query("CREATE TABLE t (sku TEXT UNIQUE, stock REAL, note TEXT DEFAULT 'new')")
    query("INSERT INTO t VALUES (?, ?, 'old')", [("", 0), ("other", 7)])
    options = {"sql_table": "t", "sql_conn_id": "shop", "key_columns": "sku", "columns": ["sku", "stock"]}
    some = {"type": "and", "filters": [{"columnName": "sku", "condition": "neq", "value": None}]}
    for _ in range(2):
        execute(STORE, data_table_id=table.id, filter=some, **options)
    rows = [("", float(2**60), "new"), ("=a\r\n", 1.5, "new"), ("other", 7, "old")]
    assert sorted(query("SELECT * FROM t")) == rows


def test_a_failure_rolls_the_whole_transaction_back(execute, table, query):
    query("CREATE TABLE t (sku TEXT NOT NULL)")
    query("INSERT INTO t VALUES (?)", [("earlier",)])
    with pytest.raises(Exception, match="NOT NULL"):
        execute(STORE, data_table_id=table.id, sql_table="t", sql_conn_id="shop", columns=["sku"], mode="replace")
    assert query("SELECT * FROM t") == [("earlier",)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give key_columns, which make it an upsert, or mode"),
        ({"mode": "append", "columns": ["nope"]}, "columns names nope, which the table lacks; it has id, shop"),
        ({"mode": "append", "columns": ["sku", "sku"]}, "columns must name at least one column, each once"),
        ({"mode": "append", "column_mapping": {"id": "x"}}, "column_mapping names id, which are not read"),
        ({"mode": "append", "column_mapping": {"sku": "shop"}}, "column_mapping gives several columns the same name"),
        ({"key_columns": "nope"}, "key_columns names nope, which are not written"),
        ({"mode": "append", "filter": {"type": "and"}}, "filter must hold at least one condition"),
        ({"mode": "append", "sql_conn_id": "service_default"}, "'service_default' is not the connection of a database"),
    ],
)
def test_options_that_do_not_fit_are_refused(execute, table, query, options, message):
    with pytest.raises(AirflowFailException, match=message):
        execute(STORE, **{"data_table_id": table.id, "sql_table": "t", "sql_conn_id": "shop", **options})
