"""Transfers from and to a real MariaDB."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pymysql
import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client._lookup import find_data_table
from airflow_provider_service.transfers.data_table_to_sql import ServiceDataTableToSqlOperator
from airflow_provider_service.transfers.sql_to_data_table import SqlToServiceDataTableOperator

from . import MariaDb

LOAD, STORE = SqlToServiceDataTableOperator, ServiceDataTableToSqlOperator
Query = Callable[..., list[tuple[Any, ...]]]

COLUMNS = (
    "label VARCHAR(80), amount DECIMAL(20, 4), price DOUBLE, flag BOOLEAN, day DATE, at TIMESTAMP(3) NULL, "
    "local DATETIME(3)"
)
WRITTEN = [
    (
        "ä\r\n\t'\"\\ 🦔 %s",
        Decimal("-12345678901.5000"),
        0.1,
        1,
        datetime(2026, 1, 2).date(),
        *[datetime(2026, 3, 29, 2, 30)] * 2,
    ),
    ("", Decimal("0.0000"), -0.5, 0, datetime(1000, 1, 1).date(), datetime(1970, 1, 2), datetime(9999, 12, 30)),
    (None,) * 7,
]


@pytest.fixture(scope="module")
def server() -> Iterator[MariaDb]:
    with MariaDb() as server:
        yield server


@pytest.fixture(params=["mysql-connector-python", "mysqlclient"])
def driver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A driver of the connection; mysqlclient must be compiled, so its twin without C stands for it."""
    monkeypatch.setitem(sys.modules, "MySQLdb", pymysql)
    return str(request.param)


@pytest.fixture
def query(server: MariaDb, driver: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Query]:
    """``query(sql, rows)`` runs a statement in the empty database of the connection ``shop``, for each row if given."""
    address = {"host": server.host, "port": server.port, "login": server.user, "password": server.password}
    fields = {"conn_type": "mysql", "schema": "shop", "extra": {"client": driver}, **address}
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps(fields))
    connection = server.connect()
    cursor = connection.cursor()

    def run(sql: str, rows: Any = None) -> list[tuple[Any, ...]]:
        cursor.execute(sql) if rows is None else cursor.executemany(sql, rows)
        return list(cursor.fetchall()) if cursor.description else []

    run("CREATE OR REPLACE DATABASE shop CHARACTER SET utf8mb4")
    run("USE shop")
    run("SET time_zone = '+00:00'")
    yield run
    connection.close()


@pytest.fixture
def sales(query: Query) -> None:
    """A table with rows of every type."""
    query(f"CREATE TABLE sales (n INT AUTO_INCREMENT PRIMARY KEY, {COLUMNS})")
    query("INSERT INTO sales (label, amount, price, flag, day, at, local) VALUES (%s, %s, %s, %s, %s, %s, %s)", WRITTEN)


@pytest.fixture
def table(client) -> str:
    """A data table with a column of each type."""
    kinds = {"label": "string", "amount": "number", "price": "number", "flag": "boolean"}
    kinds |= dict.fromkeys(("day", "at", "local"), "date")
    return str(client.data_tables.create("sales", [{"name": one, "type": kind} for one, kind in kinds.items()]).id)


SELECT = "SELECT label, amount, price, flag, day, at, local FROM sales ORDER BY n"


@pytest.mark.usefixtures("query")
def test_a_table_that_does_not_exist_is_named(execute, table):
    with pytest.raises(
        AirflowFailException, match=r"^sql_table must be an existing table, and the database has no ghost"
    ):
        execute(STORE, data_table_id=table, sql_table="ghost", sql_conn_id="shop", mode="append")


@pytest.mark.usefixtures("sales")
def test_every_type_survives_the_round_trip(execute, client, query, table):
    done = execute(LOAD, sql=SELECT, sql_conn_id="shop", data_table_id=table, mode="replace")
    assert done["inserted"] == len(WRITTEN)
    rows = [[row[name] for name in ("flag", "at", "local")] for row in client.data_table_rows.list(table)]
    assert rows == [
        [True, "2026-03-29T02:30:00.000Z", "2026-03-29T02:30:00.000Z"],
        [False, "1970-01-02T00:00:00.000Z", "9999-12-30T00:00:00.000Z"],
        [None, None, None],
    ]
    query(f"CREATE TABLE back ({COLUMNS})")
    for _ in range(2):
        done = execute(STORE, data_table_id=table, sql_table="back", sql_conn_id="shop", mode="replace")
        assert done["count"] == len(WRITTEN)
        assert query("SELECT * FROM back") == WRITTEN


