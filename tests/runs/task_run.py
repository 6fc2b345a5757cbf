"""A task run as Airflow drives it: attempt by attempt, in this process, deferred or not."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from airflow.providers.common.compat.sdk import TaskDeferred

from airflow_provider_service.client._clock import clock
from airflow_provider_service.testing._service import first_event, revived
from tests.airflow_features import AIRFLOW
from tests.results import check_result


class StateStore:
    """Airflow's ``task_state_store``, in a file: it outlives a process that is killed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def get(self, key: str, default: Any = None) -> Any:
        return self._read().get(key, default)

    def set(self, key: str, value: Any) -> None:
        self._write({**self._read(), key: value})

    def delete(self, key: str) -> None:
        self._write({name: value for name, value in self._read().items() if name != key})

    def _write(self, values: dict[str, Any]) -> None:
        draft = self.path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(values))
        draft.replace(self.path)

    def _read(self) -> dict[str, Any]:
        return dict(json.loads(self.path.read_text())) if self.path.exists() else {}


_begun = itertools.count()


def beginning() -> datetime:
    """The date and time of the begin of a DAG run; no two are the same, also by a clock that stands still."""
    return clock().utcnow() + timedelta(microseconds=next(_begun))


@dataclass
class TaskRun:
    """One task run.

    :param store: None as before Airflow 3.3.
    :param max_tries: as Airflow counts it: the retries of the task, and more after it was cleared.
    :param began: the begin of the DAG run.
    :param cleared: how often the DAG run was cleared.
    :param of_dag_run: further attributes of the DAG run, which differ from version to version of Airflow.
    :param on_push: called with the key and value of each push of the task.
    """

    operator: type[Any]
    arguments: dict[str, Any]
    store: StateStore | None = None
    retries: int = 2
    max_tries: int = 2
    map_index: int = -1
    dag_id: str = "dag"
    run_id: str = "manual__1"
    began: datetime = field(default_factory=beginning)
    cleared: int = 0
    of_dag_run: dict[str, Any] = field(default_factory=dict)
    pushed: dict[str, Any] = field(default_factory=dict)
    on_push: Callable[[str, Any], None] | None = None
    task: Any = None

    def attempt(self, number: int, **changes: Any) -> Any:
        """Execute an attempt in the worker.

        :param number: of the attempt, from 1.
        :param changes: of the arguments.
        :raises TaskDeferred: it waits in the triggerer.
        """
        context = self.prepare(number, **changes)
        return self._checked(self.task.execute(context))

    def whole_attempt(self, number: int, **changes: Any) -> Any:
        """Execute an attempt, with its wait in a triggerer if it defers."""
        try:
            return self.attempt(number, **changes)
        except TaskDeferred as deferred:
            return self.resume(number, deferred, asyncio.run(first_event(revived(deferred.trigger))), **changes)

    def resume(self, number: int, deferred: TaskDeferred, event: Any, **changes: Any) -> Any:
        """Continue after the event of a trigger, as in another process than the one that deferred."""
        context = self.prepare(number, **changes)
        return self._checked(getattr(self.task, deferred.method_name)(context, event=event, **(deferred.kwargs or {})))

    def prepare(self, number: int, **changes: Any) -> Any:
        """Make the task and the context of an attempt, and render the task's fields."""
        self.close()
        let_this_thread_execute()
        self.task = self.operator(task_id="task", retries=self.retries, **{**self.arguments, **changes})
        context: dict[str, Any] = {
            "ti": SimpleNamespace(
                dag_id=self.dag_id,
                run_id=self.run_id,
                task_id="task",
                map_index=self.map_index,
                try_number=number,
                max_tries=self.max_tries,
                xcom_push=self._push,
            ),
            "task": self.task,
            "dag_run": SimpleNamespace(start_date=self.began, clear_number=self.cleared, **self.of_dag_run),
        }
        if self.store is not None:
            context["task_state_store"] = self.store
        self.task.render_template_fields(context)
        return context

    def clear(self, tried: int) -> None:
        """Clear the task of a finished DAG run, as Airflow does: with a new begin, and all retries once more.

        :param tried: number of attempts so far.
        """
        self.began = beginning()
        self.cleared += 1
        self.max_tries = tried + self.retries

    def close(self) -> None:
        """Close the connections of the last attempt."""
        if self.task is not None:
            self.task.hook.close()

    def _checked(self, result: Any) -> Any:
        if hasattr(self.task, "perform"):
            check_result(type(self.task), result)
        return result

    def _push(self, key: str, value: Any) -> None:
        self.pushed[key] = value
        if self.on_push is not None:
            self.on_push(key, value)


def let_this_thread_execute() -> None:
    """Airflow 2.11 executes tasks in the thread only that has imported it."""
    if AIRFLOW.startswith("2."):
        from airflow.models.baseoperator import ExecutorSafeguard

        ExecutorSafeguard._sentinel.callers = {}
