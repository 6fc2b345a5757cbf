"""Transfers from and to a real PostgreSQL."""

from __future__ import annotations

import json
import logging
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.providers.postgres.hooks.postgres import PostgresHook

from airflow_provider_service.client._lookup import find_data_table
from airflow_provider_service.transfers._sql import insert_all, query_rows
from airflow_provider_service.transfers.data_table_to_sql import ServiceDataTableToSqlOperator
from airflow_provider_service.transfers.sql_to_data_table import SqlToServiceDataTableOperator
from tests.runs.moments import seed_of_the_day, soon

LOAD = SqlToServiceDataTableOperator
STORE = ServiceDataTableToSqlOperator

TYPES = {
    "label": "text",
    "amount": "numeric",
    "price": "double precision",
    "big": "bigint",
    "flag": "boolean",
    "day": "date",
    "at": "timestamptz",
    "local": "timestamp",
}
COLUMNS = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
INDIA = timezone(timedelta(hours=5, minutes=30))
WRITTEN = (
    (None,) * len(TYPES),
    (
        "",
        Decimal("0.10"),
        -0.5,
        2**53,
        True,
        date(2026, 1, 2),
        datetime(2026, 1, 2, 1, tzinfo=INDIA),
        datetime(2026, 1, 2),
    ),
    (
        "ä\r\n\t'\"\\ 🦔 %s $1",
        Decimal("-123456789012.345"),
        1e300,
        -(2**53),
        False,
        date(100, 1, 1),
        datetime(9999, 12, 30, 23, 59, 59, 999000, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999000),
    ),
    ("null", Decimal(0), 5e-324, 0, False, date(2026, 3, 29), datetime(2026, 3, 29, 2, 30, tzinfo=INDIA), None),
)


def random_rows(seed: int, count: int) -> list[tuple[Any, ...]]:
    """Rows of every type, with nulls among them, that a data table can store exactly."""
    chance = random.Random(seed)
    begin = datetime(1900, 1, 1, tzinfo=UTC)

    def moment() -> datetime:
        return begin + timedelta(milliseconds=chance.randrange(200 * 365 * 86_400_000))

    def text() -> str:
        points = [*range(1, 0x300), *range(0x2000, 0x2100), *range(0x1F600, 0x1F650)]
        return "".join(chr(chance.choice(points)) for _ in range(chance.randrange(12)))

    makers = {
        "label": text,
        "amount": lambda: Decimal(chance.randrange(-(10**15), 10**15)).scaleb(-chance.randrange(10)),
        "price": lambda: chance.uniform(-1, 1) * 10 ** chance.randrange(-300, 300),
        "big": lambda: chance.randrange(-(2**53), 2**53),
        "flag": lambda: chance.random() < 0.5,
        "day": lambda: moment().date(),
        "at": lambda: moment().astimezone(INDIA),
        "local": lambda: moment().replace(tzinfo=None),
    }
    return [tuple(None if chance.random() < 0.1 else makers[name]() for name in TYPES) for _ in range(count)]


def fill(query, rows, table="sales") -> None:
    query(f"CREATE TABLE {table} (n serial PRIMARY KEY, {COLUMNS})")
    names = ", ".join(TYPES)
    query(f"INSERT INTO {table} ({names}) VALUES ({', '.join(['%s'] * len(TYPES))})", rows)


def load(execute, sql, **options):
    given = {"data_table_name": "sales", "create_table": True, "mode": "replace", **options}
    return execute(LOAD, sql=sql, sql_conn_id="shop", **given)


@pytest.fixture
def numbers(client):
    """``numbers()`` lists the rows of the data table ``t`` as (k, n)."""
    table = client.data_tables.create("t", [{"name": "k", "type": "string"}, {"name": "n", "type": "number"}])
    client.data_table_rows.insert(table.id, [{"k": "gone", "n": 1}, {"k": "kept", "n": 2}])
    return lambda: sorted((row["k"], row["n"]) for row in client.data_table_rows.list(table.id))


