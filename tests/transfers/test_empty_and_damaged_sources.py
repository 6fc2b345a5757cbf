"""Sources that are empty or damaged: no row is deleted for them without consent, and every deletion is counted."""

from __future__ import annotations

import gzip
import io
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.transfers.data_table_to_sql import ServiceDataTableToSqlOperator
from airflow_provider_service.transfers.object_storage_to_data_table import ObjectStorageToServiceDataTableOperator
from airflow_provider_service.transfers.sql_to_data_table import SqlToServiceDataTableOperator

READ, QUERY, UNLOAD = (
    ObjectStorageToServiceDataTableOperator,
    SqlToServiceDataTableOperator,
    ServiceDataTableToSqlOperator,
)

#: The ways in which a load deletes all rows that the source lacks.
REPLACING: dict[str, dict[str, Any]] = {
    "replace": {"mode": "replace"},
    "delete_missing": {"key_columns": "sku", "delete_missing": True},
}
EVERY_MODE = {**REPLACING, "append": {"mode": "append"}, "upsert": {"key_columns": "sku"}}


def parquet(**columns: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


MANY = parquet(sku=[f"{number:0100}" for number in range(1_000)], stock=list(range(1_000)))
CSV = b"sku,stock\n" + b"".join(b"sku-%d,%d\n" % (number, number) for number in range(5_000))
JSONL = b'{"sku": "a"}\n{"sku": "b"}\n'

#: Contents that are no file of their format, by the ending of the name.
DAMAGED = {
    "csv: empty": (".csv", b"", "the file is empty: it lacks even the header"),
    "csv: byte order mark only": (".csv", b"\xef\xbb\xbf", "the file is empty: it lacks even the header"),
    "csv: empty line": (".csv", b"\n", "the header must name each column once"),
    "csv: other columns": (".csv", b"nope,stock\n", "the source has unknown columns 'nope'"),
    "csv: column of the service": (".csv", b"id,sku\n", "only the service writes 'id'"),
    "csv: cut off in a row": (".csv", b"sku,stock\na,1\nb", "row 2 has 1 cells, and the header has 2"),
    "csv: cut off in a quote": (".csv", b'sku\na\n"b', "a quote that opens in line 3 is not closed"),
    "gzip: empty": (".csv.gz", b"", "is not a complete gzip file: it has no content"),
    "gzip: nothing in it": (".csv.gz", gzip.compress(b""), "the file is empty: it lacks even the header"),
    "gzip: header only": (".csv.gz", gzip.compress(CSV)[:10], "is not a complete gzip file"),
    "gzip: cut off": (".csv.gz", gzip.compress(CSV)[:-2000], "is not a complete gzip file"),
    "gzip: without its checksum": (".csv.gz", gzip.compress(CSV)[:-8], "is not a complete gzip file"),
    "gzip: wrong checksum": (".csv.gz", gzip.compress(CSV)[:-8] + bytes(8), "is not a complete gzip file"),
    "gzip: no gzip": (".csv.gz", CSV, "is not a complete gzip file"),
    "json lines: empty gzip": (".jsonl.gz", b"", "is not a complete gzip file: it has no content"),
    "json lines: cut off gzip": (".jsonl.gz", gzip.compress(JSONL)[:-9], "is not a complete gzip file"),
    "json lines: cut off": (".jsonl", JSONL[:-3], "line 2 is not JSON"),
    "parquet: empty": (".parquet", b"", "the file is not Parquet"),
    "parquet: cut off": (".parquet", MANY[:-100], "the file is not Parquet"),
    "parquet: other columns": (".parquet", parquet(nope=pa.array([], pa.string())), "unknown columns 'nope'"),
}


@pytest.fixture
def load(execute, table, tmp_path):
    """``load(ending, content)`` loads a file with this content."""

    def run(ending: str, content: bytes, **options: Any) -> dict[str, Any]:
        path = tmp_path / f"in{ending}"
        path.write_bytes(content)
        done: dict[str, Any] = execute(READ, path=str(path), data_table_id=table.id, **options)
        return done

    return run


@pytest.fixture
def filled(client, table, writes):
    """The names in the table, of which it has three rows."""
    client.data_table_rows.insert(table.id, [{"sku": name} for name in ("x", "y", "z")])
    writes()
    return lambda: [row["sku"] for row in client.data_table_rows.list(table.id)]


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("mode", EVERY_MODE)
@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_file_is_refused_before_the_first_write(load, filled, writes, what, mode):
    ending, content, message = DAMAGED[what]
    with pytest.raises(AirflowFailException, match=message):
        load(ending, content, allow_empty=True, **EVERY_MODE[mode])
    assert (writes(), filled()) == ([], ["x", "y", "z"])


EMPTY = {
    "csv": (".csv", b"sku,stock\n"),
    "csv.gz": (".csv.gz", gzip.compress(b"sku,stock\n")),
    "jsonl": (".jsonl", b""),
    "jsonl.gz": (".jsonl.gz", gzip.compress(b"\n")),
    "parquet": (".parquet", parquet(sku=pa.array([], pa.string()))),
}


@pytest.mark.parametrize("mode", EVERY_MODE)
@pytest.mark.parametrize("kind", EMPTY)
def test_no_rows_replace_rows_only_with_consent(load, filled, writes, kind, mode, caplog):
    options = EVERY_MODE[mode]
    if mode in REPLACING:
        option = "mode='replace'" if mode == "replace" else "delete_missing=True"
        with pytest.raises(AirflowFailException, match=rf"{option} would delete all rows.*allow_empty=True"):
            load(*EMPTY[kind], **options)
        assert (writes(), filled()) == ([], ["x", "y", "z"])
    caplog.set_level("INFO")
    done = load(*EMPTY[kind], allow_empty=mode in REPLACING, **options)
    deleted = 3 if mode in REPLACING else 0
    assert (done["rows"], done["inserted"], done["deleted"]) == (0, 0, deleted)
    assert f"0 rows for stock: 0 inserted, 0 updated, 0 unchanged, {deleted} deleted, 0 left out" in caplog.text
    assert len(filled()) == 3 - deleted


@pytest.mark.parametrize("mode", REPLACING)
def test_rows_that_are_all_left_out_replace_nothing(load, filled, writes, tmp_path, mode):
    options = {"on_error": "skip", "reject_path": str(tmp_path / "bad.jsonl"), **REPLACING[mode]}
    with pytest.raises(AirflowFailException, match="there are no rows to write"):
        load(".csv", b"sku,stock\na,many\n", **options)
    assert (writes(), filled()) == ([], ["x", "y", "z"])


@pytest.mark.parametrize("mode", REPLACING)
def test_a_query_without_rows_replaces_rows_only_with_consent(execute, table, filled, query, writes, mode):
    query("SELECT 1")
    options = {"sql_conn_id": "shop", "data_table_id": table.id, **REPLACING[mode]}
    for given, message in (({}, "allow_empty=True"), ({"allow_empty": True, "sql": "SELECT 1 AS x WHERE 0"}, "'x'")):
        with pytest.raises(AirflowFailException, match=message):
            execute(QUERY, **{"sql": "SELECT 'a' AS sku WHERE 0", **options, **given})
        assert (writes(), filled()) == ([], ["x", "y", "z"])
    assert execute(QUERY, sql="SELECT 'a' AS sku WHERE 0", allow_empty=True, **options)["deleted"] == 3
    assert filled() == []


@pytest.mark.parametrize("mode", REPLACING)
@pytest.mark.parametrize(
    "rows", [[], iter(()), pd.DataFrame({"sku": []}), pa.table({"sku": pa.array([], pa.string())})]
)
def test_the_hook_replaces_rows_by_none_only_with_consent(simulator, table, filled, writes, rows, mode):
    with ServiceHook() as hook:
        with pytest.raises(ServiceInputError, match="allow_empty=True"):
            hook.data_tables.load(rows, data_table_id=table.id, **REPLACING[mode])
        assert (writes(), filled()) == ([], ["x", "y", "z"])
        done = hook.data_tables.load(rows, data_table_id=table.id, allow_empty=True, **REPLACING[mode])
    assert (done["deleted"], filled()) == (3, [])


def test_a_frame_of_other_columns_without_rows_is_refused(simulator, table, filled, writes):
    with ServiceHook() as hook, pytest.raises(ServiceInputError, match="the source has unknown columns 'nope'"):
        hook.data_tables.load(pd.DataFrame({"nope": []}), data_table_id=table.id, mode="replace", allow_empty=True)
    assert (writes(), filled()) == ([], ["x", "y", "z"])


def test_a_table_without_rows_replaces_those_of_a_database_only_with_consent(execute, table, query, client):
    query("CREATE TABLE t (sku TEXT)")
    query("INSERT INTO t VALUES (?)", [("a",), ("b",)])
    options = {"sql_table": "t", "sql_conn_id": "shop", "data_table_id": table.id, "columns": ["sku"]}
    options["mode"] = "replace"
    with pytest.raises(AirflowFailException, match=r"mode='replace' would delete all rows.*allow_empty=True"):
        execute(UNLOAD, **options)
    assert query("SELECT * FROM t") == [("a",), ("b",)]
    done = execute(UNLOAD, allow_empty=True, **options)
    assert (done["count"], done["deleted"], query("SELECT * FROM t")) == (0, 2, [])
    client.data_table_rows.insert(table.id, [{"sku": "c"}])
    done = [execute(UNLOAD, **options) for _ in range(2)]
    assert [(one["count"], one["deleted"]) for one in done] == [(1, 0), (1, 1)]


@pytest.mark.parametrize("mode", REPLACING)
def test_deletions_are_counted_in_every_mode(load, filled, client, table, mode):
    client.data_table_rows.delete(table.id, {"type": "and", "filters": [{"columnName": "sku", "value": "y"}]})
    assert load(".csv", b"sku\na\nb\n", **REPLACING[mode])["deleted"] == 2
    assert load(".csv", b"sku\nc\n", **REPLACING[mode])["deleted"] == 2
    assert filled() == ["c"]


def test_deletions_that_cannot_be_counted_are_of_an_unknown_number(load, filled, simulator, caplog):
    caplog.set_level("INFO")
    simulator.inject("html", status=200, method="GET", path="/rows$", times=1)
    assert load(".csv", b"sku\na\n", mode="replace")["deleted"] is None
    assert "1 inserted, 0 updated, 0 unchanged, an unknown number deleted" in caplog.text
    assert filled() == ["a"]
