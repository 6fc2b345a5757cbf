"""Runs of workflows that the bridge starts: those with a trigger for sub-workflows, or a manual one."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.runs.start_methods import bridge
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.client.errors import ServiceExecutionFailedError
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.simulator._samples import chain

from .conftest import MakeRun, connect
from .cutting import cut_off
from .own_state import OwnState
from .task_run import StateStore
from .workflows import (
    CALLED,
    DONE,
    FAIL,
    MANUAL,
    SCHEDULE,
    bridge_of,
    bridged,
    calls,
    held,
    put,
    put_bridge,
    started_with,
    statuses,
    wait,
    webhook,
)


@pytest.fixture(autouse=True)
def soon_published(simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, simulator, extra={"retry_deadline": 30})  # the webhook of the bridge goes live a little late
    monkeypatch.setenv("AIRFLOW_CONN_HOOK", '{"conn_type": "http", "password": "p"}')
    monkeypatch.setattr(bridge, "PUBLISHED_WITHIN_SECONDS", 3.0)
    monkeypatch.setattr(bridge, "_PAUSE_SECONDS", 0.05)


@pytest.mark.parametrize(
    ("payload", "items"),
    [
        ({"n": 1}, [{"n": 1}]),
        ([{"n": 1}, {}, {"n": [{"x": None}]}], [{"n": 1}, {}, {"n": [{"x": None}]}]),
        (None, [{}]),
    ],
    ids=["mapping", "list", "none"],
)
def test_a_sub_workflow(make_run: MakeRun, simulator: ServiceSimulator, payload: Any, items: list[Any]) -> None:
    workflow_id = put(simulator, CALLED, wait(0.2), DONE, name="Sub-workflow")
    done = make_run(workflow_name="Sub-workflow", payload=payload, return_output="last_node").whole_attempt(1)
    [execution] = held(simulator, workflow_id)
    assert (done["execution_id"], done["status"], done["output"]) == (str(execution.id), "success", items)
    assert (execution.mode, done["workflow_id"]) == ("integrated", workflow_id)
    assert done["url"].endswith(f"/workflow/{workflow_id}/executions/{execution.id}")
    [call] = bridged(simulator)
    assert "x-airflow-run-key" in started_with(call)["headers"]


def test_a_manual_trigger_beside_a_schedule(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, SCHEDULE, MANUAL, DONE)
    task_run(workflow_id=workflow_id).attempt(1)
    [execution] = held(simulator, workflow_id)
    assert next(iter(execution.run.run_data)) == "Button"


def test_a_workflow_that_was_not_active(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, CALLED, DONE, active=False)
    simulator.state.publish_delay = 0.3
    try:
        assert task_run(workflow_id=workflow_id, activate=True).attempt(1)["status"] == "success"
    finally:
        simulator.state.publish_delay = 0.1
    assert simulator.state.workflows.get(workflow_id).active
    assert statuses(simulator, workflow_id) == ["success"]


def test_a_webhook_is_preferred(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), CALLED, DONE)
    task_run(workflow_id=workflow_id).attempt(1)
    assert [one.mode for one in held(simulator, workflow_id)] == ["webhook"]
    task_run(workflow_id=workflow_id, start="bridge", map_index=1).attempt(1)
    assert [one.mode for one in held(simulator, workflow_id)] == ["webhook", "integrated"]


def test_the_bridge_is_installed_once(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, CALLED, DONE)
    for index in range(3):
        task_run(workflow_id=workflow_id, map_index=index).attempt(1)
    assert statuses(simulator, bridge_of(simulator)) == ["success"] * 3


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("nodes", "arguments", "message"),
    [
        ([CALLED], {"payload": "text"}, "a sub-workflow takes a mapping or a list of mappings as its payload, not 'te"),
        ([CALLED], {"payload": []}, r"a sub-workflow takes .* as its payload, not \[\]"),
        ([CALLED], {"payload": [1]}, r"a sub-workflow takes .* as its payload, not \[1\]"),
        ([CALLED], {"mode": "manual", "start": "bridge"}, "the bridge runs the published version, not the draft"),
        ([SCHEDULE], {}, r"bridge: it has no manual or sub-workflow trigger; its triggers: 'Clock' \(schedule\)"),
        ([CALLED, MANUAL], {"trigger_node": "Button"}, "the service begins at 'Called', not at 'Button'"),
        ([CALLED], {"webhook_headers": {"X-A": "b"}}, "bridge: only the call of a webhook takes webhook_headers"),
        ([CALLED], {"webhook_conn_id": "hook"}, "bridge: only the call of a webhook takes webhook_conn_id"),
        ([CALLED], {}, "is not active"),
    ],
)
def test_nothing_is_started(
    task_run: MakeRun, simulator: ServiceSimulator, nodes: list[Any], arguments: dict[str, Any], message: str
) -> None:
    workflow_id = put(simulator, *nodes, DONE, active=False)
    with pytest.raises(AirflowFailException, match=f"{message}.*[Nn]othing was started"):
        task_run(workflow_id=workflow_id, **arguments).attempt(1)
    assert (calls(simulator), held(simulator, workflow_id)) == (0, [])


def test_an_archived_workflow(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, CALLED, DONE)
    workflow = simulator.state.workflows.get(workflow_id)
    simulator.in_loop(lambda: simulator.state.workflows.archive(workflow))
    with pytest.raises(AirflowFailException, match="is archived; nothing was started"):
        task_run(workflow_id=workflow_id).attempt(1)
    assert calls(simulator) == 0


def test_only_a_manual_trigger(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, MANUAL, DONE, active=False)
    with pytest.raises(AirflowFailException, match="bridge: its only trigger is manual"):
        task_run(workflow_id=workflow_id).attempt(1)
    assert simulator.state.workflows.all() == [simulator.state.workflows.get(workflow_id)]


@pytest.mark.parametrize("activate", [False, True])
def test_an_older_server_starts_what_is_not_active(
    task_run: MakeRun, simulator: ServiceSimulator, activate: bool
) -> None:
    put_bridge(simulator)
    simulator.version = "1.123.81"
    workflow_id = put(simulator, CALLED, DONE, active=False)
    assert task_run(workflow_id=workflow_id, activate=activate).attempt(1)["status"] == "success"
    assert simulator.state.workflows.get(workflow_id).active is activate


@pytest.mark.slow
def test_the_bridge_says_why_it_starts_nothing(
    task_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None
) -> None:
    workflow_id = put(simulator, CALLED, DONE, active=False)
    run = task_run(workflow_id=workflow_id, store=store, activate=True)
    put_bridge(simulator)
    simulator.inject("status", status=400, path=f"{workflow_id}/activate$", times=1)
    with pytest.raises(
        AirflowFailException, match=r"could not start workflow \w+ \(Workflow\): Workflow is not active"
    ):
        run.attempt(1)
    assert run.attempt(2)["status"] == "success"
    assert len(held(simulator, workflow_id)) == 1


def test_a_workflow_that_may_not_be_called(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, CALLED, DONE, callerPolicy="none")
    with pytest.raises(Exception, match="cannot be called by this workflow"):
        task_run(workflow_id=workflow_id).attempt(1)
    assert statuses(simulator, workflow_id) == ["error"]


def test_a_key_that_cannot_install(
    task_run: MakeRun, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    scopes = ["workflow:list", "workflow:read", "execution:list", "execution:read"]
    connect(monkeypatch, simulator, password=simulator.create_key(scopes=scopes))
    workflow_id = put(simulator, CALLED, DONE)
    with pytest.raises(
        AirflowFailException,
        match=r"the API key lacks scopes that installing the bridge needs: credential:create, .*once",
    ):
        task_run(workflow_id=workflow_id).attempt(1)


def test_a_shared_secret_serves_a_key_that_cannot_install(
    task_run: MakeRun, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = {"bridge_secret": "known to both connections", "retry_deadline": 30}
    connect(monkeypatch, simulator, extra=extra)
    task_run(workflow_id=put(simulator, CALLED, DONE)).attempt(1)
    scopes = ["workflow:list", "workflow:read", "execution:list", "execution:read"]
    connect(monkeypatch, simulator, password=simulator.create_key(scopes=scopes), extra=extra)
    assert task_run(workflow_id=put(simulator, CALLED, DONE)).attempt(1)["status"] == "success"


def test_a_bridge_whose_credential_was_deleted(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    put_bridge(simulator)
    [credential] = simulator.state.credentials.all()
    simulator.in_loop(lambda: simulator.state.credentials.delete(credential["id"]))
    workflow_id = put(simulator, CALLED, DONE)
    with pytest.raises(Exception, match="No authentication data defined on node"):
        task_run(workflow_id=workflow_id).attempt(1)
    assert held(simulator, workflow_id) == []


# ---------------------------------------------------------------- exactly one


def test_a_lost_answer(make_run: MakeRun, simulator: ServiceSimulator, task_run: MakeRun) -> None:
    put_bridge(simulator)
    workflow_id = put(simulator, CALLED, wait(0.2), DONE)
    simulator.inject("drop", path="^/webhook/", after_processing=True)
    assert make_run(workflow_id=workflow_id).whole_attempt(1)["status"] == "success"
    assert (len(held(simulator, workflow_id)), calls(simulator)) == (1, 1)


def test_a_call_that_did_not_arrive_is_repeated(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    put_bridge(simulator)
    workflow_id = put(simulator, CALLED, DONE)
    simulator.inject("drop", path="^/webhook/", times=1)
    assert task_run(workflow_id=workflow_id).attempt(1)["status"] == "success"
    assert len(held(simulator, workflow_id)) == 1


@pytest.mark.parametrize("status", ["running", "success"])
def test_a_later_attempt_resumes(
    task_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None, status: str
) -> None:
    workflow_id = put(simulator, CALLED, wait(0.3 if status == "running" else 0), DONE)
    run = task_run(workflow_id=workflow_id, store=store)
    first = run.attempt(1, wait_for_completion=False)
    if status == "success":
        assert statuses(simulator, workflow_id)
    assert run.attempt(2)["execution_id"] == first["execution_id"]
    assert len(held(simulator, workflow_id)) == 1


def test_a_failed_one_is_followed_by_another(
    task_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None
) -> None:
    workflow_id = put(simulator, CALLED, FAIL)
    run = task_run(workflow_id=workflow_id, store=store)
    for attempt in (1, 2):
        with pytest.raises(ServiceExecutionFailedError, match="It failed"):
            run.attempt(attempt)
    assert statuses(simulator, workflow_id) == ["error", "error"]


def test_the_service_retries_a_failed_one(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, CALLED, FAIL)
    run = task_run(workflow_id=workflow_id, on_retry="retry_execution")
    for attempt in (1, 2):
        with pytest.raises(ServiceExecutionFailedError):
            run.attempt(attempt)
    assert [one.mode for one in held(simulator, workflow_id)] == ["integrated", "retry"]


def test_killed_with_the_call_on_its_way(task_run: MakeRun, own_state: OwnState, simulator: ServiceSimulator) -> None:
    own_state.becomes("failed")
    put_bridge(simulator)
    workflow_id = put(simulator, CALLED, wait(60), DONE)
    run = task_run(workflow_id=workflow_id)
    simulator.inject("latency", seconds=0.3, path="^/webhook/", after_processing=True)
    worker = threading.Thread(target=partial(_quietly, run.attempt, 1))
    worker.start()
    while not calls(simulator):
        worker.join(0.01)
    run.task.on_kill()
    worker.join()
    assert statuses(simulator, workflow_id) == ["canceled"]


def _quietly(work: Any, *arguments: Any) -> None:
    with suppress(Exception):  # the killed attempt fails, as it should
        work(*arguments)


def test_a_child_that_is_not_kept(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, CALLED, DONE, saveDataSuccessExecution="none")
    run = partial(task_run, workflow_id=workflow_id)
    assert run(on_vanished="succeed").attempt(1)["execution_id"]
    with pytest.raises(AirflowFailException):
        run(map_index=1).attempt(1)
    assert len(bridged(simulator)) == 2


def test_clearing_resumes_what_is_still_active(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, CALLED, wait(600), DONE)
    run = task_run(workflow_id=workflow_id, wait_for_completion=False)
    first = run.attempt(1)
    run.began, run.cleared = datetime.now(UTC) + timedelta(hours=1), 1
    assert run.attempt(2)["execution_id"] == first["execution_id"]
    assert len(held(simulator, workflow_id)) == 1


def test_nothing_of_the_secret_is_kept(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    task_run(workflow_id=put(simulator, CALLED, DONE)).attempt(1)
    [execution] = bridged(simulator)
    [credential] = simulator.state.credentials.all()
    assert simulator.state.credentials.data(credential["id"])["secret"] not in json.dumps(execution.run.run_data)


@pytest.mark.parametrize(("first", "then"), [("webhook", "bridge"), ("bridge", "webhook")])
def test_an_attempt_resumes_what_an_earlier_one_started_by_another_method(
    task_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None, first: str, then: str
) -> None:
    put_bridge(simulator)
    workflow_id = put(simulator, webhook(), CALLED, wait(60), DONE)
    run = task_run(workflow_id=workflow_id, store=store, wait_for_completion=False, start=first)
    cut_off(run)
    [execution] = held(simulator, workflow_id)
    assert run.attempt(2, start=then)["execution_id"] == str(execution.id)
    assert statuses(simulator, workflow_id) == ["running"]


def test_an_attempt_resumes_what_the_webhook_started_that_the_workflow_had_until_then(
    task_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None
) -> None:
    put_bridge(simulator)
    workflow_id = put(simulator, webhook(), wait(60), DONE)
    run = task_run(workflow_id=workflow_id, store=store, wait_for_completion=False)
    cut_off(run)
    changed = chain("Workflow", [CALLED, wait(60), DONE])
    with ServiceClient(ServiceConfig(base_url=simulator.base_url, api_key=simulator.api_key)) as client:
        client.workflows.update(workflow_id, "Workflow", changed["nodes"], changed["connections"], {})
    assert run.attempt(2)["execution_id"] == "1"
    assert statuses(simulator, workflow_id) == ["running"]
