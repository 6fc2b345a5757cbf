"""What ``dag.test()`` needs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scripts.dag_runner import migrate


@pytest.fixture(scope="session")
def database() -> None:
    """Airflow's metadata database, made once a process."""
    migrate(Path(os.environ["AIRFLOW_HOME"]))
