"""Running workflows on the real server: every way a webhook answers, queues, waits and failures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.errors import ServiceExecutionFailedError
from airflow_provider_service.operators.executions import ServiceRetryExecutionOperator
from tests.runs.workflows import DONE, FAIL, WITH_ID, respond, wait, webhook

from .conftest import MakeRun, MakeServer
from .running import connect, delete_workflows, path, put
from .servers import Generation, LiveServer


@pytest.fixture
def client(live_server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceClient]:
    with connect(monkeypatch, live_server) as client:
        yield client
        delete_workflows(client)


WAYS = {
    "at once": lambda: (webhook(path()), wait(2), DONE),
    "at once, with its id": lambda: (webhook(path(), options={"responseData": WITH_ID}), wait(2), DONE),
    "at the end": lambda: (webhook(path(), mode="lastNode"), wait(2), DONE),
    "by a node": lambda: (webhook(path(), mode="responseNode"), respond(202, respondWith="noData"), wait(2), DONE),
}


@pytest.mark.smoke
@pytest.mark.parametrize("deferrable", [False, True], ids=["in the worker", "deferred"])
@pytest.mark.parametrize("way", WAYS)
def test_a_run_in_every_way_a_webhook_answers(
    client: ServiceClient, task_run: MakeRun, way: str, deferrable: bool
) -> None:
    workflow_id = put(client, *WAYS[way]())
    result = task_run(workflow_id=workflow_id, deferrable=deferrable).whole_attempt(1)

    [execution] = client.executions.list(workflow_id=workflow_id)
    assert (result["execution_id"], result["status"]) == (execution.id, "success")


@pytest.mark.smoke
def test_a_later_attempt_resumes_the_run_of_the_first(client: ServiceClient, task_run: MakeRun) -> None:
    workflow_id = put(client, webhook(path()), wait(4), DONE)
    run = task_run(workflow_id=workflow_id)
    first = run.attempt(1, wait_for_completion=False)

    assert run.attempt(2)["execution_id"] == first["execution_id"]
    assert len(list(client.executions.list(workflow_id=workflow_id))) == 1


@pytest.mark.smoke
@pytest.mark.parametrize("mode", ["onReceived", "lastNode"])
def test_a_failing_run_names_its_node_and_a_retry_starts_another(
    client: ServiceClient, task_run: MakeRun, mode: str
) -> None:
    workflow_id = put(client, webhook(path(), mode=mode), FAIL)
    run = task_run(workflow_id=workflow_id)
    for attempt in (1, 2):
        with pytest.raises(ServiceExecutionFailedError, match="status 'error' at node 'Fail': It failed"):
            run.attempt(attempt)

    assert [one.status for one in client.executions.list(workflow_id=workflow_id)] == ["error", "error"]


@pytest.mark.smoke
def test_a_run_that_does_not_end_in_time_is_stopped(
    client: ServiceClient, live_generation: Generation, task_run: MakeRun
) -> None:
    # The older generation has no call that stops an execution; the task says so.
    can_stop = live_generation.major != 1
    fate = "it was stopped" if can_stop else "it could NOT be stopped and may still be running"
    workflow_id = put(client, webhook(path()), wait(20), DONE)
    with pytest.raises(ServiceExecutionFailedError, match=f"had not ended 2 s after the wait began; {fate}"):
        task_run(workflow_id=workflow_id, timeout=2).attempt(1)

    status, found = ("canceled", None) if can_stop else ("running", "running")
    assert [one.status for one in client.executions.list(workflow_id=workflow_id, status=found)] == [status]


@pytest.mark.smoke
def test_the_services_own_retry(client: ServiceClient, task_run: MakeRun) -> None:
    workflow_id = put(client, webhook(path()), wait(1), FAIL)
    with pytest.raises(ServiceExecutionFailedError):
        task_run(workflow_id=workflow_id).attempt(1)
    [failed] = client.executions.list(workflow_id=workflow_id)

    with pytest.raises(ServiceExecutionFailedError, match="at node 'Fail'"):
        task_run(ServiceRetryExecutionOperator, execution_id=failed.id, deferrable=True).whole_attempt(1)

    retry, original = client.executions.list(workflow_id=workflow_id)
    assert (original.id, str(retry.retry_of), retry.status) == (failed.id, failed.id, "error")


def test_runs_that_queue_for_a_place(
    make_server: MakeServer, monkeypatch: pytest.MonkeyPatch, task_run: MakeRun
) -> None:
    limit = {"N8N_CONCURRENCY_PRODUCTION_LIMIT": "1"}
    with make_server(environment=limit) as server, connect(monkeypatch, server) as client:
        busy, queued = (put(client, webhook(path()), wait(seconds), DONE) for seconds in (6, 1))
        first = task_run(workflow_id=busy).attempt(1, wait_for_completion=False)

        # Its call is held open until the first has ended; the execution is found before that.
        assert task_run(workflow_id=queued).attempt(1)["status"] == "success"
        assert client.executions.get(first["execution_id"]).status == "success"
        assert len(list(client.executions.list(workflow_id=queued))) == 1
