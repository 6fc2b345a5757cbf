"""Loads from SQLite and from files: what is stored, what is refused before anything is written, what is left out."""

from __future__ import annotations

import gzip
import json
import sqlite3

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.rows.source_rows import GrowingTypes
from airflow_provider_service.client._lookup import find_data_table
from airflow_provider_service.client.errors import ServiceConnectionLostError, ServiceInputError
from airflow_provider_service.transfers.object_storage_to_data_table import ObjectStorageToServiceDataTableOperator
from airflow_provider_service.transfers.sql_to_data_table import SqlToServiceDataTableOperator
from tests.s3 import Bucket

LOAD = SqlToServiceDataTableOperator
READ = ObjectStorageToServiceDataTableOperator
COLUMNS = ("sku", "stock", "active", "sold_at")


@pytest.fixture
def sales(query):
    query("CREATE TABLE sales (id INTEGER PRIMARY KEY, sku TEXT, stock REAL, active INTEGER, sold_at TEXT)")
    rows = [
        ("ä\r\n'", 1.5, 1, "2026-01-02 03:04:05+02:00"),
        ("", -0.0, 0, None),
        (None, 2**53, None, "2026-01-02"),
    ]
    query("INSERT INTO sales (sku, stock, active, sold_at) VALUES (?, ?, ?, ?)", rows)
    return [
        ("ä\r\n'", 1.5, True, "2026-01-02T01:04:05.000Z"),
        ("", 0, False, None),
        (None, 2**53, None, "2026-01-02T00:00:00.000Z"),
    ]


def load(execute, table, sql="SELECT sku, stock, active, sold_at FROM sales ORDER BY id", **options):
    return execute(LOAD, sql=sql, sql_conn_id="shop", data_table_id=table.id, **options)


@pytest.mark.parametrize("fetch_rows", [1, 2, 5_000])
def test_a_replace_has_the_result_of_the_query_even_if_repeated(execute, table, held, sales, fetch_rows):
    for _ in range(2):
        result = load(execute, table, mode="replace", fetch_rows=fetch_rows)
        assert held(*COLUMNS) == sales
    assert (result["rows"], result["inserted"], result["rejected"], result["added_columns"]) == (3, 3, 0, [])


def test_an_append_inserts_again(execute, table, held, sales):
    for _ in range(2):
        assert load(execute, table, mode="append")["inserted"] == 3
    assert held(*COLUMNS) == sales * 2


def test_an_append_whose_answer_is_lost_fails_for_good(execute, simulator, table, held, sales):
    simulator.inject("drop", method="POST", after_processing=True)
    with pytest.raises(AirflowFailException, match="0 rows were inserted, the next 3 may have been"):
        load(execute, table, mode="append")
    assert held(*COLUMNS) == sales


@pytest.mark.parametrize("options", [{"mode": "replace"}, {"key_columns": "sku"}], ids=["replace", "upsert"])
def test_a_load_that_can_be_repeated_is_retried_after_a_lost_answer(execute, simulator, table, held, sales, options):
    simulator.inject("drop", method="POST", path="/rows$", after_processing=True)
    with pytest.raises(ServiceConnectionLostError):
        load(execute, table, **options)
    load(execute, table, **options)
    assert held(*COLUMNS) == sales


def test_keys_make_it_an_upsert_which_can_delete_the_rest(execute, table, held, sales, client, query):
    client.data_table_rows.insert(table.id, [{"sku": "gone"}, {"sku": "", "shop": "kept"}])
    result = load(execute, table, key_columns="sku", delete_missing=True)
    assert [result[name] for name in ("inserted", "updated", "unchanged", "deleted")] == [2, 1, 0, 1]
    assert sorted(held(*COLUMNS, "shop"), key=str) == sorted(
        [(*row, "kept" if row[0] == "" else None) for row in sales], key=str
    )
    again = load(execute, table, key_columns=["sku"], delete_missing=True)
    assert [again[name] for name in ("inserted", "updated", "unchanged", "deleted")] == [0, 0, 3, 0]


