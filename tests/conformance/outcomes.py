"""The results of a run for each operation, collected from all processes and written at its end."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

RESULTS = Path(__file__).resolve().parents[2] / ".conformance"
# The name under which a test's report carries what it showed.
PROPERTY = "conformance"
# An operation that several tests are about shows the first of these that any of them showed.
_RANKS = ("failed", "differs", "gated", "lacking", "passed")


def note(item: pytest.Item, column: str, operation: str, reasons: list[str]) -> None:
    """Record in another column than the target's what a test shows about an operation: these differences, or none."""
    differs = {operation: reasons} if reasons else {}
    record = {"column": column, "operations": (operation,), "differs": differs, "instead": None}
    item.user_properties.append((PROPERTY, record))


#: By operation, and by test of it, what the test showed: an outcome, and the reasons.
Shown = dict[str, dict[str, tuple[str, list[str]]]]


class Outcomes:
    """Gathers what the tests of a run showed, also from other processes, and writes it down at the end.

    :param repeats: whether the run repeats a few tests of the one before, whose other results then stay.
    """

    def __init__(self, target: str, deployment: str = "single", *, repeats: bool = False) -> None:
        self._column = target if deployment == "single" else f"{target}-{deployment}"
        self._repeats = repeats
        self._columns: dict[str, Shown] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome of a test; a skipped one was settled before it was called."""
        if report.when == "teardown" or (report.when == "setup" and report.passed):
            return
        for shown in (value for name, value in report.user_properties if name == PROPERTY):
            for operation in shown["operations"]:
                self._note(shown, operation, report)

    def _note(self, shown: dict[str, Any], operation: str, report: pytest.TestReport) -> None:
        reasons = shown["differs"].get(operation, [])
        outcome = "differs" if reasons else "passed"
        if report.failed:
            outcome, reasons = "failed", [report.nodeid]
        elif shown["instead"]:
            outcome, reasons = shown["instead"][0], [shown["instead"][1]]
        column = self._columns.setdefault(shown.get("column", self._column), {})
        column.setdefault(operation, {})[report.nodeid] = outcome, reasons

    def pytest_sessionfinish(self) -> None:
        """Write ``.conformance/<column>.json``: by operation and test its outcome and reasons."""
        for column, operations in self._columns.items():
            file = RESULTS / f"{column}.json"
            before: Shown = json.loads(file.read_text(encoding="utf-8")) if self._repeats and file.exists() else {}
            merged = {name: before.get(name, {}) | operations.get(name, {}) for name in {*before, *operations}}
            RESULTS.mkdir(exist_ok=True)
            file.write_text(f"{json.dumps(merged, indent=1, sort_keys=True)}\n", encoding="utf-8")


def summary(tests: dict[str, tuple[str, list[str]]]) -> dict[str, Any]:
    """The result of an operation, from those of its tests."""
    outcomes, reasons = zip(*tests.values(), strict=True)
    return {"outcome": min(outcomes, key=_RANKS.index), "reasons": sorted({*itertools.chain(*reasons)})}
