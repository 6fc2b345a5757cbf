"""A data table as the source: files in object storage, and tables of SQLite."""

from __future__ import annotations

import io
import json
import sqlite3
from contextlib import nullcontext

import pyarrow.parquet as pq
import pytest
from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.providers.sqlite.hooks.sqlite import SqliteHook

from airflow_provider_service.client.errors import ServiceError, ServiceInputError, ServiceUnexpectedResponseError
from airflow_provider_service.transfers._sql import insert_all, require_table_name
from airflow_provider_service.transfers.data_table_to_object_storage import ServiceDataTableToObjectStorageOperator
from airflow_provider_service.transfers.data_table_to_sql import ServiceDataTableToSqlOperator
from airflow_provider_service.transfers.object_storage_to_data_table import ObjectStorageToServiceDataTableOperator
from tests.fuzz.hostile import HostileLayer
from tests.s3 import Bucket

WRITE = ServiceDataTableToObjectStorageOperator
STORE = ServiceDataTableToSqlOperator
ROWS = [
    {"sku": "=a\r\n", "stock": 1.5, "active": True, "sold_at": "2026-01-02T03:04:05.678Z"},
    {"sku": "", "stock": 2**60, "active": False, "sold_at": None},
    {"sku": None, "stock": None, "active": None, "sold_at": None},
]
COLUMNS = ("sku", "stock", "active", "sold_at")


class Error(Exception):
    """An error of a driver."""


@pytest.fixture(autouse=True)
def filled(client, table):
    client.data_table_rows.insert(table.id, ROWS)


@pytest.mark.slow
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


def test_an_upsert_into_a_database_refuses_a_null_key_which_each_run_would_insert_again(execute, table, query):
    query("CREATE TABLE t (code TEXT UNIQUE, stock REAL)")
    options = {"sql_table": "t", "sql_conn_id": "shop", "key_columns": "code", "columns": ["stock", "sku"]}
    with pytest.raises(AirflowFailException, match="the row with the id 3 has null in the key columns sku"):
        execute(STORE, data_table_id=table.id, column_mapping={"sku": "code"}, **options)
    assert query("SELECT * FROM t") == []


@pytest.mark.parametrize("options", [{"mode": "replace"}, {"mode": "append"}, {"key_columns": "sku"}])
def test_a_table_that_does_not_exist_is_named_before_any_row_is_read(execute, table, query, simulator, options):
    simulator.clear_requests()
    with pytest.raises(
        AirflowFailException, match=r"^sql_table must be an existing table, and the database has no ghost"
    ):
        execute(STORE, data_table_id=table.id, sql_table="ghost", sql_conn_id="shop", **options)
    assert not [one for one in simulator.requests if one.path.endswith("/rows")]


@pytest.mark.parametrize(
    ("error", "is_missing"),
    [
        (Error(1146, "Table 'shop.ghost' doesn't exist"), True),
        (Error("42S02", "[42S02] Invalid object name 'ghost'. (208)"), True),
        (Error(208, b"Invalid object name 'ghost'."), True),
        (Error("no such table: ghost"), True),
        (Error(1142, "SELECT command denied to user"), False),
        (Error("ORA-00942: table or view does not exist"), False),
        (Error(["unhashable"]), False),
        (Error(), False),
    ],
)
def test_only_a_table_that_is_certainly_missing_is_refused(query, error, is_missing):
    """Who may write to a table need not be allowed to read it."""

    class Cursor(sqlite3.Cursor):
        def execute(self, sql, *parameters):
            if sql.startswith("SELECT"):
                raise error
            return super().execute(sql, *parameters)

    class Connection(sqlite3.Connection):
        def cursor(self):
            return super().cursor(Cursor)

    class Hook(SqliteHook):
        def get_conn(self):
            return sqlite3.connect(self.get_connection("shop").host, factory=Connection)

    query("CREATE TABLE ghost (n INTEGER, sku TEXT)")
    with pytest.raises(ServiceInputError, match="no row was read or written") if is_missing else nullcontext():
        insert_all(Hook("shop"), "ghost", ["n", "sku"], rows_of(1), mode="append")
    assert len(query("SELECT n FROM ghost")) == (0 if is_missing else 1)


