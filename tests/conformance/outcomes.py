"""The results of a run for each operation, collected from all processes and written at its end."""

from __future__ import annotations

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
    """Record for another column than the target's what a test shows of an operation: these differences, or none."""
    differs = {operation: reasons} if reasons else {}
    record = {"column": column, "operations": (operation,), "differs": differs, "instead": None}
    item.user_properties.append((PROPERTY, record))


class Outcomes:
    """Gathers what the tests of a run showed, also from other processes, and writes it down at the end."""

    def __init__(self, target: str, deployment: str = "single") -> None:
        self._column = target if deployment == "single" else f"{target}-{deployment}"
        self._columns: dict[str, dict[str, dict[str, Any]]] = {}

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
        rows = self._columns.setdefault(shown.get("column", self._column), {})
        row = rows.setdefault(operation, {"outcome": outcome, "tests": 0, "reasons": []})
        row["outcome"] = min(row["outcome"], outcome, key=_RANKS.index)
        row["tests"] += 1
        row["reasons"] = sorted({*row["reasons"], *reasons})

    def pytest_sessionfinish(self) -> None:
        """Write ``.conformance/<column>.json``: by operation its outcome, number of tests and reasons."""
        for column, rows in self._columns.items():
            RESULTS.mkdir(exist_ok=True)
            text = json.dumps(dict(sorted(rows.items())), indent=1)
            (RESULTS / f"{column}.json").write_text(f"{text}\n", encoding="utf-8")
