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


def test_a_table_lives_from_creation_to_deletion(api: Api) -> None:
    table = create(api, " padded ", ("b", "string"), ("a", "number"))
    assert (table["name"], table["sizeBytes"]) == ("padded", 4096)
    assert {column["name"]: column["index"] for column in table["columns"]} == {"b": 0, "a": 1}
    assert all(column["dataTableId"] == table["id"] for column in table["columns"])
    path = f"/data-tables/{table['id']}"
    assert api.get(path).json() == table
    assert api.patch(path, {"name": "renamed"}).json()["name"] == "renamed"
    listed = api.get("/data-tables").json()["data"][0]
    assert all("dataTableId" not in column for column in listed["columns"])
    deleted = api.delete(path)
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert api.get(path).json() == {"message": f"Could not find the data table: '{table['id']}'"}


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({}, 400, "request/body must have required property 'name'"),
        ({"name": "x"}, 400, "request/body must have required property 'columns'"),
        ({"name": "", "columns": []}, 400, "request/body/name must NOT have fewer than 1 characters"),
        ({"name": "  ", "columns": []}, 400, "String must contain at least 1 character(s)"),
        ({"name": "y" * 129, "columns": []}, 400, "request/body/name must NOT have more than 128 characters"),
        ({"name": "taken", "columns": []}, 409, "Data table with name 'taken' already exists in this project"),
        ({"name": "x", "columns": [], "projectId": "nope"}, 400, 'Project with ID "nope" not found'),
        ({"name": "x", "columns": {}}, 400, "request/body/columns must be array"),
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
        (
            [("a", "json")],
            400,
            "Invalid enum value. Expected 'string' | 'number' | 'boolean' | 'date', received 'json'",
        ),
        (
            [("a", "x")],
            400,
            "request/body/columns/0/type must be equal to one of the allowed values: "
            "string, number, boolean, date, json",
        ),
        ([("1a", "string")], 400, COLUMN_NAME),
        ([("a b", "string")], 400, COLUMN_NAME),
        ([("a" * 64, "string")], 400, "String must contain at most 63 character(s)"),
        ([("id", "string")], 400, 'Column name "id" is reserved as a system column name.'),
        ([("ID", "string")], 400, 'Column name "ID" is reserved as a system column name.'),
        ([("createdAt", "date")], 400, 'Column name "createdAt" is reserved as a system column name.'),
        ([("dryRunState", "string")], 400, 'Column name "dryRunState" is reserved as a testing column name.'),
        ([("a", "string"), ("a", "string")], 500, "Internal server error"),
        ([("a", "string"), ("A", "string")], 500, "Internal server error"),
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


def test_renaming_to_its_own_name_is_a_conflict(api: Api) -> None:
    table = create(api, "same")
    answer = api.patch(f"/data-tables/{table['id']}", {"name": "same"})
    assert (answer.status_code, answer.json()["message"]) == (
        409,
        "Data table with name 'same' already exists in this project",
    )


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_unknown_and_malformed_ids(api: Api, method: str) -> None:
    body = {"name": "x"} if method == "PATCH" else None
    malformed = api.request(method, "/data-tables/abc", json=body)
    assert (malformed.status_code, malformed.json()) == (
        400,
        {"message": 'request/params/dataTableId must match format "nanoid"'},
    )
    unknown = api.request(method, f"/data-tables/{UNKNOWN}", json=body)
    assert (unknown.status_code, unknown.json()) == (404, {"message": f"Could not find the data table: '{UNKNOWN}'"})


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, ["x6", "PAD", "pad"]),
        ({"name": "PAD"}, ["PAD", "pad"]),
        ({"name": "pa"}, ["PAD", "pad"]),
        ({"name": ["pad"]}, ["PAD", "pad"]),
        ({"name": ["pad", "x6"]}, []),
        ({"id": UNKNOWN}, []),
        ({"projectId": "nope"}, []),
        ({"foo": 1}, "Invalid filter fields"),
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


def test_list_filter_by_id(api: Api) -> None:
    table = create(api, "one")
    create(api, "two")
    assert names(api, f"?filter={encoded({'id': table['id']})}") == ["one"]
    assert names(api, f"?filter={encoded({'id': [table['id'], UNKNOWN]})}") == ["one"]
    assert names(api, "?filter=zz") == 'request/query/filter must match format "jsonString"'


@pytest.mark.parametrize(
    ("sort_by", "found"),
    [
        ("name:asc", ["a", "b", "c"]),
        ("name:desc", ["c", "b", "a"]),
        ("createdAt:asc", ["b", "a", "c"]),
        ("createdAt:desc", ["c", "a", "b"]),
        ("updatedAt:asc", ["a", "c", "b"]),
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


@pytest.mark.parametrize("sort_by", ["name", "name:up", "foo:asc", "sizeBytes:asc"])
def test_an_order_that_is_refused(api: Api, sort_by: str) -> None:
    assert names(api, f"?sortBy={quote(sort_by, safe='')}") == (
        "sortBy must be one of: name:asc, name:desc, createdAt:asc, createdAt:desc, "
        "updatedAt:asc, updatedAt:desc, size:asc, size:desc"
    )


def test_a_limit_above_250_is_refused(api: Api) -> None:
    assert names(api, "?limit=251") == "request/query/limit must be <= 250"
