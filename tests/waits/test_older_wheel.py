"""What tasks of an older version have stored is understood: triggers, the method that resumes them, and saved state.

The stored values were recorded from commit 4d8adec2; only ids and the address differ from run to run.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from airflow_provider_service.client._clock import clock
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.sensors.execution import ServiceExecutionSensor
from airflow_provider_service.sensors.health import ServiceWorkflowHealthSensor
from airflow_provider_service.sensors.source_control import ServiceSourceControlSensor
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing._service import first_event, from_stored
from tests.airflow_features import asset_watchers
from tests.runs.task_run import StateStore, TaskRun

from .driving import TaskInstance, in_event_loop

TEN_YEARS = 315360000.0
DEADLINE = {"service_conn_id": "service_default", "deadline": 2111273836.7078083, "timeout": TEN_YEARS}
TRIGGERS = "airflow_provider_service.triggers"
#: Of ``TaskRun``, in a DAG run that began then.
RUN_KEY, BEGAN = "81a518cee6595481a16466e50790a700", datetime(2026, 11, 29, 0, 57, 16, 688978, UTC)


def execution_trigger(execution_id: str, workflow_id: str, *, cancel_on_kill: bool) -> Any:
    """A trigger as the database holds it."""
    return from_stored(
        f"{TRIGGERS}.execution.ServiceExecutionTrigger",
        {
            "execution_id": execution_id,
            **DEADLINE,
            "poll_interval": 10.0,
            "on_vanished": "fail",
            "fault_tolerance": 300.0,
            "expected_workflow_id": workflow_id,
            "cancel_on_kill": cancel_on_kill,
        },
    )


def saved_state(execution_id: str | None, workflow_id: str) -> dict[str, Any]:
    """What the first attempt of a task run has saved before its call (without ids), or after its start."""
    return {
        "key": RUN_KEY,
        "attempt": 1,
        "execution_id": execution_id,
        "workflow_id": workflow_id,
        "after": 0,
        "retried": None,
        "first": 1,
        "order": "1795913836688978.2",
    }


def resumed(task: Any, event: Any) -> Any:
    """Resume a sensor as Airflow does; it had stored no arguments beside its method."""
    ti = TaskInstance()
    return task.execute_complete({"ti": ti, "task": task, "task_instance": ti}, event=event)


def test_a_deferred_run(simulator: ServiceSimulator, workflow_id: str, tmp_path: Path) -> None:
    execution_id = simulator.start_execution(workflow_id)
    trigger = execution_trigger(execution_id, workflow_id, cancel_on_kill=True)
    simulator.finish_execution(execution_id)

    event = asyncio.run(first_event(trigger))
    run = TaskRun(ServiceRunWorkflowOperator, {"workflow_id": workflow_id}, StateStore(tmp_path / "state"))
    deferred: Any = SimpleNamespace(method_name="execute_complete", kwargs={"workflow_name": "Long"})
    result = run.resume(1, deferred, event)
    run.close()

    assert (result["execution_id"], result["status"]) == (execution_id, "success")


@pytest.mark.parametrize("ends_meanwhile", [True, False], ids=["ended", "running"])
def test_a_saved_run(simulator: ServiceSimulator, workflow_id: str, tmp_path: Path, ends_meanwhile: bool) -> None:
    execution_id = simulator.start_execution(workflow_id, seconds=60)
    if ends_meanwhile:
        simulator.finish_execution(execution_id)
    store = StateStore(tmp_path / "state")
    store.set("service_execution", saved_state(execution_id, workflow_id))

    run = TaskRun(ServiceRunWorkflowOperator, {"workflow_id": workflow_id}, store, began=BEGAN)
    result = run.attempt(2, deferrable=False)
    run.close()

    assert (result["execution_id"], result["status"]) == (execution_id, "success")
    assert not [request for request in simulator.requests if request.path.startswith("/webhook/")]


def test_a_call_of_which_no_answer_was_saved(simulator: ServiceSimulator, workflow_id: str, tmp_path: Path) -> None:
    header = f"{RUN_KEY}.1795913836688978.07302ad9548f.1"
    requests.post(f"{simulator.base_url}/webhook/w", headers={"X-Airflow-Run-Key": header}, timeout=60)
    simulator.clear_requests()
    store = StateStore(tmp_path / "state")
    store.set("service_execution", saved_state(None, ""))

    run = TaskRun(ServiceRunWorkflowOperator, {"workflow_id": workflow_id}, store, began=BEGAN)
    result = run.attempt(2, deferrable=False)
    run.close()

    assert (result["execution_id"], result["status"]) == ("1", "success")
    assert not [request for request in simulator.requests if request.path.startswith("/webhook/")]


def test_a_deferred_sensor(simulator: ServiceSimulator, workflow_id: str) -> None:
    execution_id = simulator.start_execution(workflow_id)
    trigger = execution_trigger(execution_id, workflow_id, cancel_on_kill=False)
    simulator.finish_execution(execution_id)

    sensor = ServiceExecutionSensor(task_id="wait", execution_id=execution_id)
    result = resumed(sensor, asyncio.run(first_event(trigger)))

    assert (result["execution_id"], result["status"]) == (execution_id, "success")


def test_a_deferred_health_sensor(simulator: ServiceSimulator, workflow_id: str) -> None:
    thresholds = dict.fromkeys(("max_failure_rate", "max_age_of_success", "max_duration_median", "max_duration_p95"))
    selection = dict.fromkeys(("workflow_name", "tag_id", "tag_name", "project_id", "project_name"))
    arguments = {
        **DEADLINE,
        "deadline": clock().now() + 60,  # time jumps there, and the executions must not be a window old
        "poll_interval": 300.0,
        "fault_tolerance": 300.0,
        "workflow_id": workflow_id,
        **selection,
        "all_workflows": False,
        "window": 86400.0,
        **thresholds,
        "min_runs": 1,
    }
    trigger = from_stored(f"{TRIGGERS}.health.ServiceWorkflowHealthTrigger", arguments)
    simulator.clock.shift(-3600)
    simulator.start_execution(workflow_id, status="success", age=60.0)
    simulator.clock.shift(3600)

    sensor = ServiceWorkflowHealthSensor(task_id="wait", workflow_id=workflow_id, min_runs=1)
    result = resumed(sensor, asyncio.run(first_event(trigger)))

    assert [workflow["workflow_id"] for workflow in result["workflows"]] == [workflow_id]


def test_a_deferred_source_control_sensor(simulator: ServiceSimulator) -> None:
    options = {"direction": "pull", "state": "changed", "types": None}
    arguments = {**DEADLINE, "poll_interval": 60.0, "fault_tolerance": 300.0, **options}
    trigger = from_stored(f"{TRIGGERS}.source_control.ServiceSourceControlTrigger", arguments)

    sensor = ServiceSourceControlSensor(task_id="wait")
    result = resumed(sensor, asyncio.run(first_event(trigger)))

    assert result["by_type"] == {"workflow": 1, "variables": 1, "tags": 1}


@asset_watchers
@in_event_loop
async def test_a_watcher_of_executions(simulator: ServiceSimulator, workflow_id: str) -> None:
    statuses = ["canceled", "crashed", "error", "success"]
    arguments = {"workflow_id": workflow_id, "statuses": statuses, "service_conn_id": "service_default"}
    trigger = from_stored(f"{TRIGGERS}.events.ServiceExecutionEventTrigger", {**arguments, "poll_interval": 0.1})
    execution_id = simulator.start_execution(workflow_id, seconds=1.0)

    event = await first_event(trigger)

    assert (event["execution_id"], event["status"]) == (execution_id, "success")
