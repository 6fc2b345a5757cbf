"""The table in docs/how-tasks-end.md, as far as nobody wanted the task to end: its execution survives the attempt."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable

import psutil
import pytest

from airflow_provider_service.client import ServiceClient
from tests.polling import wait_until

from . import workflows
from .airflow_api import AirflowApi
from .conftest import IS_SHORT
from .deployment import READY_SECONDS, Deployment
from .figures import FIGURES
from .simulated import SimulatedService
from .waiting import Begin, TaskProcesses, Waits, executions, finish_active, processes, statuses

DAG_ID = "stack_endings"
IN_WORKER = ("retried", "last")
FIGURE = "tasks whose worker was stopped, stalled or cut off"
End = Callable[[Deployment, TaskProcesses], Iterable[psutil.Process]]


@pytest.fixture
def run(begin: Begin) -> Waits:
    """A run whose tasks wait: in the worker with attempts left, in the worker for the last time, in the triggerer."""
    [one] = begin(DAG_ID)
    return one


def assert_survived(run: Waits, api: AirflowApi, service: SimulatedService, client: ServiceClient) -> None:
    """With attempts left, the execution was resumed, and nothing else was started; in the last one, it was stopped."""
    api.wait_for_task(run.dag_id, run.run_id, "last", ["failed"], seconds=240)
    api.wait_for_later_attempt(run.dag_id, run.run_id, "retried", "running")
    wait_until(
        lambda: statuses(client, run.workflow_id)["last"] == ["canceled"],
        seconds=60,
        what="the end of the execution that nobody resumes",
    )
    assert [len(found) for found in executions(client, run.workflow_id).values()] == [1, 1, 1]
    assert api.task_states(run.dag_id, run.run_id)["deferred"] == {"deferred"}
    finish_active(service, client, run.workflow_id)
    for task in ("retried", "deferred"):
        api.wait_for_task(run.dag_id, run.run_id, task, ["success"])
    assert statuses(client, run.workflow_id) == {
        "retried": ["success"],
        "last": ["canceled"],
        "deferred": ["success"],
    }
    FIGURES.add(FIGURE, len(IN_WORKER))


def to_the_supervisor(deployment: Deployment, of: TaskProcesses) -> Iterable[psutil.Process]:
    return [of.supervisor]


def to_the_task(deployment: Deployment, of: TaskProcesses) -> Iterable[psutil.Process]:
    return [of.task]


def to_both(deployment: Deployment, of: TaskProcesses) -> Iterable[psutil.Process]:
    return of


@pytest.mark.parametrize("victims", [to_the_supervisor, to_the_task, to_both])
def test_sigterm(
    victims: End,
    run: Waits,
    deployment: Deployment,
    api: AirflowApi,
    service: SimulatedService,
    client: ServiceClient,
) -> None:
    for task in IN_WORKER:
        for one in victims(deployment, processes(deployment, run, task)):
            one.send_signal(signal.SIGTERM)

    assert_survived(run, api, service, client)
    log = api.log(run.dag_id, run.run_id, "retried")
    assert "keeps running: the task was ended from outside, and its next attempt resumes the execution" in log
    log = api.log(run.dag_id, run.run_id, "last")
    assert "was stopped: the task was ended from outside, and no attempt is left to resume the execution" in log


def test_sigterm_to_all_processes_of_the_worker(
    run: Waits, deployment: Deployment, api: AirflowApi, service: SimulatedService, client: ServiceClient
) -> None:
    """As systemd does, or a container whose first process passes the signal on to all."""
    worker = deployment["worker"]
    for one in worker.members():
        one.send_signal(signal.SIGTERM)
    wait_until(worker.has_ended, seconds=120, what="the end of the worker")
    worker.restart()

    assert_survived(run, api, service, client)


def test_a_worker_that_stalls(
    run: Waits, deployment: Deployment, api: AirflowApi, service: SimulatedService, client: ServiceClient
) -> None:
    stalled = [one for task in IN_WORKER for one in processes(deployment, run, task)]
    for one in stalled:
        one.send_signal(signal.SIGSTOP)
    api.wait_for_task(run.dag_id, run.run_id, "last", ["failed"], seconds=240)
    api.wait_for_later_attempt(run.dag_id, run.run_id, "retried", "running")

    for one in stalled:
        one.send_signal(signal.SIGCONT)
    # The supervisors belong to the worker, and take the next task.
    wait_until(
        lambda: not any(one.is_running() for one in stalled[1::2]), seconds=120, what="the end of what has stalled"
    )
    assert_survived(run, api, service, client)


@pytest.mark.parametrize("seconds", [30] if IS_SHORT else [30, 90])
def test_an_api_server_that_is_away(
    seconds: float,
    run: Waits,
    deployment: Deployment,
    api: AirflowApi,
    service: SimulatedService,
    client: ServiceClient,
) -> None:
    old = [processes(deployment, run, task).task for task in IN_WORKER]
    deployment["api-server"].end()
    time.sleep(seconds)
    deployment["api-server"].restart()
    wait_until(api.is_up, seconds=READY_SECONDS, what="the API server", interval=0.5)
    wait_until(lambda: not any(one.is_running() for one in old), seconds=180, what="the end of both attempts")

    assert_survived(run, api, service, client)


def test_a_warm_shutdown_of_the_worker(
    run: Waits, deployment: Deployment, api: AirflowApi, service: SimulatedService, client: ServiceClient
) -> None:
    """The worker takes no more tasks, and ends when those that it has have ended."""
    worker = deployment["worker"]
    shutdowns = worker.log.read_text().count("Warm shutdown")
    worker.request_end()
    wait_until(lambda: worker.log.read_text().count("Warm shutdown") > shutdowns, seconds=120, what="the warm shutdown")
    time.sleep(15)
    assert all(status in workflows.ACTIVE for [status] in statuses(client, run.workflow_id).values())

    finish_active(service, client, run.workflow_id)
    wait_until(worker.has_ended, seconds=120, what="the end of the worker")
    for task in IN_WORKER:
        api.wait_for_task(run.dag_id, run.run_id, task, ["success"])
    worker.restart()
    assert api.wait_for_run(run.dag_id, run.run_id, seconds=180) == "success"
    assert statuses(client, run.workflow_id) == {task: ["success"] for task in (*IN_WORKER, "deferred")}
    FIGURES.add(FIGURE, len(IN_WORKER))


def test_marked_while_attempts_are_left(run: Waits, api: AirflowApi, client: ServiceClient) -> None:
    api.mark(run.dag_id, run.run_id, "retried", "failed")
    api.mark(run.dag_id, run.run_id, "last", "success")
    api.mark(run.dag_id, run.run_id, "deferred", "failed")
    wait_until(
        lambda: set(map(tuple, statuses(client, run.workflow_id).values())) == {("canceled",)},
        seconds=120,
        what="the end of all executions",
        interval=1,
    )
    assert "Airflow says that the task is 'failed'" in api.log(run.dag_id, run.run_id, "retried")
