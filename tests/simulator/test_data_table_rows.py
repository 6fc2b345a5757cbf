from __future__ import annotations

import json
import time
from typing import Any
from urllib.parse import quote

import pytest

from .api_client import Api

UNKNOWN_COLUMN = "Validation error with data table request: unknown column name '{}'"
KINDS = {"s": "string", "n": "number", "b": "boolean", "d": "date"}
SYSTEM = ("id", "createdAt", "updatedAt")
ROWS = [
    {"s": "Apple", "n": 1, "b": True, "d": "2026-01-02T03:04:05Z"},
    {"s": "apricot", "n": 2, "b": False, "d": "2026-01-03"},
    {"s": "", "n": 3},
    {"s": "50%_x", "n": 10},
    {},
]
INVALID = object()


@pytest.fixture
def rows(api: Api) -> str:
    """Path of the rows of an empty table with a column of each type."""
    body = {"name": "table", "columns": [{"name": name, "type": kind} for name, kind in KINDS.items()]}
    return f"/data-tables/{api.post('/data-tables', body).json()['id']}/rows"


@pytest.fixture
def filled(api: Api, rows: str) -> str:
    """The same with five rows."""
    insert(api, rows, ROWS)
    return rows


def insert(api: Api, rows: str, data: list[dict[str, Any]], returning: str = "all") -> Any:
    answer = api.post(rows, {"data": data, "returnType": returning})
    assert answer.status_code == 200, answer.text
    return answer.json()


def encoded(value: Any) -> str:
    return quote(value if isinstance(value, str) else json.dumps(value), safe="")


def condition(column: str, name: str, value: Any) -> dict[str, Any]:
    return {"filters": [{"columnName": column, "condition": name, "value": value}]}


def found(api: Api, rows: str, query: str = "") -> Any:
    """The ids on the first page, or the error's message."""
    answer = api.get(f"{rows}?{query}" if query else rows)
    body = answer.json()
    return [row["id"] for row in body["data"]] if answer.status_code == 200 else body["message"]


def user_values(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in SYSTEM}


