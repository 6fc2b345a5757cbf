"""A DAG file that changes between two attempts: with a Git bundle, a run keeps the file that it began with."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_service.client import ServiceClient
from tests.polling import wait_until

from . import workflows
from .airflow_api import AirflowApi
from .deployment import Deployment
from .figures import FIGURES
from .repository import Repository
from .simulated import SimulatedService
from .waiting import executions, finish_active

SOURCE = Path(__file__).with_name("changing_dag.py").read_text()
DAG_IDS = VERSIONED, LOCAL = ("stack_versioned", "stack_unversioned")


def test_a_file_that_changes_between_two_attempts(
    deployment: Deployment,
    repository: Repository | None,
    api: AirflowApi,
    service: SimulatedService,
    client: ServiceClient,
) -> None:
    if repository is None:
        pytest.skip("there is no Git")
    write(deployment, repository, 'VERSION = 1\nNAME = "before"')
    ids = {dag_id: service.create_workflow(dag_id, workflows.endless()) for dag_id in DAG_IDS}
    runs = {dag_id: begin(api, dag_id, ids[dag_id]) for dag_id in DAG_IDS}
    for dag_id in DAG_IDS:
        wait_until(lambda dag_id=dag_id: len(made(client, ids[dag_id])) == 5, seconds=240, what="all executions")
        for task in ("killed", "before"):
            api.wait_for_xcom(dag_id, runs[dag_id], task, "execution_id")
        for task in ("deferred", "deferred_fails", "deferred_before"):
            api.wait_for_trigger(dag_id, runs[dag_id], task)

    deployment["worker"].kill()
    before = {dag_id: versions(api, dag_id) for dag_id in DAG_IDS}
    write(deployment, repository, 'VERSION = 2\nNAME = "after"')
    for dag_id in DAG_IDS:
        wait_until(lambda dag_id=dag_id: versions(api, dag_id) > before[dag_id], seconds=180, what="another version")
    deployment["worker"].start()
    for dag_id in DAG_IDS:
        [failed] = executions(client, ids[dag_id])["deferred_fails"]
        service.finish(failed.id, "error")
        api.wait_for_later_attempt(dag_id, runs[dag_id], "deferred_fails", "deferred")
        api.wait_for_later_attempt(dag_id, runs[dag_id], "killed", "running")
    api.wait_for_later_attempt(VERSIONED, runs[VERSIONED], "before", "running")
    api.wait_for_xcom(LOCAL, runs[LOCAL], "after", "execution_id", seconds=180)
    # Airflow has removed the tasks that are gone, which a triggerer notices, and a worker that is dead does not.
    states = api.task_states(LOCAL, runs[LOCAL])
    assert states["before"] == states["deferred_before"] == {"removed"}
    [(_, status)] = made(client, ids[LOCAL])["before"]
    assert status in workflows.ACTIVE

    for dag_id in DAG_IDS:
        finish_active(service, client, ids[dag_id])
        assert api.wait_for_run(dag_id, runs[dag_id], seconds=240) == "success"
    first, second = (1, "success"), (2, "success")
    same = {"deferred": [first], "killed": [first], "before": [first]}
    versioned = {"deferred_before": [first], "deferred_fails": [(1, "error"), first]}
    local = {"deferred_fails": [(1, "error"), second], "after": [second], "deferred_after": [second]}
    assert made(client, ids[VERSIONED]) == {**same, **versioned}
    assert made(client, ids[LOCAL]) == {**same, **local, "deferred_before": [(1, "canceled")]}
    FIGURES.add("tasks that ended well although their DAG file changed, one successful execution each", 10)
    FIGURES.add("executions stopped because a deferred task is gone from an unversioned file", 1)
    FIGURES.add("executions left because a task is gone whose worker has died", 1)


def write(deployment: Deployment, repository: Repository, constants: str) -> None:
    """Write the file of each DAG with these constants."""
    text = SOURCE.replace('VERSION = 1\nNAME = "before"', constants)
    repository.commit({"changing.py": text.replace("stack_changing", VERSIONED)})
    (deployment.folder / "dags" / "changing.py").write_text(text.replace("stack_changing", LOCAL))


def begin(api: AirflowApi, dag_id: str, workflow_id: str) -> str:
    wait_until(lambda: dag_id in api.dag_ids(), seconds=180, what=dag_id, interval=1)
    api.unpause(dag_id)
    return api.trigger(dag_id, {"workflow_id": workflow_id})


def versions(api: AirflowApi, dag_id: str) -> int:
    """How many versions of a DAG Airflow has read."""
    return int(api.call("GET", f"/dags/{dag_id}/dagVersions")["total_entries"])


def made(client: ServiceClient, workflow_id: str) -> dict[str, list[tuple[int, str]]]:
    """The executions of each task, oldest first: the version of the file that started it, and its status."""
    return {
        task: [(workflows.payload(one)["version"], one.status) for one in found]
        for task, found in executions(client, workflow_id).items()
    }
