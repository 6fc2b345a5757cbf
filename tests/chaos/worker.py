"""One attempt in a separate process that can be killed at any time, and how it ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tests.runs import victims
from tests.runs.task_run import TaskRun

#: Times of the search for a started execution; the proxy never delays a call for longer than these allow.
CONSTANTS = {
    "ANSWER_PATIENCE_SECONDS": 0.2,
    "PATIENCE_AT_ONCE_SECONDS": 0.2,
    "SETTLING_SECONDS": 1.0,
    "VISIBLE_WITHIN_SECONDS": 2.0,
}
#: An attempt that has not ended by then is stuck.
MAX_ATTEMPT_SECONDS = 300.0


class Ended(NamedTuple):
    """How an attempt ended.

    :param how: ``"killed"`` if it could not report anything; ``"retry"`` if Airflow would try the task again.
    """

    how: Literal["success", "retry", "failed", "killed"]
    value: Any = None


def attempt(environment: dict[str, str], run: TaskRun, number: int, report: Path) -> None:
    """Execute an attempt with its wait, and record how it ended."""
    from airflow.providers.common.compat.sdk import AirflowFailException

    victims.set_up(environment, CONSTANTS)
    try:
        ended = Ended("success", run.whole_attempt(number))
    except AirflowFailException as error:
        ended = Ended("failed", str(error))
    except Exception as error:  # noqa: BLE001 - as Airflow does
        ended = Ended("retry", repr(error))
    draft = report.with_suffix(".draft")
    draft.write_text(json.dumps(ended))
    draft.replace(report)


def run_attempt(
    environment: dict[str, str], run: TaskRun, number: int, report: Path, kill_after: float | None
) -> Ended:
    """Run an attempt in a process, and kill the process after some seconds if a kill is planned."""
    report.unlink(missing_ok=True)
    process = victims.FORKS.Process(target=attempt, args=(environment, run, number, report))
    process.start()
    process.join(MAX_ATTEMPT_SECONDS if kill_after is None else kill_after)
    hangs = kill_after is None and process.is_alive()
    process.kill()
    process.join()
    process.close()
    assert not hangs, f"attempt {number} did not end within {MAX_ATTEMPT_SECONDS:g} s"
    return Ended(*json.loads(report.read_text())) if report.exists() else Ended("killed")
