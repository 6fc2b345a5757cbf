"""Workers that are killed, or end, while the real server runs their execution: it continues, and stays the only one."""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.runs.bridge import BridgeSecret, Installer
from airflow_provider_service._core.runs.searching import QueuedExecutions
from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client._constraints import ACTIVE_STATUSES
from airflow_provider_service.client.errors import ServiceExecutionFailedError
from airflow_provider_service.operators.executions import ServiceRetryExecutionOperator
from airflow_provider_service.simulator import _samples as samples
from tests.conformance.differences import difference
from tests.polling import wait_until
from tests.runs import victims
from tests.runs.moments import connections, seed_of_the_day, soon
from tests.runs.task_run import StateStore, TaskRun
from tests.runs.workflows import CALLED, DONE, FAIL, SCHEDULE, wait, webhook

from .conftest import MakeRun, MakeServer
from .relay import Hold, Relay
from .running import allow_mcp, connect, delete_credentials, delete_workflows, path, put
from .servers import Generation, LiveServer

#: Longer than a process takes to end on a busy machine.
OPEN_SECONDS = 20
TRIES = 6
MAX_PAUSE_SECONDS = 0.3


class Way(NamedTuple):
    """How a worker starts the workflow.

    :param begin: makes the node that begins the workflow.
    :param arguments: of the operator.
    :param call: regular expression for the path of its call.
    :param before: number of requests to that path that come before the call.
    :param may_doubt: whether the task may fail for good after a kill, because nothing tells which execution is its own.
    """

    begin: Callable[[], dict[str, Any]]
    arguments: Mapping[str, Any] = {}
    call: str = "^/webhook/"
    before: int = 0
    may_doubt: bool = False


WAYS = {
    "onReceived": Way(lambda: webhook(path())),
    "lastNode": Way(lambda: webhook(path(), mode="lastNode")),
    # The first of its requests recognises the kind of the endpoint.
    "mcp": Way(lambda: SCHEDULE, {"start": "mcp"}, "^/mcp-server/", 1, may_doubt=True),
    "bridge": Way(lambda: CALLED, {"start": "bridge"}),
}


@pytest.fixture
def client(live_server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceClient]:
    with connect(monkeypatch, live_server) as client:
        yield client
        delete_workflows(client)


def phase(relay: Relay, way: Way, execution_ids: list[str]) -> str:
    """How far a worker has come, by what it has asked for."""
    requests = list(relay.requests)
    to_it = [one for one in requests if re.search(way.call, one.path)]
    call = to_it[way.before] if len(to_it) > way.before else None
    if call is None:
        return "before the call" if requests else "silent"
    pages = {f"/api/v1/executions/{one}" for one in execution_ids}
    if any(one.path in pages and "includeData" not in one.query for one in requests):
        return "while waiting"
    return "after the call" if call.answered else "during the call"


@contextmanager
def started(run: TaskRun, **constants: float) -> Iterator[Any]:
    """The first attempt of a task run, in a process of its own."""
    worker = victims.FORKS.Process(target=victims.attempt, args=(connections(), run, 1, constants))
    worker.start()
    try:
        yield worker
    finally:
        worker.kill()
        worker.join()
        worker.close()


def ids(client: ServiceClient, workflow_id: str) -> list[str]:
    """The executions of a workflow, those that run or wait for a worker too, oldest first."""
    lists = [client.executions.list(workflow_id=workflow_id, status=status) for status in ("running", None)]
    return sorted({one.id for one in chain(*lists, QueuedExecutions(workflow_id).read(client))}, key=int)


WINDOWS = ("before the call", "before it arrives", "before it is answered", "after the call", "while waiting")


def hold(window: str, way: Way) -> Hold | None:
    """Where the relay stops, so that a kill falls into a window."""
    return {
        "before the call": Hold("/api/v1/workflows/", "answer"),
        "before it arrives": Hold(way.call, "request", way.before),
        "before it is answered": Hold(way.call, "answer", way.before),
        "after the call": Hold("/api/v1/executions", "answer"),
        "while waiting": None,
    }[window]


@pytest.fixture
def set_up(
    live_server: LiveServer, live_generation: Generation, client: ServiceClient, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], None]]:
    """``set_up(way)`` puts in place what a way needs."""

    def for_way(name: str) -> None:
        if name == "mcp":
            if older := difference("MCP endpoint", live_generation.name):
                pytest.skip(f"the MCP endpoint does not start workflows: {older.reason}")
            allow_mcp(monkeypatch, live_server)
        if name == "bridge":
            Installer(client, BridgeSecret(client.transport.config)).install()

    yield for_way
    delete_workflows(client)
    delete_credentials(client)


