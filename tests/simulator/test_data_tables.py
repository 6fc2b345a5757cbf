from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from .api_client import Api

UNKNOWN = "abcdefghijklmnop"
COLUMN_NAME = (
    "Only alphabetical characters and non-leading numbers and underscores are allowed for column names, "
    "and the maximum length is 63 characters."
)


def create(api: Api, name: str = "table", *columns: tuple[str, str]) -> dict[str, Any]:
    body = {"name": name, "columns": [{"name": column, "type": kind} for column, kind in columns]}
    answer = api.post("/data-tables", body)
    assert answer.status_code == 201, answer.text
    table: dict[str, Any] = answer.json()
    return table


def names(api: Api, query: str = "") -> Any:
    answer = api.get(f"/data-tables{query}")
    return [table["name"] for table in answer.json()["data"]] if answer.status_code == 200 else answer.json()["message"]


def encoded(value: Any) -> str:
    return quote(json.dumps(value), safe="")


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({}, 400, "request/body must have required property 'name'"),
        ({"name": "x", "columns": [1]}, 400, "request/body/columns/0 must be object"),
    ],
)
def test_tables_that_are_refused(api: Api, body: object, status: int, message: str) -> None:
    create(api, "taken")
    answer = api.post("/data-tables", body)
    assert (answer.status_code, answer.json()) == (status, {"message": message})
    assert names(api) == ["taken"]


@pytest.mark.parametrize(
    ("columns", "status", "message"),
    [
        ([("a b", "string")], 400, COLUMN_NAME),
        ([("a" * 64, "string")], 400, "String must contain at most 63 character(s)"),
        ([("ID", "string")], 400, 'Column name "ID" is reserved as a system column name.'),
        ([("dryRunState", "string")], 400, 'Column name "dryRunState" is reserved as a testing column name.'),
    ],
)
def test_columns_that_are_refused(api: Api, columns: list[tuple[str, str]], status: int, message: str) -> None:
    body = {"name": "x", "columns": [{"name": name, "type": kind} for name, kind in columns]}
    answer = api.post("/data-tables", body)
    assert (answer.status_code, answer.json()) == (status, {"message": message})
    assert names(api) == []


def test_names_are_unique_per_project_and_case_sensitive(api: Api) -> None:
    project = api.post("/projects", {"name": "team"}).json()
    create(api, "t")
    create(api, "T")
    assert api.post("/data-tables", {"name": "t", "columns": [], "projectId": project["id"]}).status_code == 201


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, ["x6", "PAD", "pad"]),
        ({"name": ["pad"]}, ["PAD", "pad"]),
        ({"name": ["pad", "x6"]}, []),
        ({"id": UNKNOWN}, []),
        ({"name": 5}, "Invalid filter fields"),
        ({"projectId": ["x"]}, "Invalid filter fields"),
        ([], "Invalid filter fields"),
    ],
)
def test_list_filters(api: Api, wanted: object, found: object) -> None:
    for name in ("pad", "PAD", "x6"):
        create(api, name)
        api.simulator.clock.advance(1)
    assert names(api, f"?filter={encoded(wanted)}") == found


@pytest.mark.parametrize(
    ("sort_by", "found"),
    [
        ("createdAt:asc", ["b", "a", "c"]),
        ("createdAt:desc", ["c", "a", "b"]),
        ("size:desc", ["b", "c", "a"]),
    ],
)
def test_list_order(api: Api, sort_by: str, found: list[str]) -> None:
    tables = {}
    for name in ("b", "a", "c"):
        tables[name] = create(api, name, ("s", "string"))
        api.simulator.clock.advance(1)
    api.post(f"/data-tables/{tables['b']['id']}/rows", {"data": [{"s": "text"}]})
    assert names(api, f"?sortBy={quote(sort_by, safe='')}") == found