@pytest.mark.parametrize("odd", [{}, [1]])
def test_values_that_no_column_can_have_do_not_reach_the_database(execute, table, query, simulator, odd):
    query("CREATE TABLE t (sku TEXT)")
    query("INSERT INTO t VALUES (?)", [("earlier",)])
    simulator.wrap(HostileLayer(lambda name, value: odd if name == "sku" else value).around)
    with pytest.raises(ServiceUnexpectedResponseError, match="a value that no column has"):
        execute(STORE, data_table_id=table.id, sql_table="t", sql_conn_id="shop", columns=["sku"], mode="replace")
    assert query("SELECT * FROM t") == [("earlier",)]


def test_a_column_that_is_deleted_while_the_table_is_read_leaves_the_rows_of_the_database(
    execute, table, query, client, meanwhile
):
    query("CREATE TABLE t (sku TEXT, stock REAL)")
    query("INSERT INTO t VALUES (?, 1)", [("earlier",)])
    client.data_table_rows.insert(table.id, [{"sku": "x", "stock": 1}] * 600)
    [column] = [one for one in client.data_table_columns.list(table.id) if one.name == "stock"]
    meanwhile(f"/data-tables/{table.id}/rows", lambda other: other.data_table_columns.delete(table.id, column.id))
    options = {"sql_table": "t", "sql_conn_id": "shop", "columns": ["sku", "stock"], "mode": "replace"}
    with pytest.raises(ServiceError, match="no longer has the column 'stock', which was renamed or deleted"):
        execute(STORE, data_table_id=table.id, **options)
    assert query("SELECT * FROM t") == [("earlier", 1)]


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
        ({"mode": "append", "filter": {"type": "and"}}, "filter must contain at least one condition"),
        (
            {"mode": "append", "filter": {"filters": [{"columnName": "stock", "condition": "lt", "value": ""}]}},
            "the filter, column 'stock': '' is not a value of type number",
        ),
        ({"mode": "append", "sql_conn_id": "service_default"}, "'service_default' is not the connection of a database"),
    ],
)
def test_options_that_do_not_fit_are_refused(execute, table, query, options, message):
    with pytest.raises((ServiceInputError, AirflowFailException), match=message):
        execute(STORE, **{"data_table_id": table.id, "sql_table": "t", "sql_conn_id": "shop", **options})


@pytest.mark.parametrize("mode", ["replace", "append"])
def test_a_value_that_the_database_refuses_is_named(execute, table, query, client, mode):
    query("CREATE TABLE t (sku TEXT NOT NULL, n INTEGER, m INTEGER)")
    query("INSERT INTO t VALUES (?, 0, 0)", [("earlier",)])
    client.data_table_rows.clear(table.id)
    rows = [{"sku": str(number), "stock": number} for number in range(1_500)]
    client.data_table_rows.insert(table.id, [*rows, {"sku": "x", "stock": 2**63}, {"sku": "y", "stock": 2**64}])
    options = {"columns": ["sku", "stock"], "column_mapping": {"stock": "n"}, "mode": mode}
    with pytest.raises(AirflowFailException, match=r"row 1501, column 'n': 9223372036854776000: the database refuses"):
        execute(STORE, data_table_id=table.id, sql_table="t", sql_conn_id="shop", **options)
    assert query("SELECT sku FROM t") == [("earlier",)]


