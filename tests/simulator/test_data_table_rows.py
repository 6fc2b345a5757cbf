"""Rows of data tables: inserted, listed, updated, upserted, deleted."""

from __future__ import annotations

import time
from typing import Any

import pytest

from .api_client import Api
from .table_helpers import (
    ALL,
    KINDS,
    SYSTEM,
    UNKNOWN_COLUMN,
    condition,
    encoded,
    found,
    insert,
    make_filled_table,
    make_table,
    state,
    user_values,
)


@pytest.fixture
def rows(api: Api) -> str:
    return make_table(api)


@pytest.fixture
def filled(api: Api) -> str:
    return make_filled_table(api)


def test_an_insert_answers_what_is_asked_for(api: Api, rows: str) -> None:
    assert api.post(rows, {"data": [{"n": 1}]}).json() == {"success": True, "insertedRows": 1}
    assert insert(api, rows, [{}, {"n": 2}], "id") == [{"id": 2}, {"id": 3}]
    inserted = insert(api, rows, [{"n": 4}, {"s": "q"}])
    assert [list(row) for row in inserted] == [[*KINDS, *SYSTEM]] * 2
    assert [user_values(row) for row in inserted] == [
        {"s": None, "n": 4, "b": None, "d": None},
        {"s": "q", "n": None, "b": None, "d": None},
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "request/body must have required property 'data'"),
        ({"data": {}}, "request/body/data must be array"),
        ({"data": []}, "request/body/data must NOT have fewer than 1 items"),
        ({"data": [1]}, "request/body/data/0 must be object"),
        ({"data": [{"zz": 1, "n": "abc"}]}, UNKNOWN_COLUMN.format("zz")),
        ({"data": [{"N": 1}]}, UNKNOWN_COLUMN.format("N")),
        ({"data": [{"id": 1}]}, UNKNOWN_COLUMN.format("id")),
        ({"data": [{"createdAt": "2026-01-01"}]}, UNKNOWN_COLUMN.format("createdAt")),
        (
            {"data": [{}], "returnType": "x"},
            "request/body/returnType must be equal to one of the allowed values: count, id, all",
        ),
    ],
)
def test_inserts_that_are_refused(api: Api, rows: str, body: object, message: str) -> None:
    answer = api.post(rows, body)
    assert (answer.status_code, answer.json()) == (400, {"message": message})


def test_one_bad_row_rejects_all(api: Api, rows: str) -> None:
    assert api.post(rows, {"data": [{"n": 1}, {"n": "x"}]}).status_code == 400
    assert state(api, rows) == []


def test_ids_are_reused(api: Api, filled: str) -> None:
    api.delete(f"{filled}/delete?filter={encoded(condition('id', 'eq', 5))}")
    assert insert(api, filled, [{}], "id") == [{"id": 5}]
    assert api.delete(f"{filled}/clear").json() == {"deletedCount": 5}
    assert api.delete(f"{filled}/clear").json() == {"deletedCount": 0}
    assert insert(api, filled, [{}], "id") == [{"id": 1}]


def test_writing_rows_touches_the_table(api: Api, rows: str) -> None:
    path = rows.removesuffix("/rows")
    before = api.get(path).json()
    api.simulator.clock.advance(60)
    insert(api, rows, [{"s": "text"}])
    after = api.get(path).json()
    assert after["updatedAt"] > before["updatedAt"]
    assert after["sizeBytes"] > before["sizeBytes"]


@pytest.mark.parametrize(
    ("sort_by", "wanted"),
    [
        ("s:asc", [5, 3, 4, 1, 2]),
        ("s:desc", [2, 1, 4, 3, 5]),
        ("n:desc", [4, 3, 2, 1, 5]),
        ("b:asc", [3, 4, 5, 2, 1]),
        ("b:desc", [1, 2, 3, 4, 5]),
        ("d:asc", [3, 4, 5, 1, 2]),
        ("id:desc", [5, 4, 3, 2, 1]),
        ("createdAt:asc", ALL),
        ("s:ASC", [5, 3, 4, 1, 2]),
        ("S:asc", [5, 3, 4, 1, 2]),
        (" s:asc:x", [5, 3, 4, 1, 2]),
        ("s", "Invalid sort format, expected <columnName>:<asc/desc>"),
        ("s:up", "Invalid sort direction"),
        (":asc", "String must contain at least 1 character(s)"),
        ("zz:asc", "Internal server error"),
    ],
)
def test_order(api: Api, filled: str, sort_by: str, wanted: Any) -> None:
    assert found(api, filled, f"sortBy={encoded(sort_by)}") == wanted


