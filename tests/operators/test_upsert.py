"""The planned upsert."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import product
from typing import get_args

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.rows.options import ChangeStrategy, OnStoredDuplicates
from airflow_provider_service.client import errors


def test_new_changed_and_unchanged_rows(upsert, held, writes, link, table):
    assert upsert([{"sku": "a", "stock": 1}, {"sku": "b", "stock": 2}, {"sku": "c", "stock": 3}]) == (3, 0, 0)
    writes()
    rows = [{"sku": "a", "stock": 1}, {"sku": "b", "stock": 5}, {"sku": "c", "stock": 5}, {"sku": "d", "stock": 4}]
    assert upsert(rows) == (1, 2, 1)
    assert held("sku", "stock") == [("a", 1), ("b", 5), ("c", 5), ("d", 4)]
    path = f"/data-tables/{table.id}/rows"
    assert writes() == [f"PATCH {path}/update", f"POST {path}"], "equal changes travel together"
    assert upsert(rows) == (0, 0, 4)
    assert writes() == []
    assert link() == f"/projects/{table.project_id}/datatables/{table.id}"


def test_rows_that_fit_into_one_call_log_no_progress(upsert, caplog):
    caplog.set_level("INFO")
    assert upsert([{"sku": "a"}, {"sku": "b"}]) == (2, 0, 0)
    assert not [line for line in caplog.messages if line.startswith("Inserted")]


def test_each_row_gets_its_own_change(upsert, held):
    upsert([{"sku": "a", "stock": 1}, {"sku": "b", "stock": 2}, {"sku": "c", "stock": 3}])
    assert upsert([{"sku": "a", "stock": 4}, {"sku": "b", "stock": 5}, {"sku": "c", "stock": 4}]) == (0, 3, 0)
    assert held("sku", "stock") == [("a", 4), ("b", 5), ("c", 4)]


@pytest.mark.parametrize(
    ("change_strategy", "on_stored_duplicates"),
    sorted(
        {*product(get_args(ChangeStrategy), get_args(OnStoredDuplicates))}
        - {("replace", "update_all"), ("replace", "fail")}
    ),
)
@pytest.mark.parametrize("keys", ["sku", ["stock", "sold_at"]])
def test_no_rows_change_nothing(upsert, held, writes, change_strategy, on_stored_duplicates, keys):
    upsert([{"sku": "a"}])
    writes()
    options = {"change_strategy": change_strategy, "on_stored_duplicates": on_stored_duplicates}
    assert upsert([], keys, **options) == (0, 0, 0)
    assert (writes(), held("sku")) == ([], [("a",)])


def test_columns_that_are_not_given_stay(upsert, held):
    upsert([{"sku": "a", "stock": 1, "active": True}])
    assert upsert([{"sku": "a", "stock": 2}]) == (0, 1, 0)
    assert upsert([{"sku": "a"}]) == (0, 0, 1)
    assert upsert([{"sku": "a", "active": None}]) == (0, 1, 0)
    assert held("sku", "stock", "active") == [("a", 2, None)]


@pytest.mark.parametrize(
    "same",
    [
        {"stock": "12.50"},
        {"stock": Decimal("12.5")},
        {"active": 1},
        {"active": "TRUE"},
        {"active": 1.0},
        {"sold_at": "2026-01-02"},
        {"sold_at": date(2026, 1, 2)},
        {"sold_at": "2026-01-02 02:00:00+02:00"},
        {"sold_at": datetime(2026, 1, 2)},
        {"sold_at": datetime(2026, 1, 1, 19, tzinfo=timezone(timedelta(hours=-5)))},
        {"shop": 7},
        {"shop": 7.0},
    ],
    ids=str,
)
def test_values_are_compared_in_the_type_of_their_column(upsert, writes, same):
    upsert([{"sku": "a", "shop": "7", "stock": 12.5, "active": True, "sold_at": "2026-01-02T00:00:00.000Z"}])
    writes()
    assert upsert([{"sku": "a", **same}]) == (0, 0, 1)
    assert writes() == []


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("stock", [5, "5", 5.0, Decimal(5)]),
        ("sold_at", ["2026-01-02", date(2026, 1, 2), "2026-01-02T00:00:00Z"]),
        ("active", [True, "true", 1]),
        ("sku", ["", ""]),
        ("sku", [None, None]),
        pytest.param("sku", ["a&b=c +%'\"é", "a&b=c +%'\"é"], id="sku-punctuation"),
    ],
    ids=str,
)
def test_keys_of_every_type_find_their_rows(upsert, held, key, values):
    for number, value in enumerate(values):
        assert upsert([{key: value, "shop": f"shop {number}"}], key) == ((1, 0, 0) if number == 0 else (0, 1, 0))
    assert held("shop") == [(f"shop {len(values) - 1}",)]


def test_keys_of_several_columns(upsert, held):
    upsert([{"shop": "x", "sku": "a", "stock": 1}, {"shop": "y", "sku": "a", "stock": 2}], ["shop", "sku"])
    assert upsert([{"shop": "y", "sku": "a", "stock": 3}, {"shop": "y", "sku": "b"}], ["shop", "sku"]) == (1, 1, 0)
    assert held("shop", "sku", "stock") == [("x", "a", 1), ("y", "a", 3), ("y", "b", None)]


def test_the_case_of_a_key_counts(upsert, held):
    upsert([{"sku": "a"}])
    assert upsert([{"sku": "A"}]) == (1, 0, 0)
    assert held("sku") == [("a",), ("A",)]


def test_the_last_input_row_of_a_key_counts(upsert, held, caplog):
    rows = [{"sku": "a", "stock": 1}, {"sku": "a", "stock": 2}, {"sku": "a", "stock": 3}]
    with caplog.at_level("WARNING", logger="airflow_provider_service"):
        assert upsert(rows) == (1, 0, 0)
    assert "2 input rows were dropped" in caplog.text
    assert held("stock") == [(3,)]
    with pytest.raises(AirflowFailException, match=r"row 2 repeats the key {'sku': 'a'}"):
        upsert(rows, on_duplicate="fail")


@pytest.mark.slow
@pytest.mark.parametrize("existing", [300, 3000])
def test_many_rows_cost_few_requests(upsert, client, simulator, table, held, existing):
    rows = [{"sku": f"sku-{number:05}", "stock": number} for number in range(existing)]
    client.data_table_rows.insert(table.id, rows)
    changed = [{**row, "stock": -1} for row in rows[:200]]
    new = [{"sku": f"new-{number:05}", "stock": 0} for number in range(1000)]
    simulator.clear_requests()
    assert upsert([*changed, *rows[200:], *new]) == (1000, 200, existing - 200)
    kinds = [request.method for request in simulator.requests]
    assert (kinds.count("POST"), kinds.count("PATCH")) == (1, 1)
    assert len(kinds) < 30
    assert max(len(request.query) for request in simulator.requests) < 8000
    assert held("sku", "stock") == [(row["sku"], row["stock"]) for row in [*changed, *rows[200:], *new]]


def test_few_rows_do_not_read_a_large_table(upsert, client, simulator, table):
    client.data_table_rows.insert(table.id, [{"sku": f"s{number}"} for number in range(2000)])
    simulator.clear_requests()
    assert upsert([{"sku": "s77", "stock": 1}, {"sku": "s1999", "stock": 1}, {"sku": "new"}]) == (1, 2, 0)
    assert [request.method for request in simulator.requests] == ["GET", "GET", "PATCH", "POST"]


def test_true_in_a_column_of_text_is_1(upsert, held):
    upsert([{"sku": True, "shop": False}])
    assert upsert([{"sku": "1", "shop": "0"}]) == (0, 0, 1)
    assert held("sku", "shop") == [("1", "0")]


@pytest.mark.parametrize(
    ("others", "reads"), [(0, ["probe", "page"]), (1_500, ["probe", "filter", "filter", "filter"])]
)
def test_the_whole_table_is_read_if_that_takes_fewer_pages(upsert, client, simulator, table, held, others, reads):
    rows = [{"sku": f"sku-{number:05}", "stock": number} for number in range(200)]
    client.data_table_rows.insert(table.id, [*rows, *({"sku": f"other-{number}"} for number in range(others))])
    simulator.clear_requests()
    assert upsert(rows) == (0, 0, 200)
    kinds = {True: "filter", False: "page"}
    queries = [one.query for one in simulator.requests if one.path.endswith("/rows")]
    assert ["probe" if "desc" in query else kinds["filter" in query] for query in queries] == reads


def test_more_changes_than_fit_into_a_filter(upsert, client, table, held, writes):
    client.data_table_rows.insert(table.id, [{"sku": f"s{number}"} for number in range(950)])
    writes()
    assert upsert([{"sku": f"s{number}", "stock": 1} for number in range(950)]) == (0, 950, 0)
    assert writes() == [f"PATCH /data-tables/{table.id}/rows/update"] * 2, "a server fails at 1,000 conditions"
    assert set(held("stock")) == {(1,)}


def test_a_repeat_after_a_lost_answer_does_not_duplicate_rows(upsert, simulator, held):
    simulator.inject("drop", method="POST", path="/rows$", after_processing=True)
    with pytest.raises(errors.ServiceConnectionLostError):
        upsert([{"sku": "a"}, {"sku": "b"}])
    assert upsert([{"sku": "a"}, {"sku": "b"}]) == (0, 0, 2)
    assert held("sku") == [("a",), ("b",)]


@pytest.mark.parametrize(
    ("rows", "keys", "message"),
    [
        ([{"sku": "a", "nope": 1}], "sku", "row 1 has unknown columns 'nope'; the table has shop, sku, stock"),
        ([{"sku": "a"}, {"stock": 1}], "sku", "row 2 lacks the key columns sku; it has 'stock'"),
        ([{"sku": "a"}], "nope", r"key_columns must name columns of the table, .* got \['nope'\]"),
        ([{"sku": "a"}], [], "key_columns must name columns"),
        ([{"sku": "a"}], "id", "key_columns must name columns"),
        ([{"sku": "a"}, {"sku": "b", "stock": "many"}], "sku", "row 2, column 'stock': 'many' is not a value of type"),
        ([{"sku": "a", "stock": float("nan")}], "sku", "is not a value of type number"),
        ([{"sku": "a", "stock": [1]}], "sku", "is not a value of type number"),
        ([{"sku": "a", "active": "yes"}], "sku", "is not a value of type boolean"),
        ([{"sku": "a", "active": [True]}], "sku", "is not a value of type boolean"),
        ([{"sku": "a", "sold_at": "tomorrow"}], "sku", "is not a value of type date"),
        ([{"sku": "a\0"}], "sku", "row 1, column 'sku': .* holds the character NUL"),
        ([{"sku": "a", "sold_at": "2026-02-31"}], "sku", "is not a value of type date"),
        ([{"sku": "a", "sold_at": 1767312000000}], "sku", "is not a value of type date"),
        ([{"sku": {"a": 1}}], "sku", "is not a value of type string"),
        ([{"sku": 0.1}], "sku", "is not a value of type string"),
    ],
)
def test_input_is_checked_in_whole_before_anything_is_written(upsert, writes, rows, keys, message):
    writes()
    with pytest.raises(AirflowFailException, match=message):
        upsert(rows, keys)
    assert writes() == []


def test_arguments_of_other_kinds_are_refused(upsert, held):
    with pytest.raises(AirflowFailException, match="row 2 is str, not a mapping"):
        upsert([{"sku": "a"}, "b"])
    assert held("sku") == []
