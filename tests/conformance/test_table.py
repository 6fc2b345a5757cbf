"""The table that is kept under ``docs`` says what the suite says, and its maker would notice when it does not."""

from __future__ import annotations

import pytest

from tests.unit.contract import CONTRACT

from . import table
from .differences import CONTRACT_DIFFERENCES, DIFFERENCES, GATED

WRITTEN = table.written(table.DOCUMENT.read_text(encoding="utf-8"))
PASSED = {"outcome": "passed", "tests": 1, "reasons": []}
DIFFERS = {"outcome": "differs", "tests": 1, "reasons": ["It is older.", "It is slower."]}


def test_every_operation_has_a_row_without_an_unexplained_difference() -> None:
    assert sorted(WRITTEN) == sorted(CONTRACT)
    assert table.unexplained(WRITTEN) == 0
    assert "Unexplained differences: 0." in table.DOCUMENT.read_text(encoding="utf-8")


def test_every_known_difference_is_in_its_cell() -> None:
    cells = [(one.operation, one.target, one.reason) for one in DIFFERENCES if one.operation]
    cells += [(one.operation, "contract", one.reason) for one in CONTRACT_DIFFERENCES]
    for operation, column, reason in cells:
        assert reason in WRITTEN[operation][column]
    differing = {(name, column) for name, row in WRITTEN.items() for column, text in row.items() if "differs" in text}
    assert differing == {(operation, column) for operation, column, _ in cells}


def test_every_gated_operation_is_said_to_be_so() -> None:
    assert {name for name, row in WRITTEN.items() if row["2"] == "gated"} == GATED
    assert {name for name, row in WRITTEN.items() if "gated" in (row["simulator"], row["contract"])} == set()


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (PASSED, "pass"),
        (DIFFERS, "differs: It is older. It is slower."),
        ({"outcome": "gated", "tests": 1, "reasons": ["seen"]}, "gated"),
        ({"outcome": "lacking", "tests": 1, "reasons": ["seen"]}, "lacking"),
        ({"outcome": "failed", "tests": 1, "reasons": ["test_x"]}, "**failed**"),
        (None, "**not tested**"),
    ],
)
def test_a_cell(row: dict[str, object] | None, text: str) -> None:
    assert table.cell(row) == text


def test_what_is_written_is_read_back() -> None:
    cells = {name: {column: table.cell(DIFFERS) for column in table.COLUMNS} for name in ("a_b", "c")}
    assert table.written(table.render(cells)) == cells


def test_another_result_makes_the_table_stale() -> None:
    cells = {"a": dict.fromkeys(table.COLUMNS, "pass")}
    document = table.render(cells)

    assert table.stale(document, {"a": {"2": "pass"}}) == []
    (complaint,) = table.stale(document, {"a": {"2": "gated"}})
    assert complaint.startswith("a, server 2")
    assert len(table.stale(document, {"b": {"2": "pass"}})) == 1
    assert table.unexplained({"a": {"2": "**failed**", "1": "pass"}}) == 1
