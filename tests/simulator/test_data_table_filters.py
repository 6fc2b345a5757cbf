"""Filters of rows: every condition, every shape."""

from __future__ import annotations

from typing import Any

import pytest

from .api_client import Api
from .table_helpers import ALL, UNKNOWN_COLUMN, condition, encoded, found, make_filled_table


@pytest.fixture
def filled(api: Api) -> str:
    return make_filled_table(api)


NULL = "Validation error with data table request: {} filter value cannot be null or undefined"
NO_TEXT = "Validation error with data table request: {} filter value must be a string"


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
