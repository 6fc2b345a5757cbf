"""Webhooks with parameters in their path, and with several methods."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_service.client._execution_data import starting_items
from airflow_provider_service.client.errors import (
    ServiceInvalidRequestError,
    ServiceWebhookNotLiveError,
    ServiceWebhookUncertainError,
)
from airflow_provider_service.client.models import WebhookTrigger, Workflow
from tests.polling import wait_until

from .expecting import unique
from .target import Target
from .workbench import Workbench, done, path_of, webhook


def orders() -> str:
    """A path that no other workflow has, because the service compares the paths as they are written."""
    return f"{unique('orders')}/:id"


def publish(bench: Workbench, service: Target, path: str, **parameters: Any) -> WebhookTrigger:
    flow = bench.publish(webhook(path, responseMode="lastNode", **parameters), done())
    return service.client.webhooks.find(flow)


def called(service: Target, address: str, **options: Any) -> Any:
    """The item that a call of an address began with, or None if nothing listens there."""
    answer = service.outside("POST", f"/webhook/{address}", json={}, **options)
    assert answer.status_code in (200, 404), answer.text
    return answer.json() if answer.status_code == 200 else None


# ---------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        (7, "7"),
        ("a b", "a b"),
        ("ä€漢", "ä€漢"),
        ("a?b#c%d&e=f+g", "a?b#c%d&e=f+g"),
        ("%2F", "%2F"),
        (":id", ":id"),
        ("...", "..."),
        ("\\..\\", "\\..\\"),
        ("x" * 300, "x" * 300),
    ],
)
def test_a_value_arrives_as_it_was_given(bench: Workbench, service: Target, sent: str | int, received: str) -> None:
    trigger = publish(bench, service, orders())
    answer = service.client.webhooks.call(trigger, {"a": 1}, path_parameters={"id": sent}, timeout=20)
    assert (answer.status, answer.body["params"], answer.body["body"]) == (200, {"id": received}, {"a": 1})
    assert answer.body["webhookUrl"].endswith(f"/webhook/{trigger.path}")


def test_the_address_begins_with_the_webhook_id(bench: Workbench, service: Target) -> None:
    trigger = publish(bench, service, f"{unique()}/:tenant/orders/:id")
    webhook_id, first, *_ = trigger.path.split("/")
    item = called(service, f"{webhook_id}/{first}/acme/orders/7")
    assert item["params"] == {"tenant": "acme", "id": "7"}
    for address in (
        f"{first}/acme/orders/7",
        f"{webhook_id}/{first}/acme/orders",
        f"{webhook_id}/{first}/acme/orders/",
        f"{webhook_id}/{first}/acme/orders/7/8",
        f"{webhook_id}/{first}/acme/invoices/7",
        f"{webhook_id}/{first}/acme/orders/7%2F8",  # an encoded slash separates segments like any other
        f"{webhook_id}//{first}/acme/orders/7",
    ):
        assert called(service, address) is None


def test_segments_are_compared_in_any_order(bench: Workbench, service: Target) -> None:
    trigger = publish(bench, service, orders())
    webhook_id, first, _ = trigger.path.split("/")
    assert called(service, f"{webhook_id}/7/{first}")["params"] == {"id": first}


def test_the_path_as_it_is_written_answers_too(bench: Workbench, service: Target) -> None:
    trigger = publish(bench, service, orders())
    assert called(service, trigger.path.partition("/")[2])["params"] == {}


@pytest.mark.parametrize("path", [":id", ":tenant/{}", "{}/:a-b.c:d", "/{}/:id/", "{}/:id/{}/:id"])
def test_where_a_parameter_stands(bench: Workbench, service: Target, path: str) -> None:
    trigger = publish(bench, service, path.replace("{}", unique()))
    values = {name: f"of {name}" for name in trigger.path_parameters}
    answer = service.client.webhooks.call(trigger, path_parameters=values, timeout=20)
    assert (answer.status, answer.body["params"]) == (200, values)


def test_a_colon_within_a_segment_is_no_parameter(bench: Workbench, service: Target) -> None:
    trigger = publish(bench, service, f"{unique()}:b")
    assert trigger.path_parameters == ()
    assert service.client.webhooks.call(trigger, timeout=20).body["params"] == {}


def test_a_path_with_parameters_that_is_taken(bench: Workbench, service: Target) -> None:
    path = orders()
    publish(bench, service, path)
    second = bench.create(webhook(path, responseMode="lastNode"), done())
    if service.differs("taken path with parameters"):
        with pytest.raises(ServiceInvalidRequestError, match="already taken"):
            service.client.workflows.activate(second.id)
        return
    if service.differs("second path with parameters"):
        service.client.workflows.activate(second.id)
        return
    # The publication is not refused, unlike that of a path without parameters.
    service.client.workflows.activate(second.id)
    trigger = service.client.webhooks.find(second)
    with pytest.raises(ServiceWebhookNotLiveError):
        service.client.webhooks.call(trigger, path_parameters={"id": 7}, timeout=20)


# ---------------------------------------------------------------- methods


def only_item(service: Target, flow: Workflow) -> dict[str, Any]:
    (run,) = wait_until(lambda: list(service.client.executions.list(workflow_id=flow.id)), what="the run")
    wait_until(lambda: service.client.executions.get(run.id).status == "success", what="its end")
    return next(starting_items(service.client.executions.get(run.id, include_data=True)))


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "POST"])
def test_what_a_method_takes(bench: Workbench, service: Target, method: str) -> None:
    flow = bench.create(webhook(unique(), responseMode="lastNode", httpMethod=method), done())
    service.client.workflows.activate(flow.id)
    other = "POST" if method == "GET" else "GET"
    wait_until(
        lambda: "not registered for" in service.outside(other, f"/webhook/{path_of(flow)}").text, what="the webhook"
    )
    trigger = service.client.webhooks.find(flow)
    assert trigger.method == method
    answer = service.client.webhooks.call(trigger, {"a": "1"}, timeout=20)
    assert (answer.status, bool(answer.body)) == (200, method != "HEAD")
    item = only_item(service, flow)
    assert (item["query"], item["body"]) == (({}, {"a": "1"}) if trigger.has_body else ({"a": "1"}, {}))


def test_a_refusal_of_head_has_no_text(service: Target) -> None:
    answer = service.outside("HEAD", f"/webhook/{unique()}")
    assert (answer.status_code, answer.text) == (404, "")
    with pytest.raises(ServiceWebhookUncertainError):
        service.client.webhooks.call(WebhookTrigger("Webhook", "HEAD", unique()))


def test_each_of_several_methods_has_its_own_output(bench: Workbench, service: Target) -> None:
    node = webhook(unique(), multipleMethods=True, httpMethod=["PUT", "DELETE"], responseMode="lastNode")
    flow = bench.publish(node, done())  # connected to the first output
    find, call = service.client.webhooks.find, service.client.webhooks.call
    assert find(flow).method == "PUT"
    assert call(find(flow), {"a": 1}, timeout=20).body["body"] == {"a": 1}
    answer = call(find(flow, method="delete"), timeout=20)
    assert (answer.status, answer.body["message"]) == (500, "No item to return was found")
    refused = service.outside("POST", f"/webhook/{path_of(flow)}").json()["message"]
    assert refused == "This webhook is not registered for POST requests. Did you mean to make a DELETE or PUT request?"


def test_the_methods_of_a_node_that_names_none(bench: Workbench, service: Target) -> None:
    node = webhook(unique(), multipleMethods=True, responseMode="lastNode")
    del node["parameters"]["httpMethod"]
    flow = bench.create(node, done())
    service.client.workflows.activate(flow.id)
    wait_until(lambda: "PUT requests" in service.outside("PUT", f"/webhook/{path_of(flow)}").text, what="the webhook")
    assert service.client.webhooks.find(flow).method == "GET"
    assert service.client.webhooks.find(flow, method="POST").method == "POST"
    assert service.outside("GET", f"/webhook/{path_of(flow)}").status_code == 200
