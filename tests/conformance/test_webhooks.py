"""Production webhooks: how a run is started, what is answered when, and what is refused without starting anything."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import jwt
import pytest
import requests

from airflow_provider_service._airflow.connection import WebhookHeaders
from airflow_provider_service._core.runs.attempt import Attempt, RunKey
from airflow_provider_service._core.runs.request import RunRequest
from airflow_provider_service._core.runs.start_methods.webhook import WebhookStartMethod
from airflow_provider_service.client._execution_data import starting_items
from airflow_provider_service.client.errors import (
    ServiceTimeoutError,
    ServiceWebhookNotLiveError,
    ServiceWebhookRefusedError,
)
from airflow_provider_service.client.models import Execution, Workflow
from airflow_provider_service.client.resources._webhooks import authentication_headers
from tests.polling import wait_until

from .expecting import unique
from .target import Target
from .workbench import (
    LONG_WAIT,
    WITH_ID,
    Workbench,
    code,
    done,
    path_of,
    respond,
    stop_and_error,
    wait,
    webhook,
)

IN_WORKFLOW = (500, {"message": "Error in workflow"})


def answered(answer: requests.Response) -> tuple[int, Any]:
    """Status and JSON, without the stack trace that servers outside production add."""
    body = answer.json()
    body.pop("stacktrace", None)
    return answer.status_code, body


def by_node() -> dict[str, Any]:
    return webhook(unique(), responseMode="responseNode")


def by_last_node() -> dict[str, Any]:
    return webhook(unique(), responseMode="lastNode")


def only_run(service: Target, workflow: Workflow) -> Execution:
    """The one execution of a workflow, in whatever status."""

    def listed() -> list[Execution]:
        found = list(service.client.executions.list(workflow_id=workflow.id))
        return found or list(service.client.executions.list(workflow_id=workflow.id, status="running"))

    (run,) = wait_until(listed, what="the run")
    return run


# ---------------------------------------------------------------- what is answered, and when


def test_at_once(bench: Workbench, service: Target) -> None:
    flow = bench.publish(webhook(unique()), wait(30))
    assert answered(bench.call(flow)) == (200, {"message": "Workflow was started"})
    assert bench.reaches(only_run(service, flow).id, "running").stopped_at is None


def test_at_once_with_the_id(bench: Workbench, service: Target) -> None:
    flow = bench.publish(webhook(unique(), options={"responseData": WITH_ID}))
    status, body = answered(bench.call(flow))
    assert status == 200
    if service.differs("id in a webhook's answer"):
        assert body == {"executionId": "__UNKNOWN__"}
    else:
        # It can be read at once.
        assert service.client.executions.get(body["executionId"]).workflow_id == flow.id
    assert bench.reaches(only_run(service, flow).id, "success").mode == "webhook"


def test_the_last_node_answers_after_the_run(bench: Workbench) -> None:
    flow = bench.publish(by_last_node(), done())
    status, body = answered(bench.call(flow, json={"a": 1}))
    assert (status, body["body"]) == (200, {"a": 1})


def test_the_last_node_of_a_run_that_fails(bench: Workbench, service: Target) -> None:
    flow = bench.publish(by_last_node(), stop_and_error())
    assert answered(bench.call(flow)) == IN_WORKFLOW
    assert bench.finished(only_run(service, flow).id).status == "error"


@pytest.mark.covers("stop_execution")
def test_the_last_node_of_a_run_that_is_stopped(bench: Workbench, service: Target) -> None:
    flow = bench.publish(by_last_node(), wait(30))
    with ThreadPoolExecutor(1) as threads:
        call: Future[requests.Response] = threads.submit(bench.call, flow)
        service.client.executions.stop(only_run(service, flow).id)
        assert answered(call.result(20)) == (500, {"code": 0, "message": "There was a problem executing the workflow"})


def test_the_last_node_does_not_wait_for_a_long_wait(bench: Workbench, service: Target) -> None:
    flow = bench.publish(by_last_node(), wait(LONG_WAIT * 10), done())
    assert bench.call(flow, timeout=20).status_code == 200
    if service.differs("list of waiting executions"):
        return
    assert bench.reaches(only_run(service, flow).id, "waiting").wait_till is not None


def test_a_node_answers_while_the_run_continues(bench: Workbench, service: Target) -> None:
    node = respond(respondWith="json", responseBody=WITH_ID, options={"responseCode": 202})
    flow = bench.publish(by_node(), node, wait(30))
    status, body = answered(bench.call(flow))
    assert status == 202
    run = only_run(service, flow)
    assert (body["executionId"], run.status) == (run.id, "running")


def test_a_node_that_is_not_reached(bench: Workbench, service: Target) -> None:
    flow = bench.publish(by_node(), {**stop_and_error(), "name": "Before"}, respond())
    answer = bench.call(flow)
    if service.differs("answer of a run that fails first"):
        assert (answer.status_code, answer.text) == (200, "")
    else:
        assert answered(answer) == IN_WORKFLOW


def test_a_node_that_is_not_there(bench: Workbench, service: Target) -> None:
    flow = bench.publish(by_node(), done())
    status, body = answered(bench.call(flow))
    assert (status, body["message"]) == (500, "No Respond to Webhook node found in the workflow")
    assert body["code"] == 0


# ---------------------------------------------------------------- what a run is given


def test_body_query_and_headers_are_kept(bench: Workbench, service: Target) -> None:
    flow = bench.publish()
    bench.call(flow, json={"a": [1]}, query="?q=1&q2=x%20y", headers={"X-Own": "Mine"})
    execution = bench.finished(only_run(service, flow).id)
    item = next(starting_items(execution))
    assert item["body"] == {"a": [1]}
    assert item["query"] == {"q": "1", "q2": "x y"}
    assert item["headers"]["x-own"] == "Mine"
    assert item["executionMode"] == "production"
    assert item["webhookUrl"].endswith(f"/webhook/{path_of(flow)}")
    assert item["params"] == {}


def test_text_is_text(bench: Workbench, service: Target) -> None:
    flow = bench.publish()
    assert bench.call(flow, data="plain", headers={"Content-Type": "text/plain"}).status_code == 200
    assert next(starting_items(bench.finished(only_run(service, flow).id)))["body"] == "plain"


# ---------------------------------------------------------------- refusals: nothing runs


def test_nobody_listens(bench: Workbench, service: Target) -> None:
    draft, path = bench.create(), unique()
    for unheard in (path_of(draft), path):
        answer = service.outside("POST", f"/webhook/{unheard}")
        assert answer.status_code == 404
        body = answer.json()
        assert (body["code"], body["message"]) == (404, f'The requested webhook "POST {unheard}" is not registered.')
        assert "hint" in body
    with pytest.raises(ServiceWebhookNotLiveError):
        service.client.transport.call_webhook("POST", path, headers={}, payload={}, timeout=60)


def test_the_wrong_method(bench: Workbench, service: Target) -> None:
    flow = bench.publish()
    answer = bench.call(flow, method="GET")
    text = "This webhook is not registered for GET requests. Did you mean to make a POST request?"
    assert (answer.status_code, answer.json()["message"]) == (404, text)
    with pytest.raises(ServiceWebhookRefusedError):
        service.client.transport.call_webhook("GET", path_of(flow), headers={}, payload={}, timeout=60)


def test_malformed_json(bench: Workbench, service: Target) -> None:
    flow = bench.publish()
    answer = bench.call(flow, data="{", headers={"Content-Type": "application/json"})
    body = answer.json()
    assert (answer.status_code, body["code"], body["message"]) == (422, 422, "Failed to parse request body")
    assert list(service.client.executions.list(workflow_id=flow.id)) == []


SECRET = "a secret that is long enough for every algorithm " * 2


def password(user: str, secret: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{secret}'.encode()).decode()}"}


def token(secret: str = SECRET, algorithm: str = "HS256", **claims: int) -> dict[str, str]:
    return {"Authorization": f"Bearer {jwt.encode(claims, secret, algorithm)}"}


class Access(NamedTuple):
    """An authentication of a webhook: the node's, its credential, the headers that pass, and those that do not."""

    kind: str
    credential: str
    data: dict[str, str]
    passes: Callable[[], dict[str, str]]
    refused: list[tuple[dict[str, str], int, str]]


