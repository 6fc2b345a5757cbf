"""One call, one execution, and its id, however the webhook answers."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, TaskDeferred
from starlette.types import ASGIApp

from airflow_provider_service._airflow.attempts import EXECUTION_KEY
from airflow_provider_service._core.runs import searching
from airflow_provider_service.client.errors import (
    ServiceExecutionFailedError,
    ServiceRunNotStartedError,
    ServiceWaitError,
    ServiceWebhookNotLiveError,
)
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.simulator import ServiceSimulator

from .conftest import MakeRun, connect
from .workflows import (
    DONE,
    FAIL,
    WITH_ID,
    calls,
    held,
    put,
    put_behind_prefix,
    puts_out,
    respond,
    set_live,
    started_with,
    statuses,
    wait,
    webhook,
)

ANSWERS: dict[str, list[dict[str, Any]]] = {
    "at once": [webhook(), wait(0.3), DONE],
    "at once, with the id": [webhook(options={"responseData": WITH_ID}), wait(0.3), DONE],
    "at once, with nothing": [webhook(options={"noResponseBody": True}), wait(0.3), DONE],
    "at the end": [webhook(mode="lastNode"), wait(0.3), DONE],
    "at the end, with the id": [webhook(mode="lastNode"), wait(0.3), puts_out(WITH_ID)],
    "at the end, with all items": [webhook(mode="lastNode", responseData="allEntries"), wait(0.3), DONE],
    "by a node": [webhook(mode="responseNode"), respond(), wait(0.3), DONE],
    "by a node, with the id": [webhook(mode="responseNode"), respond(respondWith="json", responseBody=WITH_ID), DONE],
    "by a node, with text": [webhook(mode="responseNode"), respond(respondWith="text", responseBody="ok"), DONE],
}


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("nodes", ANSWERS.values(), ids=ANSWERS)
def test_every_response_mode(make_run: MakeRun, simulator: ServiceSimulator, nodes: list[dict[str, Any]]) -> None:
    workflow_id = put(simulator, *nodes)
    done = make_run(workflow_id=workflow_id, payload={"n": 1}).whole_attempt(1)
    [execution] = held(simulator, workflow_id)
    assert {one["status"] for one in done.pop("nodes")} == {"success"}
    assert done.pop("node_count") == len(nodes)
    assert done == {
        "execution_id": str(execution.id),
        "status": "success",
        "workflow_id": workflow_id,
        "started_at": done["started_at"],
        "stopped_at": done["stopped_at"],
        "url": f"{simulator.base_url}/workflow/{workflow_id}/executions/{execution.id}",
    }
    assert done["started_at"] < done["stopped_at"]
    assert started_with(execution)["body"] == {"n": 1}
    assert calls(simulator) == 1


@pytest.mark.parametrize("mode", ["onReceived", "lastNode", "responseNode"])
def test_a_run_that_fails(make_run: MakeRun, simulator: ServiceSimulator, mode: str) -> None:
    workflow_id = put(simulator, webhook(mode=mode), FAIL, respond())
    with pytest.raises(ServiceExecutionFailedError, match=r"ended with status 'error' at node 'Fail': It failed"):
        make_run(workflow_id=workflow_id).whole_attempt(1)
    assert (statuses(simulator, workflow_id), calls(simulator)) == (["error"], 1)


def test_the_answer_of_a_webhook_that_answers_at_once_is_awaited(
    task_run: MakeRun, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "PATIENCE_AT_ONCE_SECONDS", 60.0)
    workflow_id = put(simulator, webhook(options={"responseData": WITH_ID}), DONE)
    simulator.inject("latency", seconds=1.5, path="^/webhook/", after_processing=True)
    task_run(workflow_id=workflow_id).attempt(1)
    paths = [one.path for one in simulator.requests]
    assert [one for one in paths if one.endswith("/executions")] == []


def test_what_others_have_started_is_not_searched_any_further_after_the_answer(
    task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(mode="lastNode"), puts_out(WITH_ID))
    others = 40
    for _ in range(others):
        simulator.start_execution(workflow_id, mode="webhook")
    simulator.inject("latency", seconds=1, path="^/webhook/")
    simulator.inject("latency", seconds=0.1, path="/executions/[0-9]+$", times=None)
    done = task_run(workflow_id=workflow_id).whole_attempt(1)
    assert done["execution_id"] == str(others + 1)
    assert 0 < sum(one.path.rpartition("/")[0].endswith("/executions") for one in simulator.requests) < others


def test_a_webhook_without_its_respond_node(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(mode="responseNode"), DONE)
    with pytest.raises(ServiceExecutionFailedError, match="No Respond to Webhook node found"):
        task_run(workflow_id=workflow_id).whole_attempt(1)
    assert calls(simulator) == 1


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("headers", [{}, {"Retry-After": "0"}], ids=["", "retry-after"])
@pytest.mark.parametrize("status", [201, 302, 400, 401, 403, 404, 409, 413, 422, 429, 500, 502, 503, 504])
def test_a_status_that_the_workflow_chose(
    task_run: MakeRun, simulator: ServiceSimulator, status: int, headers: dict[str, str]
) -> None:
    # Each looks like a refusal, and is none.
    where = {"Location": "https://elsewhere.example/"} if status == 302 else {}
    body = '{"message": "The order is not registered. Cannot POST /it"}'
    answer = respond(status, respondWith="json", responseBody=body, headers={**headers, **where})
    workflow_id = put(simulator, webhook(mode="responseNode"), answer, DONE)
    assert task_run(workflow_id=workflow_id).whole_attempt(1)["status"] == "success"
    assert calls(simulator) == 1


@pytest.mark.parametrize("text", ["Cannot find it", "jwt expired", "No token provided"])
@pytest.mark.parametrize("status", [401, 403, 404, 413])
def test_a_status_with_a_text_that_the_workflow_chose(
    task_run: MakeRun, simulator: ServiceSimulator, status: int, text: str
) -> None:
    own = {"Content-Type": "text/plain", "WWW-Authenticate": 'Bearer realm="orders"'}
    answer = respond(status, respondWith="text", responseBody=text, headers=own)
    workflow_id = put(simulator, webhook(mode="responseNode"), answer, DONE)
    assert task_run(workflow_id=workflow_id).whole_attempt(1)["status"] == "success"
    assert calls(simulator) == 1


# ---------------------------------------------------------------- ids that are not to be believed


@pytest.mark.parametrize("mode", ["onReceived", "lastNode"])
def test_the_id_of_another_execution(task_run: MakeRun, simulator: ServiceSimulator, mode: str) -> None:
    passing_on = "={{ $json.body }}"
    options = {"responseData": passing_on} if mode == "onReceived" else {}
    workflow_id = put(simulator, webhook(mode=mode, options=options), puts_out(passing_on))
    elsewhere = simulator.create_webhook_workflow(path="other")["id"]
    earlier = task_run(workflow_id=workflow_id).whole_attempt(1)["execution_id"]
    foreign = [
        earlier,
        simulator.start_execution(elsewhere),
        "999999",
        int(earlier),
        True,
        "x",
        None,
    ]
    for number, named in enumerate(foreign, 2):
        run = task_run(workflow_id=workflow_id, payload={"executionId": named}, map_index=number)
        assert run.whole_attempt(1)["execution_id"] == str(held(simulator, workflow_id)[-1].id), named
    assert calls(simulator) == len(held(simulator, workflow_id)) == 1 + len(foreign)


def test_an_execution_that_is_shown_late_prevails_over_an_unknown_id_in_the_answer(
    task_run: MakeRun, simulator: ServiceSimulator, answers_come_first: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "SETTLING_SECONDS", 60.0)
    monkeypatch.setattr(searching, "VISIBLE_WITHIN_SECONDS", 0.0)
    workflow_id = put(simulator, webhook(options={"responseData": '={{ {"executionId": "999999"} }}'}), DONE)
    searches: list[bytes] = []

    def shows_late(app: ASGIApp) -> ASGIApp:
        async def layer(scope: Any, receive: Any, send: Any) -> None:
            if scope["path"].endswith("/executions") and len(searches) < 6:
                searches.append(scope["query_string"])
                scope = {**scope, "query_string": b"workflowId=none"}
            await app(scope, receive, send)

        return layer

    run = task_run(workflow_id=workflow_id)
    simulator.wrap(shows_late)
    assert run.whole_attempt(1)["execution_id"] == "1"
    assert len(searches) == 6


# ---------------------------------------------------------------- slow starts


def test_a_workflow_that_was_just_activated(
    task_run: MakeRun, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, simulator, extra={"retry_deadline": 30})  # its webhook goes live a little later
    workflow_id = put(simulator, webhook(), DONE, active=False)
    assert task_run(workflow_id=workflow_id, activate=True).whole_attempt(1)["status"] == "success"
    assert simulator.state.workflows.get(workflow_id).active
    assert len(held(simulator, workflow_id)) == 1


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """The levels and texts of what the package has logged."""
    ours = [one for one in caplog.records if one.name.startswith("airflow_provider_service.")]
    return [(one.levelname, one.getMessage()) for one in ours if "cannot be called outside" not in one.msg]


def test_an_activated_webhook_that_goes_live_soon_takes_one_line(
    task_run: MakeRun, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    connect(monkeypatch, simulator, extra={"retry_deadline": 30})
    simulator.state.publish_delay = 0.02
    workflow_id = put(simulator, webhook(), DONE, active=False)
    with caplog.at_level(logging.DEBUG, logger="airflow_provider_service"):
        assert task_run(workflow_id=workflow_id, activate=True).attempt(1)["status"] == "success"
    log = lines(caplog)
    assert {level for level, text in log if "the webhook is not live" in text} == {"DEBUG"}
    [line] = [text for level, text in log if level != "DEBUG" and "live" in text]
    assert line == f"Activating workflow {workflow_id} (Workflow): its draft is published, and soon live"
    assert {level for level, _ in log} == {"DEBUG", "INFO"}


def test_a_webhook_that_is_not_live_for_long_is_reported_once_without_a_warning(
    task_run: MakeRun, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    connect(monkeypatch, simulator, extra={"retry_deadline": 30})
    workflow_id = put(simulator, webhook(), DONE)
    set_live(simulator, workflow_id, False)
    with (
        caplog.at_level(logging.DEBUG, logger="airflow_provider_service"),
        pytest.raises(ServiceWebhookNotLiveError, match=r"POST /webhook/w: the webhook is not live \(HTTP 404\)"),
    ):
        task_run(workflow_id=workflow_id).attempt(1)
    tries = [level for level, text in lines(caplog) if "failed; trying again in" in text]
    assert (tries[:4], set(tries[4:]) - {"DEBUG"}) == (["DEBUG"] * 3 + ["INFO"], set())
    [line] = [text for level, text in lines(caplog) if level == "INFO" and "failed; trying again in" in text]
    assert "the webhook is not live (HTTP 404)" in line


def test_a_full_queue_holds_no_deferred_task(monkeypatch: pytest.MonkeyPatch, task_run: MakeRun) -> None:
    with ServiceSimulator(concurrency_limit=1) as busy:
        connect(monkeypatch, busy)
        workflow_id = put(busy, webhook(), wait(60), DONE)
        runs = [task_run(workflow_id=workflow_id, map_index=index, deferrable=True) for index in range(2)]
        for run in runs:
            with pytest.raises(TaskDeferred):
                run.attempt(1)
        assert [run.pushed["execution_id"] for run in runs] == ["1", "2"]
        assert statuses(busy, workflow_id) == ["running", "new"]
        for expected in (["success", "running"], ["success", "success"]):
            busy.clock.advance(61)
            assert statuses(busy, workflow_id) == expected
        assert runs[1].whole_attempt(2)["execution_id"] == "2"


def test_a_run_in_the_queue_that_is_stopped(monkeypatch: pytest.MonkeyPatch, task_run: MakeRun) -> None:
    with ServiceSimulator(concurrency_limit=1) as busy:
        connect(monkeypatch, busy)
        workflow_id = put(busy, webhook(), wait(30), DONE)
        task_run(workflow_id=workflow_id, wait_for_completion=False).attempt(1)
        with pytest.raises(ServiceExecutionFailedError, match=r"had not ended 20 s .*; it was stopped"):
            task_run(workflow_id=workflow_id, timeout=20, poll_interval=5, map_index=2).attempt(1)
        assert statuses(busy, workflow_id) == ["running", "canceled"]


# ---------------------------------------------------------------- lost calls and answers


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "drop"},
        {"kind": "truncate"},
        {"kind": "status", "status": 502},
        {"kind": "status", "status": 503, "retry_after": 0},
        {"kind": "status", "status": 504},
        {"kind": "status", "status": 429},
        {"kind": "html", "status": 502},
    ],
    ids=lambda fault: "-".join(map(str, fault.values())),
)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_fault_of_the_call(
    task_run: MakeRun, simulator: ServiceSimulator, fault: dict[str, Any], after: bool
) -> None:
    workflow_id = put(simulator, webhook(), wait(0.1), DONE)
    simulator.inject(**fault, path="^/webhook/", after_processing=after)
    assert task_run(workflow_id=workflow_id).whole_attempt(1)["status"] == "success"
    assert statuses(simulator, workflow_id) == ["success"]
    assert calls(simulator) == (1 if after else 2)


@pytest.mark.parametrize("arrived", [[True], [False, True]], ids=["once", "twice"])
def test_a_call_that_arrived_through_a_proxy_is_not_repeated_if_its_answer_is_lost(
    monkeypatch: pytest.MonkeyPatch, task_run: MakeRun, simulator: ServiceSimulator, arrived: list[bool]
) -> None:
    proxies = {"http": simulator.base_url}  # like every server, it understands what is sent to a proxy
    connect(monkeypatch, simulator, host="http://service.test", port=None, extra={"proxies": proxies})
    workflow_id = put(simulator, webhook(), DONE)
    for one in arrived:
        simulator.inject("drop", path="/webhook/", after_processing=one)
    assert task_run(workflow_id=workflow_id, timeout=120).whole_attempt(1)["status"] == "success"
    assert (statuses(simulator, workflow_id), calls(simulator)) == (["success"], len(arrived))


def test_a_call_that_is_not_answered_in_time(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(mode="lastNode"), wait(30), DONE)
    with pytest.raises(ServiceExecutionFailedError, match="it was stopped"):
        task_run(workflow_id=workflow_id, timeout=20, poll_interval=5).attempt(1)
    assert (statuses(simulator, workflow_id), calls(simulator)) == (["canceled"], 1)


def test_calls_that_never_arrive(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    simulator.inject("drop", path="^/webhook/", times=None)
    with pytest.raises(ServiceRunNotStartedError, match=r"3 calls .* nothing was started"):
        task_run(workflow_id=workflow_id).attempt(1)
    assert (held(simulator, workflow_id), calls(simulator)) == ([], 3)


@pytest.mark.parametrize("status", [500, 503])
def test_searches_that_fail_while_the_call_is_open(
    monkeypatch: pytest.MonkeyPatch, task_run: MakeRun, simulator: ServiceSimulator, status: int
) -> None:
    connect(monkeypatch, simulator, extra={"retry_deadline": 0})
    monkeypatch.setattr(searching, "ANSWER_PATIENCE_SECONDS", 0.1)
    workflow_id = put(simulator, webhook(mode="lastNode"), wait(2), DONE)
    simulator.inject("status", status=status, path="/executions$", times=2)
    assert task_run(workflow_id=workflow_id).attempt(1)["status"] == "success"
    assert calls(simulator) == 1


def test_searches_that_are_refused_while_the_call_is_open(
    monkeypatch: pytest.MonkeyPatch, task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    connect(monkeypatch, simulator, password=simulator.create_key(["workflow:read", "execution:read"]))
    workflow_id = put(simulator, webhook(mode="lastNode"), wait(30), DONE)
    with pytest.raises(AirflowFailException, match=r"cannot be searched for: .*lacks the scope 'execution:list'"):
        task_run(workflow_id=workflow_id).attempt(1)
    assert calls(simulator) == 1


def test_searches_that_are_refused_for_the_moment_while_the_call_is_open(
    task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(mode="lastNode"), wait(30), DONE)
    simulator.inject("status", status=401, path="/executions$", times=1)
    run = task_run(workflow_id=workflow_id, timeout=60)
    with pytest.raises(ServiceWaitError, match="a run was requested, but its execution cannot be searched for"):
        run.attempt(1)
    assert run.attempt(2)["status"] == "success"
    assert calls(simulator) == 1


def test_a_redirect_of_a_webhook_is_not_followed(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    other = put(simulator, webhook("other", httpMethod="GET"), DONE)
    away = respond(302, headers={"Location": f"{simulator.base_url}/webhook/other"})
    workflow_id = put(simulator, webhook(httpMethod="GET", mode="responseNode"), away, DONE)
    assert task_run(workflow_id=workflow_id).attempt(1)["status"] == "success"
    assert (statuses(simulator, workflow_id), held(simulator, other)) == (["success"], [])


def test_a_template_and_a_name(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    put(simulator, webhook("other"), DONE, name="Nightly sync (old)")
    workflow_id = put(simulator, webhook(), DONE, name="Nightly sync")
    run = task_run(ServiceRunWorkflowOperator, workflow_name="Nightly sync", payload={"task": "{{ ti.task_id }}"})
    assert run.whole_attempt(1)["workflow_id"] == workflow_id
    [execution] = held(simulator, workflow_id)
    assert started_with(execution)["body"] == {"task": "task"}


@pytest.mark.parametrize("prefix", ["", "/automation"])
def test_links_and_id_are_pushed_before_the_wait(
    monkeypatch: pytest.MonkeyPatch, task_run: MakeRun, simulator: ServiceSimulator, prefix: str
) -> None:
    workflow_id = put(simulator, webhook(), wait(30), DONE)
    address = simulator.base_url + prefix
    if prefix:
        put_behind_prefix(simulator, prefix)
    connect(monkeypatch, simulator, host=address)
    run = task_run(workflow_id=workflow_id, deferrable=True)
    with pytest.raises(TaskDeferred):
        run.attempt(1)
    page = f"{address}/workflow/{workflow_id}"
    assert run.pushed == {
        "_link_ServiceWorkflowLink": page,
        "_link_ServiceExecutionLink": f"{page}/executions/1",
        "execution_id": "1",
        EXECUTION_KEY: run.pushed[EXECUTION_KEY],  # test_told_executions.py has that
    }


def test_a_deferred_task_stops_its_run_before_airflow_ends_it(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), wait(30), DONE)
    run = task_run(workflow_id=workflow_id, deferrable=True, execution_timeout=timedelta(seconds=1))
    with pytest.raises(ServiceExecutionFailedError, match=r"had not ended 0\.75 s after .*; it was stopped"):
        run.whole_attempt(1)
    assert statuses(simulator, workflow_id) == ["canceled"]


def test_without_a_wait_the_task_returns_where_to_look(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(mode="lastNode"), wait(30), DONE)
    run = task_run(workflow_id=workflow_id, wait_for_completion=False)
    assert run.attempt(1) == {
        "execution_id": "1",
        "workflow_id": workflow_id,
        "url": run.pushed["_link_ServiceExecutionLink"],
    }
