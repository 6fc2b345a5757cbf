"""Webhooks as a resource: which one starts a workflow, and what a call of it sends."""

from __future__ import annotations

from typing import Any

import jwt
import pytest
import requests_mock

from airflow_provider_service.client.errors import ServiceInputError, ServiceWebhookUncertainError
from airflow_provider_service.client.models import WebhookAnswer, WebhookTrigger, Workflow
from airflow_provider_service.client.resources._webhooks import authentication_headers

from .clients import BASE, KEY, Client

POST = WebhookTrigger("Webhook", "POST", "orders/new")
GET = POST._replace(method="GET")


def workflow(*nodes: dict[str, Any]) -> Workflow:
    return Workflow.model_validate({"id": "w", "name": "Orders", "active": False, "nodes": nodes})


def webhook(name: str, **parameters: Any) -> dict[str, Any]:
    return {"type": "n8n-nodes-base.webhook", "name": name, "parameters": parameters}


def test_the_webhook_of_a_workflow_is_found_without_a_request(client: Client, server: requests_mock.Mocker) -> None:
    one = webhook("In", path="/orders/new", httpMethod="POST", authentication="headerAuth")

    assert client.webhooks.find(workflow(one)) == WebhookTrigger("In", "POST", "orders/new", "headerAuth")
    assert client.webhooks.find(workflow(one, webhook("Ask", path="ask")), "Ask") == WebhookTrigger("Ask", "GET", "ask")
    assert client.webhooks.find(workflow(webhook("In", path="a", responseMode="lastNode"))).response_mode == "lastNode"
    assert server.request_history == []


def test_one_of_several_must_be_named(client: Client) -> None:
    with pytest.raises(ServiceInputError, match="has several webhooks; choose one by its node: 'A', 'B'; nothing was"):
        client.webhooks.find(workflow(webhook("A", path="a"), webhook("B", path="b")))


def test_a_call_sends_the_payload_and_no_key(client: Client, server: requests_mock.Mocker) -> None:
    server.post(f"{BASE}/webhook/orders/new", json={"taken": True}, status_code=202)
    own = authentication_headers("headerAuth", "X-Token", "t")

    assert client.webhooks.call(POST, {"n": 1}, headers=own) == WebhookAnswer(202, {"taken": True})
    client.webhooks.call(POST)

    first, second = server.request_history
    assert (first.json(), second.json()) == ({"n": 1}, {})
    assert first.headers["X-Token"] == "t"
    assert KEY not in str(first.headers)


def test_an_error_does_not_show_what_the_headers_of_the_call_hold(client: Client, server: requests_mock.Mocker) -> None:
    repeated = {"headers": {"x-token": "token-1", "authorization": "Bearer secret-2"}, "of": "token-1, secret-2"}
    answered = {"Content-Type": "application/json", "X-Of": "secret-2"}
    server.post(f"{BASE}/webhook/orders/new", json=repeated, status_code=503, headers=answered)

    with pytest.raises(ServiceWebhookUncertainError) as caught:
        client.webhooks.call(POST, headers={"X-Token": "token-1", "Authorization": "Bearer secret-2"})

    assert caught.value.body == {"headers": {"x-token": "***", "authorization": "***"}, "of": "***, ***"}
    assert (caught.value.headers or {})["x-of"] == "***"
    assert "token-1" not in str(caught.value)


def test_the_payload_of_a_get_is_its_query(client: Client, server: requests_mock.Mocker) -> None:
    server.get(f"{BASE}/webhook/orders/new", text="ok")

    assert client.webhooks.call(GET, {"day": "a b", "dry": True, "none": None}) == WebhookAnswer(200, "ok")
    with pytest.raises(ServiceInputError, match="takes GET, so payload must be a mapping of plain values"):
        client.webhooks.call(GET, {"nested": {}})

    assert [request.url for request in server.request_history] == [f"{BASE}/webhook/orders/new?day=a%20b&dry=true"]


@pytest.mark.parametrize(("own", "seconds"), [(None, 7), (3, 3)])
def test_the_timeout_is_that_of_the_call_or_of_the_connection(
    server: requests_mock.Mocker, own: float | None, seconds: float
) -> None:
    server.post(f"{BASE}/webhook/orders/new", json={})

    Client(timeout=7).webhooks.call(POST, timeout=own)

    assert server.last_request.timeout[1] == seconds


# ---------------------------------------------------------------- parameters in the path

ORDER = WebhookTrigger("In", "POST", "id-1/orders/:id/lines/:line")


def test_a_path_with_parameters_begins_with_the_webhook_id(client: Client, server: requests_mock.Mocker) -> None:
    node = {**webhook("In", path="/orders/:id/lines/:line/", httpMethod="POST"), "webhookId": "id-1"}
    server.post(requests_mock.ANY, json={})

    trigger = client.webhooks.find(workflow(node))
    client.webhooks.call(trigger, path_parameters={"line": "ä b?", "id": 7})

    assert (trigger, trigger.path_parameters) == (ORDER, ("id", "line"))
    assert server.last_request.url == f"{BASE}/webhook/id-1/orders/7/lines/%C3%A4%20b%3F"