@pytest.mark.usefixtures("sales")
def test_a_boolean_becomes_a_number_where_the_load_creates_the_column(execute, client):
    execute(
        LOAD,
        sql="SELECT flag FROM sales",
        sql_conn_id="shop",
        data_table_name="made",
        create_table=True,
        mode="replace",
    )
    [column] = find_data_table(client, "made").columns or ()
    assert column.type == "number"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"mode": "append"}, [("a", 1), ("a", 1), ("kept", 7)]),
        ({"mode": "replace"}, [("a", 1)]),
        ({"key_columns": "k"}, [("a", 1), ("kept", 7)]),
    ],
)
def test_modes_into_the_database(execute, client, query, options, expected):
    table = client.data_tables.create("t", [{"name": "k", "type": "string"}, {"name": "n", "type": "number"}])
    client.data_table_rows.insert(table.id, [{"k": "a", "n": 1}])
    query(f"CREATE TABLE t (k VARCHAR(9) {'UNIQUE' if 'key_columns' in options else ''}, n INT)")
    query("INSERT INTO t VALUES (%s, %s)", [("kept", 7)])
    for _ in range(2):
        assert execute(STORE, sql_table="t", sql_conn_id="shop", data_table_name="t", **options)["count"] == 1
    assert query("SELECT * FROM t ORDER BY k") == expected


def test_a_number_that_a_column_cannot_hold_is_named(execute, client, query):
    table = client.data_tables.create("t", [{"name": "n", "type": "number"}])
    client.data_table_rows.insert(table.id, [{"n": number} for number in range(1_202)] + [{"n": 40_000}])
    query("CREATE TABLE t (n SMALLINT)")
    query("INSERT INTO t VALUES (7)")
    with pytest.raises(
        AirflowFailException, match=r"row 1203, column 'n': 40000: the database refuses this: .*Out of range"
    ):
        execute(STORE, sql_table="t", sql_conn_id="shop", data_table_name="t", mode="replace")
    assert query("SELECT * FROM t") == [(7,)]


@pytest.mark.parametrize(("value", "place"), [(40_000, "column 'n': 40000"), ("too long", "column 's': 'too long'")])
def test_nothing_is_clipped_although_the_server_would(execute, client, query, value, place):
    table = client.data_tables.create("t", [{"name": "n", "type": "number"}, {"name": "s", "type": "string"}])
    client.data_table_rows.insert(table.id, [{"n": 1, "s": "x"}, {"s" if isinstance(value, str) else "n": value}])
    query("CREATE TABLE t (n SMALLINT, s VARCHAR(2))")
    query("INSERT INTO t VALUES (7, 'y')")
    [(before,)] = query("SELECT @@GLOBAL.sql_mode")
    query("SET GLOBAL sql_mode = ''")
    try:
        with pytest.raises(AirflowFailException, match=f"row 2, {place}: the database refuses this: .*nothing was wr"):
            execute(STORE, sql_table="t", sql_conn_id="shop", data_table_name="t", mode="replace")
    finally:
        query(f"SET GLOBAL sql_mode = '{before}'")
    assert query("SELECT * FROM t") == [(7, "y")]


@pytest.mark.parametrize("name", ["t", "shop.t", "`shop`.`t`"])
@pytest.mark.parametrize("engine", ["MyISAM", "Aria"])
def test_a_table_without_transactions_is_refused_before_its_rows_are_deleted(execute, client, query, engine, name):
    table = client.data_tables.create("t", [{"name": "n", "type": "number"}])
    client.data_table_rows.insert(table.id, [{"n": 40_000}])
    query(f"CREATE TABLE t (n SMALLINT) ENGINE = {engine}")
    query("INSERT INTO t VALUES (7)")
    with pytest.raises(AirflowFailException, match=r"^sql_table must be a table with transactions"):
        execute(STORE, sql_table=name, sql_conn_id="shop", data_table_name="t", mode="replace")
    assert query("SELECT * FROM t") == [(7,)]


def test_a_value_that_the_data_table_cannot_store_is_named_although_rows_are_left(execute, client, query, writes):
    client.data_tables.create("t", [{"name": "n", "type": "number"}])
    query("CREATE TABLE t (n VARCHAR(9))")
    query("INSERT INTO t VALUES (%s)", [("many",)] * 5_000)
    writes()
    with pytest.raises(AirflowFailException, match="row 1, column 'n': 'many' is not a value of type number"):
        execute(LOAD, sql="SELECT n FROM t", sql_conn_id="shop", data_table_name="t", mode="replace")
    assert writes() == []


def test_dates_are_in_utc_whatever_the_session(execute, client, query):
    table = client.data_tables.create("t", [{"name": "at", "type": "date"}])
    client.data_table_rows.insert(table.id, [{"at": "2026-03-29T02:30:00.000Z"}])
    query("CREATE TABLE t (at TIMESTAMP NULL)")
    execute(STORE, sql_table="t", sql_conn_id="shop", data_table_name="t", mode="replace")
    moment = datetime(2026, 3, 29, 2, 30, tzinfo=UTC)
    assert query("SELECT UNIX_TIMESTAMP(at) FROM t") == [(int(moment.timestamp()),)]
