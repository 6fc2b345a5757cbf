"""Operators that insert, update, delete and read rows."""

from __future__ import annotations

import csv
import json
from datetime import datetime, timedelta, timezone

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client import errors
from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.operators.row_reads import ServiceReadRowsOperator
from airflow_provider_service.operators.rows import (
    ServiceDeleteRowsOperator,
    ServiceInsertRowsOperator,
    ServiceUpdateRowsOperator,
    ServiceUpsertRowsOperator,
)


@pytest.fixture
def table(client):
    columns = [("sku", "string"), ("stock", "number"), ("active", "boolean"), ("sold_at", "date")]
    return client.data_tables.create("Stock", [{"name": name, "type": kind} for name, kind in columns])


@pytest.fixture
def rows_of(client, table):
    """``rows_of(column)`` lists a column in the order of insertion."""
    return lambda column="sku": [row[column] for row in client.data_table_rows.list(table.id)]


@pytest.fixture
def filled(client, table):
    """Rows ``s0`` ... ``s399`` with their number as stock."""
    client.data_table_rows.insert(table.id, [{"sku": f"s{number}", "stock": number} for number in range(400)])


def below(stock: int) -> dict[str, object]:
    return {"type": "and", "filters": [{"columnName": "stock", "condition": "lt", "value": stock}]}


# ---------------------------------------------------------------- which table


def test_a_table_is_found_by_its_exact_name(execute, client, table, rows_of, link):
    client.data_tables.create("stock", [])
    done = execute(ServiceInsertRowsOperator, data_table_name="Stock", rows=[{"sku": "a"}])
    assert (done["data_table_id"], rows_of()) == (table.id, ["a"])
    assert link() == f"/projects/{table.project_id}/datatables/{table.id}"


def test_a_name_without_a_table_or_with_several_says_so(execute, client, table):
    with pytest.raises(AirflowFailException, match="there is no data table named 'STOCK'"):
        execute(ServiceReadRowsOperator, data_table_name="STOCK")
    project = client.projects.create("Analytics")
    twin = client.data_tables.create("Stock", [], project_id=project.id)
    with pytest.raises(AirflowFailException, match="more than one data table named 'Stock'") as caught:
        execute(ServiceReadRowsOperator, data_table_name="Stock")
    assert table.id in str(caught.value)
    found = execute(ServiceReadRowsOperator, data_table_name="Stock", project_id=project.id)
    assert found["data_table_id"] == twin.id


@pytest.mark.parametrize("arguments", [{}, {"data_table_id": "x", "data_table_name": "y"}])
def test_a_table_is_given_by_its_id_or_its_name(execute, arguments):
    with pytest.raises(errors.ServiceInputError, match="either data_table_id or data_table_name"):
        execute(ServiceReadRowsOperator, **arguments)


def test_an_unknown_id_is_not_found(execute):
    with pytest.raises(errors.ServiceNotFoundError, match="Could not find the data table"):
        execute(ServiceReadRowsOperator, data_table_id="a" * 16)


# ---------------------------------------------------------------- insert


def test_rows_are_inserted_in_batches_by_count(execute, table, rows_of, writes):
    rows = [{"sku": f"s{number}"} for number in range(25)]
    done = execute(ServiceInsertRowsOperator, data_table_id=table.id, rows=rows, batch_rows=10)
    assert (done["inserted"], rows_of()) == (25, [row["sku"] for row in rows])
    assert writes() == [f"POST /data-tables/{table.id}/rows"] * 3


def test_rows_are_inserted_in_batches_by_size(execute, table, rows_of, writes):
    rows = [{"sku": "é" * 500}] * 10
    execute(ServiceInsertRowsOperator, data_table_id=table.id, rows=rows, batch_bytes=2100)
    assert (len(rows_of()), len(writes())) == (10, 5)


def test_a_row_larger_than_a_batch_is_sent_alone(execute, table, rows_of):
    rows = [{"sku": "a" * 100}, {"sku": "b"}]
    execute(ServiceInsertRowsOperator, data_table_id=table.id, rows=rows, batch_bytes=50)
    assert [len(one) for one in rows_of()] == [100, 1]


