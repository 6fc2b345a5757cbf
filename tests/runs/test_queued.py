"""In queue mode no list shows what waits for a worker; it is still found, and started only once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.runs.bridge import BridgeSecret
from airflow_provider_service._core.runs.searching import MAX_MISSING, RUN_KEY_HEADER, QueuedExecutions
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.client.errors import ServiceExecutionFailedError, ServiceTimeoutError
from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.operators.executions import ServiceRetryExecutionOperator
from airflow_provider_service.simulator import ServiceSimulator

from .conftest import MakeRun, connect
from .cutting import cut_off, end_each
from .workflows import CALLED, DONE, held, put, put_bridge, started_with, statuses, wait, webhook


@pytest.fixture(autouse=True)
def few_reads_by_id() -> None:
    """Here, the search reads as many ids as it does for users."""


@pytest.fixture
def simulator(task_log: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceSimulator]:
    """A service in queue mode whose workers have room for one run, behind the default connection."""
    with ServiceSimulator(concurrency_limit=1, queue_mode=True) as simulator:
        connect(monkeypatch, simulator)
        yield simulator


@pytest.fixture
def client(simulator: ServiceSimulator) -> Iterator[ServiceClient]:
    with ServiceClient(ServiceConfig(base_url=simulator.base_url, api_key=simulator.api_key)) as one:
        yield one


def start(simulator: ServiceSimulator, client: ServiceClient, path: str, times: int = 1) -> None:
    for _ in range(times):
        client.transport.call_webhook("POST", path, headers={}, payload={}, timeout=60)


def test_what_waits_for_a_worker_is_read_by_its_id(simulator: ServiceSimulator, client: ServiceClient) -> None:
    busy = put(simulator, webhook("busy"), wait(60), DONE)
    ours = put(simulator, webhook("ours"), DONE)
    start(simulator, client, "busy")
    start(simulator, client, "ours")
    start(simulator, client, "busy")
    start(simulator, client, "ours")

    assert [one.id for one in client.executions.list(workflow_id=ours)] == []
    assert [(one.id, one.status) for one in QueuedExecutions(ours).read(client)] == [("4", "new"), ("2", "new")]
    assert [one.id for one in QueuedExecutions(busy).read(client)] == ["3"]


def test_one_that_a_later_one_overtook_is_read_too(simulator: ServiceSimulator, client: ServiceClient) -> None:
    ours = put(simulator, webhook("ours"), wait(60), DONE)
    put(simulator, webhook("unfit", mode="responseNode"), DONE)
    start(simulator, client, "ours", times=2)
    start(simulator, client, "unfit")

    assert [one.id for one in client.executions.list()] == ["3"]
    assert [one.id for one in QueuedExecutions(ours).read(client)] == ["2"]


def test_ids_that_stay_missing_are_read_twice_and_no_more(simulator: ServiceSimulator, client: ServiceClient) -> None:
    workflow_id = put(simulator, webhook("w", mode="lastNode"), DONE)
    start(simulator, client, "w", times=20)
    for number in range(5, 15):
        client.executions.delete(str(number))
    search = QueuedExecutions(workflow_id)
    reads = []
    for _ in range(3):
        simulator.clear_requests()
        assert list(search.read(client)) == []
        reads.append(sum(request.path.rpartition("/")[2].isdecimal() for request in simulator.requests))

    assert reads == [10 + MAX_MISSING, 10 + MAX_MISSING, MAX_MISSING]


def test_an_id_that_was_missed_twice_is_read_again_before_it_counts_as_absent(
    simulator: ServiceSimulator, client: ServiceClient
) -> None:
    ours = put(simulator, webhook("ours"), wait(60), DONE)
    put(simulator, webhook("unfit", mode="responseNode"), DONE)
    start(simulator, client, "ours", times=2)
    start(simulator, client, "unfit")
    search = QueuedExecutions(ours)
    simulator.inject("status", status=404, path="/executions/2$", times=2)

    assert [list(search.read(client)) for _ in range(3)] == [[], [], []]
    assert [one.id for one in search.read(client, exhaustive=True)] == ["2"]


def forget_many(simulator: ServiceSimulator, client: ServiceClient) -> None:
    """Leave a wide gap between the ids that are listed and the next one, which no worker will take."""
    workflow_id = put(simulator, webhook("gone", mode="lastNode"), DONE)
    start(simulator, client, "gone", times=20)
    for number in range(1, 21):
        client.executions.delete(str(number))
    assert statuses(simulator, workflow_id) == []
    simulator.state.engine.concurrency_limit = 0


@pytest.mark.slow
def test_what_follows_many_deleted_ones_is_read_from_afar(simulator: ServiceSimulator, client: ServiceClient) -> None:
    ours = put(simulator, webhook("ours"), DONE)
    forget_many(simulator, client)
    start(simulator, client, "ours")

    assert list(QueuedExecutions(ours).read(client)) == []
    assert [one.id for one in QueuedExecutions(ours).read(client, exhaustive=True)] == ["21"]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["onReceived", "lastNode"])
def test_what_follows_many_deleted_ones_is_resumed(
    simulator: ServiceSimulator, client: ServiceClient, task_run: MakeRun, mode: str
) -> None:
    workflow_id = put(simulator, webhook("ours", mode=mode), DONE)
    forget_many(simulator, client)
    run = task_run(workflow_id=workflow_id, timeout=1)

    started = run.attempt(1, wait_for_completion=False)
    assert run.attempt(2, wait_for_completion=False)["execution_id"] == started["execution_id"] == "21"


@pytest.mark.slow
def test_a_retry_that_follows_many_deleted_ones_is_resumed(
    simulator: ServiceSimulator, client: ServiceClient, task_run: MakeRun
) -> None:
    workflow_id = put(simulator, webhook("ours"), DONE)
    original = simulator.start_execution(workflow_id, status="error")
    put(simulator, webhook("gone", mode="lastNode"), DONE)
    start(simulator, client, "gone", times=10)
    start(simulator, client, "ours")
    start(simulator, client, "gone", times=8)
    for number in (*range(2, 12), *range(13, 21)):
        client.executions.delete(str(number))
    simulator.state.engine.concurrency_limit = 0
    run = task_run(ServiceRetryExecutionOperator, execution_id=original, timeout=1)

    cut_off(run)
    assert run.attempt(2, wait_for_completion=False)["execution_id"] == "21"
    assert statuses(simulator, workflow_id) == ["error", "success", "new"]


@pytest.mark.slow
@pytest.mark.parametrize("lost", [False, True], ids=["answered", "answer lost"])
def test_an_attempt_finds_its_own_run_behind_many_deleted_ones_although_the_previous_attempt_has_one(
    simulator: ServiceSimulator, client: ServiceClient, task_run: MakeRun, lost: bool
) -> None:
    workflow_id = put(simulator, webhook("ours"), wait(60), DONE)
    put(simulator, webhook("gone", mode="lastNode"), DONE)
    start(simulator, client, "gone", times=10)
    run = task_run(workflow_id=workflow_id)
    end_each(run, simulator)
    with pytest.raises(ServiceExecutionFailedError):
        run.attempt(1)
    run.on_push = None
    start(simulator, client, "gone", times=10)
    for number in (*range(1, 11), *range(12, 22)):
        client.executions.delete(str(number))
    simulator.state.engine.concurrency_limit = 0
    if lost:
        simulator.inject("drop", path="^/webhook/ours", after_processing=True)

    assert run.attempt(2, wait_for_completion=False)["execution_id"] == "22"
    assert statuses(simulator, workflow_id) == ["error", "new"]


@pytest.mark.parametrize("mode", ["onReceived", "lastNode"])
def test_a_later_attempt_resumes_what_waits_for_a_worker(
    simulator: ServiceSimulator, client: ServiceClient, task_run: MakeRun, mode: str
) -> None:
    put(simulator, webhook("busy"), wait(60), DONE)
    workflow_id = put(simulator, webhook("ours", mode=mode), DONE)
    start(simulator, client, "busy")
    run = task_run(workflow_id=workflow_id)

    started = run.attempt(1, wait_for_completion=False)
    assert client.executions.get(started["execution_id"]).status == "new"
    assert run.attempt(2, wait_for_completion=False)["execution_id"] == started["execution_id"]

    client.executions.stop("1")
    assert run.attempt(3)["execution_id"] == started["execution_id"]
    assert statuses(simulator, workflow_id) == ["success"]


def test_a_repeated_key_finds_what_waits_for_a_worker_behind_an_execution_that_failed(
    simulator: ServiceSimulator, client: ServiceClient
) -> None:
    put(simulator, webhook("busy"), wait(60), DONE)
    workflow_id = put(simulator, webhook("ours"), wait(60), DONE)
    with ServiceHook() as hook:
        run = partial(hook.run_workflow, workflow_id=workflow_id, run_key="a", wait_for_completion=False, timeout=30)
        simulator.finish_execution(run()["execution_id"], "error")
        start(simulator, client, "busy")

        started = run()
        assert client.executions.get(started["execution_id"]).status == "new"
        assert run()["execution_id"] == started["execution_id"]


@pytest.mark.slow
def test_a_repeated_key_is_in_doubt_while_a_call_of_the_bridge_waits_for_a_worker(
    simulator: ServiceSimulator, client: ServiceClient
) -> None:
    bridge_id, workflow_id = put_bridge(simulator), put(simulator, CALLED, wait(30), DONE)
    with ServiceHook() as hook:
        run = partial(hook.run_workflow, workflow_id=workflow_id, run_key="a", wait_for_completion=False, timeout=30)
        simulator.finish_execution(run()["execution_id"], "error")
        simulator.state.engine.concurrency_limit = 0
        # Another call with the key, whose caller died.
        [call] = held(simulator, bridge_id)
        given = started_with(call)
        key = {RUN_KEY_HEADER: given["headers"][RUN_KEY_HEADER.lower()][:-1] + "2"}
        headers = {**BridgeSecret(client.transport.config).headers(client), **key}
        bridge = client.webhooks.find(client.workflows.get(bridge_id))
        with pytest.raises(ServiceTimeoutError):
            client.webhooks.call(bridge, given["body"], headers=headers, timeout=1)
        assert statuses(simulator, bridge_id) == ["success", "new"]

        with pytest.raises(AirflowFailException, match="one of them may be its own"):
            run()
    assert (statuses(simulator, bridge_id), statuses(simulator, workflow_id)) == (["success", "new"], ["error"])


def test_a_later_attempt_resumes_a_retry_that_waits_for_a_worker(
    simulator: ServiceSimulator, client: ServiceClient, task_run: MakeRun
) -> None:
    put(simulator, webhook("busy"), wait(60), DONE)
    workflow_id = put(simulator, webhook("ours"), DONE)
    original = simulator.start_execution(workflow_id, status="error")
    start(simulator, client, "busy")
    run = task_run(ServiceRetryExecutionOperator, execution_id=original)

    cut_off(run)
    assert [(one.retry_of, one.status) for one in held(simulator, workflow_id)] == [(None, "error"), (1, "new")]
    again = run.attempt(2, wait_for_completion=False)

    assert again["execution_id"] == str(held(simulator, workflow_id)[1].id)
    simulator.clock.advance(61)
    assert run.attempt(3)["execution_id"] == again["execution_id"]
    assert statuses(simulator, workflow_id) == ["error", "success"]
