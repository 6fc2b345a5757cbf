"""The part of the last node's output that a task returns, and what it never returns."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, TaskDeferred

from airflow_provider_service.client.http.redaction import redacted
from airflow_provider_service.runs.workflow import MAX_OUTPUT_BYTES
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing.stored_triggers import first_event, revived

from .conftest import MakeRun, connect
from .workflows import DONE, WITH_ID, answers_as, put, puts_out, wait, webhook


def test_the_items_of_the_last_node(make_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), wait(0.2), puts_out('={{ {"sum": $json.body.n} }}'))
    done = make_run(workflow_id=workflow_id, payload={"n": 3}, return_output="last_node").whole_attempt(1)
    assert done["output"] == [{"sum": 3}]
    assert "output" not in make_run(workflow_id=workflow_id, map_index=2).whole_attempt(1)


@pytest.mark.parametrize("letter", ["x", "é", "€", "🙂"])
def test_the_limit_counts_bytes_as_they_are_stored(task_run: MakeRun, simulator: ServiceSimulator, letter: str) -> None:
    workflow_id = put(simulator, webhook(), puts_out('={{ {"text": $json.body.text} }}'))
    frame = len(json.dumps([{"text": ""}]))
    letters = (MAX_OUTPUT_BYTES - frame) // (len(json.dumps(letter)) - 2)
    outputs = [
        task_run(
            workflow_id=workflow_id, payload={"text": letter * count}, return_output="last_node", map_index=count
        ).attempt(1)["output"]
        for count in (letters, letters + 1)
    ]
    assert outputs == [[{"text": letter * letters}], None]


def test_output_that_is_not_shown_is_none(redacting: None, task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(options={"responseData": WITH_ID}), puts_out('={{ {"sum": 3} }}'))
    done = task_run(workflow_id=workflow_id, return_output="last_node").attempt(1)
    assert (done["status"], done["output"]) == ("success", None)


def test_output_that_cannot_be_loaded_does_not_fail_a_run_that_succeeded(
    monkeypatch: pytest.MonkeyPatch, task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    connect(monkeypatch, simulator, extra={"max_answer_mib": 1})
    large = puts_out('={{ {"text": $json.body.n} }}')
    workflow_id = put(simulator, webhook(options={"responseData": WITH_ID}), large)
    run = task_run(workflow_id=workflow_id, payload={"n": "x" * 2**20}, return_output="last_node")
    done = run.attempt(1)
    assert (done["status"], done["output"]) == ("success", None)


def test_output_that_the_key_may_not_read_is_not_tried_again(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(options={"responseData": WITH_ID}), wait(30), DONE)
    run = task_run(workflow_id=workflow_id, return_output="last_node", deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        run.attempt(1)
    execution_id = run.pushed["execution_id"]
    simulator.finish_execution(execution_id)
    event = asyncio.run(first_event(revived(deferred.value.trigger)))
    simulator.inject("status", status=403, path=f"/executions/{execution_id}$")
    with pytest.raises(AirflowFailException, match="lacks the scope 'execution:read'"):
        run.resume(1, deferred.value, event)


SECRET = "Bearer token-of-the-hook"


@pytest.mark.parametrize("deferrable", [False, True])
@pytest.mark.parametrize("kind", ["header of a connection", "user and password", "header as argument"])
def test_the_payload_of_the_call_is_not_returned(
    monkeypatch: pytest.MonkeyPatch, task_run: MakeRun, simulator: ServiceSimulator, kind: str, deferrable: bool
) -> None:
    options: dict[str, Any] = {"webhook_headers": {"X-Short": "abc"}, "webhook_conn_id": "hook"}
    fields = {"conn_type": "http", "login": "X-Token", "password": SECRET}
    if kind == "header as argument":
        options = {"webhook_headers": {"X-Short": "abc", "X-Token": SECRET}}
    monkeypatch.setenv("AIRFLOW_CONN_HOOK", json.dumps(fields))
    is_basic = kind == "user and password"
    workflow_id = put(simulator, webhook(authentication="basicAuth" if is_basic else "none"), wait(0.1), DONE)
    # The simulator does not know this kind.
    answers_as(simulator, workflow_id, webhook())
    run = task_run(
        workflow_id=workflow_id,
        payload={"copy": f"a {SECRET} b", "bare": "token-of-the-hook", "abc": "abc"},
        return_output="last_node",
        deferrable=deferrable,
        **options,
    )
    [item] = run.whole_attempt(1)["output"]
    encoded = base64.b64encode(f"X-Token:{SECRET}".encode()).decode()
    for secret in (SECRET, "token-of-the-hook", encoded):
        assert secret not in json.dumps(item)
    own = "authorization" if is_basic else "x-token"
    assert {item["headers"][name] for name in ("x-airflow-run-key", "x-short", own)} == {"***"}
    assert item["body"] == {"copy": "a *** b", "bare": "***", "abc": "abc"}


@pytest.mark.parametrize("password", ["abc", "a-long-password"])
def test_a_key_that_is_the_name_of_the_user_is_not_hidden(
    monkeypatch: pytest.MonkeyPatch, task_run: MakeRun, simulator: ServiceSimulator, password: str
) -> None:
    fields = {"conn_type": "http", "login": "Orders", "password": password}
    monkeypatch.setenv("AIRFLOW_CONN_HOOK", json.dumps(fields))
    workflow_id = put(simulator, webhook(authentication="basicAuth"), DONE)
    answers_as(simulator, workflow_id, webhook())
    payload = {"orders": [{"orders": 7}], "of": {"orders": password}, "list": [password]}
    run = task_run(
        workflow_id=workflow_id, payload=payload, return_output="last_node", webhook_conn_id="hook", poll_interval=0.1
    )
    [item] = run.whole_attempt(1)["output"]
    is_long = password != "abc"
    assert item["headers"]["authorization"] == "***"
    assert item["body"] == {"orders": [{"orders": 7}], "of": {"orders": "***"}, "list": ["***" if is_long else "abc"]}


def test_redaction() -> None:
    secrets = {"Authorization": ["Bearer abcdef", "abcdef"], "X-Run": []}
    value = {
        "abcdef": [1, None, True, "x Bearer abcdef y", {"deep": ["abcdefgh"]}],
        "AUTHORIZATION": {"any": "thing"},
        "x-run": "key",
        "other": "abcde",
    }
    assert redacted(value, secrets) == {
        "***": [1, None, True, "x *** y", {"deep": ["***gh"]}],
        "AUTHORIZATION": "***",
        "x-run": "***",
        "other": "abcde",
    }
    assert redacted([{"a": "1234"}], {"B": ["1234"]}) == [{"a": "1234"}]
    either = {"Bo": "1234", "bO": ["1234"], "BO": {"x": "bo"}, "x": "12345"}
    doubtful = {"bo": ["1234", "12345"]}
    assert redacted(either, {}, doubtful=doubtful) == {"Bo": "***", "bO": ["1234"], "BO": {"x": "bo"}, "x": "***"}
