"""Runs of workflows against a simulator, attempt by attempt."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_service._core.runs import searching
from airflow_provider_service.client.errors import ServiceTaskKilledError
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing._passing_time import PassingTime
from tests.airflow_features import AIRFLOW
from tests.polling import wait_until

from .own_state import OwnState
from .task_run import StateStore, TaskRun

MakeRun = Callable[..., TaskRun]
#: ``killed(run, when, attempt=1)`` executes an attempt, ends it as soon as ``when`` holds, and returns its message.
Killed = Callable[..., str]


@pytest.fixture(autouse=True)
def no_real_time(
    virtual_time: PassingTime | None, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing here waits in real time; what is marked waits for as short as suits a server that answers at once."""
    if request.node.get_closest_marker("real_time"):
        monkeypatch.setattr(searching, "ANSWER_PATIENCE_SECONDS", 0.5)
        monkeypatch.setattr(searching, "PATIENCE_AT_ONCE_SECONDS", 2.0)
        monkeypatch.setattr(searching, "SETTLING_SECONDS", 0.5)
        monkeypatch.setattr(searching, "VISIBLE_WITHIN_SECONDS", 0.8)
        monkeypatch.setattr(searching, "UNKEPT_SECONDS", 0.5)


@pytest.fixture(autouse=True)
def few_reads_by_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole search for queued executions reads 200 ids of a service without executions; test_queued.py has that."""
    monkeypatch.setattr(searching, "MAX_SINGLE_READS", 10)


@pytest.fixture
def answers_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is searched for before the call is answered, however late that is on a busy machine."""
    monkeypatch.setattr(searching, "ANSWER_PATIENCE_SECONDS", 60.0)
    monkeypatch.setattr(searching, "PATIENCE_AT_ONCE_SECONDS", 60.0)


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
    from airflow_provider_service.simulator._routes import executions

    monkeypatch.setattr(executions, "execution_data", lambda execution: {"resultData": {"runData": {}}})


@pytest.fixture
def own_state(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> OwnState:
    """What Airflow answers tasks that ask for their own state."""
    if AIRFLOW.startswith("2."):
        request.getfixturevalue("database")
    return OwnState(monkeypatch)


@pytest.fixture
def killed() -> Iterator[Killed]:
    """Ends tasks as Airflow does: the handler of the signal runs in the thread of the task, and lets it continue."""
    handlers = []

    def execute(run: TaskRun, when: Callable[[], Any], attempt: int = 1) -> str:
        context = run.prepare(attempt)

        def handle(number: int, frame: Any) -> None:
            run.task.on_kill()

        def watch() -> None:
            wait_until(when)
            os.kill(os.getpid(), signal.SIGUSR1)

        handlers.append(signal.signal(signal.SIGUSR1, handle))
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        with pytest.raises(ServiceTaskKilledError, match="the task was killed") as error:
            run.task.execute(context)
        watcher.join()
        return str(error.value)

    yield execute
    for handler in handlers[:1]:
        signal.signal(signal.SIGUSR1, handler)