@pytest.mark.parametrize("batch_rows", [2, 3])
def test_only_several_batches_log_their_progress(execute, table, caplog, batch_rows):
    caplog.set_level("INFO")
    rows = [{"sku": "a"}, {"sku": "b"}, {"sku": "c"}]
    execute(ServiceInsertRowsOperator, data_table_id=table.id, rows=rows, batch_rows=batch_rows)
    progress = [line for line in caplog.messages if line.startswith("Inserted")]
    assert progress == ([f"Inserted 2 of 3 rows into {table.name}"] if batch_rows == 2 else [])
    assert f"Rows inserted into {table.name}: 3; see http" in caplog.text


@pytest.mark.parametrize(("preview", "would"), [(True, "that would be "), (False, "")])
def test_the_log_counts_rows_that_are_changed_or_would_be(execute, client, table, caplog, preview, would):
    caplog.set_level("INFO")
    client.data_table_rows.insert(table.id, [{"sku": "a"}])
    chosen = {"type": "and", "filters": [{"columnName": "sku", "condition": "eq", "value": "a"}]}
    options = {"data_table_id": table.id, "filter": chosen, "preview": preview}
    execute(ServiceUpdateRowsOperator, **options, data={"stock": 1})
    execute(ServiceDeleteRowsOperator, **options)
    for what in ("updated", "deleted"):
        assert f"Rows of {table.name} {would}{what}: 1; see http" in caplog.text


def test_a_batch_that_is_refused_after_others_fails_for_good(execute, simulator, table, rows_of):
    rows = [{"sku": sku} for sku in "abcde"]
    simulator.inject("status", status=401, method="POST", skip=1)
    with pytest.raises(AirflowFailException, match=r"HTTP 401.*2 rows were inserted, and the other rows were not"):
        execute(ServiceInsertRowsOperator, data_table_id=table.id, rows=rows, batch_rows=2)
    assert rows_of() == ["a", "b"]


@pytest.mark.parametrize(
    ("skip", "inserted", "told"), [(0, "ab", "0 rows were inserted"), (1, "abcd", "2 rows were inserted")]
)
def test_a_batch_whose_answer_is_lost_is_in_doubt_and_fails_for_good(
    execute, simulator, table, rows_of, skip, inserted, told
):
    rows = [{"sku": sku} for sku in "abcde"]
    simulator.inject("drop", method="POST", skip=skip, after_processing=True)
    with pytest.raises(AirflowFailException) as caught:
        execute(ServiceInsertRowsOperator, data_table_id=table.id, rows=rows, batch_rows=2)
    assert f"{told}, the next 2 may have been, and the other rows were not" in str(caught.value)
    assert "look into the table" in str(caught.value)
    assert "an upsert can be repeated" in str(caught.value)
    assert rows_of() == list(inserted)


def test_a_retry_inserts_each_row_once_if_the_first_batch_was_not_processed(execute, simulator, table, rows_of):
    arguments = {"data_table_id": table.id, "rows": [{"sku": sku} for sku in "abc"], "batch_rows": 2}
    simulator.inject("status", status=401, method="POST")
    with pytest.raises(errors.ServiceUnauthorizedError):
        execute(ServiceInsertRowsOperator, **arguments)
    execute(ServiceInsertRowsOperator, **arguments)
    assert rows_of() == ["a", "b", "c"]


def test_values_are_those_of_an_upsert(execute, client, table):
    given = {"sku": 7, "stock": "5", "active": "true", "sold_at": datetime(2026, 1, 2, 3)}
    zoned = {"sku": "8", "sold_at": datetime(2026, 1, 2, 3, tzinfo=timezone(timedelta(hours=2)))}
    execute(ServiceInsertRowsOperator, data_table_id=table.id, rows=[given, zoned])
    found = [{name: row[name] for name in given} for row in client.data_table_rows.list(table.id)]
    assert found == [
        {"sku": "7", "stock": 5, "active": True, "sold_at": "2026-01-02T03:00:00.000Z"},
        {"sku": "8", "stock": None, "active": None, "sold_at": "2026-01-02T01:00:00.000Z"},
    ]
    done = execute(ServiceUpsertRowsOperator, data_table_id=table.id, rows=[given, zoned], key_columns="sku")
    assert (done["unchanged"], done["updated"]) == (2, 0)