def test_every_type_survives_the_round_trip(execute, client, query):
    rows = [*WRITTEN, *random_rows(seed_of_the_day(), 500)]
    fill(query, rows)
    stored = query(f"SELECT {', '.join(TYPES)} FROM sales ORDER BY n")
    assert load(execute, f"SELECT {', '.join(TYPES)} FROM sales ORDER BY n")["inserted"] == len(rows)
    table = find_data_table(client, "sales")
    kinds = ["string", "number", "number", "number", "boolean", "date", "date", "date"]
    assert {column.name: column.type for column in table.columns} == dict(zip(TYPES, kinds, strict=True))
    second = list(client.data_table_rows.list(table.id))[1]
    assert [second[name] for name in TYPES] == [
        *("", 0.1, -0.5, 2**53, True),
        *("2026-01-02T00:00:00.000Z", "2026-01-01T19:30:00.000Z", "2026-01-02T00:00:00.000Z"),
    ]
    query(f"CREATE TABLE back ({COLUMNS})")
    options = {"sql_table": "back", "sql_conn_id": "shop", "mode": "replace"}
    for _ in range(2):
        assert execute(STORE, data_table_name="sales", **options)["count"] == len(rows)
        assert sorted(query("SELECT * FROM back"), key=repr) == sorted(stored, key=repr)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"mode": "append"}, [("a", 1), ("a", 1), ("gone", 1), ("kept", 2), ("kept", 3), ("kept", 3)]),
        ({"mode": "replace"}, [("a", 1), ("kept", 3)]),
        ({"key_columns": "k"}, [("a", 1), ("gone", 1), ("kept", 3)]),
        ({"key_columns": ["k"], "delete_missing": True}, [("a", 1), ("kept", 3)]),
        ({"key_columns": ["k"], "change_strategy": "replace"}, [("a", 1), ("gone", 1), ("kept", 3)]),
    ],
)
def test_modes_of_a_load(execute, query, numbers, options, expected):
    query("CREATE TABLE t (k text, n int)")
    query("INSERT INTO t VALUES (%s, %s)", [("a", 1), ("kept", 3), ("never", -1)])
    sql = "SELECT k, n FROM t WHERE n > %(least)s AND k NOT LIKE '%%x%%'"
    for _ in range(2):
        execute(LOAD, sql=sql, sql_conn_id="shop", parameters={"least": 0}, data_table_name="t", **options)
    assert numbers() == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"mode": "append"}, [*[("gone", 1, None)] * 2, *[("kept", 2, None)] * 2, ("kept", 7, "note")]),
        ({"mode": "replace"}, [("gone", 1, None), ("kept", 2, None)]),
        ({"key_columns": "k"}, [("gone", 1, None), ("kept", 2, "note")]),
    ],
)
def test_modes_into_the_database(execute, query, numbers, options, expected):
    query(f"CREATE TABLE t (k text {'UNIQUE' if 'key_columns' in options else ''}, n double precision, note text)")
    query("INSERT INTO t VALUES (%s, %s, %s)", [("kept", 7, "note")])
    for _ in range(2):
        assert execute(STORE, sql_table="public.t", sql_conn_id="shop", data_table_name="t", **options)["count"] == 2
    assert query("SELECT * FROM t ORDER BY k, n") == expected


@pytest.mark.usefixtures("query", "numbers")
def test_a_table_that_does_not_exist_is_named(execute):
    with pytest.raises(
        AirflowFailException, match=r"^sql_table must be an existing table, and the database has no ghost"
    ):
        execute(STORE, data_table_name="t", sql_table="ghost", sql_conn_id="shop", mode="append")


def test_keys_without_another_column_are_left_as_they_are(execute, query, numbers):
    query("CREATE TABLE t (k text UNIQUE, n int DEFAULT 5)")
    query("INSERT INTO t VALUES (%s, %s)", [("kept", 7)])
    execute(STORE, sql_table="t", sql_conn_id="shop", data_table_name="t", columns=["k"], key_columns="k")
    assert query("SELECT * FROM t ORDER BY k") == [("gone", 5), ("kept", 7)]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("'NaN'::float8", "nan is not a value of type number"),
        ("'-Infinity'::float8", "-inf is not a value of type number"),
        ("'NaN'::numeric", r"Decimal\('NaN'\) is not a value of type number"),
        ("'99'::text", None),
        ("'many'::text", "'many' is not a value of type number"),
        ("'{}'::jsonb", r"\{\} is not a value of type number"),
        (r"'\x00'::bytea", "is not a value of type number"),
        ("'12:00'::time", "is not a value of type number"),
        ("ARRAY[1]", r"\[1\] is not a value of type number"),
        ("now()", "is not a value of type number"),
    ],
)
def test_what_the_table_cannot_store_is_refused_before_anything_is_written(
    execute, numbers, query, writes, value, message
):
    writes()
    sql = f"SELECT 'a' AS k, {value} AS n FROM generate_series(1, 1) UNION ALL SELECT 'b', {value}"
    if message is None:
        execute(LOAD, sql=sql, sql_conn_id="shop", data_table_name="t", mode="replace")
        assert numbers() == [("a", 99), ("b", 99)]
        return
    with pytest.raises(AirflowFailException, match=f"row 1, column 'n': .*{message}"):
        execute(LOAD, sql=sql, sql_conn_id="shop", data_table_name="t", mode="replace")
    assert writes() == []


