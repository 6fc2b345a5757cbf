"""The engine: nodes, waits, timeouts, data, kept executions and crashes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from airflow_provider_service.simulator._samples import chain, node, wait, webhook
from tests.polling import wait_until

from .api_client import Api
from .engine_helpers import DONE, output, ran, run, seen

# ---------------------------------------------------------------- life


def test_short_wait_stays_running(api: Api) -> None:
    execution = run(api, [wait(64), DONE])
    early = seen(api, execution, 60)
    late = seen(api, execution, 6)
    assert (early["status"], early["stoppedAt"], early["waitTill"]) == ("running", None, None)
    assert late["status"] == "success"


def test_long_wait_sleeps_and_keeps_its_id_and_start(api: Api) -> None:
    execution = run(api, [wait(65), DONE])
    early = seen(api, execution, 30)
    late = seen(api, execution, 60)
    assert (early["status"], early["finished"]) == ("waiting", False)
    assert early["stoppedAt"] < early["waitTill"]
    assert (late["status"], late["waitTill"], late["id"]) == ("success", None, execution)
    assert late["startedAt"] == early["startedAt"]
    assert late["stoppedAt"] == early["waitTill"]


def test_waits_end_at_their_own_time_however_far_the_clock_advances(api: Api) -> None:
    second = {**wait(100), "name": "Wait 2"}
    execution = run(api, [wait(100), second, DONE])
    found = seen(api, execution, 86_400)
    runs = found["data"]["resultData"]["runData"]
    assert found["status"] == "success"
    assert [runs[name][0]["executionTime"] for name in ("Wait", "Wait 2")] == [100_000, 100_000]


def test_wait_until_a_date_and_time_and_wait_for_a_call(api: Api) -> None:
    moment = node("Wait", "wait", 1.1, {"resume": "specificTime", "dateTime": "2999-01-01T00:00:00Z"}, 1)
    dated = seen(api, run(api, [moment]))
    assert (dated["status"], dated["waitTill"]) == ("waiting", "2999-01-01T00:00:00.000Z")
    called = node("Wait", "wait", 1.1, {"resume": "webhook"}, 1)
    workflow = chain("Call", [webhook("call"), called])
    api.post(f"/workflows/{api.post('/workflows', workflow).json()['id']}/publish")
    api.simulator.clock.advance(1)
    api.hook("call", {})
    assert seen(api, "2", 86_400 * 365)["status"] == "waiting"


def test_timeout_is_canceled_like_a_stop(api: Api) -> None:
    execution = run(api, [wait(60)], executionTimeout=10)
    assert seen(api, execution, 8)["status"] == "running"
    found = seen(api, execution, 3)
    assert found["status"] == "canceled"
    assert found["data"]["resultData"]["error"]["name"] == "ManualExecutionCancelledError"
    stopped = run_and_stop(api)
    assert stopped["data"]["resultData"]["error"] == found["data"]["resultData"]["error"]


def run_and_stop(api: Api) -> dict[str, Any]:
    api.simulator.create_webhook_workflow(path="stop", behaviour="long", seconds=60, respond_with_id=True)
    execution = api.hook("stop", {}).json()["executionId"]
    assert api.post(f"/executions/{execution}/stop").status_code == 200
    return seen(api, execution)


@pytest.mark.parametrize(
    ("settings", "nodes"),
    [
        ({"saveDataSuccessExecution": "none"}, [wait(30)]),
        ({"saveDataErrorExecution": "none"}, [wait(30), node("Stop", "stopAndError", 1, {"errorMessage": "No"}, 2)]),
    ],
)
def test_runs_that_are_not_kept_vanish_when_they_end(
    api: Api, settings: dict[str, Any], nodes: list[dict[str, Any]]
) -> None:
    execution = run(api, nodes, **settings)
    assert seen(api, execution, 10)["status"] == "running"
    assert seen(api, execution, 30) == {"message": "Not Found"}
    assert api.get("/executions").json()["data"] == []


def test_stopped_runs_are_kept_in_any_case(api: Api) -> None:
    execution = run(api, [wait(30)], saveDataSuccessExecution="none", saveDataErrorExecution="none")
    api.post(f"/executions/{execution}/stop")
    assert seen(api, execution)["status"] == "canceled"


def test_running_data_holds_only_the_input(api: Api) -> None:
    execution = run(api, [wait(30)], {"id": "abc"})
    data = seen(api, execution)["data"]
    assert data["resultData"] == {"runData": {}}
    assert data["executionData"]["nodeExecutionStack"][0]["data"]["main"][0][0]["json"]["body"] == {"id": "abc"}
    assert data["executionData"]["runtimeData"]["triggerNode"]["name"] == "Webhook"


def test_progress_is_seen_when_the_workflow_saves_it(api: Api) -> None:
    execution = run(api, [wait(30)], saveExecutionProgress=True)
    assert list(seen(api, execution)["data"]["resultData"]["runData"]) == ["Webhook"]


def test_waiting_data_holds_the_nodes_done_so_far(api: Api) -> None:
    execution = run(api, [node("First", "noOp", 1, {}, 1), wait(100), DONE])
    result = seen(api, execution)["data"]["resultData"]
    assert list(result["runData"]) == ["Webhook", "First", "Wait"]
    assert result["runData"]["Wait"][0]["executionStatus"] == "waiting"


# ---------------------------------------------------------------- restart


def test_restart(build: Any) -> None:
    api = build(concurrency_limit=1)
    simulator = api.simulator
    workflow = simulator.create_webhook_workflow(path="sleep", behaviour="waiting", seconds=100, respond_with_id=True)
    sleeper = api.hook("sleep", {}).json()["executionId"]
    wait_until(lambda: api.get(f"/executions/{sleeper}").json()["status"] == "waiting")
    simulator.create_webhook_workflow(path="long", behaviour="long", seconds=30, respond_with_id=True)
    runner = api.hook("long", {}).json()["executionId"]
    queued = simulator.state.engine.start(
        simulator.state.workflows.get(workflow["id"]).snapshot(),
        workflow["nodes"][0],
        [{"json": {}}],
        "project",
        mode="webhook",
    )
    simulator.clock.advance(1)
    assert api.get(f"/executions/{runner}").json()["status"] == "running"
    simulator.restart(boot_seconds=20)
    assert api.get(f"/executions/{runner}").headers["content-type"].startswith("text/html")
    simulator.clock.advance(20.5)
    crashed = api.get(f"/executions/{runner}?includeData=true").json()
    assert (crashed["status"], crashed["finished"]) == ("crashed", False)
    assert crashed["data"]["resultData"]["error"]["name"] == "WorkflowCrashedError"
    last = crashed["data"]["resultData"]["runData"]["Wait"][0]
    assert last["error"]["name"] == "NodeCrashedError"
    assert last["data"]["main"][0][0]["json"] == {"isArtificialRecoveredEventItem": True}
    assert api.get(f"/executions/{queued.id}").json()["status"] == "waiting"
    assert api.get(f"/executions/{sleeper}").json()["status"] == "waiting"
    simulator.clock.advance(80)
    assert api.get(f"/executions/{sleeper}").json()["status"] == "success"


def test_webhooks_are_live_again_after_a_restart(api: Api) -> None:
    api.simulator.create_webhook_workflow(path="x")
    api.simulator.restart(boot_seconds=10)
    assert api.hook("x", {}).headers["content-type"].startswith("text/html")
    api.simulator.clock.advance(11)
    assert api.hook("x", {}).status_code == 200


# ---------------------------------------------------------------- nodes


def test_stop_and_error_names_its_node(api: Api) -> None:
    stop = node("Stop", "stopAndError", 1, {"errorMessage": "=No {{ $json.body.what }}"}, 1)
    found = seen(api, run(api, [stop, DONE], {"what": "luck"}))
    error = found["data"]["resultData"]["error"]
    assert (found["status"], error["message"], error["name"]) == ("error", "No luck", "NodeOperationError")
    assert error["node"]["name"] == "Stop"
    assert found["data"]["resultData"]["lastNodeExecuted"] == "Stop"
    assert found["data"]["resultData"]["runData"]["Stop"][0]["error"] == error


def test_stop_with_an_error_object(api: Api) -> None:
    stop = node("Stop", "stopAndError", 1, {"errorType": "errorObject", "errorObject": '{"message": "Deep"}'}, 1)
    assert seen(api, run(api, [stop]))["data"]["resultData"]["error"]["message"] == "Deep"


def test_code_that_throws_names_no_node(api: Api) -> None:
    code = node("Code", "code", 2, {"jsCode": '// check\nthrow new Error("Boom");'}, 1)
    found = seen(api, run(api, [code, DONE]))
    result = found["data"]["resultData"]
    assert "node" not in result["error"]
    assert (result["error"]["message"], result["lastNodeExecuted"]) == ("Boom [line 2]", "Code")
    assert result["runData"]["Code"][0]["executionStatus"] == "error"


def test_other_code_and_unknown_nodes_pass_items_on(api: Api) -> None:
    api.simulator.state.node_types.allow_unknown = True
    nodes = [node("Code", "code", 2, {"jsCode": "return items;"}, 1), node("Odd", "neverHeardOf", 1, {}, 2)]
    assert output(seen(api, run(api, nodes, {"a": 1})))[0]["body"] == {"a": 1}


def test_errors_of_code_can_be_passed_on(api: Api) -> None:
    code = {**node("Code", "code", 2, {"jsCode": 'throw new Error("No");'}, 1), "onError": "continueRegularOutput"}
    found = seen(api, run(api, [code, DONE]))
    assert (found["status"], output(found)) == ("success", [{"error": "No [line 1]"}])


def test_errors_of_code_can_take_a_separate_output(api: Api) -> None:
    code = {**node("Code", "code", 2, {"jsCode": 'throw new Error("No");'}, 1), "onError": "continueErrorOutput"}
    body = chain("Two ways", [webhook("two"), code])
    body["nodes"] += [node("Good", "noOp", 1, {}, 2), node("Bad", "noOp", 1, {}, 3)]
    ends = [[{"node": name, "type": "main", "index": 0}] for name in ("Good", "Bad")]
    body["connections"]["Code"] = {"main": ends}
    assert list(ran(api, body)) == ["Webhook", "Code", "Bad"]


@pytest.mark.parametrize("policy", ["continueRegularOutput", "continueErrorOutput"])
@pytest.mark.parametrize(
    ("failing", "message"),
    [
        (node("Stop", "stopAndError", 1, {"errorMessage": "No"}, 1), "to go on after a failure of .* No"),
        (node("Code", "code", 2, {"jsCode": 'if (x) throw new Error("No");'}, 1), "code that does not always throw"),
    ],
)
def test_a_failure_after_which_the_simulator_cannot_go_on_ends_the_run(
    api: Api, failing: dict[str, Any], message: str, policy: str
) -> None:
    found = seen(api, run(api, [{**failing, "onError": policy}, DONE]))
    assert found["status"] == "error"
    assert re.match(message, found["data"]["resultData"]["error"]["message"])


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        ("set", {"assignments": "x"}, "Bad parameters: "),
        ("set", {"mode": "raw", "jsonOutput": "={{ 'nope' }}"}, "The 'JSON Output' in item 0 contains invalid JSON"),
        ("wait", {"amount": "={{ 'soon' }}"}, "Invalid wait amount. Please enter a number that is 0 or greater."),
        ("wait", {"amount": -5}, "Invalid wait amount. Please enter a number that is 0 or greater."),
        ("wait", {"amount": 1, "unit": "weeks"}, "Invalid wait unit."),
        ("wait", {"amount": 1e300}, "Bad parameters: "),
        ("wait", {"resume": "specificTime", "dateTime": "soon"}, "Invalid date. Please use a valid ISO date."),
        ("respondToWebhook", {"respondWith": "json", "responseBody": "nope"}, "Invalid JSON in 'Response Body' field"),
        ("respondToWebhook", {"options": {"responseCode": 1000}}, "Invalid status code: 1000"),
        (
            "respondToWebhook",
            {"options": {"responseHeaders": {"entries": [{"name": "x-a", "value": "b\r\nc: d"}]}}},
            'Invalid character in header content ["x-a"]',
        ),
    ],
)
def test_bad_parameters_end_only_their_run(api: Api, kind: str, parameters: dict[str, Any], message: str) -> None:
    found = seen(api, run(api, [node("Bad", kind, 3.4, parameters, 1)]))
    assert found["status"] == "error"
    assert found["data"]["resultData"]["error"]["message"].startswith(message)


@pytest.mark.parametrize(
    ("version", "parameters", "seconds"),
    [
        (1, {}, 3600),
        (1.1, {}, 5),
        (1.1, {"amount": 2, "unit": "minutes"}, 120),
        (1.1, {"amount": 1, "unit": "days"}, 86400),
    ],
)
def test_units_and_defaults_of_waits(api: Api, version: float, parameters: dict[str, Any], seconds: int) -> None:
    execution = run(api, [node("Wait", "wait", version, parameters, 1)])
    assert seen(api, execution, seconds - 2)["status"] in ("running", "waiting")
    assert seen(api, execution, 3)["status"] == "success"


def test_disabled_nodes_pass_items_on(api: Api) -> None:
    stop = {**node("Stop", "stopAndError", 1, {"errorMessage": "No"}, 1), "disabled": True}
    assert seen(api, run(api, [stop, DONE]))["status"] == "success"


@pytest.mark.parametrize(
    ("settings", "order"),
    [
        ({"executionOrder": "v1"}, ["Left", "After left", "Right", "Below", "After below"]),
        ({}, ["Below", "Right", "Left", "After below", "After left"]),
    ],
)
def test_branches_run_from_top_to_bottom_or_side_by_side(api: Api, settings: dict[str, Any], order: list[str]) -> None:
    places = {"Left": [200, 0], "Right": [400, 0], "Below": [0, 300], "After left": [0, 900], "After below": [0, 900]}
    body = {**chain("Branches", [webhook("b")]), "settings": settings}
    body["nodes"] += [{**node(name, "noOp", 1, {}, 1), "position": place} for name, place in places.items()]
    followers = {"Webhook": ["Below", "Right", "Left"], "Left": ["After left"], "Below": ["After below"]}
    body["connections"] = {
        source: {"main": [[{"node": name, "type": "main", "index": 0} for name in names]]}
        for source, names in followers.items()
    }
    runs = ran(api, body)
    assert sorted(runs, key=lambda name: runs[name][0]["executionIndex"]) == ["Webhook", *order]
    assert runs["After left"][0]["source"][0]["previousNode"] == "Left"


def test_a_circle_ends_with_an_error(api: Api) -> None:
    body = chain("Circle", [webhook("c"), DONE])
    body["connections"]["Done"] = {"main": [[{"node": "Done", "type": "main", "index": 0}]]}
    api.post(f"/workflows/{api.post('/workflows', body).json()['id']}/publish")
    api.simulator.clock.advance(1)
    api.hook("c", {})
    api.simulator.clock.advance(1)
    assert api.get("/executions/1").json()["status"] == "error"


def test_custom_data_appears_after_the_end(api: Api) -> None:
    saved = {"dataToSave": {"values": [{"key": "batch", "value": "={{ $json.body.batch }}"}]}}
    execution = run(api, [node("Note", "executionData", 1, saved, 1), wait(30)], {"batch": "b1"})
    assert seen(api, execution)["customData"] == {}
    assert seen(api, execution, 30)["customData"] == {"batch": "b1"}


def test_expression_outside_the_subset_fails_its_node(api: Api) -> None:
    assigned = {"assignments": [{"name": "n", "value": "={{ $now }}", "type": "string"}]}
    found = seen(api, run(api, [node("Set", "set", 3.4, {"assignments": assigned}, 1)]))
    assert found["data"]["resultData"]["error"]["message"] == "$now is not simulated"