def test_no_call_is_made_without_rows(execute, table, writes):
    assert execute(ServiceInsertRowsOperator, data_table_id=table.id, rows=[])["inserted"] == 0
    assert writes() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": {"sku": "a"}}, "rows must be a list, not dict"),
        ({"rows": [["a"]]}, "row 1 is list, not a mapping"),
        ({"rows": [{"stock": 1}, {"stock": "many"}]}, "row 2, column 'stock': 'many' is not a value of type number"),
    ],
)
def test_inserting_refuses(execute, table, writes, arguments, message):
    with pytest.raises(AirflowFailException, match=message):
        execute(ServiceInsertRowsOperator, data_table_id=table.id, **arguments)
    assert writes() == []


# ---------------------------------------------------------------- update and delete


@pytest.mark.usefixtures("filled")
def test_updating_what_meets_a_filter(execute, client, table):
    arguments = {"data_table_id": table.id, "filter": below(3), "data": {"active": True}}
    preview = execute(ServiceUpdateRowsOperator, **arguments, preview=True)
    assert (preview["updated"], preview["preview"]) == (3, True)
    active = {"filters": [{"columnName": "active", "value": True}]}
    assert not list(client.data_table_rows.list(table.id, filter=active))
    for _ in range(2):
        assert execute(ServiceUpdateRowsOperator, **arguments)["updated"] == 3
    assert [row["sku"] for row in client.data_table_rows.list(table.id, filter=active)] == ["s0", "s1", "s2"]


def test_rows_that_no_answer_can_hold_are_changed_without_their_number(
    execute, simulator, client, table, monkeypatch, caplog
):
    caplog.set_level("INFO")
    extra = {"max_answer_mib": 1}
    small = {"conn_type": "n8n", "host": simulator.base_url, "password": simulator.api_key, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SMALL", json.dumps(small))
    client.data_table_rows.insert(table.id, [{"sku": "x" * 2000, "stock": 1}] * 600)
    arguments = {"data_table_id": table.id, "filter": below(2), "service_conn_id": "small"}
    with pytest.raises(errors.ServiceAnswerTooLargeError):
        execute(ServiceDeleteRowsOperator, **arguments, preview=True)
    assert execute(ServiceUpdateRowsOperator, **arguments, data={"stock": 0})["updated"] is None
    assert {row["stock"] for row in client.data_table_rows.list(table.id)} == {0}
    assert execute(ServiceDeleteRowsOperator, **arguments)["deleted"] is None
    assert list(client.data_table_rows.list(table.id)) == []
    assert f"Rows of {table.name} deleted: an unknown number; see http" in caplog.text


@pytest.mark.usefixtures("filled")
def test_deleting_by_filter_twice(execute, table, rows_of):
    arguments = {"data_table_id": table.id, "filter": below(395)}
    assert execute(ServiceDeleteRowsOperator, **arguments, preview=True)["deleted"] == 395
    assert len(rows_of()) == 400
    assert [execute(ServiceDeleteRowsOperator, **arguments)["deleted"] for _ in range(2)] == [395, 0]
    assert rows_of() == ["s395", "s396", "s397", "s398", "s399"]


@pytest.mark.usefixtures("filled")
def test_many_ids_are_sent_in_urls_that_a_server_accepts(execute, simulator, table, rows_of):
    ids = [row_id for row_id in rows_of("id") if row_id % 100]
    simulator.clear_requests()
    done = execute(ServiceDeleteRowsOperator, data_table_id=table.id, row_ids=[*map(str, ids), 9999])
    assert (done["deleted"], rows_of()) == (396, ["s99", "s199", "s299", "s399"])
    lengths = [len(request.path) + len(request.query) for request in simulator.requests if request.method == "DELETE"]
    assert len(lengths) > 1
    assert max(lengths) < 8000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give either row_ids or filter"),
        ({"row_ids": [1], "filter": below(1)}, "give either row_ids or filter"),
        ({"row_ids": [1, "two"]}, "each of row_ids must be a whole number from 1 to .*, not 'two'"),
        ({"row_ids": 7}, "row_ids must be a list, not int"),
    ],
)
def test_deleting_refuses(execute, simulator, table, arguments, message):
    simulator.clear_requests()
    with pytest.raises((AirflowFailException, ServiceInputError), match=message):
        execute(ServiceDeleteRowsOperator, data_table_id=table.id, **arguments)
    assert not simulator.requests


