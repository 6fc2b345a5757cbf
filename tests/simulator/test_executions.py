"""Executions over HTTP: lists, the table of transitions, retries, what is not kept."""

from __future__ import annotations

import base64
import json
import threading
import time
from typing import Any

import pytest
import requests

from airflow_provider_service.simulator import ServiceSimulator
from tests.polling import wait_until

from .api_client import Api

EPOCH = "1970-01-01T00:00:00.000Z"


def refused(response: requests.Response, status: int, message: str) -> None:
    assert (response.status_code, response.json()) == (status, {"message": message})


@pytest.fixture
def workflow(simulator: ServiceSimulator) -> str:
    found: str = simulator.create_webhook_workflow(path="run", behaviour="failing", respond_with_id=True)["id"]
    return found


def status_of(api: Api, execution: str) -> str:
    found: str = api.get(f"/executions/{execution}").json()["status"]
    return found


def ids(answer: requests.Response) -> list[str]:
    return [found["id"] for found in answer.json()["data"]]


def failed(api: Api) -> str:
    """A really failed run of the workflow."""
    execution: str = api.hook("run", {}).json()["executionId"]
    api.simulator.clock.advance(1)
    assert status_of(api, execution) == "error"
    return execution


# ---------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("status", "finished", "started", "stopped", "waits"),
    [
        ("new", False, False, False, False),
        ("running", False, True, False, False),
        ("waiting", False, True, True, True),
        ("success", True, True, True, False),
        ("error", False, True, True, False),
        ("canceled", False, True, True, False),
        ("crashed", False, True, True, False),
        ("unknown", False, True, False, False),
    ],
)
def test_fields_of_each_status(
    api: Api, workflow: str, status: str, finished: bool, started: bool, stopped: bool, waits: bool
) -> None:
    execution = api.simulator.start_execution(workflow, status=status)
    found = api.get(f"/executions/{execution}").json()
    assert (found["id"], found["status"], found["finished"]) == (execution, status, finished)
    shown = [found[name] is not None for name in ("startedAt", "stoppedAt", "waitTill")]
    assert shown == [started, stopped, waits]


def test_list_hides_running_ones_unless_asked(api: Api, workflow: str) -> None:
    made = {status: api.simulator.start_execution(workflow, status=status) for status in ("new", "running", "waiting")}
    made["success"] = api.simulator.start_execution(workflow, status="success")
    assert ids(api.get("/executions")) == [made["success"], made["waiting"], made["new"]]
    for status, execution in made.items():
        assert ids(api.get(f"/executions?status={status}")) == [execution]
    assert status_of(api, made["running"]) == "running"


def test_list_filters(api: Api, workflow: str) -> None:
    other = api.simulator.create_webhook_workflow(path="other")["id"]
    first = api.simulator.start_execution(workflow, status="success")
    api.simulator.clock.advance(3600)
    moment = api.simulator.state.stamp()
    second = api.simulator.start_execution(other, status="error")
    assert ids(api.get("/executions?projectId=nope")) == []
    assert ids(api.get(f"/executions?startedAfter={moment}")) == [second]
    assert ids(api.get(f"/executions?startedBefore={moment}")) == [first]
    refused(api.get("/executions?startedAfter=2026-01-01"), 400, "request/query/startedAfter Invalid datetime")


def test_odd_cursors_and_limits_of_executions(api: Api, workflow: str) -> None:
    made = [api.simulator.start_execution(workflow, status="success") for _ in range(260)]
    newest_first = made[::-1]

    def cursor(**position: Any) -> str:
        return base64.b64encode(json.dumps(position).encode()).decode()

    assert len(ids(api.get("/executions"))) == 100
    assert len(ids(api.get("/executions?limit=1000"))) == 250
    everything = api.get("/executions?limit=0")
    assert (ids(everything), everything.json()["nextCursor"]) == (newest_first, None)
    assert len(ids(api.get("/executions", params={"cursor": cursor(lastId="260", limit=1000)}))) == 250
    assert len(ids(api.get("/executions", params={"cursor": cursor(lastId="260", limit=0)}))) == 1
    ignored = api.get("/executions", params={"cursor": cursor(offset=5, limit=1), "limit": 2})
    assert ids(ignored) == newest_first[:2]