ACCESS = [
    Access(
        "headerAuth",
        "httpHeaderAuth",
        {"name": "X-Pass", "value": "secret"},
        lambda: {"X-Pass": "secret"},
        [({}, 403, "Authorization data is wrong!"), ({"X-Pass": "wrong"}, 403, "Authorization data is wrong!")],
    ),
    Access(
        "basicAuth",
        "httpBasicAuth",
        {"user": "me", "password": "secret"},
        lambda: password("me", "secret"),
        [({}, 401, "Authorization is required!"), (password("me", "wrong"), 401, "Authentication data is wrong!")],
    ),
    Access(
        "jwtAuth",
        "jwtAuth",
        {"keyType": "passphrase", "secret": SECRET, "algorithm": "HS256"},
        lambda: authentication_headers("jwtAuth", "", SECRET),  # which expires
        [
            ({}, 401, "No token provided"),
            ({"Authorization": "Bearer x"}, 403, "jwt malformed"),
            (token(SECRET[::-1]), 403, "invalid signature"),
            (token(algorithm="HS384"), 403, "invalid algorithm"),
            (token(exp=1), 403, "jwt expired"),
            (token(nbf=2**32), 403, "jwt not active"),
        ],
    ),
]


@pytest.mark.parametrize("access", ACCESS, ids=[access.kind for access in ACCESS])
def test_its_own_authentication(bench: Workbench, service: Target, access: Access) -> None:
    credential = service.client.credentials.create(unique("pass"), access.credential, access.data)
    node = {
        **webhook(unique(), authentication=access.kind),
        "credentials": {access.credential: {"id": credential.id, "name": credential.name}},
    }
    flow = bench.publish(node)
    for headers, status, text in access.refused:
        if text.startswith("Authentication") and service.differs("wrong password of a webhook"):
            status, text = 403, "Authorization data is wrong!"
        answer = bench.call(flow, headers=headers)
        assert (answer.status_code, answer.text) == (status, text)
        assert answer.headers["WWW-Authenticate"] == 'Basic realm="Webhook"'
        assert "Content-Type" not in answer.headers
        with pytest.raises(ServiceWebhookRefusedError):
            service.client.transport.call_webhook("POST", path_of(flow), headers=headers, payload={}, timeout=60)
    assert bench.call(flow, headers=access.passes()).status_code == 200
    assert bench.finished(only_run(service, flow).id).status == "success"
    bench.remove(flow.id)
    service.raw("DELETE", f"/credentials/{credential.id}")


