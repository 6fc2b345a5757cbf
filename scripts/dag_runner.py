"""Run a DAG file through Airflow without a deployment, with a separate home, an SQLite database and ``dag.test()``."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple


class TaskRun(NamedTuple):
    """How one task instance ended, and after how many tries, which is none if it was skipped."""

    task_id: str
    map_index: int
    state: str
    tries: int


def prepare_home(home: Path, dags_folder: Path) -> None:
    """Create an Airflow home with a migrated database; must run before Airflow is imported.

    :param home: folder of the home; reused if its database exists.
    :param dags_folder: folder of the DAG files.
    :raises RuntimeError: Airflow is already imported, or the migration failed.
    """
    choose_home(home, dags_folder)
    migrate(home)


def choose_home(home: Path, dags_folder: Path) -> None:
    """Set the environment variables for Airflow's home and DAG files.

    :raises RuntimeError: Airflow is already imported, and has read its settings.
    """
    if "airflow" in sys.modules:
        raise RuntimeError("the Airflow home must be set before Airflow is imported")
    os.environ.update(
        {
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags_folder),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
        }
    )


def migrate(home: Path) -> None:
    """Create the database of a home, unless it exists.

    :raises RuntimeError: the migration failed.
    """
    if (home / "airflow.db").exists():
        return
    home.mkdir(parents=True, exist_ok=True)
    migration = subprocess.run(
        [sys.executable, "-m", "airflow", "db", "migrate"], capture_output=True, text=True, check=False, timeout=300
    )
    if migration.returncode:
        raise RuntimeError(f"airflow db migrate failed:\n{migration.stderr[-2000:]}")


def load_dag(path: Path) -> Any:
    """Import a DAG file and return its only DAG."""
    from airflow.sdk import DAG

    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    dags = [value for value in vars(module).values() if isinstance(value, DAG)]
    if len(dags) != 1:
        raise RuntimeError(f"{path} holds {len(dags)} DAGs, not one")
    dags[0].resolve_template_files()  # as Airflow does when it reads DAG files
    return dags[0]


def run_dag(
    path: Path, conf: dict[str, Any] | None = None, *, pretend: str | None = None, **moment: Any
) -> tuple[str, list[TaskRun]]:
    """Run a DAG file's DAG once; return the state of the run and of each task instance, in the order of their ends.

    :param conf: configuration of the run.
    :param pretend: regular expression for the ids of tasks that count as successful without being run.
    :param moment: ``logical_date=`` of the run, which may be None; none by default when no schedule gives one.
    """
    # Warnings of Airflow's own dependencies about each other do not matter to readers of the summary.
    warnings.filterwarnings("ignore", message="Using `httpx` with")
    with _only_file(path):
        run = load_dag(path).test(run_conf=conf or {}, mark_success_pattern=pretend, **moment)
    instances = sorted(run.get_task_instances(), key=lambda ti: (ti.end_date is None, ti.end_date or 0, ti.map_index))
    return str(run.state), [TaskRun(ti.task_id, ti.map_index, str(ti.state), ti.try_number) for ti in instances]


@contextmanager
def _only_file(path: Path) -> Iterator[None]:
    """Let Airflow know only one DAG file: before each run of a test it reads all of them again, for seconds."""
    from airflow import settings

    before, settings.DAGS_FOLDER = settings.DAGS_FOLDER, str(path)
    try:
        yield
    finally:
        settings.DAGS_FOLDER = before
