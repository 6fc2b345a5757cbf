"""Filters of rows: every condition, every shape."""

from __future__ import annotations

from typing import Any

import pytest

from .api_client import Api
from .table_helpers import condition, encoded, found, make_filled_table


@pytest.fixture
def filled(api: Api) -> str:
    return make_filled_table(api)


NULL = "Validation error with data table request: {} filter value cannot be null or undefined"
NO_TEXT = "Validation error with data table request: {} filter value must be a string"


@pytest.mark.parametrize(
    ("column", "name", "value", "wanted"),
    [
        ("s", "eq", 5, []),
        ("b", "eq", None, [3, 4, 5]),
        ("d", "eq", "2026-01-02T03:04:05.000Z", []),
        ("id", "eq", "2", [2]),
        ("createdAt", "eq", "2027-01-01", []),
        ("id", "neq", 2, [1, 3, 4, 5]),
        ("s", "gt", 5, [1, 2, 4]),
        ("s", "gt", None, NULL.format("GT")),
        ("s", "gte", "Apple", [1, 2]),
        ("b", "gte", True, [1]),
        ("s", "lte", "Apple", [1, 3, 4]),
        ("n", "lte", "2", [1, 2]),
        ("s", "like", "%", [1, 2, 3, 4]),
        ("s", "like", "50%_x", [4]),
        ("s", "like", "A*", []),
        ("s", "like", 5, NO_TEXT.format("LIKE")),
        ("b", "like", "true", NO_TEXT.format("LIKE")),
        ("d", "like", "2026-01-02", []),
        ("id", "ilike", 2, NO_TEXT.format("ILIKE")),
        ("s", "isEmpty", "ignored", [3, 5]),
        ("id", "isEmpty", None, []),
        ("b", "isNotEmpty", None, [1, 2]),
    ],
)
def test_every_condition(api: Api, filled: str, column: str, name: str, value: Any, wanted: Any) -> None:
    assert found(api, filled, f"filter={encoded(condition(column, name, value))}") == wanted


@pytest.mark.parametrize("name", ["gt", "like", "isEmpty"])
def test_a_filter_value_must_fit_its_column(api: Api, filled: str, name: str) -> None:
    text = "value 'abc' does not match column type 'number': 'n' expects a number but we got 'abc'"
    message = found(api, filled, f"filter={encoded(condition('n', name, 'abc'))}")
    assert message == f"Validation error with data table request: {text}"


APPLE, TWO = {"columnName": "s", "value": "Apple"}, {"columnName": "n", "value": 2}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"filters": [1]}, "Invalid filter fields"),
        ({"filters": [{"columnName": "", "value": 2}]}, "Invalid filter fields"),
        ({"filters": [{"columnName": 1, "value": 2}]}, "Invalid filter fields"),
        ({"filters": [{"columnName": "s", "value": {}}]}, "Invalid filter fields"),
        ("1", "Invalid filter fields"),
    ],
)
def test_shapes_of_filters(api: Api, filled: str, given: Any, wanted: Any) -> None:
    assert found(api, filled, f"filter={encoded(given)}") == wanted