@pytest.mark.parametrize(
    ("search", "wanted"),
    [
        ("PP", [1]),
        ("2.0", [2]),
        ("2026", [1, 2]),
        ("03:04:05.000", [1]),
        ("2026-01-02T", []),
        ("true", []),
        ("5%X", [4]),
        ("0%x", []),
        ("_", [4]),
        ("%", [1, 2, 3, 4]),
        ("nothing", []),
    ],
)
def test_search(api: Api, filled: str, search: str, wanted: list[int]) -> None:
    assert found(api, filled, f"search={encoded(search)}") == wanted


def test_filter_search_order_and_pages_together(api: Api, rows: str) -> None:
    insert(api, rows, [{"s": f"name {number % 3}", "n": number} for number in range(30)])
    query = f"filter={encoded(condition('n', 'gte', 3))}&search={encoded('NAME 1')}&sortBy={encoded('n:desc')}&limit=4"
    first = api.get(f"{rows}?{query}").json()
    assert [row["n"] for row in first["data"]] == [28, 25, 22, 19]
    second = api.get(f"{rows}?{query}&cursor={encoded(first['nextCursor'])}").json()
    assert [row["n"] for row in second["data"]] == [16, 13, 10, 7]
    alone = api.get(f"{rows}?cursor={encoded(first['nextCursor'])}").json()
    assert [row["n"] for row in alone["data"]] == [4, 5, 6, 7]


def test_a_limit_above_250_is_refused(api: Api, rows: str) -> None:
    assert found(api, rows, "limit=251") == "request/query/limit must be <= 250"


def test_large_tables_are_quick(api: Api, rows: str) -> None:
    began = time.process_time()
    for _ in range(2):
        data = [{"s": f"row {number}", "n": number, "b": True, "d": "2026-01-02"} for number in range(10_000)]
        assert insert(api, rows, data, "count") == {"success": True, "insertedRows": 10_000}
    ids, cursor = [], None
    while cursor or not ids:
        answer = api.get(f"{rows}?limit=250" + (f"&cursor={encoded(cursor)}" if cursor else "")).json()
        ids += [row["id"] for row in answer["data"]]
        cursor = answer["nextCursor"]
    assert ids == list(range(1, 20_001))
    assert time.process_time() - began < 20


@pytest.mark.parametrize("path", ["update", "upsert"])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"filter": {}}, "request/body/filter must have required property 'filters'"),
        ({"filter": {"filters": []}}, "request/body/filter/filters must NOT have fewer than 1 items"),
        ({"filter": "x"}, "request/body/filter must be object"),
        (
            {"filter": condition("s", "isEmpty", None)},
            "request/body/filter/filters/0/condition must be equal to one of the allowed values: "
            "eq, neq, like, ilike, gt, gte, lt, lte",
        ),
        (
            {"filter": {"filters": [{"columnName": "s", "value": "a"}]}},
            "request/body/filter/filters/0 must have required property 'condition'",
        ),
        (
            {"filter": {"filters": [{"columnName": "s", "condition": "eq"}]}},
            "request/body/filter/filters/0 must have required property 'value'",
        ),
        (
            {"filter": {"type": "xor", **condition("s", "eq", "a")}},
            "request/body/filter/type must be equal to one of the allowed values: and, or",
        ),
        ({"filter": condition("zz", "eq", "a")}, UNKNOWN_COLUMN.format("zz")),
        ({"data": {}}, "data must not be empty"),
        ({"data": []}, "request/body/data must be object"),
        ({"data": {"zz": 1}}, UNKNOWN_COLUMN.format("zz")),
        ({"data": {"id": 9}}, UNKNOWN_COLUMN.format("id")),
        ({"data": {"n": {}}}, "Invalid input"),
        ({"returnData": "yes"}, "request/body/returnData must be boolean"),
    ],
)
def test_changes_that_are_refused(api: Api, filled: str, path: str, changes: dict[str, Any], message: str) -> None:
    body = {"filter": condition("s", "eq", "Apple"), "data": {"n": 5}, **changes}
    before = state(api, filled)
    answer = api.request("PATCH" if path == "update" else "POST", f"{filled}/{path}", json=body)
    assert (answer.status_code, answer.json()) == (400, {"message": message})
    assert state(api, filled) == before


def test_an_update_changes_every_match(api: Api, filled: str) -> None:
    body = {"filter": condition("n", "gte", 3), "data": {"s": "big", "b": None}}
    api.simulator.clock.advance(60)
    assert api.patch(f"{filled}/update", body).json() is True
    changed = [row for row in state(api, filled) if row["s"] == "big"]
    assert [row["id"] for row in changed] == [3, 4]
    assert all(row["updatedAt"] > row["createdAt"] for row in changed)
    answer = api.patch(f"{filled}/update", {**body, "returnData": True}).json()
    assert answer == state(api, filled)[2:4]


