"""The recipes do what their page says."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.operators.rows import ServiceUpsertRowsOperator
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing import SimulatedService, run_task

from .test_documentation import BLOCKS

pytest_plugins = ["airflow_provider_service.testing.pytest_plugin"]

HERE = Path(__file__).parent
OF_THE_PAGE = {kind: text for page, kind, text in BLOCKS if page.name == "recipes.md"}
MODES_OF_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def test_the_script_counts_failures_and_imports_no_airflow(simulator: ServiceSimulator) -> None:
    for name, failures in (("Sync orders", 2), ("Build report", 1)):
        workflow = simulator.create_webhook_workflow(name, path=name.replace(" ", "-"))
        for _ in range(failures):
            simulator.start_execution(workflow["id"], status="error")
    without_airflow = "import runpy, sys; sys.modules['airflow'] = None; runpy.run_path(sys.argv[1])"

    run = subprocess.run(
        [sys.executable, "-c", without_airflow, str(HERE / "script_example.py")],
        env={**os.environ, "SERVICE_URL": simulator.base_url, "SERVICE_API_KEY": simulator.api_key},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (run.stdout.splitlines(), run.stderr) == (["2 Sync orders", "1 Build report"], "")


def dag_files(folder: Path, jobs: str) -> Any:
    """What Airflow reads when the file stands beside these jobs."""
    from airflow.dag_processing.dagbag import DagBag

    (folder / "jobs.yaml").write_text(jobs)
    shutil.copy(HERE / "functions" / "factory_dags.py", folder)
    return DagBag(folder)


@pytest.mark.usefixtures("database")
def test_each_entry_of_the_yaml_file_is_a_dag(service: SimulatedService, tmp_path: Path) -> None:
    read = dag_files(tmp_path, OF_THE_PAGE["yaml"])
    service.workflow("Sync orders")
    service.workflow("Build report")

    for dag in read.dags.values():
        run_task(dag.get_task("run"), logical_date=datetime(2026, 1, 3, 2, tzinfo=UTC))

    schedules = {dag_id: str(dag.schedule) for dag_id, dag in read.dags.items()}
    assert schedules == {"sync_orders": "0 2 * * *", "build_report": "@weekly"}
    service.assert_ran("Sync orders", payload={"day": "2026-01-03"})
    service.assert_ran("Build report")


@pytest.mark.usefixtures("database")
def test_a_misspelled_argument_in_the_yaml_file_is_an_import_error(tmp_path: Path) -> None:
    read = dag_files(tmp_path, OF_THE_PAGE["yaml"].replace("workflow_name: Sync", "workflow_nane: Sync"))

    [error] = read.import_errors.values()
    assert "workflow_nane" in error


@pytest.mark.usefixtures("database")
def test_the_pool_of_the_recipe_has_no_slot_left_while_a_task_is_deferred() -> None:
    from airflow.models.pool import Pool

    command = shlex.split(OF_THE_PAGE["sh"])
    subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True)

    pool = Pool.get_pool(command[3])
    assert pool is not None
    assert (pool.slots, "deferred" in pool.get_occupied_states()) == (1, True)


class _Writes:
    """What this process has opened for writing, as long as it is noted: an audit hook cannot be removed."""

    def __init__(self) -> None:
        self.noted: list[str] | None = None
        sys.addaudithook(self._note)

    def _note(self, event: str, values: tuple[Any, ...]) -> None:
        if self.noted is None:
            return
        if event == "sqlite3.connect":
            self.noted.append(f"sqlite {values[0]!r}")
        elif event in {"os.mkdir", "os.rename"} or (event == "open" and values[2] & MODES_OF_WRITING):
            self.noted.append(str(values[0]))

    @contextmanager
    def during(self) -> Iterator[list[str]]:
        self.noted = noted = []
        try:
            yield noted
        finally:
            self.noted = None


WRITES = _Writes()


def test_tasks_write_only_the_temporary_file_of_an_upsert_and_what_they_name(
    service: SimulatedService, tmp_path: Path
) -> None:
    service.workflow("Sync orders", output=[{"rows": 3}])
    with ServiceHook() as hook:
        table = hook.data_tables.create("orders", [{"name": "number", "type": "number"}])
    run = {"task_id": "run", "workflow_name": "Sync orders", "return_output": "last_node", "deferrable": True}
    upsert = ServiceUpsertRowsOperator(
        task_id="upsert", data_table_id=table.id, rows=[{"number": 1}], key_columns="number"
    )
    run_task(ServiceRunWorkflowOperator(**run))  # imports, which may write bytecode
    run_task(upsert)

    with WRITES.during() as of_the_run:
        run_task(ServiceRunWorkflowOperator(**run))
    with WRITES.during() as of_the_upsert:
        run_task(upsert)
    service.workflow("Sync orders", output=[{"rows": "x" * 60_000}])  # too large for XCom
    with WRITES.during() as of_the_output:
        run_task(ServiceRunWorkflowOperator(**run, output_path=str(tmp_path / "output.json")))

    assert (of_the_run, of_the_upsert) == ([], ["sqlite ''"])  # a temporary file that SQLite deletes
    assert of_the_output
    assert {Path(path).parent for path in of_the_output} == {tmp_path}
