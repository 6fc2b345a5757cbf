"""The page of a connection: its findings, the waits of the triggerers, and the latest runs on the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow_provider_service._core.health.statistics import span
from airflow_provider_service._core.reports.report import Link, Table

if TYPE_CHECKING:
    from airflow_provider_service._core.pages.checkup import Finding
    from airflow_provider_service._core.pages.executions import TaskExecution

#: Number of runs to show.
SHOWN_RUNS = 20
#: A triggerer without a heartbeat for longer than this has probably died.
SILENT_SECONDS = 60.0
OF_ALL = "The waits of all connections, because Airflow stores encrypted which connection a wait uses."
NO_WAITS = "There are none."
NO_RUNS = "There are none in the last seven days that you may read."


@dataclass(frozen=True)
class Waits:
    """Waits for triggers of one class in one triggerer; ``triggerer`` is its host, None if none runs them yet."""

    trigger: str
    number: int
    triggerer: str | None = None
    heartbeat_at: datetime | None = None


@dataclass(frozen=True)
class ConnectionView:
    """``lacks`` says in sentences what could not be read of Airflow's database."""

    connection_id: str
    findings: Sequence[Finding]
    base_url: str | None
    waits: Sequence[Waits]
    runs: Sequence[TaskExecution]
    made_at: datetime
    lacks: Sequence[str] = ()


def waits_table(waits: Sequence[Waits], now: datetime) -> Table:
    rows = [(wait.triggerer or "none yet", wait.trigger, wait.number, last_heartbeat(wait, now)) for wait in waits]
    columns = ("triggerer", "trigger", "number", "last heartbeat")
    return Table("Waits in the triggerers", columns, rows, note=OF_ALL if rows else NO_WAITS)


def runs_table(runs: Sequence[TaskExecution]) -> Table:
    rows = [
        (
            Link(run.address.execution_id, run.execution_url),
            f"{run.known_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
            run.dag_id,
            run.task_name,
            run.run_id,
            run.state or "no state yet",
        )
        for run in runs
    ]
    columns = ("execution", "since, UTC", "DAG", "task", "run of the DAG", "state of the task")
    return Table("Latest runs from Airflow", columns, rows, note="" if rows else NO_RUNS)


def last_heartbeat(waits: Waits, now: datetime) -> str:
    if waits.heartbeat_at is None:
        return ""
    seconds = max(0.0, (now - waits.heartbeat_at).total_seconds())
    ago = f"{span(round(seconds))} ago"
    return ago if seconds < SILENT_SECONDS else f"{ago}: check whether it still runs"
