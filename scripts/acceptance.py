"""Run all suites one after the other, the long ones too, and write a table of their results: ``make acceptance``.

A suite that fails does not stop the others. A run that was interrupted can be continued: what has passed at the commit
that is checked out is not run again, unless files were changed without a commit.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TypedDict

from scripts.retest import UNSTABLE

FOLDER = Path(".acceptance")
RESULTS = FOLDER / "results.json"
TABLE = FOLDER / "table.md"
#: Arguments of make. The short suites come first, so that what they would find is known soon.
SUITES = (
    "lint",
    "test COVERAGE=1",
    "test-slow",
    "docs",
    "test-floors",
    *(f"test-matrix AIRFLOW={version}" for version in ("2.11", "3.0", "3.1", "3.2", "3.3")),
    *(f"test-live SERVER={generation}" for generation in ("2.41", "2.40", "2.39", "2.30", "2.20", "1.123")),
    "test-live DEPLOYMENT=queue",
    "test-chaos",
    "test-stack",
    "release",
)
#: A release needs the addresses of its site and repository; these serve a rehearsal.
ADDRESSES = {
    "DOCUMENTATION_URL": "https://docs.example.com/provider/",
    "REPOSITORY_URL": "https://code.example.com/provider",
}
_SUMMARY = re.compile(r"=+ (\d+ (?:passed|failed|error|skipped).*?)(?: in [\d.]+s.*)? =+")


class Result(TypedDict):
    """How one suite ended."""

    target: str
    commit: str
    result: str
    seconds: int


def main() -> int:
    """Run what has not passed yet; 1 if anything has failed."""
    FOLDER.mkdir(exist_ok=True)
    commit, is_clean = _commit()
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() and is_clean else []
    results: list[Result] = [row for row in known if row["commit"] == commit and _passed(row)]
    for target in SUITES:
        if target in {row["target"] for row in results}:
            print(f"make {target}: has passed at {commit}", flush=True)
            continue
        results.append(_run(target, commit if is_clean else f"{commit} and changes"))
        results.sort(key=lambda row: SUITES.index(row["target"]))
        RESULTS.write_text(json.dumps(results, indent=1), encoding="utf-8")
        TABLE.write_text(_table(results), encoding="utf-8")
    print(TABLE.read_text(encoding="utf-8"))
    return int(not all(map(_passed, results)))


def _run(target: str, commit: str) -> Result:
    log = FOLDER / f"{re.sub(r'[^a-z0-9.]+', '-', target.lower())}.log"
    print(f"make {target}: see {log}", flush=True)
    UNSTABLE.unlink(missing_ok=True)
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        status = subprocess.call(
            ["make", *target.split()], env={**ADDRESSES, **os.environ}, stdout=output, stderr=subprocess.STDOUT
        )
    seconds = round(time.monotonic() - began)
    counts = "; ".join(_SUMMARY.findall(log.read_text(encoding="utf-8", errors="replace")))
    result = ("failed" if status else "passed") + (f": {counts}" if counts else "")
    if UNSTABLE.exists():
        result += f"; unstable: {', '.join(UNSTABLE.read_text(encoding='utf-8').split())}"
    print(f"make {target}: {result}, {seconds} s", flush=True)
    return Result(target=target, commit=commit, result=result, seconds=seconds)


def _passed(row: Result) -> bool:
    return row["result"].startswith("passed")


def _table(results: list[Result]) -> str:
    rows = [f"| `make {row['target']}` | {row['commit']} | {row['result']} | {row['seconds']:,} |" for row in results]
    return "\n".join(["| target | commit | result | seconds |", "|---|---|---|---:|", *rows, ""])


def _commit() -> tuple[str, bool]:
    """The commit that is checked out, and whether no file differs from it."""
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True).strip()
    return commit, not subprocess.check_output(["git", "status", "--porcelain"], text=True).strip()


if __name__ == "__main__":
    sys.exit(main())
