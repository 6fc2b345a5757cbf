"""The example DAGs that run workflows, and what Airflow shows of such a task meanwhile and afterwards."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client._lookup import find_workflow
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing import SimulatedService
from airflow_provider_service.testing._passing_time import time_passes_at
from scripts.dag_runner import TaskRun
from tests.runs import workflows
from tests.runs.workflows import DONE, FAIL, put, put_behind_prefix, statuses, wait, webhook

Run = Callable[..., tuple[str, list[TaskRun]]]

# As the example has it.
PARTS = int(os.environ.get("PARTS", "25"))


def ask(query: str, *values: Any) -> list[tuple[Any, ...]]:
    """Ask Airflow's database."""
    with sqlite3.connect(Path(os.environ["AIRFLOW_HOME"]) / "airflow.db", timeout=60) as database:
        rows = database.execute(query, values).fetchall()
    database.close()
    return rows


def pushed(dag_id: str) -> dict[str, Any]:
    """What the tasks called "run" of a DAG have pushed."""
    rows = ask("SELECT key, value FROM xcom WHERE dag_id = ? AND task_id = 'run'", dag_id)
    return {key: json.loads(value) for key, value in rows}


@pytest.mark.slow
def test_run_and_wait(run: Run, client: ServiceClient) -> None:
    state, runs = run("example_service_run_and_wait")

    assert state == "success", runs
    workflow = find_workflow(client, "Airflow example: run and wait")
    assert workflow is not None
    [execution] = client.executions.list(workflow_id=workflow.id)
    result = pushed("example_service_run_and_wait")["return_value"]
    assert (result["execution_id"], result["status"]) == (execution.id, "success")
    assert result["output"] == [{"day": "2026-01-31", "orders": 3}]
    [used] = ask("SELECT value FROM xcom WHERE dag_id = 'example_service_run_and_wait' AND task_id = 'use'")
    assert json.loads(used[0]) == "3 orders on 2026-01-31"


@contextmanager
def time_flies(simulator: ServiceSimulator) -> Iterator[None]:
    """Make the service's clock run twenty times as fast."""
    over = threading.Event()

    def fly() -> None:
        while not over.wait(0.05):
            simulator.in_loop(lambda: simulator.clock.advance(1))

    thread = threading.Thread(target=fly)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.slow
def test_fan_out(run: Run, client: ServiceClient, simulator: ServiceSimulator) -> None:
    # Airflow runs the mapped tasks of a test one after the other: with a real second each they would take minutes.
    with time_flies(simulator):
        state, runs = run("example_service_fan_out", parts=PARTS)

    assert state == "success", runs
    assert sorted(one.map_index for one in runs if one.task_id == "run") == list(range(PARTS))
    workflow = find_workflow(client, "Airflow example: fan out")
    assert workflow is not None
    executions = list(client.executions.list(workflow_id=workflow.id, include_data=True))
    assert [one.status for one in executions] == ["success"] * PARTS
    [gathered] = ask("SELECT value FROM xcom WHERE dag_id = 'example_service_fan_out' AND task_id = 'gather'")
    assert int(gathered[0]) == PARTS


@pytest.mark.slow
def test_taskflow(run: Run, simulator: ServiceSimulator) -> None:
    service = SimulatedService(simulator)
    service.workflow("Sync region", output=[{"rows": 3}, {"rows": 4}])

    with time_passes_at(simulator):
        state, runs = run("example_service_taskflow")

    assert state == "success", runs
    service.assert_ran("Sync region", times=2)
    assert sorted(one.payload["region"] for one in service.runs("Sync region")) == ["eu", "us"]
    assert all(one.payload["requested_by"].startswith("manual__") for one in service.runs("Sync region"))
    [total] = ask("SELECT value FROM xcom WHERE dag_id = 'example_service_taskflow' AND task_id = 'total'")
    assert int(total[0]) == 14


def test_send_file(run: Run, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    secret = "the passphrase of the invoices, long enough"
    fields = {"conn_type": "generic", "password": secret, "extra": {"algorithm": "HS256"}}
    monkeypatch.setenv("AIRFLOW_CONN_INVOICES_WEBHOOK", json.dumps(fields))
    data = {"keyType": "passphrase", "secret": secret, "algorithm": "HS256"}
    own = simulator.in_loop(lambda: simulator.state.credentials.create("invoices", "jwtAuth", data))
    node = {
        **webhook("invoices/:customer", authentication="jwtAuth"),
        "credentials": {"jwtAuth": {"id": own["id"], "name": "invoices"}},
    }
    workflow_id = put(simulator, node, DONE, name="Book invoice")
    (tmp_path / "invoice.pdf").write_bytes(b"%PDF-")

    invoice = str(tmp_path / "invoice.pdf")
    state, runs = run("example_service_send_file", customer=8, invoice=invoice)

    assert state == "success", runs
    (execution,) = workflows.held(simulator, workflow_id)
    assert execution.run.initial is not None
    [item] = execution.run.initial.items
    assert item["json"]["params"] == {"customer": "8"}
    assert item["json"]["body"]["booked_by"].startswith("manual__")
    assert item["binary"]["invoice"]["fileName"] == "invoice.pdf"


def test_the_link_shows_while_deferred_and_after_failure_below_a_path_prefix(
    run: Run, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow_id = put(simulator, webhook(), wait(600), FAIL, name="Nightly sync")
    put_behind_prefix(simulator, "/automation")
    fields = json.loads(simulator.connection_json())
    address = f"{simulator.base_url}/automation"
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps({**fields, "host": address}))
    seen: list[dict[str, Any]] = []

    def watch() -> None:
        deadline = time.monotonic() + 60
        deferred = "SELECT 1 FROM task_instance WHERE dag_id = 'example_service_first' AND state = 'deferred'"
        while not seen and time.monotonic() < deadline:
            if ask(deferred):
                seen.append(pushed("example_service_first"))
            time.sleep(0.02)
        simulator.clock.advance(600)

    watcher = threading.Thread(target=watch)
    watcher.start()
    state, runs = run("example_service_first")
    watcher.join()

    assert (state, [one.state for one in runs]) == ("failed", ["failed"])
    assert statuses(simulator, workflow_id) == ["error"]
    page = f"{address}/workflow/{workflow_id}/executions/1"
    for held in (seen[0], pushed("example_service_first")):
        assert held["_link_ServiceExecutionLink"] == page
        assert held["execution_id"] == "1"
