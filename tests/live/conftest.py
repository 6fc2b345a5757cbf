"""Fixtures for tests against a real server. It is installed at first use; when it cannot be had the tests fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from tests.running.task_run import TaskRun

from .servers import GENERATIONS, Generation, LiveServer
from .servers.install import Progress

MakeRun = Callable[..., TaskRun]


@pytest.fixture(scope="session")
def live_generation(request: pytest.FixtureRequest) -> Generation:
    """The generation chosen by ``--target``; the newest when that names none."""
    return GENERATIONS.get(request.config.getoption("--target"), GENERATIONS["2"])


@pytest.fixture(scope="package")
def live_server(live_generation: Generation, progress: Progress) -> Iterator[LiveServer]:
    """One running server, shared by the tests of this folder."""
    with LiveServer(live_generation, progress=progress) as server:
        yield server


@pytest.fixture
def task_run() -> Iterator[MakeRun]:
    """``task_run(**arguments)`` makes a task run of the operator that runs workflows."""
    made: list[TaskRun] = []

    def make(operator: type[Any] = ServiceRunWorkflowOperator, **arguments: Any) -> TaskRun:
        made.append(TaskRun(operator, {"poll_interval": 0.5, "timeout": 60, **arguments}))
        return made[-1]

    yield make
    for run in made:
        run.close()
