"""Webhooks as a resource: which one starts a workflow, and what a call of it sends."""

from __future__ import annotations

from typing import Any

import pytest
import requests_mock

from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.client.models.webhooks import WebhookAnswer, WebhookTrigger
from airflow_provider_service.client.models.workflows import Workflow
from airflow_provider_service.client.resources.webhooks import authentication_headers

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
