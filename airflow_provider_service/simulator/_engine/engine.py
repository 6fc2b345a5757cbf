"""Executions and their life cycle: started, queued, waiting, ended; driven by the clock whenever the state is read."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from airflow_provider_service.simulator._clock import Clock, Schedule
from airflow_provider_service.simulator._engine.expressions import Items
from airflow_provider_service.simulator._engine.nodes import FOREVER, Node, operation_error
from airflow_provider_service.simulator._engine.run import Callee, Pending, Run, Snapshot, denial, not_active

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
    def __init__(self) -> None:
        self._last_id = 0
        self._all: dict[int, Execution] = {}
        self._by_workflow: dict[str, dict[int, Execution]] = {}
        self._active: dict[str, dict[int, Execution]] = {status: {} for status in ACTIVE}
        self.annotation_tags: dict[str, dict[str, Any]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Execution]:
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


# Waits shorter than this stay in memory as "running".
LONG_WAIT = timedelta(seconds=65)
# The duration of the shortest run: a poller sees "running" first, as on the service.
_START_TIME = timedelta(milliseconds=20)
# Runs that count towards the concurrency limit; retries do so only where workers run them.
_PRODUCTION = ("webhook", "trigger", "chat")


class Engine:
    """Runs executions. Callers settle the schedule before they read the state."""

    def __init__(
        self,
        clock: Clock,
        schedule: Schedule,
        executions: ExecutionStore,
        concurrency_limit: int | None = None,
        *,
        has_workers: bool = False,
    ) -> None:
        self._clock = clock
        self._schedule = schedule
        self._executions = executions
        self._queue: dict[int, Execution] = {}
        self.concurrency_limit = concurrency_limit
        self._limited = (*_PRODUCTION, "manual", "retry") if has_workers else _PRODUCTION
        #: Finds a published workflow by its id, for workflows that start others.
        self.find_callee: Callable[[str], Callee | None] = lambda _workflow_id: None

    # ------------------------------------------------------------ starting

    def start(
        self,
        snapshot: Snapshot,
        trigger: Node,
        items: Items,
        project_id: str,
        *,
        mode: str,
        pinned: Mapping[str, Items] | None = None,
        output: int = 0,
    ) -> Execution:
        """Start a run at ``trigger``, or queue it (status ``new``) when the concurrency limit is reached."""
        execution = self._create(snapshot, trigger, items, project_id, mode, output)
        execution.run.pinned = pinned or {}
        execution.version_id = snapshot.version_id
        self._enqueue(execution)
        return execution

    def refuse(self, snapshot: Snapshot, trigger: Node, items: Items, project_id: str, *, message: str) -> Execution:
        """Record a run that failed at its trigger before anything ran."""
        execution = self._create(snapshot, trigger, items, project_id, "webhook")
        now = execution.started_at = self._clock.now()
        execution.run.fail(operation_error(trigger, message), now)
        self._end(execution, "error", now)
        return execution

    def set_up(
        self,
        snapshot: Snapshot,
        project_id: str,
        *,
        status: str,
        mode: str = "webhook",
        seconds: float | None = None,
        age: float = 0.0,
    ) -> Execution:
        """Set up an execution in any status that runs no node; it succeeds after ``seconds``, or stays as it is."""
        trigger = snapshot.trigger()
        if trigger is None:
            raise ValueError("the workflow has no nodes")
        execution = self._create(snapshot, trigger, [{"json": {}}], project_id, mode)
        execution.version_id = snapshot.version_id
        now = self._clock.now()
        ends = None if seconds is None else now + timedelta(seconds=seconds)
        if status != "new":
            execution.started_at = now - timedelta(seconds=age)
        if status == "waiting":
            execution.stopped_at = now
            execution.wait_till = ends or FOREVER
        if status in TERMINAL:
            self.finish(execution, status)
        else:
            self._executions.move(execution, status)
        if ends is not None and status in ACTIVE:
            self._plan(execution, ends, lambda _moment: self.finish(execution, "success"))
        return execution

    def retry(self, original: Execution, snapshot: Snapshot | None = None) -> Execution:
        execution_id = self._executions.next_id()
        # A running execution has saved only its input, so its copy begins at the start.
        resume = original.status not in ("running", "crashed")
        skip_wait = original.status in ("waiting", "canceled")
        snapshot_to_run = snapshot or original.run.snapshot
        run = original.run.retried(execution_id, snapshot_to_run, resume=resume, skip_wait=skip_wait)
        now = self._clock.now()
        execution = Execution(execution_id, run, "retry", now, original.project_id, retry_of=original.id)
        execution.parent = original.parent
        execution.version_id = None if snapshot is None else snapshot.version_id
        self._executions.add(execution)
        if execution.mode in self._limited:
            self._enqueue(execution)
        else:
            self._begin(execution, now)
        return execution

    def _create(
        self, snapshot: Snapshot, trigger: Node, items: Items, project_id: str, mode: str, output: int = 0
    ) -> Execution:
        execution_id = self._executions.next_id()
        run = Run(snapshot, execution_id, [Pending(trigger, items, output=output)])
        execution = Execution(execution_id, run, mode, self._clock.now(), project_id)
        self._executions.add(execution)
        return execution

    def _enqueue(self, execution: Execution) -> None:
        self._queue[execution.id] = execution
        self._start_queued(self._clock.now())

    def _start_queued(self, moment: datetime) -> None:
        while self._queue and (self.concurrency_limit is None or self._slots_taken() < self.concurrency_limit):
            self._start_next(moment)

    def _start_next(self, moment: datetime) -> None:
        self._begin(self._queue.pop(next(iter(self._queue))), moment)

    def _slots_taken(self) -> int:
        return sum(map(self._holds_slot, self._executions.with_status("running")))

    def _holds_slot(self, execution: Execution) -> bool:
        return execution.status == "running" and execution.mode in self._limited

    @contextmanager
    def _letting_the_next_start(self, execution: Execution, moment: datetime) -> Iterator[None]:
        """Start the first in the queue when ``execution`` gives up its slot here, or its own place in the queue,
        which takes the service beyond its limit, where it stays until the queue is empty.
        """
        leaves = self._holds_slot(execution) or execution.id in self._queue
        yield
        if leaves and self._queue:
            self._start_next(moment)

    def _begin(self, execution: Execution, moment: datetime) -> None:
        execution.started_at = moment
        self._executions.move(execution, "running")
        timeout = execution.run.snapshot.settings.get("executionTimeout")
        if isinstance(timeout, (int, float)) and timeout > 0:
            limit = timedelta(seconds=min(timeout, 10 * 365 * 86_400))
            self._schedule.at(moment + limit, lambda due: self._time_out(execution, due))
        self._plan(execution, moment + _START_TIME, lambda due: self._proceed(execution, due))

    # ------------------------------------------------------------ continuing

    def _plan(self, execution: Execution, moment: datetime, action: Callable[[datetime], None]) -> None:
        """Schedule ``action`` for ``moment`` unless the execution has been stopped, ended or rescheduled by then."""
        token = execution.token = execution.token + 1

        def act(due: datetime) -> None:
            if execution.token == token:
                action(due)

        self._schedule.at(moment, act)

    def _proceed(self, execution: Execution, moment: datetime) -> None:
        until = execution.run.proceed(moment, partial(self._start_sub_workflow, execution, moment))
        if until is None:
            self._end(execution, "error" if execution.run.error else "success", moment)
            return
        if until - moment >= LONG_WAIT:
            execution.wait_till = until
            execution.stopped_at = moment
            with self._letting_the_next_start(execution, moment):
                self._executions.move(execution, "waiting")
        if until < FOREVER:
            self._plan(execution, until, lambda due: self._resume(execution, due))

    def _start_sub_workflow(
        self, parent: Execution, moment: datetime, node: Node, workflow_id: str, items: Items
    ) -> int:
        callee = self.find_callee(workflow_id)
        if callee is None:
            raise not_active(workflow_id)
        execution = self._create(callee.snapshot, callee.first_node(), items, callee.project_id, "integrated")
        execution.version_id = callee.snapshot.version_id
        if callee.allows(parent.workflow_id, parent.project_id):
            execution.parent = parent
            self._begin(execution, moment)
            return execution.id
        execution.started_at = moment
        execution.run.stack = [Pending(node, items)]
        execution.run.fail(denial(workflow_id, node), moment)
        self._end(execution, "error", moment)
        return execution.id

    def _resume(self, execution: Execution, moment: datetime) -> None:
        execution.wait_till = execution.stopped_at = None
        self._executions.move(execution, "running")
        self._proceed(execution, moment)

    def _time_out(self, execution: Execution, moment: datetime) -> None:
        if execution.status == "running" and not execution.deleted:
            self.stop(execution, moment)

    # ------------------------------------------------------------ ending

    def stop(self, execution: Execution, moment: datetime | None = None) -> None:
        execution.run.cancel()
        self._end(execution, "canceled", moment or self._clock.now())

    def finish(self, execution: Execution, status: str, *, node: str | None = None, message: str | None = None) -> None:
        now = self._clock.now()
        run = execution.run
        reached = run.snapshot.node(node) if node else None
        if reached is not None:
            run.jump_to(reached)
        if status == "success":
            run.complete_top(now)
        elif status == "error" and run.stack:
            run.fail(operation_error(run.stack[0].node, message or "The execution failed"), now)
        elif status == "crashed":
            run.crash(now)
        elif status == "canceled":
            run.cancel()
        self._end(execution, status, now)

    def remove(self, execution: Execution) -> None:
        with self._letting_the_next_start(execution, self._clock.now()):
            self._queue.pop(execution.id, None)
            self._executions.remove(execution)

    def remove_workflow(self, workflow_id: str) -> None:
        for execution in self._executions.of_workflow(workflow_id):
            self.remove(execution)

    def restart(self, until: datetime) -> None:
        """Crash and be back at ``until``: running executions crash, queued ones start again, waiting ones survive."""
        now = self._clock.now()
        for execution in self._executions.with_status("running"):
            execution.run.crash(now)
            self._close(execution, "crashed", now)
        self._schedule.postpone(until)
        self._schedule.at(until, self._start_queued)

    def _end(self, execution: Execution, status: str, moment: datetime) -> None:
        with self._letting_the_next_start(execution, moment):
            self._close(execution, status, moment)

    def _close(self, execution: Execution, status: str, moment: datetime) -> None:
        execution.token += 1
        execution.stopped_at = moment
        execution.wait_till = None
        self._queue.pop(execution.id, None)
        self._executions.move(execution, status)
        if status == "success" and execution.retry_of is not None:
            original = self._executions.get(execution.retry_of)
            if original is not None:
                original.retry_success_id = execution.id
        if not _is_kept(execution):
            self._executions.remove(execution)


def _is_kept(execution: Execution) -> bool:
    settings = execution.run.snapshot.settings
    if execution.mode == "manual":
        return settings.get("saveManualExecutions") is not False
    # Cancelled executions are kept regardless of the workflow's settings.
    if execution.status == "success":
        return settings.get("saveDataSuccessExecution") != "none"
    if execution.status in ("error", "crashed"):
        return settings.get("saveDataErrorExecution") != "none"
    return True
