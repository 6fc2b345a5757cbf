"""What a column makes of the values written to it."""

from __future__ import annotations

from typing import Any

import pytest

from .api_client import Api
from .table_helpers import KINDS, make_table, state


@pytest.fixture
def rows(api: Api) -> str:
    return make_table(api)


INVALID = object()


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
