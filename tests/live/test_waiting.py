"""Waits on the real server: every mode of the sensor, lists, a run that sleeps, webhooks that ask for a key."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.errors import ServiceWebhookRefusedError
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from tests.polling import wait_until
from tests.runs.task_run import StateStore, TaskRun
from tests.runs.workflows import DONE, FAIL, WITH_ID, respond, wait, webhook
from tests.waits.driving import SENSOR_MODES, Mode, TaskInstance, run_to_end, waits_for

from .conftest import MakeRun
from .running import connect, delete_workflows, path, put
from .servers import Generation, LiveServer

# From 65 s on the service keeps a run in its database while it sleeps.
ASLEEP_SECONDS = 65
# A run that has ended before the wait for it began shows nothing of the wait: the next one takes longer.
RUN_SECONDS = (3, 12, 48)
ENOUGH_ROUNDS = 8


@pytest.fixture(scope="module")
def client(live_server: LiveServer) -> Iterator[ServiceClient]:
    """A client for all tests of this module, so that none deletes the run that sleeps beside them."""
    with pytest.MonkeyPatch.context() as environment, connect(environment, live_server) as client:
        yield client
        delete_workflows(client)


@pytest.fixture(scope="module")
def fall_asleep(client: ServiceClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], TaskRun]]:
    """``fall_asleep()`` makes a task run whose first attempt has started a run that sleeps."""
    made: list[TaskRun] = []

    def make() -> TaskRun:
        # The older generation lists no run that sleeps: it has to be known by its id, which only a node can tell there.
        names_itself = respond(respondWith="json", responseBody=WITH_ID)
        workflow_id = put(client, webhook(path(), mode="responseNode"), names_itself, wait(ASLEEP_SECONDS), DONE)
        run = TaskRun(
            ServiceRunWorkflowOperator,
            {"workflow_id": workflow_id, "activate": True, "poll_interval": 1.0, "timeout": 600, "deferrable": True},
            StateStore(tmp_path_factory.mktemp("asleep") / "state.json"),
        )
        made.append(run)
        run.attempt(1, wait_for_completion=False)
        wait_until(lambda: sleeps(client, run), seconds=ASLEEP_SECONDS, what="the run to fall asleep")
        return run

    yield make
    for run in made:
        run.close()


@pytest.fixture(scope="module", autouse=True)
def asleep(fall_asleep: Callable[[], TaskRun]) -> TaskRun:
    """A task run whose run sleeps while the other tests run."""
    return fall_asleep()


def sleeps(client: ServiceClient, run: TaskRun) -> bool:
    """Whether the run of a task run sleeps, and says until when."""
    execution = client.executions.get(run.pushed["execution_id"])
    return execution.status == "waiting" and execution.wait_till is not None


def start(client: ServiceClient, task_run: MakeRun, *nodes: dict[str, object], times: int = 1) -> list[str]:
    """Start executions of a workflow; their ids."""
    workflow_id = put(client, webhook(path(), options={"responseData": WITH_ID}), *nodes)
    return [
        task_run(workflow_id=workflow_id, wait_for_completion=False).attempt(1)["execution_id"] for _ in range(times)
    ]


@pytest.mark.smoke
@pytest.mark.parametrize("mode", SENSOR_MODES, ids=[mode.name for mode in SENSOR_MODES])
def test_the_sensor_in_every_mode(
    client: ServiceClient, task_run: MakeRun, mode: Mode, live_server: LiveServer
) -> None:
    for seconds in RUN_SECONDS:
        [good] = start(client, task_run, wait(seconds), DONE)
        ti = TaskInstance()
        ending = run_to_end(partial(mode.task, good, interval=0.5), ti)
        assert (ending.kind, ending.value["execution_id"], ending.value["status"]) == ("returned", good, "success")
        if ti.pauses or mode.pause is None:
            break
    assert set(ti.pauses) == ({mode.pause} if mode.pause else set())

    [bad] = start(client, task_run, wait(1), FAIL)
    ending = run_to_end(lambda: mode.task(bad, interval=0.5))
    url = f"{live_server.base_url}/workflow/{client.executions.get(bad).workflow_id}/executions/{bad}"
    message = f"execution {bad} ended with status 'error' at node 'Fail': It failed - {url}"
    assert (ending.kind, ending.message) == ("AirflowFailException", message)


def test_many_waits_read_lists(
    client: ServiceClient, task_run: MakeRun, live_generation: Generation, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "urllib3.connectionpool")
    for seconds in RUN_SECONDS:
        good = start(client, task_run, wait(seconds), DONE, times=7)
        bad = start(client, task_run, wait(seconds), FAIL, times=4)
        caplog.clear()

        events = asyncio.run(all_ended([*good, *bad]))

        assert [(event["execution_id"], event["verdict"]) for event in events] == [
            *((one, "succeeded") for one in good),
            *((one, "failed") for one in bad),
        ]
        assert all(event["message"].endswith("status 'error'") for event in events[len(good) :])
        lists = [one for one in caplog.messages if "status=running" in one]
        reads = [one for one in caplog.messages if re.search(r"GET \S+/executions/[0-9]+ ", one)]
        if max(len(lists), len(reads) / len(events)) > ENOUGH_ROUNDS:
            break
    if live_generation.major == 1:
        # It refuses to list what waits in the queue, so that each is read by id.
        assert len(reads) > 2 * len(events)
    else:
        # An execution may leave the list some time before it shows its end, and is read until then.
        assert len(lists) > 1
        assert len(reads) < len(lists) * len(events) / 2, reads


async def all_ended(execution_ids: list[str]) -> list[dict[str, str]]:
    """Wait for executions together; their events."""
    waits = asyncio.gather(*waits_for(execution_ids, poll_interval=0.5, fault_tolerance=30.0))
    return await asyncio.wait_for(waits, 300)


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


def test_a_run_that_sleeps(client: ServiceClient, asleep: TaskRun, fall_asleep: Callable[[], TaskRun]) -> None:
    # On a busy machine the other tests take longer than it sleeps.
    run = asleep if sleeps(client, asleep) else fall_asleep()

    # A later attempt goes on with it, deferred.
    done = run.whole_attempt(2)

    assert (done["execution_id"], done["status"]) == (run.pushed["execution_id"], "success")