@pytest.mark.parametrize(
    ("operator", "arguments", "message"),
    [
        (ServiceDeleteRowsOperator, {"filter": {"filters": []}}, "filter must contain at least one condition"),
        (ServiceDeleteRowsOperator, {"filter": {}}, "filter must contain at least one condition"),
        (ServiceUpdateRowsOperator, {"filter": {"filters": []}, "data": {"sku": "b"}}, "filter must contain at least"),
        (ServiceUpdateRowsOperator, {"filter": '{"filters": [1]}', "data": {"sku": "b"}}, "filter must contain at"),
        (ServiceUpdateRowsOperator, {"filter": below(3), "data": ["a"]}, "data is list, not a mapping"),
        (ServiceUpdateRowsOperator, {"filter": below(3), "data": {}}, "data must be one object with at least"),
    ],
)
def test_nothing_is_changed_without_conditions_and_values(execute, table, writes, operator, arguments, message):
    with pytest.raises(AirflowFailException, match=f"{message}.*; nothing was (sent|written)"):
        execute(operator, data_table_id=table.id, **arguments)
    assert writes() == []


@pytest.mark.usefixtures("filled")
def test_a_condition_is_equality_unless_it_says_otherwise(execute, table, rows_of):
    chosen = {"data_table_id": table.id, "filter": {"filters": [{"columnName": "sku", "value": "s1"}]}}
    assert execute(ServiceReadRowsOperator, **chosen)["count"] == 1
    for preview in (True, False):
        assert execute(ServiceUpdateRowsOperator, **chosen, data={"stock": -1}, preview=preview)["updated"] == 1
    assert execute(ServiceDeleteRowsOperator, **chosen)["deleted"] == 1
    assert rows_of()[:2] == ["s0", "s2"]


@pytest.mark.usefixtures("filled")
def test_an_update_takes_values_as_an_upsert_does(execute, client, table, caplog):
    data = {"sku": 7, "stock": 2**60, "active": "true", "sold_at": "2026-01-02 03:04:05"}
    execute(ServiceUpdateRowsOperator, data_table_id=table.id, filter=below(1), data=data)
    first = next(client.data_table_rows.list(table.id))
    stored = {"sku": "7", "stock": 1152921504606847000, "active": True, "sold_at": "2026-01-02T03:04:05.000Z"}
    assert {name: first[name] for name in data} == stored
    assert "1 values less exactly than they were given, the first in data, column 'stock'" in caplog.text


@pytest.mark.parametrize(
    "data", [{"stock": ""}, {"stock": "0x10"}, {"sold_at": "0099-06-01"}, {"active": "yes"}, {"nope": 1}], ids=str
)
def test_an_update_refuses_values_as_an_upsert_does(execute, table, writes, data):
    with pytest.raises(AirflowFailException, match=r"data(, column| has unknown columns) .*; nothing was written"):
        execute(ServiceUpdateRowsOperator, data_table_id=table.id, filter=below(3), data=data)
    assert writes() == []


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("column", "value"), [("stock", ""), ("stock", "0x10"), ("active", "yes"), ("id", ""), ("id", "0x10")]
)
@pytest.mark.parametrize(
    ("operator", "arguments"),
    [
        (ServiceDeleteRowsOperator, {}),
        (ServiceUpdateRowsOperator, {"data": {"sku": "x"}}),
        (ServiceReadRowsOperator, {}),
    ],
)
def test_a_filter_takes_no_value_that_its_column_cannot_have(
    execute, table, writes, operator, arguments, column, value
):
    chosen = {"filters": [{"columnName": column, "condition": "gte", "value": value}]}
    with pytest.raises(AirflowFailException, match=f"the filter, column '{column}': '{value}' is not a value of type"):
        execute(operator, data_table_id=table.id, filter=chosen, **arguments)
    assert writes() == []