def test_rejected_rows_are_valid_json(execute, numbers, query, tmp_path: Path):
    sql = "SELECT k, n FROM (VALUES ('a', 1::float8), ('b', 'NaN'), ('c', '-Infinity')) AS t (k, n)"
    options = {"mode": "replace", "on_error": "skip", "reject_path": tmp_path / "bad.jsonl"}
    assert execute(LOAD, sql=sql, sql_conn_id="shop", data_table_name="t", **options)["rejected"] == 2
    assert numbers() == [("a", 1)]

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    lines = (tmp_path / "bad.jsonl").read_text().splitlines()
    values = [json.loads(line, parse_constant=refuse)["values"] for line in lines]
    assert values == [{"k": "b", "n": "nan"}, {"k": "c", "n": "-inf"}]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT 1 AS n, 2 AS n", "the query has several columns named 'n'"),
        ("CREATE TABLE x (n int)", "syntax error"),
        ("SELECT nope", 'column "nope" does not exist'),
        ("SELECT 'infinity'::timestamptz AS n", "timestamp too large"),
        ("SELECT '0044-03-15 BC'::date AS n", "date too small"),
        ("INSERT INTO u SELECT 1 RETURNING n", "syntax error"),
    ],
)
def test_a_statement_that_is_no_such_query_writes_nothing(execute, query, numbers, writes, sql, message):
    writes()
    with pytest.raises(Exception, match=message):
        execute(LOAD, sql=sql, sql_conn_id="shop", data_table_name="t", mode="replace")
    assert writes() == []


def test_cursors_of_the_connection_that_return_mappings(
    execute, query, numbers, connection_fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    fields = {**connection_fields, "extra": {"cursor": "dictcursor"}}
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps(fields))
    execute(LOAD, sql="SELECT 'a' AS k, 1 AS n", sql_conn_id="shop", data_table_name="t", mode="replace")
    assert numbers() == [("a", 1)]


def test_names_that_must_be_quoted(execute, query, numbers):
    query('CREATE TABLE "T" ("order" text UNIQUE, "Unit Price" int)')
    options = {"sql_table": '"T"', "sql_conn_id": "shop", "column_mapping": {"k": "order", "n": "Unit Price"}}
    for given in ({"key_columns": "order"}, {"mode": "replace"}):
        execute(STORE, data_table_name="t", **options, **given)
        assert query('SELECT * FROM "T" ORDER BY 1') == [("gone", 1), ("kept", 2)]
    query('CREATE TABLE c ("customerNo" text)')
    options = {"columns": ["k"], "column_mapping": {"k": "customerNo"}, "mode": "append"}
    execute(
        STORE,
        data_table_name="t",
        sql_table="c",
        sql_conn_id="shop",
        hook_params={"escape_column_names": True},
        **options,
    )
    assert query("SELECT * FROM c") == [("gone",), ("kept",)]


def test_text_that_the_database_cannot_store_rolls_everything_back(execute, client, query, numbers):
    client.data_table_rows.insert(find_data_table(client, "t").id, [{"k": "a\0b"}])
    query("CREATE TABLE t (k text)")
    with pytest.raises(AirflowFailException, match=r"row 3, column 'k': 'a\\x00b': the database refuses this: .*NUL"):
        execute(STORE, sql_table="t", sql_conn_id="shop", data_table_name="t", columns=["k"], mode="append")
    assert query("SELECT * FROM t") == []


@pytest.mark.parametrize("mode", ["append", "replace"])
@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("bigint", 1e19, "row 1203, column 'n': 10000000000000000000: the database refuses this: .*out of range"),
        ("smallint", 40_000, "row 1203, column 'n': 40000: the database refuses this: .*out of range"),
        ("real", 1e300, r"row 1203, column 'n': 1e\+300: the database refuses this: .*out of range"),
    ],
)
def test_a_number_that_a_column_cannot_hold_is_named(execute, client, query, kind, value, message, mode):
    columns = [{"name": name, "type": "number"} for name in ("n", "other")]
    table = client.data_tables.create("many", columns)
    small = [{"n": number, "other": number} for number in range(1_202)]
    client.data_table_rows.insert(table.id, [*small, {"n": value, "other": 1}, {"n": value, "other": value}])
    query(f"CREATE TABLE many (n {kind}, other {kind} NOT NULL)")
    query("INSERT INTO many VALUES (7, 7)")
    with pytest.raises(AirflowFailException, match=message):
        execute(STORE, sql_table="many", sql_conn_id="shop", data_table_name="many", mode=mode)
    assert query("SELECT * FROM many") == [(7, 7)]


