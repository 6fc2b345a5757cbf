"""Data tables of the hook: loads from DataFrames and generators, and rows as DataFrames."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pandas as pd
import polars as pl
import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client._lookup import find_data_table
from airflow_provider_service.client.errors import ServiceInputError, ServiceLookupError
from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.operators.generic import ServiceOperator
from airflow_provider_service.operators.rows import ServiceInsertRowsOperator, ServiceUpsertRowsOperator
from tests.operators.conftest import execute as execute
from tests.operators.conftest import held as held
from tests.operators.conftest import table as table
from tests.operators.conftest import task_instance as task_instance
from tests.operators.conftest import writes as writes

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
VALUES = {
    "sku": ["ä", "b", "c"],
    "stock": [1.5, None, 2**53],
    "active": [True, None, False],
    "sold_at": [MOMENT, None, None],
}
STORED = [("ä", 1.5, True, "2026-01-02T03:04:05.000Z"), ("b", None, None, None), ("c", 2**53, False, None)]
COLUMNS = tuple(VALUES)


@pytest.fixture
def hook(simulator):
    with ServiceHook() as one:
        yield one


@pytest.mark.parametrize("library", [pd, pl])
def test_a_frame_is_upserted_and_comes_back(hook, table, held, writes, library) -> None:
    frame = library.DataFrame(VALUES)
    result = hook.data_tables.load(frame, data_table_id=table.id, key_columns="sku")
    assert result == {
        "data_table_id": table.id,
        **{"rows": 3, "rejected": 0, "inserted": 3, "updated": 0, "unchanged": 0, "deleted": 0, "added_columns": []},
    }
    assert held(*COLUMNS) == STORED
    writes()
    for again in (
        frame,
        hook.data_tables.to_pandas(data_table_name="stock", columns=COLUMNS),
        hook.data_tables.to_arrow(data_table_id=table.id, columns=list(COLUMNS)),
        pl.from_arrow(hook.data_tables.to_arrow(data_table_id=table.id, columns=list(COLUMNS))),
    ):
        assert hook.data_tables.load(again, data_table_name="stock", key_columns=["sku"])["unchanged"] == 3
    assert writes() == []


@pytest.mark.slow
def test_a_generator_fills_a_table_that_does_not_exist(hook, client) -> None:
    rows = ({"n": n, "text": str(n)} for n in range(25_000))
    result = hook.data_tables.load(rows, data_table_name="numbers", create_table=True, mode="replace")
    assert (result["rows"], result["inserted"], result["added_columns"]) == (25_000, 25_000, ["n", "text"])
    made = find_data_table(client, "numbers")
    assert {column.name: column.type for column in made.columns} == {"n": "number", "text": "string"}
    assert next(client.data_table_rows.list(made.id, sort_by="id:desc"))["n"] == 24_999


def test_a_bad_value_is_refused_before_anything_is_written(hook, table, writes) -> None:
    frame = pd.DataFrame({"sku": ["a", "b"], "stock": [1, "many"]})
    with pytest.raises(ServiceInputError, match="row 2, column 'stock': 'many' is not a value of type number"):
        hook.data_tables.load(frame, data_table_id=table.id, key_columns="sku")
    with pytest.raises(ServiceInputError, match="row 1 has unknown columns 'nope'"):
        hook.data_tables.load([{"nope": 1}], data_table_id=table.id, mode="append")
    assert writes() == []


def test_a_task_whose_append_loses_its_answer_is_not_retried(hook, simulator, table, held) -> None:
    simulator.inject("drop", method="POST", after_processing=True)
    with pytest.raises(AirflowFailException, match="0 rows were inserted, the next 1 may have been"):
        hook.data_tables.load([{"sku": "a"}], data_table_id=table.id, mode="append")
    assert held("sku") == [("a",)]


def test_rows_that_do_not_fit_are_left_out_with_their_reasons(hook, table, held, tmp_path) -> None:
    rejects = tmp_path / "rejects.jsonl"
    frame = pd.DataFrame({"sku": ["a", "b"], "stock": [1, "many"]})
    options = {"key_columns": "sku", "on_error": "skip", "reject_path": rejects}
    result = hook.data_tables.load(frame, data_table_id=table.id, **options)
    assert (result["rows"], result["rejected"], result["inserted"]) == (2, 1, 1)
    assert held("sku", "stock") == [("a", 1)]
    [reject] = map(json.loads, rejects.read_text().splitlines())
    assert (reject["row"], reject["values"]) == (2, {"sku": "b", "stock": "many"})
    assert reject["reason"] == "row 2, column 'stock': 'many' is not a value of type number"


def test_the_file_of_rows_that_are_left_out_is_json_whatever_they_hold(hook, table, tmp_path) -> None:
    rejects, nan = tmp_path / "rejects.jsonl", float("nan")
    rows = [{"sku": "a", "stock": one} for one in (nan, [1, nan], {("a", 1): 2}, {"of": MOMENT.date()})]
    options = {"mode": "append", "on_error": "skip", "reject_path": rejects}
    assert hook.data_tables.load([{"sku": "b"}, *rows], data_table_id=table.id, **options)["rejected"] == 4
    lines = rejects.read_text().splitlines()
    held = [json.loads(line, parse_constant=pytest.fail)["values"]["stock"] for line in lines]
    assert held == ["nan", "[1, nan]", "{('a', 1): 2}", {"of": "2026-01-02"}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "append", "on_error": "ignore"}, "on_error must be"),
        ({"mode": "append", "on_error": "skip"}, "on_error='skip' needs reject_path"),
        ({"mode": "append", "reject_path": "x.jsonl"}, "reject_path has no effect with on_error='fail'"),
        ({}, "give key_columns, which make it an upsert, or mode"),
        ({"mode": "merge"}, "mode must be one of append, upsert, replace"),
        ({"mode": "append", "delete_missing": 1}, "delete_missing must be True or False"),
        ({"key_columns": "sku", "column_mapping": ["a"]}, "column_mapping must be a mapping"),
        ({"key_columns": "sku", "on_duplicate": "first"}, "on_duplicate must be one of last, fail"),
        (
            {"key_columns": "sku", "change_strategy": "replace", "on_stored_duplicates": "fail"},
            "change_strategy='replace' needs on_stored_duplicates",
        ),
        ({"mode": "append", "data_table_name": "stock"}, "give either data_table_id or data_table_name"),
        ({"mode": "append", "data_table_id": None}, "give either data_table_id or data_table_name"),
    ],
)
def test_options_are_checked_before_a_row_is_read(hook, table, options, message) -> None:
    rows = iter([{"sku": "a"}])
    with pytest.raises(ServiceInputError, match=message):
        hook.data_tables.load(rows, **{"data_table_id": table.id, **options})
    assert list(rows) == [{"sku": "a"}]


def test_invalid_rows_are_refused(hook, table, held) -> None:
    with pytest.raises(ServiceInputError, match="row 2 must be a mapping, not str"):
        hook.data_tables.load([{"sku": "a"}, "b"], data_table_id=table.id, mode="append")
    assert held("sku") == []


def test_rows_are_filtered_and_columns_chosen(hook, table, client) -> None:
    client.data_table_rows.insert(table.id, [{"sku": "a", "stock": 1}, {"sku": "b", "stock": 2}])
    filter = {"type": "and", "filters": [{"columnName": "stock", "condition": "gt", "value": 1}]}
    found = hook.data_tables.to_arrow(data_table_id=table.id, filter=filter, columns=["id", "sku"])
    assert found.to_pylist() == [{"id": 2, "sku": "b"}]
    assert list(hook.data_tables.to_pandas(data_table_id=table.id, search="a")["sku"]) == ["a"]
    assert hook.data_tables.to_arrow(data_table_id=table.id).column_names[0] == "id"
    for empty in ({}, {"filters": []}):
        with pytest.raises(ServiceInputError, match="filter must contain at least one condition"):
            hook.data_tables.to_arrow(data_table_id=table.id, filter=empty)
    no_number = {"filters": [{"columnName": "stock", "condition": "gt", "value": ""}]}
    with pytest.raises(ServiceInputError, match="the filter, column 'stock': '' is not a value of type number"):
        hook.data_tables.to_arrow(data_table_id=table.id, filter=no_number)
    with pytest.raises(ServiceInputError, match="columns names nope, which the table lacks"):
        hook.data_tables.to_pandas(data_table_id=table.id, columns=["nope"])
    with pytest.raises(ServiceLookupError):
        hook.data_tables.to_pandas(data_table_name="nope")


@pytest.mark.parametrize("library", [pd, pl])
def test_operators_take_the_frame_that_another_task_returned(execute, table, held, library) -> None:
    frame = library.DataFrame(VALUES)
    assert execute(ServiceInsertRowsOperator, data_table_id=table.id, rows=frame)["inserted"] == 3
    done = execute(ServiceUpsertRowsOperator, data_table_id=table.id, rows=frame, key_columns="sku")
    assert (done["unchanged"], held(*COLUMNS)) == (3, STORED)


def test_the_generic_operator_offers_only_calls_of_the_api(execute) -> None:
    with pytest.raises(Exception, match="data_tables has no action 'load'; its actions are create, delete, get, list"):
        execute(ServiceOperator, resource="data_tables", action="load")
