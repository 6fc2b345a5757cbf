"""Webhooks: who answers, in which mode, with what."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import requests

from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.simulator.samples import WITH_ID, chain, node, respond, wait, webhook

from .api_client import Api, until


def live(api: Api, nodes: list[dict[str, Any]], **settings: Any) -> str:
    """Create and publish a chain of nodes over HTTP."""
    created = api.post("/workflows", {**chain("Chain", nodes), "settings": settings})
    assert created.status_code == 200, created.text
    identifier: str = created.json()["id"]
    assert api.post(f"/workflows/{identifier}/publish").status_code == 200
    api.simulator.clock.advance(1)
    return identifier


def the_execution(api: Api) -> dict[str, Any]:
    (found,) = api.get("/executions?includeData=true").json()["data"]
    answer: dict[str, Any] = found
    return answer


# ---------------------------------------------------------------- who answers


def test_unknown_path(api: Api) -> None:
    answer = api.hook("nope", {})
    assert answer.status_code == 404
    assert answer.json()["code"] == 404
    assert answer.json()["message"] == 'The requested webhook "POST nope" is not registered.'
    assert answer.json()["hint"]


def test_wrong_method(api: Api) -> None:
    live(api, [webhook("x")])
    answer = api.hook("x", method="GET")
    expected = "This webhook is not registered for GET requests. Did you mean to make a POST request?"
    assert (answer.status_code, answer.json()["message"]) == (404, expected)


def test_several_methods_on_one_path(api: Api) -> None:
    live(api, [webhook("x", multipleMethods=True, httpMethod=["GET", "PUT"])])
    assert [api.hook("x", method=method).status_code for method in ("GET", "PUT", "POST")] == [200, 200, 404]


def test_test_webhooks_never_listen(api: Api) -> None:
    live(api, [webhook("x")])
    assert api.raw("POST", "/webhook-test/x").status_code == 404


def test_no_key_is_needed(simulator: ServiceSimulator) -> None:
    simulator.create_webhook_workflow(path="x")
    answer = requests.post(f"{simulator.base_url}/webhook/x", timeout=5)
    assert (answer.status_code, answer.json()) == (200, {"message": "Workflow was started"})


def test_inactive_workflow_does_not_answer(api: Api) -> None:
    workflow = api.simulator.create_webhook_workflow(path="x", active=False)
    assert workflow["active"] is False
    assert api.hook("x", {}).status_code == 404


def test_header_auth_of_the_node(api: Api) -> None:
    data = {"name": "X-Token", "value": "secret"}
    credential = api.post("/credentials", {"name": "hook", "type": "httpHeaderAuth", "data": data}).json()
    guarded = webhook("x", authentication="headerAuth")
    guarded["credentials"] = {"httpHeaderAuth": {"id": credential["id"], "name": "hook"}}
    live(api, [guarded])
    for headers in ({}, {"X-Token": "wrong"}):
        answer = api.hook("x", {}, headers=headers)
        assert (answer.status_code, answer.text) == (403, "Authorization data is wrong!")
        assert "content-type" not in answer.headers
    assert len(api.simulator.state.executions) == 0
    assert api.hook("x", {}, headers={"x-token": "secret"}).status_code == 200


def test_authentication_that_cannot_be_checked_fails_closed(api: Api) -> None:
    live(api, [webhook("x", authentication="basicAuth")])
    assert api.hook("x", {}).status_code == 500
    assert len(api.simulator.state.executions) == 0


# ---------------------------------------------------------------- what it is given


def test_request_is_the_triggers_item(api: Api) -> None:
    live(api, [webhook("x")])
    api.hook("x?a=1&b=2&b=3", {"id": "abc"}, headers={"X-Correlation": "c1"})
    api.simulator.clock.advance(1)
    runs = the_execution(api)["data"]["resultData"]["runData"]["Webhook"]
    item = runs[0]["data"]["main"][0][0]["json"]
    assert item["body"] == {"id": "abc"}
    assert item["query"] == {"a": "1", "b": ["2", "3"]}
    assert item["headers"]["x-correlation"] == "c1"
    assert (item["params"], item["executionMode"]) == ({}, "production")
    assert item["webhookUrl"] == f"{api.simulator.base_url}/webhook/x"


@pytest.mark.parametrize(
    ("content", "media_type", "body"),
    [
        ("plain", "text/plain", "plain"),
        ("a=1&b=", "application/x-www-form-urlencoded", {"a": "1", "b": ""}),
        ("[1, 2]", "application/json; charset=utf-8", [1, 2]),
        ("", "application/json", {}),
    ],
)
def test_bodies_by_media_type(api: Api, content: str, media_type: str, body: Any) -> None:
    live(api, [webhook("x", responseMode="lastNode")])
    answer = api.hook("x", data=content, headers={"Content-Type": media_type})
    assert answer.json()["body"] == body


def test_malformed_json_is_422_and_starts_nothing(api: Api) -> None:
    live(api, [webhook("x")])
    answer = api.hook("x", data="{", headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()) == (422, {"code": 422, "message": "Failed to parse request body"})
    assert len(api.simulator.state.executions) == 0


# ---------------------------------------------------------------- respond immediately


def test_id_by_expression_is_a_string(api: Api) -> None:
    live(api, [webhook("x", options={"responseData": WITH_ID})])
    answer = api.hook("x", {})
    assert answer.json() == {"executionId": "1"}
    assert api.get("/executions/1").status_code == 200


def test_immediate_answer_with_a_status_of_its_own(api: Api) -> None:
    options = {"responseCode": {"values": {"responseCode": 202}}, "responseData": "={{ $json.body.id }}"}
    live(api, [webhook("x", options=options)])
    answer = api.hook("x", {"id": "abc"})
    assert (answer.status_code, answer.json()) == (202, "abc")


def test_execution_is_readable_at_once_and_ends_soon(api: Api) -> None:
    live(api, [webhook("x", options={"responseData": WITH_ID})])
    execution = api.hook("x", {}).json()["executionId"]
    assert api.get(f"/executions/{execution}").json()["status"] in ("running", "success")
    until(lambda: api.get(f"/executions/{execution}").json()["status"] == "success")
    assert [found["id"] for found in api.get("/executions").json()["data"]] == [execution]


# ---------------------------------------------------------------- last node


def setter(**values: Any) -> dict[str, Any]:
    assignments = [{"id": name, "name": name, "value": value, "type": "string"} for name, value in values.items()]
    return node("Set", "set", 3.4, {"assignments": {"assignments": assignments}, "options": {}}, 1)


def test_last_node_answers_its_first_item(api: Api) -> None:
    live(api, [webhook("x", responseMode="lastNode"), setter(id="={{ $execution.id }}", got="={{ $json.body.a }}")])
    answer = api.hook("x", {"a": "b"})
    assert (answer.status_code, answer.json()) == (200, {"id": "1", "got": "b"})


def test_last_node_can_answer_every_item_or_none(api: Api) -> None:
    live(api, [webhook("all", responseMode="lastNode", responseData="allEntries"), setter(a="1")])
    live(api, [webhook("none", responseMode="lastNode", responseData="noData"), setter(a="1")])
    assert api.hook("all", {}).json() == [{"a": "1"}]
    assert api.hook("none", {}).content == b""


@pytest.mark.parametrize("mode", ["lastNode", "responseNode"])
def test_failing_run_is_500(api: Api, mode: str) -> None:
    nodes = [webhook("x", responseMode=mode), node("Stop", "stopAndError", 1, {"errorMessage": "No"}, 1)]
    live(api, [*nodes, node("Respond", "respondToWebhook", 1.1, {}, 2)])
    answer = api.hook("x", {})
    assert (answer.status_code, answer.json()) == (500, {"message": "Error in workflow"})
    assert the_execution(api)["status"] == "error"


def test_stopped_run_is_500(api: Api) -> None:
    api.simulator.create_webhook_workflow(path="x", behaviour="long", seconds=60, response_mode="lastNode")
    answers: list[requests.Response] = []
    caller = threading.Thread(
        target=lambda: answers.append(requests.post(f"{api.simulator.base_url}/webhook/x", timeout=5))
    )
    caller.start()
    until(lambda: api.get("/executions/1").status_code == 200)
    assert api.post("/executions/1/stop").status_code == 200
    caller.join(60)
    message = "There was a problem executing the workflow"
    assert (answers[0].status_code, answers[0].json()) == (500, {"code": 0, "message": message})


def test_long_wait_answers_what_there_is_so_far(api: Api) -> None:
    api.simulator.create_webhook_workflow(path="x", behaviour="waiting", response_mode="lastNode")
    answer = api.hook("x", {"a": 1})
    assert answer.status_code == 200
    assert answer.json()["body"] == {"a": 1}
    assert the_execution(api)["status"] == "waiting"


# ---------------------------------------------------------------- respond node


def test_respond_node_answers_while_the_run_goes_on(api: Api) -> None:
    nodes = [
        webhook("x", responseMode="responseNode"),
        respond(respondWith="json", responseBody=WITH_ID, options={"responseCode": 202}),
        wait(30),
    ]
    live(api, nodes)
    answer = api.hook("x", {})
    assert (answer.status_code, answer.json()) == (202, {"executionId": "1"})
    assert api.get("/executions/1").json()["status"] == "running"
    api.simulator.clock.advance(31)
    assert api.get("/executions/1").json()["status"] == "success"


def test_respond_node_with_text_and_headers(api: Api) -> None:
    options = {"responseHeaders": {"entries": [{"name": "X-Run", "value": "=run {{ $execution.id }}"}]}}
    answers = respond(respondWith="text", responseBody="=done {{ $json.body.a }}", options=options)
    live(api, [webhook("x", responseMode="responseNode"), answers])
    answer = api.hook("x", {"a": 1})
    assert (answer.text, answer.headers["x-run"]) == ("done 1", "run 1")
    assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize(
    ("parameters", "body"),
    [
        ({}, {"a": "1"}),
        ({"respondWith": "allIncomingItems"}, [{"a": "1"}]),
        ({"respondWith": "json", "responseBody": '={"got": "{{ $json.a }}"}'}, {"got": "1"}),
    ],
)
def test_respond_node_with_json(api: Api, parameters: dict[str, Any], body: Any) -> None:
    live(api, [webhook("x", responseMode="responseNode"), setter(a="1"), respond(**parameters)])
    assert api.hook("x", {}).json() == body


def test_respond_node_without_data(api: Api) -> None:
    live(api, [webhook("x", responseMode="responseNode"), respond(respondWith="noData")])
    answer = api.hook("x", {})
    assert (answer.status_code, answer.content) == (200, b"")


def test_missing_respond_node(api: Api) -> None:
    live(api, [webhook("x", responseMode="responseNode"), node("Done", "noOp", 1, {}, 1)])
    answer = api.hook("x", {})
    message = "No Respond to Webhook node found in the workflow"
    assert (answer.status_code, answer.json()) == (500, {"code": 0, "message": message})
    assert the_execution(api)["status"] == "error"