@pytest.fixture
def kill(
    live_server: LiveServer, client: ServiceClient, task_run: MakeRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[Way, str, str, random.Random], str]:
    """``kill(way, window, aim, dice)`` kills a first attempt, lets a second one end, and tells where the kill fell."""

    def kill_once(way: Way, window: str, aim: str, dice: random.Random) -> str:
        workflow_id = put(client, way.begin(), wait(2), DONE, availableInMCP=True)
        client.workflows.activate(workflow_id)
        fields = json.loads(os.environ["AIRFLOW_CONN_SERVICE_DEFAULT"])
        with Relay(live_server.base_url, hold(window, way)) as relay:
            monkeypatch.setenv("AIRFLOW_CONN_RELAYED", json.dumps({**fields, "host": relay.base_url}))
            run = task_run(workflow_id=workflow_id, service_conn_id="relayed", **way.arguments)
            run.store = StateStore(tmp_path / f"{workflow_id}.json") if dice.random() < 0.5 else None
            with started(run) as worker:
                soon(lambda: phase(relay, way, ids(client, workflow_id)) in {aim, "while waiting"})
                time.sleep(dice.uniform(0, MAX_PAUSE_SECONDS))
                known = ids(client, workflow_id)
                worker.kill()
                fell = phase(relay, way, known)
                relay.release()
        doubt = ""
        try:
            done = run.whole_attempt(2, service_conn_id="service_default", deferrable=dice.random() < 0.5)
        except AirflowFailException as error:
            doubt = str(error)
        [only] = ids(client, workflow_id)
        if doubt:
            assert way.may_doubt, doubt
            assert f"/executions/{only}" in doubt
        else:
            assert (done["status"], done["execution_id"]) == ("success", only)
        return fell

    return kill_once


@pytest.mark.parametrize(
    ("name", "window"),
    [
        *((name, window) for name in ("onReceived", "bridge") for window in WINDOWS),
        *(("lastNode", window) for window in ("before the call", "before it arrives", "while waiting")),
        # The answer names the execution, and the wait begins.
        *(("mcp", window) for window in WINDOWS if window != "after the call"),
    ],
)
def test_a_killed_worker(
    name: str,
    window: str,
    set_up: Callable[[str], None],
    kill: Callable[[Way, str, str, random.Random], str],
) -> None:
    set_up(name)
    aim = "during the call" if window.startswith("before it") else window
    dice, fell = random.Random(seed_of_the_day()), []
    while aim not in fell:
        assert len(fell) < TRIES, f"the kills fell {fell}"
        fell.append(kill(WAYS[name], window, aim, dice))


def ended_early(run: TaskRun, client: ServiceClient, workflow_id: str) -> str:
    """Run a first attempt that defers, in a process that ends then; the execution that it leaves behind."""
    known = set(ids(client, workflow_id))
    with started(run) as worker:
        worker.join(120)
        assert not worker.is_alive()
    [left] = set(ids(client, workflow_id)) - known
    assert client.executions.get(left).status in ACTIVE_STATUSES
    return left


def ended(client: ServiceClient, execution_id: str) -> str:
    """How an execution has ended."""

    def status() -> str | None:
        found = client.executions.get(execution_id).status
        return None if found in ACTIVE_STATUSES else found

    return wait_until(status, seconds=120, what="the end of an execution")


def test_a_call_that_is_open_when_its_process_ends(client: ServiceClient, task_run: MakeRun) -> None:
    workflow_id = put(client, webhook(path(), mode="lastNode"), wait(OPEN_SECONDS), DONE)
    run = task_run(workflow_id=workflow_id, deferrable=True)
    left = ended_early(run, client, workflow_id)

    assert ended(client, left) == "success"
    assert run.whole_attempt(2)["execution_id"] == left
    assert ids(client, workflow_id) == [left]


def test_a_retry_that_is_open_when_its_process_ends(client: ServiceClient, task_run: MakeRun) -> None:
    start = webhook(path())
    workflow_id = put(client, start, FAIL, DONE)
    with pytest.raises(ServiceExecutionFailedError):
        task_run(workflow_id=workflow_id).attempt(1)
    [original] = ids(client, workflow_id)
    # The node that failed now takes its time instead.
    body = samples.chain("mended", [start, {**wait(OPEN_SECONDS), "name": FAIL["name"]}, DONE])
    client.workflows.update(workflow_id, body["name"], body["nodes"], body["connections"], body["settings"])
    run = task_run(ServiceRetryExecutionOperator, execution_id=original, load_workflow=True, deferrable=True)
    left = ended_early(run, client, workflow_id)

    assert ended(client, left) == "success"
    assert run.whole_attempt(2)["execution_id"] == left
    assert ids(client, workflow_id) == [original, left]
    assert client.executions.get(left).retry_of == original


def test_a_call_that_queues_when_its_process_ends(
    make_server: MakeServer, monkeypatch: pytest.MonkeyPatch, task_run: MakeRun
) -> None:
    limit = {"N8N_CONCURRENCY_PRODUCTION_LIMIT": "1"}
    with make_server(environment=limit) as server, connect(monkeypatch, server) as client:
        busy, queued = (put(client, webhook(path()), wait(seconds), DONE) for seconds in (2 * OPEN_SECONDS, 1))
        task_run(workflow_id=busy).attempt(1, wait_for_completion=False)
        run = task_run(workflow_id=queued, deferrable=True)
        left = ended_early(run, client, queued)
        assert client.executions.get(left).status == "new"

        assert ended(client, left) == "success"
        assert run.whole_attempt(2)["execution_id"] == left
        assert ids(client, queued) == [left]
