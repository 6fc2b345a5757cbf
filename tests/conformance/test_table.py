"""The table in ``docs`` agrees with the suite, and its generator would notice if it did not."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.client.contract import CONTRACT
from tests.live.servers import NEWEST

from . import table
from .differences import CONTRACT_DIFFERENCES, DIFFERENCES, GATED

WRITTEN = table.written(table.DOCUMENT.read_text(encoding="utf-8"))
PASSED = {"outcome": "passed", "tests": 1, "reasons": []}
DIFFERS = {"outcome": "differs", "tests": 1, "reasons": ["It is older.", "It is slower."]}


def test_every_row_is_of_an_operation_and_every_difference_is_explained() -> None:
    # An operation without a row is new: `make test` writes the first result after this.
    assert WRITTEN.keys() <= CONTRACT.keys()
    assert table.unexplained(WRITTEN) == 0
    assert "Unexplained differences: 0." in table.DOCUMENT.read_text(encoding="utf-8")


def test_every_known_difference_is_in_its_cell() -> None:
    known = [(one.operation, one.target, one.reason) for one in DIFFERENCES if one.operation]
    known += [(one.operation, "contract", one.reason) for one in CONTRACT_DIFFERENCES]
    cells = [(operation, column, reason) for operation, column, reason in known if was_tested(operation, column)]
    for operation, column, reason in cells:
        assert reason in WRITTEN[operation][column]
    differing = {(name, column) for name, row in WRITTEN.items() for column, text in row.items() if "differs" in text}
    assert differing == {(operation, column) for operation, column, _ in cells}


def test_every_gated_operation_is_shown_as_gated() -> None:
    gated = {name for name, row in WRITTEN.items() if row[NEWEST] == "gated"}
    assert gated == {name for name in GATED if was_tested(name, NEWEST)}
    assert {name for name, row in WRITTEN.items() if "gated" in (row["simulator"], row["contract"])} == set()


def was_tested(operation: str, column: str) -> bool:
    return WRITTEN.get(operation, {}).get(column, table.NOT_TESTED_YET) != table.NOT_TESTED_YET


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

    assert table.stale(document, {"a": {NEWEST: "pass"}}) == []
    (complaint,) = table.stale(document, {"a": {NEWEST: "gated"}})
    assert complaint.startswith("a, server 2.41")
    assert len(table.stale(document, {"b": {NEWEST: "pass"}})) == 1
    assert table.unexplained({"a": {NEWEST: "**failed**", "1.123": "pass"}}) == 1


def test_columns_without_a_new_result_stay_as_they_are() -> None:
    document = table.render({"a": dict.fromkeys(table.COLUMNS, "pass")})
    new = {"a": {"simulator": "differs: It is odd."}, "b": {"simulator": "pass"}}

    cells = table.renewed(new, document)

    assert cells["a"] == {**dict.fromkeys(table.COLUMNS, "pass"), "simulator": "differs: It is odd."}
    assert cells["b"] == {**dict.fromkeys(table.COLUMNS, table.NOT_TESTED_YET), "simulator": "pass"}
    assert table.unexplained(cells) == 0
    assert table.written(document.replace(table.COLUMNS["2.40"], "server 2.39.0"))[
        "a"
    ].keys() == table.COLUMNS.keys() - {"2.40"}


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``recorded("simulator", a="passed")`` is a run of a suite that knows ``old`` and ``new``, beside a document."""
    monkeypatch.setattr(table, "CONTRACT", {"old": {}, "new": {}})
    monkeypatch.setattr(table, "RESULTS", tmp_path)
    monkeypatch.setattr(table, "DOCUMENT", tmp_path / "conformance.md")
    table.DOCUMENT.write_text(table.render({"old": dict.fromkeys(table.COLUMNS, "pass")}))

    def record(column: str, **outcomes: str) -> None:
        rows = {name: {"a test": (outcome, [])} for name, outcome in outcomes.items()}
        (tmp_path / f"{column}.json").write_text(json.dumps(rows))

    return record


def run_table(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, table.Cells]:
    """The exit code, and the cells of the document afterwards."""
    monkeypatch.setattr(sys, "argv", ["table", *arguments])
    return table.main(), table.written(table.DOCUMENT.read_text())


def test_a_check_writes_the_first_result_of_a_new_operation(
    recorded: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded("simulator", old="passed", new="passed")

    code, cells = run_table(monkeypatch, "--check", "simulator")

    assert code == 0
    assert cells["new"] == {**dict.fromkeys(table.COLUMNS, table.NOT_TESTED_YET), "simulator": "pass"}
    assert cells["old"] == dict.fromkeys(table.COLUMNS, "pass")


@pytest.mark.parametrize(
    "outcomes", [{"old": "lacking", "new": "passed"}, {"old": "passed", "new": "failed"}, {"old": "passed"}]
)
def test_a_check_fails_on_another_result_and_without_one(
    recorded: Callable[..., None], monkeypatch: pytest.MonkeyPatch, outcomes: dict[str, str]
) -> None:
    recorded("simulator", **outcomes)

    code, cells = run_table(monkeypatch, "--check", "simulator")

    assert code == 1
    assert cells["old"] == dict.fromkeys(table.COLUMNS, "pass")
    assert table.unexplained(cells) == 0


def test_a_record_that_is_older_than_an_operation_renews_the_others(
    recorded: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded("simulator", old="passed", new="passed")
    recorded(NEWEST, old="gated")

    code, cells = run_table(monkeypatch)

    assert (code, cells["old"][NEWEST], cells["new"][NEWEST]) == (0, "gated", table.NOT_TESTED_YET)


def test_the_document_lists_the_operations_without_a_method() -> None:
    assert table.DOCUMENT.read_text(encoding="utf-8").endswith(table.further_operations())
