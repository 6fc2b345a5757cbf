"""The part of the last node's output that a task returns, and what it never returns."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, TaskDeferred

from airflow_provider_service._core.runs.output import MAX_OUTPUT_BYTES
from airflow_provider_service.client._http.redaction import redacted
from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing._service import first_event, revived

from .conftest import MakeRun, connect
from .workflows import DONE, WITH_ID, answers_as, calls, put, puts_out, unchecked, wait, webhook

if TYPE_CHECKING:
    from tests.s3 import Bucket


def test_the_items_of_the_last_node(make_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), wait(0.2), puts_out('={{ {"sum": $json.body.n} }}'))
    done = make_run(workflow_id=workflow_id, payload={"n": 3}, return_output="last_node").whole_attempt(1)
    assert done["output"] == [{"sum": 3}]
    assert "output" not in make_run(workflow_id=workflow_id, map_index=2).whole_attempt(1)


def test_files_that_are_not_in_the_output_are_named(
    task_run: MakeRun, simulator: ServiceSimulator, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "report.pdf").write_bytes(b"%PDF" * 3_000)
    (tmp_path / "notes").write_bytes(b"x")
    workflow_id = put(simulator, webhook(), DONE)
    done = task_run(
        workflow_id=workflow_id,
        payload={"day": "1"},
        files={"data": str(tmp_path / "report.pdf"), "more": str(tmp_path / "notes")},
        return_output={"node": "Webhook"},
    ).attempt(1)
    assert done["output"][0]["body"] == {"day": "1"}
    said = [one.getMessage() for one in caplog.records if one.name.endswith("runs.output")]
    assert said == [
        "Files that node 'Webhook' produced are not in the output, because the service's API does not return their "
        "content; let the workflow store them, for example in object storage: 2",
        "Item 1, field 'data': report.pdf; application/pdf; 12 kB",
        "Item 1, field 'more': notes; application/octet-stream; 1 B",
    ]


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


def test_the_items_of_a_named_node(make_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), puts_out('={{ {"sum": $json.body.n} }}'), DONE)
    run = make_run(workflow_id=workflow_id, payload={"n": 3}, return_output={"node": "Webhook"})
    [item] = run.whole_attempt(1)["output"]
    assert item["body"] == {"n": 3}
    assert "airflow-run-key" not in json.dumps({**item, "headers": None})
    assert item["headers"]["x-airflow-run-key"] == "***"


def test_a_node_that_the_workflow_lacks_is_refused_before_it_runs(
    task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    run = task_run(workflow_id=workflow_id, return_output={"node": "last_node"})
    with pytest.raises(AirflowFailException, match=r"no node named 'last_node' .*: 'Webhook', 'Done'; nothing was"):
        run.attempt(1)
    assert calls(simulator) == 0


def test_a_node_that_did_not_run_has_no_output(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), DONE)

    def add_node() -> None:
        version = simulator.state.workflows.get(workflow_id).active_version
        assert version is not None
        version.nodes.append({**DONE, "name": "Aside"})

    simulator.in_loop(add_node)
    done = task_run(workflow_id=workflow_id, return_output={"node": "Aside"}).attempt(1)
    assert (done["status"], done["output"], done["output_items"]) == ("success", None, None)


def test_the_number_of_items_may_be_limited(task_run: MakeRun, simulator: ServiceSimulator, caplog: Any) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    items = [{"json": {"n": n}} for n in range(5)]
    run = task_run(workflow_id=workflow_id, return_output="last_node", max_output_items=2, wait_for_completion=True)
    hold_items(simulator, items)
    done = run.attempt(1)
    assert (done["output"], done["output_items"]) == ([{"n": 0}, {"n": 1}], 5)
    assert "The output has 5 items; only the first 2 are returned" in caplog.text


def test_data_that_is_shown_after_the_end_is_waited_for(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), puts_out('={{ {"sum": 3} }}'))
    run = task_run(workflow_id=workflow_id, return_output="last_node")
    hidden: list[str] = []

    def hide_last_node(data: dict[str, Any]) -> None:
        result = data.get("resultData", {})
        if result.get("lastNodeExecuted") in result.get("runData", {}) and len(hidden) < 3:
            data["executionData"] = {"nodeExecutionStack": [{}]}
            hidden.append(result.pop("lastNodeExecuted"))
            del result["runData"][hidden[-1]]

    change_data(simulator, hide_last_node)
    done = run.attempt(1)
    assert done["output"] == [{"sum": 3}]
    assert len(hidden) == 3


def hold_items(simulator: ServiceSimulator, items: list[dict[str, Any]]) -> None:
    """Let every answer show these items as what its last node put out."""

    def hold(data: dict[str, Any]) -> None:
        result = data.get("resultData", {})
        if result.get("lastNodeExecuted") in result.get("runData", {}):
            result["runData"][result["lastNodeExecuted"]][-1]["data"]["main"][0] = items

    change_data(simulator, hold)


def change_data(simulator: ServiceSimulator, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the data in every answer that shows some."""

    def proxy(inner: Any) -> Any:
        async def changed(scope: Any, receive: Any, send: Any) -> None:
            if b"includeData" not in scope.get("query_string", b""):
                await inner(scope, receive, send)
                return
            messages: list[Any] = []

            async def keep(message: Any) -> None:
                messages.append(message)

            await inner(scope, receive, keep)
            body = json.loads(b"".join(message.get("body", b"") for message in messages))
            if body.get("data"):
                change(body["data"])
            start, text = messages[0], json.dumps(body).encode()
            start["headers"] = [one for one in start["headers"] if one[0].lower() != b"content-length"]
            await send(start)
            await send({"type": "http.response.body", "body": text})

        return changed

    simulator.wrap(proxy)


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_output_that_is_too_large_is_written_to_a_file(
    make_run: MakeRun, simulator: ServiceSimulator, tmp_path: Path, prefix: str
) -> None:
    workflow_id = put(simulator, webhook(), puts_out('={{ {"text": $json.body.text} }}'))
    path = tmp_path / "output.json"
    path.write_text("of an earlier run")
    arguments = {"workflow_id": workflow_id, "return_output": "last_node", "output_path": f"{prefix}{path}"}

    small = make_run(payload={"text": "x"}, **arguments).whole_attempt(1)
    assert (small["output"], small["output_path"]) == ([{"text": "x"}], None)
    assert path.read_text() == "of an earlier run"

    text = "🙂" * MAX_OUTPUT_BYTES
    large = make_run(payload={"text": text}, map_index=2, **arguments).whole_attempt(1)
    assert (large["output"], large["output_items"], large["output_path"]) == (None, 1, f"{prefix}{path}")
    assert json.loads(path.read_text()) == [{"text": text}]
    assert [one.name for one in tmp_path.iterdir()] == ["output.json"]