def test_an_update_without_a_match(api: Api, filled: str) -> None:
    body = {"filter": condition("s", "eq", "none"), "data": {"n": 5}}
    assert api.patch(f"{filled}/update", body).json() is True
    assert api.patch(f"{filled}/update", {**body, "returnData": True}).json() == []
    assert api.patch(f"{filled}/update", {**body, "dryRun": True}).json() == []


@pytest.mark.parametrize("path", ["update", "upsert"])
@pytest.mark.parametrize("returning", [True, False])
def test_a_dry_run_shows_pairs_and_changes_nothing(api: Api, filled: str, path: str, returning: bool) -> None:
    before = state(api, filled)
    body = {"filter": condition("n", "lte", 2), "data": {"n": 7}, "dryRun": True, "returnData": returning}
    answer = api.request("PATCH" if path == "update" else "POST", f"{filled}/{path}", json=body).json()
    assert [(row["id"], row["n"], row["dryRunState"]) for row in answer] == [
        (1, 1, "before"),
        (1, 7, "after"),
        (2, 2, "before"),
        (2, 7, "after"),
    ]
    assert state(api, filled) == before


def test_an_upsert_updates_every_match(api: Api, filled: str) -> None:
    body = {"filter": condition("b", "eq", None), "data": {"n": 50}}
    assert api.post(f"{filled}/upsert", body).json() is True
    assert [row["id"] for row in state(api, filled) if row["n"] == 50] == [3, 4, 5]


def test_an_upsert_inserts_the_data_only(api: Api, filled: str) -> None:
    body = {"filter": condition("s", "eq", "new"), "data": {"n": 51}, "returnData": True}
    inserted = api.post(f"{filled}/upsert", body).json()
    assert [(row["id"], user_values(row)) for row in inserted] == [(6, {"s": None, "n": 51, "b": None, "d": None})]
    assert api.post(f"{filled}/upsert", {**body, "data": {"n": 52, "s": "new"}}).json()[0]["id"] == 7
    assert api.post(f"{filled}/upsert", {**body, "data": {"n": 53}}).json()[0]["s"] == "new"
    assert len(state(api, filled)) == 7


def test_a_dry_upsert_of_a_new_row(api: Api, filled: str) -> None:
    body = {"filter": condition("s", "eq", "new"), "data": {"n": 51}, "dryRun": True}
    before, after = api.post(f"{filled}/upsert", body).json()
    assert before == {"id": None, "createdAt": None, "updatedAt": None, "n": None, "dryRunState": "before"}
    assert (after["id"], after["n"], after["dryRunState"]) == (0, 51, "after")
    assert len(state(api, filled)) == 5


def test_a_delete_answers_true_or_the_rows(api: Api, filled: str) -> None:
    path = f"{filled}/delete?filter={encoded(condition('n', 'lt', 3))}"
    doomed = state(api, filled)[:2]
    pairs = api.delete(f"{path}&dryRun=true").json()
    assert pairs[0] == {**doomed[0], "dryRunState": "before"}
    assert pairs[1] == {**dict.fromkeys(doomed[0]), "dryRunState": "after"}
    assert api.delete(f"{path}&returnData=true").json() == doomed
    assert found(api, filled) == [3, 4, 5]
    assert api.delete(f"{path}&returnData=true").json() == []
    assert api.delete(path).json() is True


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "request/query must have required property 'filter'"),
        ("?filter=%7B%7D", "At least one filter condition is required for delete operations"),
        (f"?filter={encoded({'filters': []})}", "At least one filter condition is required for delete operations"),
        ("?filter=zz", 'request/query/filter must match format "jsonString"'),
        (f"?filter={encoded({'type': 'x'})}", "Invalid filter fields"),
        (f"?filter={encoded(condition('n', 'eq', 1))}&dryRun=yes", "request/query/dryRun must be boolean"),
        (f"?filter={encoded(condition('zz', 'eq', 1))}", UNKNOWN_COLUMN.format("zz")),
        (f"?filter={encoded(condition('n', 'eq', 1))}&foo=1", "Unknown query parameter 'foo'"),
    ],
)
def test_deletes_that_are_refused(api: Api, filled: str, query: str, message: str) -> None:
    answer = api.delete(f"{filled}/delete{query}")
    assert (answer.status_code, answer.json()) == (400, {"message": message})
    assert found(api, filled) == ALL


def test_an_unknown_table(api: Api) -> None:
    path = "/data-tables/abcdefghijklmnop/rows"
    message = {"message": "Could not find the data table: 'abcdefghijklmnop'"}
    for answer in (api.get(path), api.post(path, {"data": [{}]}), api.delete(f"{path}/clear")):
        assert (answer.status_code, answer.json()) == (404, message)