def test_a_failure_in_a_later_batch_rolls_everything_back(execute, client, query):
    table = client.data_tables.create("many", [{"name": "n", "type": "number"}])
    client.data_table_rows.insert(table.id, [{"n": number} for number in range(2_500)])
    query("CREATE TABLE many (n int CHECK (n < 2400))")
    query("INSERT INTO many VALUES (7)")
    with pytest.raises(Exception, match="violates check constraint"):
        execute(STORE, sql_table="many", sql_conn_id="shop", data_table_name="many", mode="replace")
    assert query("SELECT * FROM many") == [(7,)]


class OlderHook(PostgresHook):
    """The hook with the driver that Airflow 2 uses."""

    def get_conn(self) -> Any:
        fields = self.get_connection(self.get_conn_id())
        return psycopg2.connect(
            host=fields.host, port=fields.port, user=fields.login, password=fields.password, dbname=fields.schema
        )


def test_the_driver_of_airflow_2(query):
    query("CREATE TABLE t (k text UNIQUE, n int, at timestamp)")
    rows = [["a", 1, datetime(2026, 1, 2, tzinfo=UTC)], ["b", None, None], ["ä\r\n", 3, None]]
    hook = OlderHook("shop")
    for mode, key_columns in (("replace", []), ("upsert", ["k"])):
        assert insert_all(hook, "t", ["k", "n", "at"], rows, mode=mode, key_columns=key_columns)[0] == 3
        found = list(query_rows(hook, "SELECT * FROM t WHERE k <> %(not)s ORDER BY n", {"not": "%"}, 2, list))
        assert found == [
            {"k": "a", "n": 1, "at": datetime(2026, 1, 2)},
            {"k": "ä\r\n", "n": 3, "at": None},
            {"k": "b", "n": None, "at": None},
        ]
    query("DELETE FROM t WHERE n IS NULL")
    query("ALTER TABLE t ALTER n SET NOT NULL")
    with pytest.raises(psycopg2.errors.NotNullViolation):
        insert_all(hook, "t", ["k", "n", "at"], rows, mode="upsert", key_columns=["k"])
    assert query("SELECT count(*) FROM t") == [(2,)]


@pytest.mark.parametrize("hook", [PostgresHook, OlderHook])
@pytest.mark.parametrize("before", [0, 3])
def test_a_stalled_replace_that_goes_on_is_replaced_by_the_next(query, hook, before, caplog):
    caplog.set_level(logging.INFO)
    query("CREATE TABLE t (n int)")
    query("INSERT INTO t VALUES (%s)", [[7]] * before)
    stalled, goes_on = threading.Event(), threading.Event()

    def rows():
        yield from ([number] for number in range(1_000))  # as many as are inserted at once
        stalled.set()
        goes_on.wait()
        yield [1_000]

    with ThreadPoolExecutor(2) as workers:
        try:
            first = workers.submit(insert_all, hook("shop"), "t", ["n"], rows(), mode="replace")
            stalled.wait()
            second = workers.submit(insert_all, hook("shop"), "t", ["n"], [[-1], [-2]], mode="replace")
            soon(lambda: "waiting for its end" in caplog.text or second.done())
        finally:
            goes_on.set()
        assert (first.result(), second.result()) == ((1_001, before), (2, 1_001))
    assert sorted(query("SELECT n FROM t")) == [(-2,), (-1,)]


READ = """
import resource, sys
from contextlib import closing
from airflow_provider_service.transfers._sql import query_rows, sql_hook
from tests.databases.test_transfers import OlderHook

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

def read(count):
    sql = f"SELECT n, repeat(md5(n::text), 40) AS text FROM generate_series(1, {count}) AS n"
    hook = OlderHook("shop") if sys.argv[1] == "psycopg2" else sql_hook("shop", None)
    with closing(hook.get_conn()) as connection:
        assert type(connection).__module__.partition(".")[0] == sys.argv[1]
    assert sum(1 for _ in query_rows(hook, sql, None, 1_000, list)) == count

read(2_000)
before = peak()
read(40_000)
print(peak() - before)
"""


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_rows_stay_on_the_server_until_they_are_fetched(query, driver):
    done = subprocess.run([sys.executable, "-c", READ, driver], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) < 16, "of the 51 MiB that these rows take"