def test_parameters_of_a_query(execute, table, held, sales):
    load(execute, table, sql="SELECT sku FROM sales WHERE stock > ? ORDER BY id", parameters=[1], mode="append")
    assert held("sku") == [(sales[0][0],), (None,)]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT 1 AS stock, 2 AS stock", "the query has several columns named 'stock': name them with AS"),
        ("CREATE TABLE x (n)", "sql must be one query that returns rows"),
        ("SELECT 1 AS nope", "the source has unknown columns 'nope'; the table has shop, sku, stock, active, sold_at"),
        ("SELECT 1 AS stock UNION ALL SELECT 'x'", "row 2, column 'stock': 'x' is not a value of type number"),
        ("SELECT 9e999 AS stock", "row 1, column 'stock': inf is not a value of type number"),
        ("SELECT x'00' AS sku", r"row 1, column 'sku': b'\\x00' is not a value of type string"),
        ("SELECT 1 AS id", r"column_mapping=\{'id': 'source_id'\}, or leave it out with column_mapping=\{'id': None\}"),
    ],
)
def test_what_the_table_cannot_store_is_refused_before_anything_is_written(execute, table, query, writes, sql, message):
    query("SELECT 1")
    with pytest.raises(AirflowFailException, match=message):
        load(execute, table, sql=sql, mode="replace")
    assert writes() == []


def test_columns_are_renamed_and_left_out(execute, table, held, sales):
    mapping = {"id": "stock", "stock": None, "sku": "shop", "active": None, "sold_at": None}
    load(execute, table, sql="SELECT * FROM sales ORDER BY id", column_mapping=mapping, mode="replace")
    assert held("shop", "stock") == [(row[0], number) for number, row in enumerate(sales, start=1)]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"nope": "sku"}, "column_mapping names 'nope', which the source lacks"),
        ({"stock": "sku"}, "the source has several columns that become 'sku' through column_mapping"),
        ({"stock": "shop", "sku": "shop"}, "column_mapping gives several columns the same name"),
        ({"stock": "updatedAt"}, "only the service writes 'updatedAt'"),
    ],
)
def test_a_mapping_that_does_not_fit_is_refused(execute, table, sales, writes, mapping, message):
    with pytest.raises(AirflowFailException, match=message):
        load(execute, table, sql="SELECT sku, stock FROM sales", column_mapping=mapping, mode="append")
    assert writes() == []


def test_bad_rows_are_left_out_with_their_reason(execute, table, held, query, bucket: Bucket):
    query("CREATE TABLE t (sku, stock)")
    query("INSERT INTO t VALUES (?, ?)", [("a", 1), ("b", "many"), ("c", 3), (b"\xff", 4)])
    options = {"on_error": "skip", "reject_path": bucket.address("bad.jsonl.gz"), "mode": "replace"}
    result = load(execute, table, sql="SELECT * FROM t", **options)
    assert (result["rows"], result["inserted"], result["rejected"]) == (4, 2, 2)
    assert held("sku", "stock") == [("a", 1), ("c", 3)]
    first, second = map(json.loads, gzip.decompress(bucket.read("bad.jsonl.gz")).splitlines())
    assert first == {
        "row": 2,
        "reason": "row 2, column 'stock': 'many' is not a value of type number",
        "values": {"sku": "b", "stock": "many"},
    }
    assert (second["row"], second["values"]["stock"]) == (4, 4)


@pytest.mark.parametrize(
    ("header", "options", "message"),
    [
        ("sku,nope", {"mode": "append"}, "the source has unknown columns 'nope'; the table has"),
        ("sku,a b", {"mode": "append", "add_columns": True}, "'a b' cannot be the name of a column"),
        ("stock,shop", {"key_columns": "sku"}, "the source lacks the key columns sku; it has 'stock', 'shop'"),
    ],
)
def test_rows_are_not_left_out_for_the_fault_of_a_column(execute, table, writes, tmp_path, header, options, message):
    (tmp_path / "in.csv").write_text(f"{header}\n1,2\n3,4\n")
    rejects = {"on_error": "skip", "reject_path": str(tmp_path / "bad.jsonl")}
    with pytest.raises(AirflowFailException, match=message):
        execute(READ, path=str(tmp_path / "in.csv"), data_table_id=table.id, **rejects, **options)
    assert writes() == []