def test_a_path_with_parameters_needs_a_webhook_id(client: Client) -> None:
    with pytest.raises(ServiceInputError, match="has the path 'orders/:id' with parameters, but no webhook id"):
        client.webhooks.find(workflow(webhook("In", path="orders/:id")))


def test_a_colon_within_a_segment_is_part_of_it(client: Client, server: requests_mock.Mocker) -> None:
    server.get(requests_mock.ANY, json={})
    client.webhooks.call(client.webhooks.find(workflow(webhook("In", path="urn:orders"))))
    assert server.last_request.url == f"{BASE}/webhook/urn%3Aorders"


@pytest.mark.parametrize("path", ["={{ $vars.path }}", ""])
def test_a_path_that_is_not_fixed_is_refused(client: Client, path: str) -> None:
    with pytest.raises(ServiceInputError, match="is not fixed; nothing was started"):
        client.webhooks.find(workflow(webhook("In", path=path)))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (None, r"lacks 'id', 'line'; webhook 'In' has the path 'id-1/orders/:id/lines/:line'; nothing was started"),
        ({}, "lacks 'id', 'line'"),
        ({"id": 1, "lines": 2, "x": 3}, "lacks 'line' and has unknown names: 'lines', 'x'"),
        ({"id": 1, "line": 2, "id-1": 3}, "has unknown names: 'id-1'"),
        ("7", "must be a mapping, not '7'"),
        *(
            ({"id": value, "line": 1}, f"path parameter 'id' cannot be {value!r}")
            for value in ("", " ", ".", "..", "a/b", "../../rest/login", "/", "x" * 301)
        ),
        *(
            ({"id": value, "line": 1}, "path parameter 'id' must be text or a whole number, not")
            for value in (None, True, 1.5, b"7", ["7"], 10**300)
        ),
        ({"id": "\ud800", "line": 1}, "is not valid Unicode text"),
    ],
)
def test_parameters_that_cannot_be_sent(client: Client, server: requests_mock.Mocker, values: Any, words: str) -> None:
    with pytest.raises(ServiceInputError) as refused:
        client.webhooks.call(ORDER, path_parameters=values)
    assert words[:80].rstrip("x'") in str(refused.value)
    assert server.request_history == []


def test_a_path_without_parameters_takes_none(client: Client, server: requests_mock.Mocker) -> None:
    with pytest.raises(ServiceInputError, match="has unknown names: 'id'; webhook 'Webhook' has the path 'orders/new'"):
        client.webhooks.call(POST, path_parameters={"id": 7})
    assert server.request_history == []


# ---------------------------------------------------------------- methods


def test_one_of_several_methods(client: Client) -> None:
    flow = workflow(webhook("In", path="in", httpMethod=["PUT", "POST"], multipleMethods=True))
    assert client.webhooks.find(flow).method == "PUT"
    assert client.webhooks.find(flow, method="post").method == "POST"
    with pytest.raises(ServiceInputError, match=r"webhook 'In' of .* takes PUT, POST, not 'GET'; nothing was started"):
        client.webhooks.find(flow, method="GET")


def test_several_methods_are_get_and_post_by_default(client: Client) -> None:
    flow = workflow(webhook("In", path="in", multipleMethods=True))
    assert [client.webhooks.find(flow, method=one).method for one in (None, "POST")] == ["GET", "POST"]


@pytest.mark.parametrize("status", [404, 401, 403, 500])
def test_a_refusal_of_head_may_be_the_workflows(client: Client, server: requests_mock.Mocker, status: int) -> None:
    server.head(f"{BASE}/webhook/orders/new", status_code=status)
    with pytest.raises(ServiceWebhookUncertainError) as raised:
        client.webhooks.call(POST._replace(method="HEAD"))
    assert not raised.value.not_processed


# ---------------------------------------------------------------- tokens


def test_a_token_is_signed_and_does_not_show_itself() -> None:
    secret = "s" * 64
    headers = authentication_headers("jwtAuth", "", secret, algorithm="HS512")
    claims = jwt.decode(headers["Authorization"].removeprefix("Bearer "), secret, ["HS512"])
    assert claims.keys() == {"iat", "exp"}
    assert repr(headers) == "{'Authorization': '***'}"


def test_a_token_of_the_users_own_is_a_header() -> None:
    assert authentication_headers("jwtAuth", "Authorization", "Bearer x") == {"Authorization": "Bearer x"}


def test_only_a_token_needs_no_user() -> None:
    for kind in ("none", "basicAuth", "headerAuth"):
        with pytest.raises(ServiceInputError, match="the webhook's connection has no login"):
            authentication_headers(kind, "", "secret")


@pytest.mark.parametrize(("user", "password"), [("me", "secret\ud800"), ("secret\ud800", "mine")])
def test_a_login_that_cannot_be_encoded_is_refused_and_not_shown(user: str, password: str) -> None:
    with pytest.raises(ServiceInputError, match="login and password of the webhook's connection must be") as refused:
        authentication_headers("basicAuth", user, password)
    assert "secret" not in str(refused.value)
    assert refused.value.__context__ is None