# ---------------------------------------------------------------- read


@pytest.mark.usefixtures("filled")
def test_rows_are_returned(execute, table, link):
    found = execute(ServiceReadRowsOperator, data_table_id=table.id, filter=below(12), search="s1", sort_by="sku:desc")
    assert (found["count"], [row["sku"] for row in found["rows"]]) == (3, ["s11", "s10", "s1"])
    assert json.dumps(found)
    assert link() == f"/projects/{table.project_id}/datatables/{table.id}"


@pytest.mark.usefixtures("filled")
def test_the_chosen_columns_are_returned_in_order(execute, table, tmp_path):
    arguments = {"data_table_id": table.id, "filter": below(2), "columns": ["stock", "id"]}
    rows = [{"stock": 0, "id": 1}, {"stock": 1, "id": 2}]
    assert json.dumps(execute(ServiceReadRowsOperator, **arguments)["rows"]) == json.dumps(rows)
    execute(ServiceReadRowsOperator, **arguments, path=str(tmp_path / "rows.csv"))
    assert (tmp_path / "rows.csv").read_text().splitlines() == ["stock,id", "0,1", "1,2"]
    with pytest.raises(AirflowFailException, match="columns names nope, which the table lacks; it has id, sku"):
        execute(ServiceReadRowsOperator, data_table_id=table.id, columns=["nope"])


@pytest.mark.usefixtures("filled")
def test_more_rows_than_allowed_fail(execute, table):
    assert execute(ServiceReadRowsOperator, data_table_id=table.id, max_rows=400)["count"] == 400
    with pytest.raises(AirflowFailException, match=r"more than max_rows=399 rows in Stock; .* give a path"):
        execute(ServiceReadRowsOperator, data_table_id=table.id, max_rows=399)


def test_rows_are_written_as_csv(execute, client, table, tmp_path):
    rows = [{"sku": 'a,"b"\n', "stock": 1.5, "active": True}, {"sku": "é", "sold_at": "2026-01-02"}]
    client.data_table_rows.insert(table.id, rows)
    path = tmp_path / "stock.csv"
    done = execute(ServiceReadRowsOperator, data_table_id=table.id, path=str(path))
    assert (done["count"], done["path"]) == (2, str(path))
    with path.open(encoding="utf-8", newline="") as file:
        header, first, second = csv.reader(file)
    assert header == ["id", "sku", "stock", "active", "sold_at", "createdAt", "updatedAt"]
    assert first[:5] == ["1", 'a,"b"\n', "1.5", "true", ""]
    assert second[:5] == ["2", "é", "", "", "2026-01-02T00:00:00.000Z"]
    assert [one.name for one in tmp_path.iterdir()] == ["stock.csv"]


@pytest.mark.usefixtures("filled")
def test_rows_are_written_as_lines_of_json(execute, client, table, tmp_path):
    path = tmp_path / "stock.jsonl"
    done = execute(ServiceReadRowsOperator, data_table_id=table.id, path=str(path), max_rows=0)
    written = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert done["count"] == 400
    assert written == list(client.data_table_rows.list(table.id))


@pytest.mark.usefixtures("filled")
def test_a_read_that_fails_leaves_the_earlier_file(execute, simulator, table, tmp_path):
    path = tmp_path / "stock.csv"
    path.write_text("earlier")
    simulator.inject("status", status=400, path="/rows$", times=1)
    with pytest.raises(AirflowFailException):
        execute(ServiceReadRowsOperator, data_table_id=table.id, path=str(path))
    assert {one.name: one.read_text() for one in tmp_path.iterdir()} == {"stock.csv": "earlier"}


def test_bad_paths_are_refused(execute, table, tmp_path):
    with pytest.raises(AirflowFailException, match=r"path must end in \.csv, "):
        execute(ServiceReadRowsOperator, data_table_id=table.id, path=str(tmp_path / "stock.txt"))
    with pytest.raises(AirflowFailException, match="does not exist"):
        execute(ServiceReadRowsOperator, data_table_id=table.id, path=str(tmp_path / "nope" / "stock.csv"))