def test_no_stored_row_is_deleted_because_its_new_version_is_left_out(execute, client, table, held, tmp_path):
    client.data_table_rows.insert(table.id, [{"sku": sku, "stock": 1} for sku in "abc"])
    source, options = tmp_path / "in.jsonl", {"key_columns": "sku", "delete_missing": True, "on_error": "skip"}
    options |= {"path": str(source), "data_table_id": table.id, "reject_path": str(tmp_path / "bad.jsonl")}
    source.write_text('{"sku": "a", "stock": 2}\n{"sku": "b", "stock": "n/a"}\n')
    done = execute(READ, **options)
    assert (done["rejected"], done["deleted"]) == (1, 1)
    assert held("sku", "stock") == [("a", 2), ("b", 1)]
    source.write_text('{"sku": "a", "stock": 3}\n{"stock": "n/a"}\n')
    with pytest.raises(AirflowFailException, match=r"row 2, column 'stock': 'n/a' is not.*its key cannot be read"):
        execute(READ, **options)
    assert held("sku", "stock") == [("a", 2), ("b", 1)]


def test_a_table_is_created_with_types_and_gets_columns(execute, client, query):
    query("CREATE TABLE t (name, price, day, empty, flag)")
    query("INSERT INTO t VALUES (?, ?, ?, ?, ?)", [(None, None, "2026-01-02", None, 1), ("x", 1.5, None, None, 0)])
    types = {"day": "date", "flag": "boolean"}
    options = {"sql_conn_id": "shop", "data_table_name": "new", "column_types": types, "mode": "replace"}
    result = execute(LOAD, sql="SELECT * FROM t", create_table=True, **options)
    table = find_data_table(client, "new")
    assert result["added_columns"] == ["name", "price", "day", "empty", "flag"]
    assert {one.name: one.type for one in table.columns} == {
        **{"name": "string", "price": "number", "day": "date", "empty": "string", "flag": "boolean"}
    }
    for added in (["more"], []):
        result = execute(LOAD, sql="SELECT *, 1 AS more FROM t", create_table=True, add_columns=True, **options)
        assert (result["added_columns"], result["data_table_id"]) == (added, table.id)
    rows = [(row["name"], row["price"], row["day"], row["more"]) for row in client.data_table_rows.list(table.id)]
    assert rows == [(None, None, "2026-01-02T00:00:00.000Z", 1), ("x", 1.5, None, 1)]


@pytest.mark.parametrize("content", ["sku,amount\na,5\n", "sku,amount\n"])
def test_a_type_for_a_column_that_nobody_has_is_refused(execute, table, writes, tmp_path, content):
    path, options = tmp_path / "in.csv", {"data_table_id": table.id, "add_columns": True, "key_columns": "sku"}
    path.write_text(content)
    with pytest.raises(AirflowFailException, match="column_types names 'Amount', which neither the table nor"):
        execute(READ, path=str(path), column_types={"Amount": "number", "stock": "number"}, **options)
    assert writes() == []


def test_rows_of_json_lines_may_all_lack_a_column_with_a_type(execute, client, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"sku": "a"}\n')
    options = {"data_table_name": "new", "create_table": True, "column_types": {"discount": "number"}}
    done = execute(READ, path=str(tmp_path / "in.jsonl"), mode="replace", **options)
    assert done["added_columns"] == ["sku"]


