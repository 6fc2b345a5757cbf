"""Runs of workflows against a simulator, attempt by attempt."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.runs import call_and_search
from airflow_provider_service.simulator import ServiceSimulator

from .task_run import StateStore, TaskRun

MakeRun = Callable[..., TaskRun]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times that suit a server which answers within milliseconds, and within half a second on a busy machine."""
    monkeypatch.setattr(call_and_search, "PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr(call_and_search, "PATIENCE_AT_ONCE_SECONDS", 2.0)
    monkeypatch.setattr(call_and_search, "SETTLING_SECONDS", 0.5)
    monkeypatch.setattr(call_and_search, "VISIBLE_WITHIN_SECONDS", 0.8)
    monkeypatch.setattr(call_and_search, "UNKEPT_SECONDS", 0.5)


@pytest.fixture
def answers_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is searched for before the call is answered, however late that is on a busy machine."""
    monkeypatch.setattr(call_and_search, "PATIENCE_SECONDS", 60.0)
    monkeypatch.setattr(call_and_search, "PATIENCE_AT_ONCE_SECONDS", 60.0)


@pytest.fixture
def simulator(simulator: ServiceSimulator, task_log: None, monkeypatch: pytest.MonkeyPatch) -> ServiceSimulator:
    """An empty service behind the default connection, which does not retry for long."""
    connect(monkeypatch, simulator)
    return simulator


def connect(monkeypatch: pytest.MonkeyPatch, simulator: ServiceSimulator, **changes: Any) -> None:
    """Make a simulator the default connection; calls of a missing webhook are soon given up."""
    connection = json.loads(simulator.connection_json())
    extra = {"retry_deadline": 1.0, **changes.pop("extra", {})}
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps({**connection, **changes, "extra": extra}))


@pytest.fixture
def task_run(simulator: ServiceSimulator) -> Iterator[MakeRun]:
    """``task_run(**arguments)`` makes a task run of the operator that runs workflows."""
    made: list[TaskRun] = []

    def make(operator: type[Any] = ServiceRunWorkflowOperator, **options: Any) -> TaskRun:
        of_run = {name: options.pop(name) for name in ("store", "map_index", "began", "of_dag_run") if name in options}
        made.append(TaskRun(operator, {"poll_interval": 0.05, "timeout": 20.0, **options}, **of_run))
        return made[-1]

    yield make
    for run in made:
        run.close()


@pytest.fixture(params=["task_state_store", "no store"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> StateStore | None:
    """The state that Airflow 3.3 keeps for a task run, and older versions do not."""
    return StateStore(tmp_path / "state.json") if request.param == "task_state_store" else None


@pytest.fixture(params=[False, True], ids=["worker", "deferred"])
def deferrable(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def make_run(task_run: MakeRun, deferrable: bool) -> MakeRun:
    """As ``task_run``, for a wait in the worker and one in the triggerer."""
    return partial(task_run, deferrable=deferrable)


@pytest.fixture
def redacting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that shows no data of executions."""
    from airflow_provider_service.simulator.routes import executions

    monkeypatch.setattr(executions, "execution_data", lambda execution: {"resultData": {"runData": {}}})
