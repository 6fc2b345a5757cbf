"""Waits on the real server: every mode of the sensor, lists, a run that sleeps, webhooks that ask for a key."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Iterator

import pytest

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.webhooks import ServiceWebhookRefusedError
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from tests.running.task_run import StateStore, TaskRun
from tests.running.workflows import DONE, FAIL, WITH_ID, respond, wait, webhook
from tests.waiting.driving import SENSOR_MODES, Mode, TaskInstance, run_to_end, waits_for

from .conftest import MakeRun
from .running import connect, delete_workflows, path, put
from .servers import Generation, LiveServer

# From 65 s on the service keeps a run in its database while it sleeps.
ASLEEP_SECONDS = 65


@pytest.fixture(scope="module")
def client(live_server: LiveServer) -> Iterator[ServiceClient]:
    """A client for all tests of this module, so that none deletes the run that sleeps beside them."""
    with pytest.MonkeyPatch.context() as environment, connect(environment, live_server) as client:
        yield client
        delete_workflows(client)


@pytest.fixture(scope="module", autouse=True)
def asleep(client: ServiceClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaskRun]:
    """A task run whose first attempt has started a run that sleeps."""
    # The older generation lists no run that sleeps: it has to be known by its id, which only a node can tell there.
    names_itself = respond(respondWith="json", responseBody=WITH_ID)
    workflow_id = put(client, webhook(path(), mode="responseNode"), names_itself, wait(ASLEEP_SECONDS), DONE)
    run = TaskRun(
        ServiceRunWorkflowOperator,
        {"workflow_id": workflow_id, "poll_interval": 1.0, "timeout": 120, "deferrable": True},
        StateStore(tmp_path_factory.mktemp("asleep") / "state.json"),
    )
    run.attempt(1, wait_for_completion=False)
    yield run
    run.close()


def start(client: ServiceClient, task_run: MakeRun, *nodes: dict[str, object], times: int = 1) -> list[str]:
    """Start executions of a workflow; their ids."""
    workflow_id = put(client, webhook(path(), options={"responseData": WITH_ID}), *nodes)
    return [
        task_run(workflow_id=workflow_id, wait_for_completion=False).attempt(1)["execution_id"] for _ in range(times)
    ]


@pytest.mark.parametrize("mode", SENSOR_MODES, ids=[mode.name for mode in SENSOR_MODES])
def test_the_sensor_in_every_mode(
    client: ServiceClient, task_run: MakeRun, mode: Mode, live_server: LiveServer
) -> None:
    [good], [bad] = start(client, task_run, wait(3), DONE), start(client, task_run, wait(3), FAIL)
    ti = TaskInstance()
    ending = run_to_end(lambda: mode.task(good, interval=0.5), ti)
    assert (ending.kind, ending.value["execution_id"], ending.value["status"]) == ("returned", good, "success")
    assert set(ti.pauses) == ({mode.pause} if mode.pause else set())

    ending = run_to_end(lambda: mode.task(bad, interval=0.5))
    url = f"{live_server.base_url}/workflow/{client.executions.get(bad).workflow_id}/executions/{bad}"
    message = f"execution {bad} ended with status 'error' at node 'Fail': It failed - {url}"
    assert (ending.kind, ending.message) == ("AirflowFailException", message)


def test_many_waits_read_lists(
    client: ServiceClient, task_run: MakeRun, live_generation: Generation, caplog: pytest.LogCaptureFixture
) -> None:
    good = start(client, task_run, wait(4), DONE, times=7)
    bad = start(client, task_run, wait(4), FAIL, times=4)
    caplog.set_level(logging.DEBUG, "urllib3.connectionpool")
    caplog.clear()

    async def wait_for_all() -> list[dict[str, str]]:
        return await asyncio.gather(*waits_for([*good, *bad], poll_interval=0.5, fault_tolerance=30.0))

    events = asyncio.run(asyncio.wait_for(wait_for_all(), 30))

    assert [(event["execution_id"], event["verdict"]) for event in events] == [
        *((one, "succeeded") for one in good),
        *((one, "failed") for one in bad),
    ]
    assert all("at node 'Fail': It failed" in event["message"] for event in events[len(good) :])
    lists = [one for one in caplog.messages if "status=running" in one]
    reads = [one for one in caplog.messages if re.search(r"GET \S+/executions/[0-9]+ ", one)]
    if live_generation.name == "1":
        # It refuses to list what waits in the queue, so that each is read by id.
        assert len(reads) > 2 * len(events)
    else:
        assert len(lists) > 1
        assert len(reads) < 2 * len(events), reads


@pytest.fixture
def guarded(client: ServiceClient) -> str:
    """A workflow whose webhook asks for a key, live."""
    key = client.credentials.create("the key", "httpHeaderAuth", {"name": "X-Token", "value": "right-secret"})
    node = webhook(path(), authentication="headerAuth")
    node["credentials"] = {"httpHeaderAuth": {"id": key.id, "name": key.name}}
    return put(client, node, DONE)


def give(monkeypatch: pytest.MonkeyPatch, secret: str) -> None:
    fields = {"conn_type": "http", "login": "X-Token", "password": secret}
    monkeypatch.setenv("AIRFLOW_CONN_WEBHOOK_KEY", json.dumps(fields))


def test_a_webhook_that_asks_for_a_key(
    client: ServiceClient, task_run: MakeRun, guarded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = task_run(workflow_id=guarded, webhook_conn_id="webhook_key")
    give(monkeypatch, "wrong-secret")
    with pytest.raises(ServiceWebhookRefusedError, match=r"authentication refused .*403.*webhook_conn_id") as refused:
        run.attempt(1)
    assert "wrong-secret" not in str(refused.value)
    assert list(client.executions.list(workflow_id=guarded)) == []

    give(monkeypatch, "right-secret")
    assert run.attempt(2)["status"] == "success"
    assert len(list(client.executions.list(workflow_id=guarded))) == 1


def test_a_run_that_sleeps(client: ServiceClient, asleep: TaskRun) -> None:
    execution_id = asleep.pushed["execution_id"]
    sleeping = client.executions.get(execution_id)
    assert (sleeping.status, sleeping.wait_till is not None) == ("waiting", True)

    # A later attempt goes on with it, deferred.
    done = asleep.whole_attempt(2)

    assert (done["execution_id"], done["status"]) == (execution_id, "success")