def test_output_that_is_too_large_is_written_to_object_storage(
    make_run: MakeRun, simulator: ServiceSimulator, bucket: Bucket
) -> None:
    workflow_id = put(simulator, webhook(), puts_out('={{ {"text": $json.body.text} }}'))
    address, text = bucket.address("runs/output.json"), "🙂" * MAX_OUTPUT_BYTES
    arguments = {"workflow_id": workflow_id, "return_output": "last_node", "output_path": address}
    assert make_run(payload={"text": "x"}, **arguments).whole_attempt(1)["output_path"] is None
    assert bucket.keys() == []

    for number in (2, 3):  # the second replaces what the first has written
        done = make_run(payload={"text": f"{number}{text}"}, map_index=number, **arguments).whole_attempt(1)
        assert (done["output"], done["output_items"], done["output_path"]) == (None, 1, address)
        assert json.loads(bucket.read("runs/output.json")) == [{"text": f"{number}{text}"}]
    assert bucket.keys() == ["runs/output.json"]


def test_a_file_that_cannot_be_written_fails_the_attempt_and_a_retry_writes_it(
    task_run: MakeRun, simulator: ServiceSimulator, tmp_path: Path
) -> None:
    workflow_id = put(simulator, webhook(), wait(60), puts_out('={{ {"text": $json.body.text} }}'))
    place = tmp_path / "outputs"
    place.mkdir()
    run = task_run(
        workflow_id=workflow_id,
        payload={"text": "x" * MAX_OUTPUT_BYTES},
        return_output="last_node",
        output_path=str(place / "output.json"),
        deferrable=True,
    )
    with pytest.raises(TaskDeferred) as deferred:
        run.attempt(1)
    simulator.clock.advance(61)
    event = asyncio.run(first_event(revived(deferred.value.trigger)))
    place.rmdir()
    with pytest.raises(FileNotFoundError):
        run.resume(1, deferred.value, event)

    place.mkdir()
    assert run.whole_attempt(2)["output_path"] == str(place / "output.json")
    assert [one.name for one in place.iterdir()] == ["output.json"]
    assert calls(simulator) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_output_items": 1}, "max_output_items has no effect with return_output='none'"),
        ({"output_path": "/tmp/x"}, "output_path has no effect with return_output='none'"),
        ({"return_output": "last_node", "output_path": "/none/x.json"}, "the directory of output_path .* does not"),
        ({"return_output": "last_node", "output_path": "/tmp"}, "output_path '/tmp' is a directory"),
        ({"return_output": "last_node", "output_path": "s4://b/x.json"}, "output_path 's4://b/x.json' cannot be used"),
    ],
)
def test_arguments_of_no_use_are_refused_before_anything_runs(
    task_run: MakeRun, simulator: ServiceSimulator, options: dict[str, Any], message: str
) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    with pytest.raises(AirflowFailException, match=message):
        task_run(workflow_id=workflow_id, **options).attempt(1)
    assert calls(simulator) == 0


@pytest.mark.parametrize(
    "wrong", ["Done", "last", {"node": ""}, {"node": 5}, {"name": "Done"}, {}, None, ["last_node"]]
)
def test_an_invalid_return_output_fails_the_dag_file(wrong: Any) -> None:
    with pytest.raises(ServiceInputError, match=r"^return_output must be one of none, last_node, or .*, not "):
        ServiceRunWorkflowOperator(task_id="run", workflow_id="w", return_output=wrong)


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
    workflow_id = put(simulator, unchecked() if is_basic else webhook(), wait(0.1), DONE)
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
    workflow_id = put(simulator, unchecked(), DONE)
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
