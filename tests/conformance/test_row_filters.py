"""Every condition of a row filter, sorting and searching."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from airflow_provider_service.client.errors import ServiceInvalidRequestError, ServiceServerError
from airflow_provider_service.client.resources._data_table_rows import ADDED_COMPARISONS

from .expecting import refused
from .tables import COLUMNS, Tables, where
from .target import Target

ROWS: list[dict[str, Any]] = [
    {"text": "Apple", "number": 1, "flag": True, "day": "2026-01-01"},
    {"text": "apricot", "number": 2.5, "flag": False, "day": "2026-01-02T03:04:05Z"},
    {"text": "50% off", "number": -3, "flag": None, "day": None},
    {"text": "", "number": None, "flag": True, "day": "2026-02-01"},
    {"text": None, "number": 10, "flag": False, "day": "2025-12-31"},
]

# Column, condition, value, ids of the rows that meet it.
CONDITIONS = [
    ("text", "eq", "Apple", [1]),
    ("text", "eq", "apple", []),
    ("text", "eq", "", [4]),
    ("text", "eq", None, [5]),
    ("text", "neq", "Apple", [2, 3, 4, 5]),
    ("text", "neq", None, [1, 2, 3, 4]),
    ("text", "gt", "Apple", [2]),
    ("text", "lt", "Apple", [3, 4]),
    ("text", "like", "Ap", [1]),
    ("text", "like", "p", [1, 2]),
    ("text", "like", "A%", [1]),
    ("text", "like", "%t", [2]),
    ("text", "like", "a%t", [2]),
    ("text", "like", "_pple", []),
    ("text", "like", "[a]", []),
    ("text", "like", "", [1, 2, 3, 4]),
    ("text", "ilike", "ap", [1, 2]),
    ("text", "ilike", "AP%", [1, 2]),
    ("text", "ilike", "OFF", [3]),
    ("text", "isEmpty", None, [4, 5]),
    ("text", "isNotEmpty", None, [1, 2, 3]),
    ("number", "eq", 2.5, [2]),
    ("number", "eq", "10", [5]),
    ("number", "eq", None, [4]),
    ("number", "neq", 1, [2, 3, 4, 5]),
    ("number", "neq", None, [1, 2, 3, 5]),
    ("number", "gt", 1, [2, 5]),
    ("number", "gte", 1, [1, 2, 5]),
    ("number", "lt", 1, [3]),
    ("number", "lte", 1, [1, 3]),
    ("number", "isEmpty", None, [4]),
    ("number", "isNotEmpty", None, [1, 2, 3, 5]),
    ("flag", "eq", True, [1, 4]),
    ("flag", "eq", "false", [2, 5]),
    ("flag", "neq", True, [2, 3, 5]),
    ("flag", "gt", False, [1, 4]),
    ("flag", "lte", False, [2, 5]),
    ("flag", "isEmpty", None, [3]),
    ("day", "eq", None, [3]),
    ("day", "neq", None, [1, 2, 4, 5]),
    ("day", "gt", "2026-01-15", [4]),
    ("day", "gte", "2026-01-15", [4]),
    ("day", "lt", "2026-01-15", [1, 2, 5]),
    ("day", "lte", "2026-01-15", [1, 2, 5]),
    ("day", "isEmpty", None, [3]),
    ("id", "eq", 2, [2]),
    ("id", "gt", 3, [4, 5]),
    ("id", "lte", 2, [1, 2]),
    ("createdAt", "gt", "2020-01-01", [1, 2, 3, 4, 5]),
    ("updatedAt", "lt", "2020-01-01", []),
]

# What comparing dates as texts of two forms comes to.
UNRELIABLE = [
    ("day", "eq", "2026-01-01", []),
    ("day", "neq", "2026-01-01", [1, 2, 3, 4, 5]),
    ("day", "gt", "2026-01-02", [4]),
    ("day", "lt", "2026-01-02", [1, 2, 5]),
]
PUBLISHED = ("eq", "neq", "like", "ilike", "gt", "gte", "lt", "lte")


@pytest.fixture
def conditions(service: Target) -> list[tuple[str, str, Any, list[int]]]:
    """The conditions that the target knows."""
    lacking = ADDED_COMPARISONS if service.differs("comparisons") else ()
    return [one for one in CONDITIONS if one[1] not in lacking]


@pytest.fixture
def table_id(tables: Tables) -> str:
    return tables.filled(ROWS)


def found(service: Target, table_id: str, **options: Any) -> list[int]:
    return [row["id"] for row in service.client.data_table_rows.list(table_id, **options)]


@pytest.mark.covers("list_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_every_condition_finds_its_rows(service: Target, table_id: str, conditions: Any) -> None:
    for column, condition, value, ids in conditions:
        seen = found(service, table_id, filter=where((column, condition, value)))
        assert (column, condition, value, seen) == (column, condition, value, ids)


@pytest.mark.covers("list_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_dates_of_the_same_day_are_not_distinguished(service: Target, table_id: str) -> None:
    for column, condition, value, ids in UNRELIABLE:
        seen = found(service, table_id, filter=where((column, condition, value)))
        assert (column, condition, value, seen) == (column, condition, value, ids)


@pytest.mark.covers("update_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_an_update_finds_the_same_rows(service: Target, table_id: str) -> None:
    rows = service.client.data_table_rows
    for column, condition, value, ids in CONDITIONS:
        if condition in PUBLISHED:
            changed = rows.update(
                table_id, where((column, condition, value)), {"number": 7}, dry_run=True, return_data=True
            )
            assert isinstance(changed, list)
            seen = [row["id"] for row in changed if row["dryRunState"] == "before"]
            assert (column, condition, value, seen) == (column, condition, value, ids)


@pytest.mark.covers("delete_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_a_delete_finds_the_same_rows(service: Target, table_id: str, conditions: Any) -> None:
    rows = service.client.data_table_rows
    for column, condition, value, ids in conditions:
        doomed = rows.delete(table_id, where((column, condition, value)), dry_run=True)
        assert isinstance(doomed, list)
        seen = [row["id"] for row in doomed if row["dryRunState"] == "before"]
        assert (column, condition, value, seen) == (column, condition, value, ids)


@pytest.mark.covers("list_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_conditions_are_joined_by_and_or_or(service: Target, table_id: str) -> None:
    conditions = (("number", "gt", 0), ("flag", "eq", True))

    assert found(service, table_id, filter=where(*conditions)) == [1]
    assert found(service, table_id, filter=where(*conditions, type="or")) == [1, 2, 4, 5]
    assert found(service, table_id, filter={"filters": where(*conditions)["filters"]}) == [1]


@pytest.mark.covers("list_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_a_search_is_bound_to_the_last_condition(service: Target, table_id: str) -> None:
    conditions = (("number", "eq", 10), ("number", "gt", 0))
    for kind, ids in (("and", []), ("or", [1, 2, 5])):
        text = quote(json.dumps(where(*conditions, type=kind), separators=(",", ":")), safe="")
        answer = service.raw("GET", f"/data-tables/{table_id}/rows?search=ap&filter={text}")
        assert (kind, [row["id"] for row in answer.json()["data"]]) == (kind, ids)


@pytest.mark.parametrize("filter", [{}, {"filters": []}, {"type": "or"}], ids=str)
@pytest.mark.covers("list_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_a_filter_without_conditions_finds_all(service: Target, table_id: str, filter: dict[str, Any]) -> None:
    assert found(service, table_id, filter=filter) == [1, 2, 3, 4, 5]


@pytest.mark.covers("list_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_a_condition_is_eq_by_default(service: Target, table_id: str) -> None:
    assert found(service, table_id, filter={"filters": [{"columnName": "number", "value": 1}]}) == [1]


BAD_FILTERS = [
    (where(("number", "between", 1)), "Invalid filter fields"),
    ({"filters": [{"columnName": "number", "condition": "eq"}]}, "Invalid filter fields"),
    ({"filters": [{"condition": "eq", "value": 1}]}, "Invalid filter fields"),
    ({"type": "xor", "filters": []}, "Invalid filter fields"),
    ({"filters": {}}, "Invalid filter fields"),
    (where(("number", "eq", [1])), "Invalid filter fields"),
    ([], "Invalid filter fields"),
    (where(("Number", "eq", 1)), "Validation error with data table request: unknown column name 'Number'"),
    *(
        (
            where(("number", condition, None)),
            f"Validation error with data table request: {condition.upper()} filter value cannot be null or undefined",
        )
        for condition in ("gt", "gte", "lt", "lte")
    ),
    *(
        (
            where(("number", condition, 1)),
            f"Validation error with data table request: {condition.upper()} filter value must be a string",
        )
        for condition in ("like", "ilike")
    ),
    (
        where(("text", "like", None)),
        "Validation error with data table request: LIKE filter value cannot be null or undefined",
    ),
]


@pytest.mark.parametrize(("filter", "message"), BAD_FILTERS, ids=str)
@pytest.mark.covers(
    "list_data_table_rows", "delete_data_table_rows", needs=("create_data_table", "insert_data_table_rows")
)
def test_a_bad_filter_is_refused(service: Target, table_id: str, filter: Any, message: str) -> None:
    text = quote(json.dumps(filter), safe="")
    for method, path in (("GET", "rows"), ("DELETE", "rows/delete")):
        answer = service.raw(method, f"/data-tables/{table_id}/{path}?filter={text}")
        assert (method, answer.status_code, answer.json()) == (method, 400, {"message": message})


@pytest.mark.parametrize(
    ("sort_by", "ids"),
    [
        ("id:desc", [5, 4, 3, 2, 1]),
        ("text:asc", [5, 4, 3, 1, 2]),
        ("number:asc", [4, 3, 1, 2, 5]),
        ("number:desc", [5, 2, 1, 3, 4]),
        ("day:asc", [3, 5, 1, 2, 4]),
        ("NUMBER:DESC", [5, 2, 1, 3, 4]),
    ],
)
@pytest.mark.covers("list_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_rows_are_sorted(service: Target, table_id: str, sort_by: str, ids: list[int]) -> None:
    assert found(service, table_id, sort_by=sort_by) == ids


@pytest.mark.parametrize(
    ("sort_by", "message"),
    [
        ("number", "Invalid sort format, expected <columnName>:<asc/desc>"),
        ("number:up", "Invalid sort direction"),
        (":asc", "String must contain at least 1 character(s)"),
    ],
)
@pytest.mark.covers("list_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_a_bad_sort_is_refused(service: Target, table_id: str, sort_by: str, message: str) -> None:
    with refused(ServiceInvalidRequestError, message, 400):
        found(service, table_id, sort_by=sort_by)


@pytest.mark.covers("list_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_sorting_by_an_unknown_column_is_a_fault_of_the_server(service: Target, table_id: str) -> None:
    if service.differs("faults of the database"):
        with pytest.raises(ServiceInvalidRequestError, match="no such column"):
            found(service, table_id, sort_by="nothing:asc")
        return
    with refused(ServiceServerError, "Internal server error", 500):
        found(service, table_id, sort_by="nothing:asc")


@pytest.mark.parametrize(
    ("search", "ids"),
    [
        ("AP", [1, 2]),
        ("2.5", [2]),
        ("10", [5]),
        ("% off", [3]),
        ("2026-02", [4]),
        ("nothing", []),
        ("a & b + c=d", []),
    ],
)
@pytest.mark.covers("list_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_rows_are_searched(service: Target, table_id: str, search: str, ids: list[int]) -> None:
    assert found(service, table_id, search=search) == ids


@pytest.mark.covers("list_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_filter_search_sort_and_limit_go_together(service: Target, table_id: str) -> None:
    options = {"filter": where(("number", "gt", 0)), "search": "ap", "sort_by": "number:desc"}
    assert found(service, table_id, **options) == [2, 1]
    assert found(service, table_id, **options, limit=1) == [2]


@pytest.mark.covers("list_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_rows_name_every_column(tables: Tables, table_id: str) -> None:
    assert all(set(row) == set(COLUMNS) for row in tables.rows(table_id))
