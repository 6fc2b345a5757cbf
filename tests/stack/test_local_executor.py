"""Runs in processes of the scheduler, which begin as new ones (spawn), as on platforms without fork."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_service.client import ServiceClient
from tests.polling import wait_until

from . import workflows
from .airflow_api import AirflowApi
from .deployment import Deployment
from .figures import FIGURES
from .processes import Component
from .simulated import SimulatedService
from .test_kills import assert_exactly_one_each
from .waiting import finish_active

DAG_ID, RUNS = "stack_local", 7


@pytest.fixture
def scheduler(deployment: Deployment) -> Iterator[Component]:
    """Its processes are new ones, one more whenever it looks and tasks wait for one, up to a limit."""
    one = deployment["scheduler"]
    before = one.environment
    one.environment = {
        **before,
        "AIRFLOW__SCHEDULER__MP_START_METHOD": "spawn",
        "AIRFLOW__CORE__PARALLELISM": str(RUNS),
    }
    one.restart()
    yield one
    one.environment = before
    one.restart()


@pytest.mark.parametrize("is_killed", [False, True], ids=["restarted", "killed"])
def test_a_scheduler_that_is_restarted_with_the_runs_that_wait_in_it(
    is_killed: bool, scheduler: Component, api: AirflowApi, service: SimulatedService, client: ServiceClient
) -> None:
    workflow_id = service.create_workflow("Local executor", workflows.endless())
    api.unpause(DAG_ID)
    run_id = api.trigger(DAG_ID, {"workflow_id": workflow_id})
    wait_until(lambda: waiting(client, workflow_id) == RUNS, seconds=300, what="all runs", interval=1)
    api.wait_for_trigger(DAG_ID, run_id, "deferred")
    assert any("multiprocessing.resource_tracker" in " ".join(one.cmdline()) for one in scheduler.members())  # spawn

    if is_killed:
        scheduler.kill()
    scheduler.restart()

    wait_until(lambda: resumed(api, run_id) == RUNS - 1, seconds=300, what="later attempts", interval=1)
    finish_active(service, client, workflow_id)
    assert api.wait_for_run(DAG_ID, run_id, seconds=300) == "success"
    assert_exactly_one_each(client, [workflow_id], RUNS)
    FIGURES.add("runs in a scheduler that was restarted or killed", RUNS)


def waiting(client: ServiceClient, workflow_id: str) -> int:
    return len([one for one in workflows.executions(client, workflow_id) if one.status in workflows.ACTIVE])


def resumed(api: AirflowApi, run_id: str) -> int:
    return len([one for one in api.tasks(DAG_ID, run_id) if one.tries > 1 and one.state == "running"])
