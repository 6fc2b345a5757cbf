"""What the page of a connection shows of Airflow: the waits of the triggerers, and the latest runs on the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from airflow_provider_service._core.health.statistics import span
from airflow_provider_service._core.reports.report import Link, Table

#: Runs that are shown.
SHOWN_RUNS = 20
#: A triggerer without a heartbeat for longer than this has probably died.
SILENT_SECONDS = 60.0


@dataclass(frozen=True)
class Waits:
    """Waits of one kind that one triggerer keeps.

    :param trigger: the class of the trigger.
    :param triggerer: its host; None if no triggerer has taken them yet.
    :param heartbeat_at: when that triggerer last sent a heartbeat.
    """

    trigger: str
    number: int
    triggerer: str | None = None
    heartbeat_at: datetime | None = None


@dataclass(frozen=True)
class LatestRun:
    """An execution that a task instance runs, retries or waits for, or the last one that it did.

    :param state: of the task instance, in Airflow's words.
    :param at: when the task learned of the execution.
    :param execution_url: its page.
    """

    dag_id: str
    task_id: str
    map_index: int
    run_id: str
    state: str | None
    at: datetime
    execution_id: str
    execution_url: str


def waits_table(waits: Sequence[Waits], now: datetime) -> Table:
    """Who keeps how many waits."""
    rows = [(one.triggerer or "none yet", one.trigger, one.number, _sign_of_life(one, now)) for one in waits]
    return Table(
        "Waits in the triggerers",
        ("triggerer", "trigger", "number", "last heartbeat"),
        rows,
        note="Of all connections, since Airflow stores encrypted which one a wait uses." if rows else "There are none.",
    )


def runs_table(runs: Sequence[LatestRun]) -> Table:
    """The latest runs that tasks of Airflow have started on the server."""
    rows = [
        (
            Link(one.execution_id, one.execution_url),
            f"{one.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
            one.dag_id,
            one.task_id if one.map_index < 0 else f"{one.task_id} [{one.map_index}]",
            one.run_id,
            one.state or "no state yet",
        )
        for one in runs
    ]
    columns = ("execution", "since, UTC", "DAG", "task", "run of the DAG", "state of the task")
    note = "" if rows else "There are none in the last seven days that you may read."
    return Table("Latest runs from Airflow", columns, rows, note=note)


def _sign_of_life(waits: Waits, now: datetime) -> str:
    if waits.heartbeat_at is None:
        return ""
    seconds = max(0.0, (now - waits.heartbeat_at).total_seconds())
    ago = f"{span(round(seconds))} ago"
    return ago if seconds < SILENT_SECONDS else f"{ago}: look whether it still runs"
