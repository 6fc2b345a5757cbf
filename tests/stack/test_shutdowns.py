"""Exactly one successful execution per task, and whole deployments, however a worker is shut down."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from airflow_provider_service._core.instances.apply import apply_plan
from airflow_provider_service._core.instances.plan import DeploymentTarget, make_plan
from airflow_provider_service._core.instances.source import read_source
from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client._definitions import running
from tests.instances.workflows import webhook, workflow
from tests.polling import wait_until

from . import workflows
from .airflow_api import AirflowApi
from .deployment import Deployment
from .figures import FIGURES
from .processes import Component
from .simulated import SimulatedService
from .test_kills import assert_exactly_one_each

RUNS, RUN_SECONDS = 16, 8
DAG_ID, TASKS = "stack_deployments", ("retried", "last")
WORKFLOWS = 12
End = Callable[[Component], None]


def warm(worker: Component) -> None:
    """It ends when its tasks have ended."""
    worker.request_end()


def warm_and_killed_soon(worker: Component) -> None:
    """As Kubernetes does when the grace period is over."""
    worker.request_end()
    time.sleep(3)
    worker.kill()


def all_processes(worker: Component) -> None:
    """As systemd does, or a container whose first process passes the signal on to all."""
    for one in worker.members():
        one.send_signal(signal.SIGTERM)


@pytest.mark.parametrize("end", [warm, warm_and_killed_soon, all_processes])
def test_runs_that_wait_and_runs_that_are_just_starting(
    end: End, deployment: Deployment, api: AirflowApi, service: SimulatedService, client: ServiceClient
) -> None:
    ids = [
        service.create_workflow(f"Worker ends, answers {name}", nodes)
        for name, nodes in workflows.every_way_to_answer(RUN_SECONDS).items()
    ]
    worker = deployment["worker"]
    api.unpause("stack_many_in_worker")
    run_id = api.trigger("stack_many_in_worker", {"workflows": ids, "runs": RUNS})
    for window in ("arriving", "answering"):
        calls = len(service.calls())
        wait_until(lambda calls=calls: len(service.calls()) > calls, seconds=180, what="a run that waits")
        service.arm(window)
        wait_until(service.held, seconds=180, what="a run that is just starting")
        end(worker)
        service.arm(None)
        wait_until(worker.has_ended, seconds=180, what="the end of the worker")
        worker.restart()

    assert api.wait_for_run("stack_many_in_worker", run_id, seconds=600) == "success"
    assert_exactly_one_each(client, ids, RUNS)
    FIGURES.add(f"shutdowns of a worker amid {RUNS} runs: {end.__name__.replace('_', ' ')}", 2)


class Halfway(NamedTuple):
    """A run both of whose tasks are in the middle of a deployment of the version "two", after "one" was deployed."""

    run_id: str
    name: str
    client: ServiceClient

    def held(self, task: str) -> Counter[tuple[str, str]]:
        """How many of a task's workflows have which version as their draft, and run which."""
        listed = [one for one in self.client.workflows.list() if one.name.startswith(f"{self.name} {task} ")]
        found = [self.client.workflows.get(one.id) for one in listed]
        return Counter((version(one.nodes), version(running(one)["nodes"])) for one in found)


def version(nodes: Sequence[dict[str, Any]]) -> str:
    return str(nodes[0]["parameters"]["path"]).rpartition("-")[2]


OLD, NEW = Counter({("one", "one"): WORKFLOWS}), Counter({("two", "two"): WORKFLOWS})


@pytest.fixture
def halfway(api: AirflowApi, service: SimulatedService, client: ServiceClient, tmp_path: Path) -> Iterator[Halfway]:
    """See there."""
    name, target = workflows.path(), DeploymentTarget(client)

    def definition(task: str, number: int, version: str) -> dict[str, Any]:
        return workflow(f"{name} {task} {number}", webhook(f"{name}-{task}-{number}-{version}"), active=True)

    for task in TASKS:
        (tmp_path / task).mkdir()
        for number in range(WORKFLOWS):
            (tmp_path / task / f"{number}.json").write_text(json.dumps(definition(task, number, "two")))
        before = [definition(task, number, "one") for number in range(WORKFLOWS)]
        apply_plan(make_plan(read_source(before), target), target)
    service.delay_writes(10)  # for so long that both are in the middle
    try:
        api.unpause(DAG_ID)
        run = Halfway(api.trigger(DAG_ID, {"folder": str(tmp_path)}), name, client)
        for task in TASKS:
            wait_until(lambda task=task: run.held(task)["two", "one"], seconds=180, what="a deployment", interval=1)
        yield run
    finally:
        service.delay_writes(0)


def test_deployments_in_a_worker_whose_processes_all_get_the_signal(
    halfway: Halfway, deployment: Deployment, api: AirflowApi, service: SimulatedService
) -> None:
    worker = deployment["worker"]
    service.delay_writes(0.2)
    all_processes(worker)
    wait_until(worker.has_ended, seconds=180, what="the end of the worker")

    assert [halfway.held(task) for task in TASKS] == [OLD, OLD]
    worker.restart()
    service.delay_writes(0)
    api.wait_for_task(DAG_ID, halfway.run_id, "retried", ["success"], seconds=240)
    api.wait_for_task(DAG_ID, halfway.run_id, "last", ["failed"], seconds=240)
    assert [halfway.held(task) for task in TASKS] == [NEW, OLD]
    FIGURES.add("deployments that their killed tasks rolled back", len(TASKS))


def test_a_deployment_whose_task_is_marked_as_failed(
    halfway: Halfway, api: AirflowApi, service: SimulatedService
) -> None:
    api.mark(DAG_ID, halfway.run_id, "last", "failed")
    wait_until(lambda: "rolling back" in api.log(DAG_ID, halfway.run_id, "last"), seconds=120, what="a rollback")
    service.delay_writes(0)

    wait_until(lambda: halfway.held("last") == OLD, seconds=60, what="the end of the rollback")
    api.wait_for_task(DAG_ID, halfway.run_id, "retried", ["success"], seconds=240)
    assert [halfway.held(task) for task in TASKS] == [NEW, OLD]
    FIGURES.add("deployments that their killed tasks rolled back")
