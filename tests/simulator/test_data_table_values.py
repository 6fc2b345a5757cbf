"""How a column converts the values written to it."""

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
        ("s", 5.0, "5"),
        ("s", 1e21, "1.0e+21"),
        ("n", "0x10", 16),
        ("n", "true", INVALID),
        ("b", 1.0, True),
        ("d", "2026-01-02T03:04", "2026-01-02T03:04:00.000Z"),
        ("d", "2026-01-02T03:04:05-0130", "2026-01-02T04:34:05.000Z"),
        ("d", "2026-01", "2026-01-01T00:00:00.000Z"),
        ("d", "2026", "2026-01-01T00:00:00.000Z"),
        ("d", "Jan 2, 2026", "2026-01-02T00:00:00.000Z"),
        ("d", "2026/01/02", "2026-01-02T00:00:00.000Z"),
        ("d", "02/01/2026", "2026-02-01T00:00:00.000Z"),
        ("d", "", INVALID),
        ("d", "1767312000000", INVALID),
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