HOSTILE = [
    "t where 1=1 --",
    "t; DROP TABLE t",
    "t (sku) SELECT 1 --",
    "t/**/",
    "(SELECT 1)",
    't" --',
    '"t',
    " t",
    "a--b",
    "t#",
    "t-",
    "a.",
    ".a",
    "a@b",
]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("mode", ["replace", "append"])
def test_a_name_that_is_more_than_a_name_is_refused(execute, table, query, simulator, name, mode):
    query("CREATE TABLE t (sku TEXT)")
    query("INSERT INTO t VALUES (?)", [("earlier",)])
    options = {"data_table_id": table.id, "sql_conn_id": "shop", "columns": ["sku"], "mode": mode}
    with pytest.raises(AirflowFailException, match=r"sql_table must be the name of a table such as shop\.sales"):
        execute(STORE, sql_table=name, **options)
    if name not in (" t", "a--b", "t#", "t-", "a.", ".a", "a@b"):  # the hook puts them into quotes
        with pytest.raises(AirflowFailException, match="each value of column_mapping must be the name of a column"):
            execute(STORE, sql_table="t", column_mapping={"sku": name}, **options)
    assert query("SELECT * FROM t") == [("earlier",)]


@pytest.mark.parametrize(
    "name", ["mydb..sales", "srv...t", "2026_sales", "my-project.ds.t", "#tmp", "##tmp", "tempdb..#tmp", "v$t", "$t"]
)
def test_names_that_some_databases_have(name):
    require_table_name("sql_table", name)


@pytest.mark.parametrize(("mode", "deleted"), [("replace", ", after deleting 1"), ("append", "")])
def test_the_log_says_what_was_written_and_deleted(execute, table, query, mode, deleted, caplog):
    caplog.set_level("INFO")
    query("CREATE TABLE t (sku TEXT)")
    query("INSERT INTO t VALUES (?)", [("earlier",)])
    execute(STORE, data_table_id=table.id, sql_table="t", sql_conn_id="shop", columns=["sku"], mode=mode)
    assert f"Rows of {table.name} written to t: 3{deleted}; see http" in caplog.text


class Committing(SqliteHook):
    """Commits each statement, as databases without transactions do."""

    def get_conn(self):
        connection = super().get_conn()
        connection.isolation_level = None
        return connection


def rows_of(*values: int) -> list[tuple[int, str]]:
    return [(value, "x") for value in values]


def test_no_value_is_probed_where_nothing_can_be_rolled_back(query):
    query("CREATE TABLE t (n INTEGER, sku TEXT)")
    with pytest.raises(ServiceInputError, match=r"rows 1 to 3: the database refuses one of the values.*may have been"):
        insert_all(Committing("shop"), "t", ["n", "sku"], rows_of(1, 2, 2**64), mode="append")
    assert query("SELECT n FROM t") == [(1,), (2,)]


def test_the_refusal_survives_a_probe_that_fails(query):
    class Broken(sqlite3.Connection):
        def rollback(self):
            raise sqlite3.OperationalError("the connection is gone")

    class Hook(SqliteHook):
        def get_conn(self):
            return sqlite3.connect(self.get_connection("shop").host, factory=Broken)

    query("CREATE TABLE t (n INTEGER, sku TEXT)")
    with pytest.raises(OverflowError):
        insert_all(Hook("shop"), "t", ["n", "sku"], rows_of(1, 2**64), mode="append")


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("name", ["t", "main.t", '"t"', 'main."t"', "[t]", "`t`", '"a ""b"" ;--"', "größe_1"])
@pytest.mark.parametrize("column", ["x", "list price", '"list price"', "größe"])
def test_names_of_tables_and_columns(execute, table, query, name, column):
    made = name if name != "main.t" else "t"
    quoted = '"' + column.strip('"') + '"'
    query(f"CREATE TABLE {made} ({quoted} TEXT)")
    options = {"data_table_id": table.id, "sql_conn_id": "shop", "columns": ["sku"], "mode": "replace"}
    for deleted in (0, 3):
        done = execute(STORE, sql_table=name, column_mapping={"sku": column}, **options)
        assert (done["count"], done["deleted"]) == (3, deleted)
    assert query(f"SELECT count(*) FROM {made}") == [(3,)]
