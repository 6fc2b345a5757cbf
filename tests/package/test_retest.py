"""What fails is run once more, alone, and is listed if it passes then."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: A tool of development, which the environments of the older Airflow versions lack.
COVERAGE_PLUGIN = ["slipcover.pytest_plugin"] if find_spec("slipcover") else []
PASSES = "def test_passes(): pass\n"
FAILS = "def test_fails(): assert False\n"
FAILS_AT_FIRST = """
from pathlib import Path

def test_fails_at_first():
    been_here = Path("been-here")
    been_here_before = been_here.exists()
    been_here.touch()
    assert been_here_before
"""
SHARED_SETUP_FAILS_AT_FIRST = """
from pathlib import Path

import pytest

@pytest.fixture(scope="module")
def shared():
    been_here = Path("been-here")
    been_here_before = been_here.exists()
    been_here.touch()
    assert been_here_before

@pytest.mark.parametrize("number", range(20))
def test_of_many(shared, number): pass
"""


def retest(folder: Path, tests: str, *options: str) -> tuple[int, str]:
    """The exit status and the output of a run of some tests."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_some.py").write_text(tests)
    command = [sys.executable, "-m", "scripts.retest", *options, "--quiet", "--first", "-n", "1"]
    # Some of the plugins that are installed beside these take a second to import.
    plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": ",".join(["xdist.plugin", *COVERAGE_PLUGIN])}
    environment = {"PYTHONPATH": str(ROOT), "PATH": "", **plugins}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    return ended.returncode, ended.stdout


def unstable(folder: Path) -> str:
    """What is listed."""
    listed = folder / ".unstable-tests"
    return listed.read_text() if listed.exists() else ""


@pytest.mark.slow
def test_nothing_is_repeated_where_all_pass(tmp_path: Path) -> None:
    status, output = retest(tmp_path, PASSES)

    assert (status, unstable(tmp_path)) == (0, "")
    assert "once more" not in output


def test_what_passes_alone_is_listed_and_fails_nothing(tmp_path: Path) -> None:
    status, output = retest(tmp_path, PASSES + FAILS_AT_FIRST)

    assert (status, unstable(tmp_path)) == (0, "test_some.py::test_fails_at_first\n")
    assert "UNSTABLE, failed at first and passed alone:\n  test_some.py::test_fails_at_first\n" in output
    assert "1 passed" in output.rpartition("once more, alone")[2]


@pytest.mark.slow
@pytest.mark.skipif(not COVERAGE_PLUGIN, reason="measures coverage")
def test_coverage_is_that_of_the_processes_of_the_first_run(tmp_path: Path) -> None:
    (tmp_path / "product.py").write_text("def double(number):\n    return 2 * number\n\ndef unused():\n    return 1\n")
    uses = "from product import double\n" + FAILS_AT_FIRST + "def test_double(): assert double(2) == 4\n"

    status, _ = retest(tmp_path, uses, "--coverage")

    measured = json.loads((tmp_path / ".coverage.json").read_text())["files"]["product.py"]
    assert (status, measured["executed_lines"], measured["missing_lines"]) == (0, [1, 2, 4], [5])


def test_what_fails_again_fails_the_run(tmp_path: Path) -> None:
    status, output = retest(tmp_path, FAILS + FAILS_AT_FIRST)

    assert (status, unstable(tmp_path)) == (pytest.ExitCode.TESTS_FAILED, "test_some.py::test_fails_at_first\n")
    assert "1 failed, 1 passed" in output.rpartition("once more, alone")[2]


@pytest.mark.slow
def test_a_setup_that_fails_for_many_tests_is_run_once_more(tmp_path: Path) -> None:
    status, output = retest(tmp_path, SHARED_SETUP_FAILS_AT_FIRST)

    assert (status, len(unstable(tmp_path).splitlines())) == (0, 20)
    assert "20 passed" in output.rpartition("once more, alone")[2]


@pytest.mark.slow
def test_failures_in_many_files_are_no_accident(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"test_other_{number}.py").write_text(FAILS)

    status, output = retest(tmp_path, FAILS)

    assert status == pytest.ExitCode.TESTS_FAILED
    assert "6 failed" in output
    assert "once more" not in output


@pytest.mark.slow
def test_tests_that_cannot_be_read_fail_the_run(tmp_path: Path) -> None:
    status, _ = retest(tmp_path, "import nothing_of_this_name\n")

    assert status != pytest.ExitCode.OK