def state(api: Api, rows: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = api.get(rows).json()["data"]
    return listed


# ---------------------------------------------------------------- types


@pytest.mark.parametrize(
    ("column", "given", "stored"),
    [
        ("s", "x", "x"),
        ("s", "", ""),
        ("s", 5, "5"),
        ("s", 5.0, "5"),
        ("s", 5.5, "5.5"),
        ("s", 1e21, "1.0e+21"),
        ("s", True, "1"),
        ("s", False, "0"),
        ("s", None, None),
        ("n", 1, 1),
        ("n", 1.5, 1.5),
        ("n", "12", 12),
        ("n", " 7 ", 7),
        ("n", "", 0),
        ("n", "1e3", 1000),
        ("n", "0x10", 16),
        ("n", "-2.5", -2.5),
        ("n", True, 1),
        ("n", False, 0),
        ("n", 2**53 + 1, 2**53),
        ("n", 1e300, 1e300),
        ("n", None, None),
        ("n", "abc", INVALID),
        ("n", "true", INVALID),
        ("b", True, True),
        ("b", False, False),
        ("b", "true", True),
        ("b", "FALSE", False),
        ("b", 1, True),
        ("b", 0, False),
        ("b", "1", True),
        ("b", "0", False),
        ("b", 1.0, True),
        ("b", None, None),
        ("b", "yes", INVALID),
        ("b", "", INVALID),
        ("b", 2, INVALID),
        ("d", "2026-01-02", "2026-01-02T00:00:00.000Z"),
        ("d", "2026-01-02 03:04:05", "2026-01-02T03:04:05.000Z"),
        ("d", "2026-01-02T03:04", "2026-01-02T03:04:00.000Z"),
        ("d", "2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05.000Z"),
        ("d", "2026-01-02T03:04:05-0130", "2026-01-02T04:34:05.000Z"),
        ("d", "2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05.123Z"),
        ("d", "2026-01", "2026-01-01T00:00:00.000Z"),
        ("d", "2026", "2026-01-01T00:00:00.000Z"),
        ("d", "Jan 2, 2026", "2026-01-02T00:00:00.000Z"),
        ("d", "2026/01/02", "2026-01-02T00:00:00.000Z"),
        ("d", "02/01/2026", "2026-02-01T00:00:00.000Z"),
        ("d", None, None),
        ("d", "nope", INVALID),
        ("d", "", INVALID),
        ("d", "2026-13-40", INVALID),
        ("d", 1767312000000, INVALID),
        ("d", "1767312000000", INVALID),
        ("d", True, INVALID),
    ],
)
def test_values_are_coerced_to_the_column_type(api: Api, rows: str, column: str, given: Any, stored: Any) -> None:
    answer = api.post(rows, {"data": [{column: given}], "returnType": "all"})
    if stored is not INVALID:
        assert answer.status_code == 200, answer.text
        value = answer.json()[0][column]
        assert value == stored
        assert type(value) is type(stored)
        return
    shown = {True: "true"}.get(given, str(given)) if isinstance(given, bool) else str(given)
    expected = "dateTime" if column == "d" else KINDS[column]
    text = f"value '{shown}' does not match column type '{KINDS[column]}': "
    assert answer.status_code == 400
    assert answer.json()["message"].startswith(
        f"Validation error with data table request: {text}'{column}' expects a {expected} but we got '{shown}'"
    )
    assert state(api, rows) == []


@pytest.mark.parametrize("column", list(KINDS))
@pytest.mark.parametrize("value", [{}, [], {"a": 1}, [1]])
def test_objects_and_lists_fit_no_column(api: Api, rows: str, column: str, value: Any) -> None:
    answer = api.post(rows, {"data": [{column: value}]})
    assert (answer.status_code, answer.json()) == (400, {"message": "Invalid input"})


# ---------------------------------------------------------------- insert


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


# ---------------------------------------------------------------- filters

NULL = "Validation error with data table request: {} filter value cannot be null or undefined"
NO_TEXT = "Validation error with data table request: {} filter value must be a string"
ALL = [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("column", "name", "value", "wanted"),
    [
        ("s", "eq", "Apple", [1]),
        ("s", "eq", "apple", []),
        ("s", "eq", None, [5]),
        ("s", "eq", 5, []),
        ("n", "eq", 2, [2]),
        ("n", "eq", "2", [2]),
        ("n", "eq", None, [5]),
        ("b", "eq", True, [1]),
        ("b", "eq", "true", [1]),
        ("b", "eq", None, [3, 4, 5]),
        ("d", "eq", "2026-01-02T03:04:05.000Z", []),
        ("d", "eq", None, [3, 4, 5]),
        ("id", "eq", 2, [2]),
        ("id", "eq", "2", [2]),
        ("createdAt", "eq", "2027-01-01", []),
        ("s", "neq", "Apple", [2, 3, 4, 5]),
        ("s", "neq", None, [1, 2, 3, 4]),
        ("n", "neq", 2, [1, 3, 4, 5]),
        ("b", "neq", True, [2, 3, 4, 5]),
        ("d", "neq", "2026-01-02T03:04:05.000Z", ALL),
        ("d", "neq", None, [1, 2]),
        ("id", "neq", 2, [1, 3, 4, 5]),
        ("s", "gt", "Apple", [2]),
        ("s", "gt", 5, [1, 2, 4]),
        ("s", "gt", None, NULL.format("GT")),
        ("n", "gt", 2, [3, 4]),
        ("n", "gt", None, NULL.format("GT")),
        ("b", "gt", False, [1]),
        ("d", "gt", "2026-01-02", [2]),
        ("d", "gt", "2026-01-01", [1, 2]),
        ("id", "gt", 3, [4, 5]),
        ("createdAt", "gt", "2000-01-01", ALL),
        ("s", "gte", "Apple", [1, 2]),
        ("n", "gte", 2, [2, 3, 4]),
        ("n", "gte", None, NULL.format("GTE")),
        ("b", "gte", True, [1]),
        ("d", "gte", "2026-01-02T03:04:05.000Z", [2]),
        ("s", "lt", "Apple", [3, 4]),
        ("n", "lt", 2, [1]),
        ("n", "lt", None, NULL.format("LT")),
        ("d", "lt", "2026-01-02", [1]),
        ("d", "lt", "2026-01-04", [1, 2]),
        ("s", "lte", "Apple", [1, 3, 4]),
        ("n", "lte", "2", [1, 2]),
        ("n", "lte", None, NULL.format("LTE")),
        ("s", "like", "A", [1]),
        ("s", "like", "", [1, 2, 3, 4]),
        ("s", "like", "%", [1, 2, 3, 4]),
        ("s", "like", "a%", [2]),
        ("s", "like", "%T", []),
        ("s", "like", "_pple", []),
        ("s", "like", "50%_x", [4]),
        ("s", "like", "A*", []),
        ("s", "like", None, NULL.format("LIKE")),
        ("s", "like", 5, NO_TEXT.format("LIKE")),
        ("n", "like", "2", NO_TEXT.format("LIKE")),
        ("b", "like", "true", NO_TEXT.format("LIKE")),
        ("d", "like", "2026-01-02", []),
        ("s", "ilike", "A", [1, 2]),
        ("s", "ilike", "a%", [1, 2]),
        ("s", "ilike", "%T", [2]),
        ("s", "ilike", None, NULL.format("ILIKE")),
        ("id", "ilike", 2, NO_TEXT.format("ILIKE")),
        ("s", "isEmpty", None, [3, 5]),
        ("s", "isEmpty", "ignored", [3, 5]),
        ("n", "isEmpty", None, [5]),
        ("b", "isEmpty", None, [3, 4, 5]),
        ("d", "isEmpty", None, [3, 4, 5]),
        ("id", "isEmpty", None, []),
        ("s", "isNotEmpty", None, [1, 2, 4]),
        ("n", "isNotEmpty", None, [1, 2, 3, 4]),
        ("b", "isNotEmpty", None, [1, 2]),
        ("s", "foo", "x", "Invalid filter fields"),
        ("zz", "eq", 1, UNKNOWN_COLUMN.format("zz")),
        ("S", "eq", 1, UNKNOWN_COLUMN.format("S")),
    ],
)
def test_every_condition(api: Api, filled: str, column: str, name: str, value: Any, wanted: Any) -> None:
    assert found(api, filled, f"filter={encoded(condition(column, name, value))}") == wanted


@pytest.mark.parametrize("name", ["eq", "gt", "like", "isEmpty"])
def test_a_filter_value_must_fit_its_column(api: Api, filled: str, name: str) -> None:
    text = "value 'abc' does not match column type 'number': 'n' expects a number but we got 'abc'"
    message = found(api, filled, f"filter={encoded(condition('n', name, 'abc'))}")
    assert message == f"Validation error with data table request: {text}"


APPLE, TWO = {"columnName": "s", "value": "Apple"}, {"columnName": "n", "value": 2}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, ALL),
        ({"filters": []}, ALL),
        ({"type": "and"}, ALL),
        ({"filters": [APPLE]}, [1]),
        ({"type": "or", "filters": [APPLE, TWO]}, [1, 2]),
        ({"type": "and", "filters": [APPLE, TWO]}, []),
        ({"filters": [APPLE, {"columnName": "n", "value": 1}]}, [1]),
        ({"type": "xor", "filters": []}, "Invalid filter fields"),
        ({"filters": {}}, "Invalid filter fields"),
        ({"filters": [1]}, "Invalid filter fields"),
        ({"filters": [{"columnName": "s"}]}, "Invalid filter fields"),
        ({"filters": [{"value": "s"}]}, "Invalid filter fields"),
        ({"filters": [{"columnName": "", "value": 2}]}, "Invalid filter fields"),
        ({"filters": [{"columnName": 1, "value": 2}]}, "Invalid filter fields"),
        ({"filters": [{"columnName": "s", "value": {}}]}, "Invalid filter fields"),
        ([], "Invalid filter fields"),
        ("1", "Invalid filter fields"),
        ("not json", 'request/query/filter must match format "jsonString"'),
    ],
)
def test_shapes_of_filters(api: Api, filled: str, given: Any, wanted: Any) -> None:
    assert found(api, filled, f"filter={encoded(given)}") == wanted


def test_a_filter_must_be_percent_encoded(api: Api, filled: str) -> None:
    assert found(api, filled, "filter={}&sortBy=s:asc") == (
        "Parameter 'sortBy' must be url encoded. Its value may not contain reserved characters."
    )


# ---------------------------------------------------------------- order, search, pages


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
    began = time.monotonic()
    for _ in range(2):
        data = [{"s": f"row {number}", "n": number, "b": True, "d": "2026-01-02"} for number in range(10_000)]
        assert insert(api, rows, data, "count") == {"success": True, "insertedRows": 10_000}
    ids, cursor = [], None
    while cursor or not ids:
        answer = api.get(f"{rows}?limit=250" + (f"&cursor={encoded(cursor)}" if cursor else "")).json()
        ids += [row["id"] for row in answer["data"]]
        cursor = answer["nextCursor"]
    assert ids == list(range(1, 20_001))
    assert time.monotonic() - began < 10


# ---------------------------------------------------------------- update, upsert, delete


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
