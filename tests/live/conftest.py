"""Fixtures for tests against a real server. It is installed at first use; if that fails, so do the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from tests.runs.task_run import TaskRun

from .deployments import DEPLOYMENTS
from .servers import GENERATIONS, NEWEST, Generation, LiveServer
from .servers.install import Progress

MakeRun = Callable[..., TaskRun]
MakeServer = Callable[..., LiveServer]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Only a queue has a worker that can be missing."""
    is_about_workers = collection_path.name == "test_queue_mode.py"
    return True if is_about_workers and config.getoption("--deployment") != "queue" else None


@pytest.fixture(scope="session")
def live_generation(request: pytest.FixtureRequest) -> Generation:
    """The generation chosen by ``--target``; the newest when that names none."""
    return GENERATIONS.get(request.config.getoption("--target"), GENERATIONS[NEWEST])


@pytest.fixture(scope="session")
def make_server(request: pytest.FixtureRequest, live_generation: Generation, progress: Progress) -> MakeServer:
    """``make_server(**options)`` makes a server of the chosen generation and deployment, which is not started yet."""
    return partial(DEPLOYMENTS[request.config.getoption("--deployment")], live_generation, progress=progress)


@pytest.fixture(scope="package")
def live_server(make_server: MakeServer) -> Iterator[LiveServer]:
    """One running server, shared by the tests of this folder."""
    with make_server() as server:
        yield server


@pytest.fixture
def task_run() -> Iterator[MakeRun]:
    """``task_run(**arguments)`` makes a task run of the operator that runs workflows, which activates them."""
    made: list[TaskRun] = []

    def make(operator: type[Any] = ServiceRunWorkflowOperator, **arguments: Any) -> TaskRun:
        activates = {"activate": True} if operator is ServiceRunWorkflowOperator else {}
        made.append(TaskRun(operator, {"poll_interval": 0.5, "timeout": 300, **activates, **arguments}))
        return made[-1]

    yield make
    for run in made:
        run.close()