# ---------------------------------------------------------------- stop


@pytest.mark.parametrize("status", ["running", "waiting"])
def test_stop(api: Api, workflow: str, status: str) -> None:
    execution = api.simulator.start_execution(workflow, status=status)
    answer = api.post(f"/executions/{execution}/stop")
    assert answer.status_code == 200
    assert set(answer.json()) == {"mode", "startedAt", "stoppedAt", "finished", "status"}
    found = api.get(f"/executions/{execution}").json()
    assert (found["status"], found["finished"], found["waitTill"]) == ("canceled", False, None)


def test_stop_of_a_queued_one_answers_the_epoch(api: Api, workflow: str) -> None:
    execution = api.simulator.start_execution(workflow, status="new")
    answer = api.post(f"/executions/{execution}/stop").json()
    assert (answer["startedAt"], answer["status"]) == (EPOCH, "canceled")
    assert api.get(f"/executions/{execution}").json()["startedAt"] is None


def test_stop_of_a_crashed_one_is_409(api: Api, workflow: str) -> None:
    execution = api.simulator.start_execution(workflow, status="crashed")
    message = f"Only running or waiting executions can be stopped and {execution} is currently crashed"
    refused(api.post(f"/executions/{execution}/stop"), 409, message)


def test_stop_many(api: Api, workflow: str) -> None:
    other = api.simulator.create_webhook_workflow(path="other")["id"]
    made = {status: api.simulator.start_execution(workflow, status=status) for status in ("new", "running", "waiting")}
    spared = api.simulator.start_execution(other, status="running")
    answer = api.post("/executions/stop", {"status": ["queued", "running"], "workflowId": workflow})
    assert (answer.status_code, answer.json()) == (200, {"stopped": 2})
    statuses = {status: status_of(api, execution) for status, execution in made.items()}
    assert statuses == {"new": "canceled", "running": "canceled", "waiting": "waiting"}
    assert status_of(api, spared) == "running"
    everywhere = {"status": ["running", "waiting"], "workflowId": "all"}
    assert api.post("/executions/stop", everywhere).json() == {"stopped": 2}


# ---------------------------------------------------------------- delete


@pytest.mark.parametrize("status", ["new", "crashed"])
def test_delete(api: Api, workflow: str, status: str) -> None:
    execution = api.simulator.start_execution(workflow, status=status)
    answer = api.delete(f"/executions/{execution}")
    assert (answer.status_code, answer.json()["id"]) == (200, int(execution))
    refused(api.get(f"/executions/{execution}"), 404, "Not Found")
    assert ids(api.get("/executions")) == []


# ---------------------------------------------------------------- retry


def test_retry_of_a_failed_one_runs_again_from_the_failed_node(api: Api, workflow: str) -> None:
    original = failed(api)
    answer = api.post(f"/executions/{original}/retry")
    assert answer.status_code == 200
    retried = answer.json()
    assert (retried["mode"], retried["retryOf"], retried["status"]) == ("retry", original, "error")
    assert retried["id"] != original
    assert list(retried["data"]["resultData"]["runData"]) == ["Webhook", "Stop"]
    assert len(retried["data"]["resultData"]["runData"]["Webhook"]) == 1
    assert api.get(f"/executions/{original}").json()["retrySuccessId"] is None


def test_a_retry_of_what_ran_names_no_version(api: Api, workflow: str) -> None:
    original = failed(api)
    same = api.post(f"/executions/{original}/retry", {"loadWorkflow": False}).json()
    assert api.get(f"/executions/{same['id']}").json()["workflowVersionId"] is None


def test_retry_of_a_canceled_one_skips_the_wait(api: Api) -> None:
    # Far more than a call may take.
    api.simulator.create_webhook_workflow(path="slow", behaviour="long", seconds=3600, respond_with_id=True)
    original = api.hook("slow", {}).json()["executionId"]
    api.simulator.clock.advance(1)
    api.post(f"/executions/{original}/stop")
    retried = api.post(f"/executions/{original}/retry").json()
    assert retried["status"] == "success"