def test_rows_that_are_left_out_choose_neither_columns_nor_types(execute, client, tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text(
        '{"Sku": "x", "price": "see note", "qty": "many", "memo": 1}\n'
        '{"sku": "a", "price": null, "qty": null}\n'
        '{"sku": "b", "price": "?", "qty": "many"}\n'
        '{"sku": "c", "price": 9.5, "qty": 1}\n'
    )
    options = {"key_columns": "sku", "on_error": "skip", "reject_path": str(tmp_path / "bad.jsonl")}
    options |= {"data_table_name": "new", "create_table": True, "column_types": {"qty": "number"}}
    done = execute(READ, path=str(source), **options)
    assert (done["rejected"], done["added_columns"]) == (2, ["sku", "price", "qty"])
    rows = client.data_table_rows.list(done["data_table_id"])
    assert [(row["sku"], row["price"], row["qty"]) for row in rows] == [("a", None, None), ("c", 9.5, 1)]


@pytest.mark.parametrize("mode", [{"mode": "replace"}, {"key_columns": "sku", "delete_missing": True}], ids=str)
def test_rows_that_are_all_left_out_create_no_table(execute, writes, tmp_path, mode):
    (tmp_path / "in.jsonl").write_text('{"sku": "x", "qty": "many"}\n')
    options = {
        "on_error": "skip",
        "reject_path": str(tmp_path / "bad.jsonl"),
        "column_types": {"qty": "number"},
        **mode,
    }
    with pytest.raises(AirflowFailException, match="the source has no rows that fit, so the columns of the new table"):
        execute(READ, path=str(tmp_path / "in.jsonl"), data_table_name="new", create_table=True, **options)
    assert writes() == []


def test_a_refused_row_creates_no_table(execute, simulator, writes, query, tmp_path):
    query("SELECT 1")
    options = {"sql_conn_id": "shop", "data_table_name": "new", "mode": "append", "create_table": True}
    with pytest.raises(AirflowFailException, match="row 2, column 'n': 'x' is not a value of type number"):
        execute(LOAD, sql="SELECT 1 AS n UNION ALL SELECT 'x'", **options)
    with pytest.raises(AirflowFailException, match=r"'a b' cannot be the name of a column.* with column_mapping"):
        execute(LOAD, sql='SELECT 1 AS "a b"', **options)
    with pytest.raises(AirflowFailException, match="the source has no rows, so the columns"):
        execute(LOAD, sql="SELECT 1 AS n WHERE 0", **options)
    path = tmp_path / "rows.jsonl"
    path.write_text('{"n": 1}\n{"N": 2}\n')
    with pytest.raises(AirflowFailException, match="'n' and 'N' differ only in case"):
        execute(READ, path=path, data_table_name="new", mode="append", create_table=True)
    assert writes() == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give key_columns, which make it an upsert, or mode"),
        ({"mode": "replace", "key_columns": "sku"}, "mode='replace' does not take key_columns"),
        ({"mode": "upsert"}, "mode='upsert' needs key_columns"),
        ({"mode": "append", "delete_missing": True}, "delete_missing has no effect with mode='append'"),
        ({"mode": "append", "on_error": "skip"}, "on_error='skip' needs reject_path"),
        ({"mode": "append", "reject_path": "/tmp/x.jsonl"}, "reject_path has no effect with on_error='fail'"),
        ({"mode": "append", "on_error": "skip", "reject_path": "/tmp/x.csv"}, "reject_path must end in .jsonl or"),
        ({"mode": "append", "create_table": True}, "create_table needs data_table_name"),
        ({"mode": "append", "column_types": {"sku": "number"}}, "column_types says that 'sku' is number, but in the"),
        ({"mode": "append", "column_types": {"x": "json"}, "add_columns": True}, "type of column 'x' must be one of"),
        ({"key_columns": "nope"}, "key_columns must name columns of the table"),
    ],
)
def test_options_that_do_not_fit_are_refused(execute, table, sales, writes, options, message):
    # What the DAG file alone shows is refused while it is parsed.
    with pytest.raises((ServiceInputError, AirflowFailException), match=message):
        load(execute, table, **options)
    assert writes() == []


def test_a_wrong_query_of_a_database_is_no_lack_of_space(execute, table, query):
    query("SELECT 1")
    with pytest.raises(sqlite3.OperationalError, match=r"^no such table: nosuch$"):
        load(execute, table, sql="SELECT * FROM nosuch", mode="append")


