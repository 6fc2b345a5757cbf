"""Webhooks: who answers, in which mode, with what."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_service.simulator._samples import chain, node, respond, webhook

from .api_client import Api


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


def test_several_methods_on_one_path(api: Api) -> None:
    live(api, [webhook("x", multipleMethods=True, httpMethod=["GET", "PUT"])])
    assert [api.hook("x", method=method).status_code for method in ("GET", "PUT", "POST")] == [200, 200, 404]


def test_authentication_that_cannot_be_checked_fails_closed(api: Api) -> None:
    deleted = {"httpBasicAuth": {"id": "deleted", "name": "hook"}}
    live(api, [{**webhook("x", authentication="basicAuth"), "credentials": deleted}])
    assert api.hook("x", {}).status_code == 500
    assert len(api.simulator.state.executions) == 0


# ---------------------------------------------------------------- what it is given


def test_a_parameter_that_is_repeated_is_a_list(api: Api) -> None:
    live(api, [webhook("x")])
    api.hook("x?a=1&b=2&b=3", {})
    api.simulator.clock.advance(1)
    runs = the_execution(api)["data"]["resultData"]["runData"]["Webhook"]
    assert runs[0]["data"]["main"][0][0]["json"]["query"] == {"a": "1", "b": ["2", "3"]}


@pytest.mark.parametrize(
    ("content", "media_type", "body"),
    [
        ("a=1&b=", "application/x-www-form-urlencoded", {"a": "1", "b": ""}),
        ("[1, 2]", "application/json; charset=utf-8", [1, 2]),
        ("", "application/json", {}),
    ],
)
def test_bodies_by_media_type(api: Api, content: str, media_type: str, body: Any) -> None:
    live(api, [webhook("x", responseMode="lastNode")])
    answer = api.hook("x", data=content, headers={"Content-Type": media_type})
    assert answer.json()["body"] == body


# ---------------------------------------------------------------- respond immediately


def test_immediate_answer_with_its_own_status(api: Api) -> None:
    options = {"responseCode": {"values": {"responseCode": 202}}, "responseData": "={{ $json.body.id }}"}
    live(api, [webhook("x", options=options)])
    answer = api.hook("x", {"id": "abc"})
    assert (answer.status_code, answer.json()) == (202, "abc")


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


# ---------------------------------------------------------------- respond node


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
