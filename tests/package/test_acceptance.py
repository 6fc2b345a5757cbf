"""All suites run one after the other, whichever fails, and what has passed is not run again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.acceptance import SUITES

ROOT = Path(__file__).resolve().parents[2]
# Records what it is asked for, and fails the targets that stand in a file.
MAKE = """#!/bin/sh
echo "$*" >> "$CALLS"
echo "=== 3 passed, 1 skipped in 2.50s (0:00:02) ==="
test "$1" != docs || echo tests/test_some.py::test_one >> .unstable-tests
! grep -qx "$*" "$FAILING"
"""
IDENTITY = ("-c", "user.name=A", "-c", "user.email=a@example.com")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with one commit, and beside it a ``make`` that only records its calls."""
    make = tmp_path / "bin" / "make"
    make.parent.mkdir()
    make.write_text(MAKE)
    make.chmod(0o755)
    (tmp_path / "failing").touch()
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / ".gitignore").write_text(".acceptance/\n.unstable-tests\n")
    for arguments in (["init", "--quiet"], ["add", "."], [*IDENTITY, "commit", "--quiet", "--message", "First"]):
        subprocess.run(["git", *arguments], cwd=folder, check=True)
    return folder


def accept(checkout: Path, *, failing: str = "") -> tuple[int, list[str], str]:
    """The exit status, the targets that were made, and the table."""
    calls = checkout.parent / "calls"
    calls.write_text("")
    (checkout.parent / "failing").write_text(f"{failing}\n")
    environment = {
        "PATH": f"{checkout.parent / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "CALLS": str(calls),
        "FAILING": str(checkout.parent / "failing"),
    }
    ended = subprocess.run(
        [sys.executable, "-m", "scripts.acceptance"], cwd=checkout, env=environment, capture_output=True, timeout=120
    )
    return ended.returncode, calls.read_text().splitlines(), (checkout / ".acceptance" / "table.md").read_text()


def test_a_failure_stops_nothing_and_stands_in_the_table(checkout: Path) -> None:
    status, made, table = accept(checkout, failing=SUITES[1])

    assert status == 1
    assert made == [*SUITES]
    lines = table.splitlines()[2:]
    assert [line.split("`")[1] for line in lines] == [f"make {suite}" for suite in SUITES]
    assert ["failed" in line for line in lines] == [suite == SUITES[1] for suite in SUITES]
    assert "| passed: 3 passed, 1 skipped |" in lines[0]
    assert [line for line in lines if "unstable: tests/test_some.py::test_one |" in line] == [
        lines[SUITES.index("docs")]
    ]


def test_what_has_passed_is_not_run_again(checkout: Path) -> None:
    accept(checkout, failing=SUITES[1])

    status, made, table = accept(checkout)

    assert (status, made) == (0, [SUITES[1]])
    assert table.count("passed: ") == len(SUITES)


@pytest.mark.slow
@pytest.mark.parametrize("is_committed", [True, False])
def test_after_a_change_everything_runs_again(checkout: Path, is_committed: bool) -> None:
    accept(checkout)
    (checkout / "new").touch()
    if is_committed:
        subprocess.run(["git", "add", "."], cwd=checkout, check=True)
        subprocess.run(["git", *IDENTITY, "commit", "--quiet", "--message", "Second"], cwd=checkout, check=True)

    status, made, table = accept(checkout)

    assert (status, made) == (0, [*SUITES])
    assert ("and changes" in table) is not is_committed
