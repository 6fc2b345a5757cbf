"""DAGs run by Airflow itself, against a simulator."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.simulator import ServiceSimulator
from scripts.dag_runner import TaskRun, migrate, run_dag

EXAMPLE_DAGS = Path(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])


@pytest.fixture(scope="session", autouse=True)
def database() -> None:
    """Airflow's metadata database, made once a process."""
    migrate(Path(os.environ["AIRFLOW_HOME"]))


@pytest.fixture
def simulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceSimulator]:
    """A running service, behind the connection that the examples use."""
    with ServiceSimulator() as running:
        monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", running.connection_json())
        yield running


@pytest.fixture
def client(simulator: ServiceSimulator) -> Iterator[ServiceClient]:
    """A client that sees what the service holds."""
    with ServiceClient(ServiceConfig(base_url=simulator.base_url, api_key=simulator.api_key)) as one:
        yield one


@pytest.fixture
def run(database: None) -> Callable[..., tuple[str, list[TaskRun]]]:
    """``run("example_name", **conf)`` runs an example and answers the states of the run and of its tasks."""

    def run_example(name: str, **conf: Any) -> tuple[str, list[TaskRun]]:
        return run_dag(EXAMPLE_DAGS / f"{name}.py", conf)

    return run_example
