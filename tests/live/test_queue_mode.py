"""A worker that is missing, or dies: what was started stays queued or has crashed, and nothing is started twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.errors import ServiceExecutionFailedError
from airflow_provider_service.operators.executions import ServiceRetryExecutionOperator
from tests.polling import wait_until
from tests.runs.cutting import cut_off
from tests.runs.workflows import DONE, FAIL, WITH_ID, wait, webhook

from .conftest import MakeRun
from .deployments import QueueServer
from .running import connect, delete_workflows, path, put


@pytest.fixture
def client(live_server: QueueServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceClient]:
    with connect(monkeypatch, live_server) as client:
        yield client
        live_server.resume_worker()  # without one, nothing that queues would ever end
        delete_workflows(client)


@pytest.mark.parametrize("mode", ["onReceived", "lastNode"])
@pytest.mark.parametrize("deferrable", [False, True], ids=["in the worker", "deferred"])
def test_a_run_that_no_worker_takes_is_waited_for(
    live_server: QueueServer, client: ServiceClient, task_run: MakeRun, mode: str, deferrable: bool
) -> None:
    workflow_id = put(client, webhook(path(), mode=mode), DONE)
    live_server.halt_worker()
    run = task_run(workflow_id=workflow_id, deferrable=deferrable)
    started = run.attempt(1, wait_for_completion=False)
    assert client.executions.get(started["execution_id"]).status == "new"

    live_server.resume_worker()

    assert run.whole_attempt(2)["execution_id"] == started["execution_id"]
    assert [one.status for one in client.executions.list(workflow_id=workflow_id)] == ["success"]


def test_a_retry_that_no_worker_takes_is_resumed(
    live_server: QueueServer, client: ServiceClient, task_run: MakeRun
) -> None:
    workflow_id = put(client, webhook(path()), FAIL, DONE)
    with pytest.raises(ServiceExecutionFailedError):
        task_run(workflow_id=workflow_id).attempt(1)
    [original] = client.executions.list(workflow_id=workflow_id)
    live_server.halt_worker()
    run = task_run(ServiceRetryExecutionOperator, execution_id=original.id)
    cut_off(run)

    again = run.attempt(2, wait_for_completion=False)
    retry = client.executions.get(again["execution_id"])
    assert (retry.status, retry.retry_of) == ("new", original.id)

    live_server.resume_worker()
    wait_until(lambda: has_status(client, retry.id, "error"), seconds=120, what="the end of the retry")

    def listed() -> set[str]:
        return {one.id for one in client.executions.list(workflow_id=workflow_id)}

    # For a moment, the server takes it for one that runs, which this list leaves out.
    wait_until(lambda: listed() == {original.id, retry.id}, what="the list with the retry")


def test_a_run_whose_worker_is_killed_is_run_by_another(
    live_server: QueueServer, client: ServiceClient, task_run: MakeRun
) -> None:
    workflow_id = put(client, webhook(path(), options={"responseData": WITH_ID}), wait(10), DONE)
    run = task_run(workflow_id=workflow_id)
    started = run.attempt(1, wait_for_completion=False)
    wait_until(lambda: has_status(client, started["execution_id"], "running"), seconds=120, what="the run to begin")

    live_server.halt_worker()
    live_server.resume_worker()
    with suppress(ServiceExecutionFailedError):  # it has crashed, or the next worker runs it again
        run.attempt(1)
    done = run.attempt(2)

    def running() -> list[str]:
        return [one.id for one in client.executions.list(workflow_id=workflow_id, status="running")]

    # The service may run the first one again although it has reported its crash: no other is there.
    wait_until(lambda: not running(), seconds=120, what="the end of all executions")
    found = {one.id: one.status for one in client.executions.list(workflow_id=workflow_id)}
    assert found[done["execution_id"]] == "success"
    assert found.keys() == {started["execution_id"], done["execution_id"]}


def has_status(client: ServiceClient, execution_id: str, status: str) -> bool:
    return client.executions.get(execution_id).status == status
