"""Waits go on when their connection changes, or the key that encrypts it: nothing starts twice, nothing stops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.fernet import Fernet

from tests.live.servers import LiveServerError
from tests.polling import wait_until

from . import workflows
from .airflow_api import AirflowApi
from .deployment import Deployment
from .figures import FIGURES
from .relay import Relay
from .simulated import SimulatedService
from .waiting import Waits, executions, finish_active, statuses

DAG_ID = "stack_moved"
RUNS = ("deferred", "deferred_without_retries", "in_worker")
DEFERRED = ("deferred", "deferred_without_retries", "sensor_deferred")
CONNECTION = "stack_moved"


@pytest.fixture
def moving() -> Iterator[SimulatedService]:
    """A service of its own, whose key and address change."""
    with SimulatedService() as running:
        yield running


def connection(moving: SimulatedService, base_url: str | None = None) -> dict[str, Any]:
    return {**moving.connection(), "connection_id": CONNECTION, "host": base_url or moving.base_url}


def begin(api: AirflowApi, moving: SimulatedService) -> tuple[Waits, str]:
    """Start a run, and return when all of its tasks wait; also returns the execution that the sensors wait for."""
    workflow_id = moving.create_workflow("Runs", workflows.endless())
    awaited = moving.start_execution(moving.create_workflow("Awaited", workflows.endless()), "running")
    api.unpause(DAG_ID)
    conf = {"workflow_id": workflow_id, "conn_id": CONNECTION, "execution_id": awaited}
    run = Waits(DAG_ID, api.trigger(DAG_ID, conf), workflow_id)
    with moving.client() as client:
        wait_until(lambda: executions(client, workflow_id).keys() == {*RUNS}, seconds=180, what="all executions")
    for task in RUNS:
        api.wait_for_xcom(DAG_ID, run.run_id, task, "execution_id")
    for task in DEFERRED:
        api.wait_for_trigger(DAG_ID, run.run_id, task)
    api.wait_for_task(DAG_ID, run.run_id, "sensor_reschedule", ["up_for_reschedule"])
    api.wait_for_task(DAG_ID, run.run_id, "sensor_poke", ["running"])
    return run, awaited


def assert_waits_went_on(
    api: AirflowApi, moving: SimulatedService, run: Waits, awaited: str, what: str, *, retried: set[str]
) -> None:
    """Some tasks need another attempt; then all executions succeed, one of each task."""
    wait_until(lambda: in_later_attempts(api, run) == retried, seconds=240, what="later attempts", interval=1)
    moving.finish(awaited)
    with moving.client() as client:
        finish_active(moving, client, run.workflow_id)
        assert api.wait_for_run(run.dag_id, run.run_id, seconds=240) == "success"
        assert statuses(client, run.workflow_id) == {task: ["success"] for task in RUNS}
    tasks = api.tasks(run.dag_id, run.run_id)
    several = {one.task_id for one in tasks if one.tries > 1}
    assert retried <= several
    assert several.isdisjoint(DEFERRED)
    FIGURES.add(f"waits that went on after {what}", len(tasks))


def in_later_attempts(api: AirflowApi, run: Waits) -> set[str]:
    return {one.task_id for one in api.tasks(run.dag_id, run.run_id) if one.tries > 1 and one.state == "running"}


def test_a_key_that_is_replaced(api: AirflowApi, moving: SimulatedService) -> None:
    api.set_connection(connection(moving))
    run, awaited = begin(api, moving)

    with moving.replaced_key():
        api.change_connection(connection(moving))

    assert_waits_went_on(api, moving, run, awaited, "a change of the key", retried={"in_worker"})


def test_a_service_that_moves(api: AirflowApi, moving: SimulatedService) -> None:
    with Relay(moving.base_url) as old:
        api.set_connection(connection(moving, old.address))
        run, awaited = begin(api, moving)
    api.change_connection(connection(moving))

    assert_waits_went_on(api, moving, run, awaited, "a move of the service", retried={"in_worker"})


def test_a_fernet_key_that_is_rotated(deployment: Deployment, api: AirflowApi, moving: SimulatedService) -> None:
    api.set_connection(connection(moving))
    run, awaited = begin(api, moving)
    old, new = deployment.settings.environment()["AIRFLOW__CORE__FERNET_KEY"], Fernet.generate_key().decode()

    deployment.restart({"AIRFLOW__CORE__FERNET_KEY": f"{new},{old}"})
    # What Airflow 3 has stored for a deferred task is not encrypted, so the command fails, and changes nothing.
    with pytest.raises(LiveServerError, match="InvalidToken"):
        deployment.airflow("rotate-fernet-key")
    retried = {"in_worker", "sensor_poke"}  # their worker restarts
    assert_waits_went_on(api, moving, run, awaited, "a change of the Fernet key", retried=retried)

    wait_until(lambda: not triggers_of_tasks(deployment), seconds=120, what="Airflow to drop all triggers", interval=1)
    deployment.airflow("rotate-fernet-key")
    deployment.restart({"AIRFLOW__CORE__FERNET_KEY": new})
    assert moving.api_key in deployment.airflow("connections", "get", CONNECTION, "--output", "json")


def triggers_of_tasks(deployment: Deployment) -> list[str]:
    return deployment.lines("SELECT id FROM trigger WHERE kwargs LIKE '{%'")