def test_options_that_do_not_fit_are_refused_while_the_dag_file_is_parsed(sales):
    options = {"task_id": "load", "sql": "SELECT 1", "sql_conn_id": "shop", "data_table_name": "stock"}
    with pytest.raises(ServiceInputError, match="give key_columns, which make it an upsert, or mode"):
        LOAD(**options)
    with pytest.raises(ServiceInputError, match="mode='append' does not take key_columns"):
        LOAD(**options, mode="append", key_columns="sku")
    # What a template becomes is not known then.
    assert LOAD(**options, key_columns="{{ params.key }}").mode is None
    assert LOAD(**options, mode="append", on_error="skip", reject_path="{{ params.rejects }}").mode == "append"


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".jsonl", ".parquet"])
def test_files_in_object_storage(execute, table, held, bucket: Bucket, ending):
    rows = {"sku": ["a", "", None], "stock": [1.5, None, 3], "active": [True, None, False]}
    if ending == ".parquet":
        with bucket.files.open(f"{bucket.name}/in.parquet", "wb") as file:
            pq.write_table(pa.table(rows), file)
    elif ending == ".jsonl":
        lines = [json.dumps(dict(zip(rows, values, strict=True))) for values in zip(*rows.values(), strict=True)]
        bucket.write("in.jsonl", "\n".join(lines).encode())
    else:
        text = b'sku,stock,active\r\na,1.5,true\r\n"",,\r\n,3,0\r\n'
        bucket.write(f"in{ending}", gzip.compress(text) if ending.endswith(".gz") else text)
    for path in (bucket.address(f"in{ending}"), bucket.path(f"in{ending}")):
        result = execute(READ, path=path, data_table_id=table.id, mode="replace")
        assert (result["rows"], result["inserted"]) == (3, 3)
        assert held("sku", "stock", "active") == [("a", 1.5, True), ("", None, None), (None, 3, False)]


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_a_number_in_a_file_loses_no_digits_without_a_warning(execute, table, held, tmp_path, caplog, ending):
    path, options = tmp_path / f"in{ending}", {"data_table_id": table.id}
    number, other = "12345678901234567.1", "12345678901234567.4"

    def write(*rows: tuple[str, str]) -> None:
        lines = [f'{{"sku": {sku}, "stock": {stock}}}' for sku, stock in rows]
        path.write_text("\n".join(lines if ending == ".jsonl" else ["sku,stock", *map(",".join, rows)]))

    write((number, number), ("5", "0.1"))
    execute(READ, path=str(path), mode="replace", **options)
    assert held("sku", "stock") == [(number, 12345678901234568), ("5", 0.1)]
    assert "1 values less exactly than they were given, the first in row 1, column 'stock'" in caplog.text
    write(("1", number), ("2", other))
    with pytest.raises(AirflowFailException, match="row 2 has a key that the service cannot distinguish"):
        execute(READ, path=str(path), key_columns="stock", **options)


def test_a_file_that_breaks_in_the_middle_writes_nothing(execute, table, writes, tmp_path):
    (tmp_path / "in.csv").write_text("sku\na\nb,c\n")
    with pytest.raises(AirflowFailException, match="row 2 has 2 cells, and the header has 1"):
        execute(READ, path=str(tmp_path / "in.csv"), data_table_id=table.id, mode="replace")
    assert writes() == []


def test_the_file_to_read_is_not_replaced_by_what_is_left_out(execute, table, writes, tmp_path):
    path, link = tmp_path / "in.jsonl", tmp_path / "link.jsonl"
    path.write_text('{"stock": 1}\n{"stock": "n/a"}\n')
    link.symlink_to(path)
    for rejects in (path, f"file://{path}", link):
        options = {"mode": "append", "on_error": "skip", "reject_path": str(rejects)}
        with pytest.raises(AirflowFailException, match="reject_path is the file to read, which it would replace"):
            execute(READ, path=str(path), data_table_id=table.id, **options)
    assert (writes(), path.read_text()[:12]) == ([], '{"stock": 1}')


def test_a_value_that_fits_no_type_of_column_is_refused():
    with pytest.raises(ServiceInputError, match="row 7, column 'a': no column holds a value of type list"):
        GrowingTypes({}, may_grow=True).grow({"a": [1]}, "row 7")
