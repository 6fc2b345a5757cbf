"""The table in docs/how-tasks-end.md, as far as a user or a time limit ends the task."""

from __future__ import annotations

import pytest

from airflow_provider_service.client import ServiceClient
from tests.polling import wait_until

from . import workflows
from .airflow_api import AirflowApi
from .figures import FIGURES
from .simulated import SimulatedService
from .waiting import Begin, executions, finish_active, statuses, wait_for_statuses

TASKS = ("deferred", "in_worker")
WAITING = {"deferred": "deferred", "in_worker": "running"}
ALL_CANCELED = {task: ["canceled"] for task in TASKS}
FIGURE = "tasks marked, cleared or timed out"


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
        api.wait_for_later_attempt(run.dag_id, run.run_id, task, state)

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
        api.wait_for_later_attempt(run.dag_id, run.run_id, task, state)
    finish_active(service, client, run.workflow_id)

    assert api.wait_for_run(run.dag_id, run.run_id, seconds=180) == "success"
    assert statuses(client, run.workflow_id) == {task: ["success"] for task in TASKS}
    FIGURES.add(FIGURE, 2 * len(TASKS))