def test_a_body_over_the_limit_runs_nothing(bench: Workbench, service: Target) -> None:
    flow = bench.publish()
    answer = bench.call(flow, json="x" * 16 * 2**20)
    assert answered(answer) == (500, {"code": 0, "message": "There was a problem executing the workflow"})
    assert list(service.client.executions.list(workflow_id=flow.id)) == []


def test_test_addresses_answer_only_while_an_editor_listens(bench: Workbench, service: Target) -> None:
    answer = service.outside("POST", f"/webhook-test/{path_of(bench.publish())}")
    assert answer.status_code == 404
    assert "is not registered" in answer.json()["message"]


# ---------------------------------------------------------------- the client's way to start a run


def starter(service: Target, flow: Workflow, *, timeout: float = 20, attempt: int = 1) -> WebhookStartMethod:
    active = service.client.workflows.get(flow.id)
    request = RunRequest(active, {"a": 1}, None, WebhookHeaders(None, None), activate=False)
    mine = Attempt(RunKey(unique("key"), attempt), None)
    method = WebhookStartMethod(request, service.client, mine, timeout=timeout, stopped=threading.Event())
    method.prepare()
    return method


def test_the_client_starts_a_run_and_learns_its_id(bench: Workbench, service: Target) -> None:
    for node in (webhook(unique()), webhook(unique(), options={"responseData": WITH_ID})):
        flow = bench.publish(node)
        assert starter(service, flow).start() == only_run(service, flow).id


def test_the_client_learns_the_id_while_the_call_is_open(bench: Workbench, service: Target) -> None:
    flow = bench.publish(by_last_node(), wait(30))
    assert starter(service, flow).start() == only_run(service, flow).id


def test_a_call_that_is_not_answered_in_time_has_started_one_run(bench: Workbench, service: Target) -> None:
    flow = bench.publish(by_last_node(), wait(30))
    with pytest.raises(ServiceTimeoutError):
        service.client.transport.call_webhook("POST", path_of(flow), headers={}, payload={}, timeout=2)
    assert starter(service, flow, timeout=2).start() in {
        run.id for run in service.client.executions.list(workflow_id=flow.id, status="running")
    }
    assert len(list(service.client.executions.list(workflow_id=flow.id, status="running"))) == 2


def test_the_client_reads_a_failed_run(bench: Workbench, service: Target) -> None:
    flow = bench.publish(by_last_node(), code('throw new Error("broken")'))
    answer = service.client.transport.call_webhook("POST", path_of(flow), headers={}, payload={}, timeout=30)
    assert (answer.status, answer.body) == IN_WORKFLOW
