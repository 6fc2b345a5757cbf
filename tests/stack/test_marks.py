"""The tables in docs/running-workflows.md on tasks that a user or a time limit ends early."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.models.executions import Execution
from tests.live.servers import wait_until

from . import workflows
from .airflow_api import AirflowApi
from .figures import FIGURES
from .simulated import SimulatedService

TASKS = ("deferred", "in_worker")
WAITING = {"deferred": "deferred", "in_worker": "running"}
ALL_CANCELED = {task: ["canceled"] for task in TASKS}
FIGURE = "tasks marked, cleared or timed out"


class Waits(NamedTuple):
    """A run whose two tasks wait for their executions, one in the triggerer and one in a worker."""

    dag_id: str
    run_id: str
    workflow_id: str


Begin = Callable[..., list[Waits]]


@pytest.fixture
def begin(api: AirflowApi, service: SimulatedService, client: ServiceClient) -> Begin:
    """``begin(dag_id, ...)`` starts runs side by side, and returns when both tasks of each wait."""

    def start(*dag_ids: str) -> list[Waits]:
        runs = []
        for dag_id in dag_ids:
            workflow_id = service.create_workflow(f"For {dag_id}", workflows.endless())
            api.unpause(dag_id)
            runs.append(Waits(dag_id, api.trigger(dag_id, {"workflow_id": workflow_id}), workflow_id))
        for run in runs:
            wait_until(
                lambda run=run: executions(client, run.workflow_id).keys() == set(TASKS),
                seconds=180,
                what="both executions",
                interval=0.5,
            )
            for task in TASKS:
                api.wait_for_xcom(run.dag_id, run.run_id, task, "execution_id")
            api.wait_for_trigger(run.dag_id, run.run_id, "deferred")
        return runs

    return start


@pytest.mark.smoke
def test_marked_tasks_stop_their_executions(begin: Begin, api: AirflowApi, client: ServiceClient) -> None:
    runs = dict(zip(("failed", "success"), begin("stack_marks", "stack_marks"), strict=True))
    for state, run in runs.items():
        for task in TASKS:
            api.wait_for_task(run.dag_id, run.run_id, task, [WAITING[task]])
            api.mark(run.dag_id, run.run_id, task, state)

    for state, run in runs.items():
        wait_for_statuses(client, run.workflow_id, ALL_CANCELED)
        assert api.task_states(run.dag_id, run.run_id) == {task: {state} for task in TASKS}
        FIGURES.add(FIGURE, len(TASKS))


def test_time_limits_stop_executions(begin: Begin, api: AirflowApi, client: ServiceClient) -> None:
    runs = dict(zip(("failed", "skipped"), begin("stack_execution_timeout", "stack_dagrun_timeout"), strict=True))

    for state, run in runs.items():
        wait_for_statuses(client, run.workflow_id, ALL_CANCELED)
        assert api.wait_for_run(run.dag_id, run.run_id, seconds=120) == "failed"
        assert api.task_states(run.dag_id, run.run_id) == {task: {state} for task in TASKS}
        FIGURES.add(FIGURE, len(TASKS))


def test_cleared_tasks_have_one_execution_and_leave_none_behind(
    begin: Begin, api: AirflowApi, service: SimulatedService, client: ServiceClient
) -> None:
    [run] = begin("stack_marks")
    for task in TASKS:
        api.clear(run.dag_id, run.run_id, task)
    for task, state in WAITING.items():
        api.wait_for_second_attempt(run.dag_id, run.run_id, task, state)

    def has_settled() -> bool:
        """The worker has stopped its execution; the next attempt of the deferred task may have come before that."""
        held = statuses(client, run.workflow_id)
        return held["in_worker"] == ["canceled", "waiting"] and held["deferred"] in (
            ["waiting"],
            ["canceled", "waiting"],
        )

    wait_until(has_settled, seconds=120, what="one execution of each task", interval=1)
    finish_active(service, client, run.workflow_id)
    assert api.wait_for_run(run.dag_id, run.run_id, seconds=180) == "success"
    assert [found[-1] for found in statuses(client, run.workflow_id).values()] == ["success", "success"]
    FIGURES.add(FIGURE, len(TASKS))


@pytest.mark.smoke
def test_without_cancel_on_kill_an_execution_keeps_running_and_is_resumed_after_a_clear(
    begin: Begin, api: AirflowApi, service: SimulatedService, client: ServiceClient
) -> None:
    [run] = begin("stack_marks_kept")
    for task in TASKS:
        api.mark(run.dag_id, run.run_id, task, "failed")
    assert api.wait_for_run(run.dag_id, run.run_id, seconds=180) == "failed"
    assert all(one.status in workflows.ACTIVE for [one] in executions(client, run.workflow_id).values())

    for task in TASKS:
        api.clear(run.dag_id, run.run_id, task)
    for task, state in WAITING.items():
        api.wait_for_second_attempt(run.dag_id, run.run_id, task, state)
    finish_active(service, client, run.workflow_id)

    assert api.wait_for_run(run.dag_id, run.run_id, seconds=180) == "success"
    assert statuses(client, run.workflow_id) == {task: ["success"] for task in TASKS}
    FIGURES.add(FIGURE, 2 * len(TASKS))


def executions(client: ServiceClient, workflow_id: str) -> dict[str, list[Execution]]:
    """The executions of each task, oldest first."""
    by_task: dict[str, list[Execution]] = {}
    for one in workflows.executions(client, workflow_id):
        by_task.setdefault(workflows.payload(one)["task"], []).append(one)
    return by_task


def statuses(client: ServiceClient, workflow_id: str) -> dict[str, list[str]]:
    return {task: [one.status for one in found] for task, found in executions(client, workflow_id).items()}


def wait_for_statuses(client: ServiceClient, workflow_id: str, wanted: dict[str, list[str]]) -> None:
    try:
        wait_until(lambda: statuses(client, workflow_id) == wanted, seconds=150, what=str(wanted), interval=1)
    except TimeoutError:
        assert statuses(client, workflow_id) == wanted


def finish_active(service: SimulatedService, client: ServiceClient, workflow_id: str) -> None:
    for one in workflows.executions(client, workflow_id):
        if one.status in workflows.ACTIVE:
            service.finish(one.id)
