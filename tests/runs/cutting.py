"""Attempts that die right after their call, and executions that end as soon as they are known."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_service.simulator import ServiceSimulator

from .task_run import StateStore, TaskRun


class CutOffError(Exception):
    """The process has ended here."""


class CutOffStore(StateStore):
    """Stores the record that a call is made; nothing after the call is written."""

    def set(self, key: str, value: Any) -> None:
        if value["execution_id"] is not None:
            raise CutOffError
        super().set(key, value)


def cut_off(run: TaskRun, number: int = 1) -> None:
    """Execute an attempt up to the moment after its call, where it dies without a trace in Airflow."""

    def die(key: str, value: Any) -> None:
        # What is pushed before, such as the address of the workflow, comes before the call.
        if key == "execution_id":
            raise CutOffError

    store, run.on_push = run.store, die
    run.store = CutOffStore(store.path) if store is not None else None
    with pytest.raises(CutOffError):
        run.attempt(number)
    run.store, run.on_push = store, None


def end_each(run: TaskRun, simulator: ServiceSimulator, status: str = "error") -> None:
    """Let each execution of a task run end as soon as it is known."""

    def finish(key: str, value: Any) -> None:
        if key == "execution_id":
            simulator.finish_execution(value, status)

    run.on_push = finish
