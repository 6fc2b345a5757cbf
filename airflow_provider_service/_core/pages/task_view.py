"""A page's view of a task instance of Airflow, how often it refreshes, and whether it may show an execution.

It may only show one that the task has provably started or waits for. The link that leads the page to the execution is
an XCom, which users may write, so it proves nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow_provider_service._core.pages.reading import ExecutionReading

if TYPE_CHECKING:
    from airflow_provider_service._core.runs.attempt import RunKey


#: Seconds until a page refreshes: for an execution that runs, for one that sleeps or cannot be read, and for a task
#: that has not started one.
RUNNING_SECONDS, SLEEPING_SECONDS, BEFORE_SECONDS = 3, 10, 5

# States of Airflow in which nothing happens to a task instance until somebody clears it.
_ENDED = frozenset({"success", "failed", "skipped", "removed", "upstream_failed"})


@dataclass(frozen=True)
class AttemptView:
    number: int
    state: str | None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    execution_id: str | None = None
    reason: str | None = None

    @property
    def seconds(self) -> float | None:
        if self.started_at is None or self.ended_at is None:
            return None
        return max(0.0, (self.ended_at - self.started_at).total_seconds())


@dataclass(frozen=True)
class TaskView:
    """An attempt of a task instance; ``number`` is None for the latest, which is the first of ``attempts``.

    ``lacks`` says in sentences what could not be read of Airflow's database.
    """

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    state: str | None
    is_ours: bool
    service_conn_id: str | None = None
    execution_id: str | None = None
    execution_url: str | None = None
    workflow_url: str | None = None
    attempts: Sequence[AttemptView] = ()
    number: int | None = None
    reason: str | None = None
    lacks: Sequence[str] = ()

    @property
    def is_latest(self) -> bool:
        numbers = [attempt.number for attempt in self.attempts]
        return self.number is None or self.number == max(numbers, default=self.number)

    @property
    def sharing(self) -> Sequence[int]:
        """The attempts with the same execution, if there are several: later ones have resumed it, for example."""
        sharing = sorted(attempt.number for attempt in self.attempts if attempt.execution_id == self.execution_id)
        return sharing if self.execution_id is not None and len(sharing) > 1 else ()

    def started_by(self, number: int | None) -> TaskView:
        """Return this view, in which the attempt that has started the execution has it, if that attempt is known."""
        attempts = []
        for attempt in self.attempts:
            if attempt.number == number and not attempt.execution_id:
                attempt = replace(attempt, execution_id=self.execution_id)
            attempts.append(attempt)
        return replace(self, attempts=attempts)

    @property
    def path(self) -> str:
        dag, run, task = (quote(id_, safe="") for id_ in (self.dag_id, self.run_id, self.task_id))
        mapped = f"/mapped/{self.map_index}" if self.map_index >= 0 else ""
        attempt = "" if self.is_latest else f"?try_number={self.number}"
        return f"/dags/{dag}/runs/{run}/tasks/{task}{mapped}{attempt}"

    @property
    def has_ended(self) -> bool:
        return self.state in _ENDED or not self.is_latest


def follow_seconds(task: TaskView, seen: ExecutionReading | None) -> int | None:
    """Return the seconds until the next refresh; None if nothing will change."""
    if seen is None:
        waits_for_start = task.is_ours and not task.has_ended and not task.execution_id
        return BEFORE_SECONDS if waits_for_start else None
    view = seen.view
    if seen.error:
        # The service may answer again, but if Airflow has lost the task's connection, that will not reappear.
        return None if task.has_ended and task.service_conn_id is None else SLEEPING_SECONDS
    if view is None or seen.is_gone:
        return None if task.has_ended else SLEEPING_SECONDS
    if view.has_ended:
        return None if task.has_ended else BEFORE_SECONDS
    return SLEEPING_SECONDS if view.state == "waiting" else RUNNING_SECONDS


_NO_STATE = (
    "and the state that Airflow 3.3 and newer keep of this task does not name it together with the workflow that the "
    "task runs"
)


@dataclass(frozen=True)
class Evidence:
    """What Airflow knows about a task instance and users cannot write, except ``saved``: ids of executions
    and their workflows in the task's state (Airflow 3.3 and newer), which users who may edit it may write, too.
    """

    run_key: RunKey
    execution_id: str | None = None
    workflows: Collection[str] = ()
    saved: Collection[tuple[str, str]] = ()

    def why_hidden(self, seen: ExecutionReading, workflow_id: str) -> str | None:
        """Say why an execution may not be shown; None if it is the task's own, or was not read at all."""
        view = seen.view
        if view is None:
            return None
        if view.workflow_id not in (workflow_id, None):
            return "it belongs to another workflow than the link says"
        tag, is_shown = seen.call or (None, False)
        is_named = self.execution_id is not None and self.execution_id in (view.execution_id, view.retry_of)
        if self.run_key.attempt_of(tag) is not None or is_named:
            return None
        if tag is not None:
            return "another task run has started it"
        if view.mode == "webhook" and is_shown:
            return "it does not carry the run key of this task"
        is_own_workflow = view.workflow_id in self.workflows or view.workflow_name in self.workflows
        if is_own_workflow and (view.execution_id, view.workflow_id) in self.saved:
            return None
        why = "such executions carry no run key" if is_shown else "its data does not show what started it"
        return f"{why}, {_NO_STATE}"

    def started_by(self, seen: ExecutionReading) -> int | None:
        return self.run_key.attempt_of(seen.call.tag if seen.call else None)
