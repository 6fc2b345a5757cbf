"""Runs whose tasks wait for their executions, until something happens to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import psutil

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.models import Execution
from tests.polling import wait_until

from . import workflows
from .airflow_api import AirflowApi
from .deployment import Deployment
from .simulated import SimulatedService


class Waits(NamedTuple):
    """A run whose tasks wait for their executions, one or more of them in the triggerer."""

    dag_id: str
    run_id: str
    workflow_id: str


#: ``begin(dag_id, ...)`` starts runs side by side, and returns when all tasks of each wait.
Begin = Callable[..., list[Waits]]


def begin(api: AirflowApi, service: SimulatedService, client: ServiceClient, *dag_ids: str) -> list[Waits]:
    """Start runs side by side, and return when all tasks of each wait."""
    runs = []
    for dag_id in dag_ids:
        workflow_id = service.create_workflow(f"For {dag_id}", workflows.endless())
        api.unpause(dag_id)
        runs.append(Waits(dag_id, api.trigger(dag_id, {"workflow_id": workflow_id}), workflow_id))
    for run in runs:
        tasks = {one.task_id for one in api.tasks(run.dag_id, run.run_id)}
        wait_until(
            lambda run=run, tasks=tasks: executions(client, run.workflow_id).keys() == tasks,
            seconds=180,
            what="all executions",
            interval=0.5,
        )
        for task in tasks:
            api.wait_for_xcom(run.dag_id, run.run_id, task, "execution_id")
        api.wait_for_trigger(run.dag_id, run.run_id, "deferred")
    return runs


class TaskProcesses(NamedTuple):
    """The processes of a task that runs in a worker."""

    supervisor: psutil.Process
    task: psutil.Process


def processes(deployment: Deployment, run: Waits, task_id: str) -> TaskProcesses:
    """The processes of the latest attempt of a task."""
    [[pid]] = deployment.query(
        f"SELECT pid FROM task_instance WHERE dag_id = '{run.dag_id}' AND run_id = '{run.run_id}'"
        f" AND task_id = '{task_id}'"
    )
    task = psutil.Process(int(pid))
    return TaskProcesses(psutil.Process(task.ppid()), task)


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
