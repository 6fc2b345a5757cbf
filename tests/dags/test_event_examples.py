"""The example DAGs around events: one is started by an asset that a workflow updates, one alerts through a workflow."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.models.trigger import Trigger
from airflow.triggers.base import TriggerEvent
from airflow.utils.session import create_session
from sqlalchemy import select, update

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client._execution_data import starting_items
from airflow_provider_service.client._lookup import find_workflow
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.triggers.events import ServiceExecutionEventTrigger
from scripts.dag_runner import TaskRun, load_dag, run_dag
from tests.events.watching import polled

from .conftest import EXAMPLE_DAGS

Run = Callable[..., tuple[str, list[TaskRun]]]


@pytest.mark.parametrize("logical_date", [datetime(2026, 1, 31, tzinfo=UTC), None])
def test_alert(
    database: None, simulator: ServiceSimulator, client: ServiceClient, logical_date: datetime | None
) -> None:
    state, runs = run_dag(EXAMPLE_DAGS / "example_service_alert.py", logical_date=logical_date)

    assert state == "failed", runs
    assert {one.task_id: one.state for one in runs}["load"] == "failed"
    workflow = find_workflow(client, "Airflow example: alert")
    assert workflow is not None
    simulator.clock.advance(1)
    [execution] = client.executions.list(workflow_id=workflow.id, include_data=True)
    [item] = starting_items(execution)
    notice = item["body"]
    assert notice["message"] == "load of example_service_alert has failed"
    assert (notice["task_id"], notice["exception"]) == ("load", "there is nothing to load")
    assert notice["state"] == "failed"
    assert notice["log_url"].startswith("http")
    assert notice["details"] == {"logical_date": "2026-01-31 00:00:00+00:00" if logical_date else ""}


@pytest.mark.slow
def test_asset_event(
    run: Run, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    workflow_id = simulator.create_webhook_workflow("Imports of this test", path="import")["id"]
    monkeypatch.setenv("AIRFLOW_EXAMPLE_WORKFLOW_NAME", "Imports of this test")
    # A run by hand has nothing to report. It also makes Airflow read the DAG files, and Airflow watches only for DAGs
    # that it knows and that are not paused.
    for _ in range(2):
        state, runs = run("example_service_asset_event")
        assert state == "success", runs
        let_runs_begin_without_tasks("example_service_asset_event")

    trigger_id, trigger = stored_watcher("Imports of this test")
    event = asyncio.run(event_of(trigger, simulator, workflow_id))
    Trigger.submit_event(trigger_id, event)
    schedule_once()

    [payload] = [event.extra["payload"] for event in events_of_triggered_run("example_service_asset_event")]
    assert (payload["workflow_id"], payload["status"]) == (workflow_id, "success")
    dag = load_dag(EXAMPLE_DAGS / "example_service_asset_event.py")
    consumed = {"asset": [SimpleNamespace(extra={"payload": payload})]}
    found = dag.get_task("ended").python_callable(triggering_asset_events=consumed)
    dag.get_task("report").python_callable(found)
    assert f"Execution {payload['execution_id']}: success, see {simulator.base_url}/" in capsys.readouterr().out


def let_runs_begin_without_tasks(dag_id: str) -> None:
    """Unpause a DAG, with no place for a task: its worker would call, for minutes, an API server that nobody runs."""
    with create_session() as session:
        session.execute(update(DagModel).where(DagModel.dag_id == dag_id).values(is_paused=False, max_active_tasks=0))


def stored_watcher(workflow_name: str) -> tuple[int, ServiceExecutionEventTrigger]:
    """The trigger of the example's watcher, as Airflow has stored it and a triggerer makes it again."""
    with create_session() as session:
        rows = session.scalars(select(Trigger).where(Trigger.classpath.contains("ServiceExecutionEventTrigger")))
        [row] = [row for row in rows if row.kwargs.get("workflow_name") == workflow_name]
        return row.id, ServiceExecutionEventTrigger(**{**row.kwargs, "poll_interval": 0.1})


async def event_of(
    trigger: ServiceExecutionEventTrigger, simulator: ServiceSimulator, workflow_id: str
) -> TriggerEvent:
    """The first event of a watcher after an execution has ended."""
    events = trigger.run()
    first = asyncio.ensure_future(anext(events))
    await polled(simulator)
    assert not first.done()
    simulator.start_execution(workflow_id, status="success")
    return await asyncio.wait_for(first, 60)


def schedule_once() -> None:
    """One turn of the scheduler in a process of its own."""
    command = [sys.executable, "-m", "airflow", "scheduler", "--num-runs", "1", "--skip-serve-logs"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]


def events_of_triggered_run(dag_id: str) -> list[Any]:
    """The asset events that the scheduler has started a run for."""
    with create_session() as session:
        runs = session.scalars(select(DagRun).where(DagRun.dag_id == dag_id, DagRun.run_type == "asset_triggered"))
        [found] = runs
        return list(found.consumed_asset_events)