def test_retry_of_a_crashed_one(api: Api) -> None:
    api.simulator.create_webhook_workflow(path="slow", behaviour="long", seconds=0.1, respond_with_id=True)
    original = api.hook("slow", {}).json()["executionId"]
    api.simulator.finish_execution(original, "crashed")
    assert api.post(f"/executions/{original}/retry").json()["status"] == "success"


def test_a_queued_one_is_not_retried(api: Api, workflow: str) -> None:
    execution = api.simulator.start_execution(workflow, status="new")
    message = "Execution is queued to run (not yet started) so it cannot be retried"
    refused(api.post(f"/executions/{execution}/retry"), 409, message)
    assert len(api.simulator.state.executions) == 1


def test_stopped_simulator_lets_held_calls_go(build: Any) -> None:
    api = build()
    api.simulator.create_webhook_workflow(path="slow", behaviour="long", seconds=60, respond_with_id=True)
    original = api.hook("slow", {}).json()["executionId"]
    statuses: list[int] = []
    thread = threading.Thread(target=lambda: statuses.append(api.post(f"/executions/{original}/retry").status_code))
    thread.start()
    wait_until(lambda: len(api.simulator.state.executions) == 2)
    api.simulator.stop()
    thread.join(60)
    assert statuses == [503]


# ---------------------------------------------------------------- annotation tags


def test_annotation_tags_are_a_separate_registry(api: Api, workflow: str) -> None:
    execution = api.simulator.start_execution(workflow, status="success")
    path = f"/executions/{execution}/tags"
    tag = api.post("/tags", {"name": "not an annotation"}).json()
    refused(api.put(path, [{"id": tag["id"]}]), 404, "Some tags not found")
    annotation = {"id": "a" * 16, "name": "checked", "createdAt": EPOCH, "updatedAt": EPOCH}
    api.simulator.state.executions.annotation_tags[annotation["id"]] = annotation
    assert api.put(path, [{"id": annotation["id"]}]).json() == [annotation]
    assert api.get(path).json() == [annotation]
    assert api.put(path, []).json() == []


# ---------------------------------------------------------------- set up, ended and forgotten by a test


def test_execution_set_up_for_some_time_succeeds_by_itself(api: Api, workflow: str) -> None:
    timed = api.simulator.start_execution(workflow, seconds=60)
    endless = api.simulator.start_execution(workflow)
    api.simulator.clock.advance(59)
    assert status_of(api, timed) == "running"
    api.simulator.clock.advance(2)
    assert status_of(api, timed) == "success"
    assert status_of(api, endless) == "running"


def test_finish_reports_node_and_message(api: Api, workflow: str) -> None:
    execution = api.simulator.start_execution(workflow)
    api.simulator.finish_execution(execution, "error", node="Done", message="Boom")
    data = api.get(f"/executions/{execution}?includeData=true").json()["data"]["resultData"]
    assert (data["error"]["message"], data["error"]["node"]["name"]) == ("Boom", "Done")
    assert data["lastNodeExecuted"] == "Done"


def test_forgotten_execution_is_404(api: Api, workflow: str) -> None:
    execution = api.simulator.start_execution(workflow)
    api.simulator.forget_execution(execution)
    refused(api.get(f"/executions/{execution}"), 404, "Not Found")
    assert ids(api.get("/executions?status=running")) == []
    with pytest.raises(ValueError, match="there is no execution"):
        api.simulator.forget_execution(execution)


def test_thousands_of_executions_are_listed_fast(api: Api, workflow: str) -> None:
    for _ in range(5000):
        api.simulator.state.engine.set_up(
            api.simulator.state.workflows.get(workflow).snapshot(), "project", status="running"
        )
    began = time.process_time()
    pages = 0
    cursor: str | None = ""
    while cursor is not None:
        cursor = api.get(f"/executions?status=running&limit=250&cursor={cursor}").json()["nextCursor"]
        pages += 1
    assert pages == 20
    assert time.process_time() - began < 4
