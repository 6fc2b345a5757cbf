"""What the tests of data table rows share."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from .api_client import Api

UNKNOWN_COLUMN = "Validation error with data table request: unknown column name '{}'"
KINDS = {"s": "string", "n": "number", "b": "boolean", "d": "date"}
ROWS = [
    {"s": "Apple", "n": 1, "b": True, "d": "2026-01-02T03:04:05Z"},
    {"s": "apricot", "n": 2, "b": False, "d": "2026-01-03"},
    {"s": "", "n": 3},
    {"s": "50%_x", "n": 10},
    {},
]
ALL = [1, 2, 3, 4, 5]


def make_table(api: Api) -> str:
    """Path of the rows of a new, empty table with a column of each type."""
    body = {"name": "table", "columns": [{"name": name, "type": kind} for name, kind in KINDS.items()]}
    return f"/data-tables/{api.post('/data-tables', body).json()['id']}/rows"


def make_filled_table(api: Api) -> str:
    """The same with :data:`ROWS`."""
    rows = make_table(api)
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


def state(api: Api, rows: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = api.get(rows).json()["data"]
    return listed
