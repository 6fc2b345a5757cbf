"""Executions: the record of each run, and the store that finds them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from airflow_provider_service.simulator._engine.run import Run

ACTIVE = ("new", "running", "waiting")
TERMINAL = ("success", "error", "canceled", "crashed")
STATUSES = (*ACTIVE, *TERMINAL, "unknown")


@dataclass(eq=False)
class Execution:
    """One execution. ``token`` changes whenever the actions scheduled for it become void."""

    id: int
    run: Run
    mode: str
    created_at: datetime
    project_id: str
    status: str = "new"
    started_at: datetime | None = None
    stopped_at: datetime | None = None
    wait_till: datetime | None = None
    retry_of: int | None = None
    retry_success_id: int | None = None
    version_id: str | None = None
    token: int = 0
    deleted: bool = False
    parent: Execution | None = None
    tag_ids: list[str] = field(default_factory=list)
    is_annotated: bool = False
    resume_token: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)

    @property
    def workflow_id(self) -> str:
        return self.run.snapshot.workflow_id

    @property
    def finished(self) -> bool:
        """Finished in the service's sense: succeeded."""
        return self.status == "success"

    @property
    def in_progress(self) -> bool:
        """Whether a call that waits for the execution's end still has to wait."""
        return self.status in ("new", "running") and not self.deleted


class ExecutionStore:
    """Executions by id, with an index of the active ones and an index by workflow."""

    def __init__(self) -> None:
        self._last_id = 0
        self._all: dict[int, Execution] = {}
        self._by_workflow: dict[str, dict[int, Execution]] = {}
        self._active: dict[str, dict[int, Execution]] = {status: {} for status in ACTIVE}
        self.annotation_tags: dict[str, dict[str, Any]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Execution]:
        """All of them, oldest first."""
        return iter(self._all.values())

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def add(self, execution: Execution) -> None:
        self._all[execution.id] = execution
        self._by_workflow.setdefault(execution.workflow_id, {})[execution.id] = execution
        if execution.status in self._active:
            self._active[execution.status][execution.id] = execution

    def get(self, execution_id: int) -> Execution | None:
        return self._all.get(execution_id)

    def move(self, execution: Execution, status: str) -> None:
        """Set the status of an execution."""
        self._active.get(execution.status, {}).pop(execution.id, None)
        execution.status = status
        if status in self._active and not execution.deleted:
            self._active[status][execution.id] = execution

    def remove(self, execution: Execution) -> None:
        """Forget an execution; actions scheduled for it become void."""
        execution.deleted = True
        execution.token += 1
        self._all.pop(execution.id, None)
        self._by_workflow.get(execution.workflow_id, {}).pop(execution.id, None)
        self._active.get(execution.status, {}).pop(execution.id, None)

    def of_workflow(self, workflow_id: str) -> list[Execution]:
        """Every execution of a workflow, oldest first."""
        return list(self._by_workflow.get(workflow_id, {}).values())

    def with_status(self, status: str) -> list[Execution]:
        """The new, running or waiting ones, oldest first."""
        return sorted(self._active[status].values(), key=lambda execution: execution.id)

    def newest_first(
        self, *, status: str | None = None, workflow_id: str | None = None, below: int | None = None
    ) -> Iterator[Execution]:
        """Executions by descending id; without ``status`` the running ones are left out, as in the service."""
        if status in self._active:
            source = iter(reversed(self.with_status(status)))
        elif workflow_id is not None:
            source = reversed(self._by_workflow.get(workflow_id, {}).values())
        else:
            source = reversed(self._all.values())
        for execution in source:
            if below is not None and execution.id >= below:
                continue
            if execution.status != status if status else execution.status == "running":
                continue
            if workflow_id is None or execution.workflow_id == workflow_id:
                yield execution
