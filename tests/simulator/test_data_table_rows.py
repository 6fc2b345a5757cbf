"""Rows of data tables: inserted, listed, updated, upserted, deleted."""

from __future__ import annotations

import time
from typing import Any

import pytest

from .api_client import Api
from .table_helpers import (
    ALL,
    UNKNOWN_COLUMN,
    condition,
    encoded,
    found,
    insert,
    make_filled_table,
    make_table,
    state,
)


@pytest.fixture
def rows(api: Api) -> str:
    return make_table(api)


@pytest.fixture
def filled(api: Api) -> str:
    return make_filled_table(api)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"data": [{"id": 1}]}, UNKNOWN_COLUMN.format("id")),
        ({"data": [{"createdAt": "2026-01-01"}]}, UNKNOWN_COLUMN.format("createdAt")),
    ],
)
def test_inserts_that_are_refused(api: Api, rows: str, body: object, message: str) -> None:
    answer = api.post(rows, body)
    assert (answer.status_code, answer.json()) == (400, {"message": message})


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
        ("b:asc", [3, 4, 5, 2, 1]),
        ("b:desc", [1, 2, 3, 4, 5]),
        ("createdAt:asc", ALL),
        (" s:asc:x", [5, 3, 4, 1, 2]),
    ],
)
def test_order(api: Api, filled: str, sort_by: str, wanted: Any) -> None:
    assert found(api, filled, f"sortBy={encoded(sort_by)}") == wanted


@pytest.mark.parametrize(
    ("search", "wanted"),
    [
        ("03:04:05.000", [1]),
        ("2026-01-02T", []),
        ("true", []),
        ("5%X", [4]),
        ("0%x", []),
        ("_", [4]),
        ("%", [1, 2, 3, 4]),
    ],
)
def test_search(api: Api, filled: str, search: str, wanted: list[int]) -> None:
    assert found(api, filled, f"search={encoded(search)}") == wanted


@pytest.mark.parametrize(("text", "wanted"), [("müLLER", [1]), ("MÜLL", [2]), ("müller%", [1])])
def test_only_the_case_of_a_to_z_is_ignored(api: Api, rows: str, text: str, wanted: list[int]) -> None:
    insert(api, rows, [{"s": "Müller"}, {"s": "MÜLLER"}])
    assert found(api, rows, f"search={encoded(text)}") == wanted
    assert found(api, rows, f"filter={encoded(condition('s', 'ilike', text))}") == wanted


@pytest.mark.slow
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
        ({"filter": "x"}, "request/body/filter must be object"),
        ({"data": {"id": 9}}, UNKNOWN_COLUMN.format("id")),
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
