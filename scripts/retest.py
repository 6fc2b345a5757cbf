"""Run pytest, and what fails once more, alone: ``python -m scripts.retest ARGUMENTS... [--first ARGUMENTS...]``.

What follows ``--first`` goes to the first run only, such as the number of processes. A test that passes the second time
does not fail the run. It is listed as unstable, on the screen and in ``.unstable-tests``. With ``--coverage`` as its
first argument, the first run also writes its coverage to ``.coverage.json``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

UNSTABLE = Path(".unstable-tests")
#: Failures in more files than these are no accident.
MOST_FILES = 5
COVERAGE = ("-m", "slipcover", "--json", "--out", ".coverage.json")


def run(arguments: list[str], first: list[str], under: tuple[str, ...] = ()) -> int:
    """Run the tests, and those that fail again; returns the exit status of pytest.

    :param arguments: of both runs.
    :param first: further arguments of the first run.
    :param under: arguments of Python for what measures the first run.
    """
    with tempfile.TemporaryDirectory(prefix="pytest-cache-") as cache:
        pytest_here = ["-m", "pytest", *arguments, "-o", f"cache_dir={cache}"]
        status = subprocess.call([sys.executable, *under, *pytest_here, *first])
        failed = _failed(Path(cache))
        files = {test.partition("::")[0] for test in failed}  # what a file's tests share fails for all of them
        if status != pytest.ExitCode.TESTS_FAILED or not 0 < len(files) <= MOST_FILES:
            return status
        print(f"\nRunning {len(failed)} failed tests once more, alone:", *failed, sep="\n  ", flush=True)
        status = subprocess.call([sys.executable, *pytest_here, "--last-failed", "--last-failed-no-failures=none"])
        unstable = [test for test in failed if test not in _failed(Path(cache))]
    if unstable:
        print("\nUNSTABLE, failed at first and passed alone:", *unstable, sep="\n  ", flush=True)
        with UNSTABLE.open("a", encoding="utf-8") as file:
            file.writelines(f"{test}\n" for test in unstable)
    return status


def _failed(cache: Path) -> list[str]:
    """The tests that failed last, as pytest's cache knows them."""
    known = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(known.read_text(encoding="utf-8"))) if known.exists() else []


if __name__ == "__main__":
    under = COVERAGE if "--coverage" in sys.argv[1:2] else ()
    given = sys.argv[2:] if under else sys.argv[1:]
    at = given.index("--first") if "--first" in given else len(given)
    sys.exit(run(given[:at], given[at + 1 :], under))
