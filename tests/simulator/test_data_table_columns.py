from __future__ import annotations

from typing import Any

import pytest

from .api_client import Api

PATTERN = 'request/body/name must match pattern "^[a-zA-Z][a-zA-Z0-9_]*$"'
ANY_OF = (
    "request/body must have required property 'name', request/body must have required property 'index', "
    "request/body must match a schema in anyOf"
)


@pytest.fixture
def columns(api: Api) -> str:
    """Path of the columns of a table with the columns a, b and c and one row."""
    kinds = {"a": "string", "b": "number", "c": "boolean"}
    body = {"name": "table", "columns": [{"name": name, "type": kind} for name, kind in kinds.items()]}
    path = f"/data-tables/{api.post('/data-tables', body).json()['id']}"
    api.post(f"{path}/rows", {"data": [{"a": "x", "b": 1, "c": True}]})
    return f"{path}/columns"


def order(api: Api, columns: str) -> list[str]:
    listed = api.get(columns).json()
    assert [column["index"] for column in listed] == list(range(len(listed)))
    return [column["name"] for column in listed]


def column_id(api: Api, columns: str, name: str) -> str:
    return next(column["id"] for column in api.get(columns).json() if column["name"] == name)


def row(api: Api, columns: str) -> dict[str, Any]:
    rows = api.get(columns.replace("/columns", "/rows")).json()["data"]
    return {name: value for name, value in rows[0].items() if name not in ("id", "createdAt", "updatedAt")}


@pytest.mark.parametrize(
    ("index", "found"),
    [(2, ["a", "b", "n", "c"]), (99, ["a", "b", "c", "n"])],
)
def test_a_new_column_is_placed_and_rows_get_null(api: Api, columns: str, index: int | None, found: list[str]) -> None:
    answer = api.post(columns, {"name": "n", "type": "date", **({} if index is None else {"index": index})})
    assert answer.status_code == 201
    assert set(answer.json()) == {"id", "dataTableId", "name", "type", "index", "createdAt", "updatedAt"}
    assert answer.json()["index"] == found.index("n")
    assert order(api, columns) == found
    assert row(api, columns)["n"] is None


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"name": "n"}, 400, "request/body must have required property 'type'"),
        ({"name": "n", "type": "string", "index": 1.5}, 400, "request/body/index must be integer"),
        ({"name": "n", "type": "string", "index": "1"}, 400, "request/body/index must be integer"),
        ({"name": "UpdatedAt", "type": "string"}, 409, 'Column name "UpdatedAt" is reserved as a system column name.'),
    ],
)
def test_new_columns_that_are_refused(api: Api, columns: str, body: object, status: int, message: str) -> None:
    answer = api.post(columns, body)
    assert (answer.status_code, answer.json()) == (status, {"message": message})
    assert order(api, columns) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"name": "z", "index": 2}, ["b", "c", "z"]),
        ({"index": 0}, ["a", "b", "c"]),
    ],
)
def test_a_column_is_renamed_and_moved_with_its_values(
    api: Api, columns: str, change: dict[str, Any], found: list[str]
) -> None:
    path = f"{columns}/{column_id(api, columns, 'a')}"
    answer = api.patch(path, change)
    name = change.get("name", "a")
    assert (answer.status_code, answer.json()["name"], answer.json()["index"]) == (200, name, found.index(name))
    assert order(api, columns) == found
    assert row(api, columns) == {name: "x", "b": 1, "c": True}
    filled = {"columnName": name, "condition": "eq", "value": "x"}
    update = {"filter": {"filters": [filled]}, "data": {"b": 2}, "returnData": True}
    assert len(api.patch(columns.replace("/columns", "/rows/update"), update).json()) == 1


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"type": "date"}, 400, ANY_OF),
        ({"name": "1"}, 400, PATTERN),
        ({"name": "a"}, 409, "Data table column with name 'a' already exists in data table 'table'"),
        ({"name": "B"}, 500, "Internal server error"),
        ({"index": -1}, 400, "request/body/index must be >= 0"),
    ],
)
def test_changes_that_are_refused(api: Api, columns: str, change: object, status: int, message: str) -> None:
    answer = api.patch(f"{columns}/{column_id(api, columns, 'a')}", change)
    assert (answer.status_code, answer.json()) == (status, {"message": message})
    assert order(api, columns) == ["a", "b", "c"]
