"""DAGs run by Airflow itself, against a simulator."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scripts.dag_runner import TaskRun, run_dag

EXAMPLE_DAGS = Path(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])


@pytest.fixture(scope="session", autouse=True)
def migrated(database: None) -> None:
    """All of these tests need Airflow's metadata database."""


@pytest.fixture
def run(database: None) -> Callable[..., tuple[str, list[TaskRun]]]:
    """``run("example_name", **conf)`` runs an example and returns the states of the run and of its tasks."""

    def run_example(name: str, **conf: Any) -> tuple[str, list[TaskRun]]:
        return run_dag(EXAMPLE_DAGS / f"{name}.py", conf)

    return run_example
