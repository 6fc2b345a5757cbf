"""Answers to a webhook's call that come from another server, before the service or behind the workflow."""

from __future__ import annotations

import json

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client import errors
from airflow_provider_service.client.errors import ServiceWebhookNotLiveError, ServiceWebhookRefusedError
from airflow_provider_service.simulator import ServiceSimulator
from tests.client.tiny_server import TinyServer, answer

from .conftest import MakeRun, connect
from .workflows import DONE, calls, held, put, respond, statuses, webhook

PAGE = b"<html><pre>Cannot POST /webhook/w</pre></html>"
HTML = "Content-Type: text/html"


def untyped(body: bytes, *headers: str, status: str) -> bytes:
    """An answer whose type is only named if the headers do so."""
    return answer(body, *headers, status=status).replace(b"Content-Type: application/json\r\n", b"")


REALM = 'WWW-Authenticate: Basic realm="Webhook"'
GOING_LIVE = (
    b'{"code": 404, "message": "This webhook is not registered for POST requests. '
    b'Did you mean to make a POST request?"}'
)


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize(
    ("answered", "error", "message", "times"),
    [
        (answer(PAGE, HTML, status="404 Not Found"), ServiceWebhookNotLiveError, "no webhook at this address", 2),
        (answer(GOING_LIVE, status="404 Not Found"), ServiceWebhookNotLiveError, "not live yet", 2),
        (
            answer(b"", "Location: https://x.example/", status="302 Found"),
            errors.ServiceRedirectError,
            "only reads follow",
            1,
        ),
        (
            answer(b'{"code": 422, "message": "Failed to parse request body"}', status="422 Unprocessable Entity"),
            ServiceWebhookRefusedError,
            "refused the body",
            1,
        ),
        *(
            (untyped(text, *headers, status=status), ServiceWebhookRefusedError, "authentication refused", 1)
            for text, headers, status in (
                (b"IP is not allowed to access the webhook!", (), "403 Forbidden"),
                (b"jwt audience invalid. expected: a", (), "403 Forbidden"),
                (b"jwt issuer invalid. expected: a", (REALM, "Content-Type: text/plain"), "403 Forbidden"),
                (b"secret or public key must be provided", (), "403 Forbidden"),
                (b"Words of a later server", (REALM,), "401 Unauthorized"),
                (b"No authentication data defined on node!", (REALM,), "500 Internal Server Error"),
            )
        ),
        *(
            (answer(text, *headers, status="403 Forbidden"), AirflowFailException, "answered 403, but no execution", 1)
            for text, headers in (
                (b"jwt expired", ("Content-Type: text/plain",)),
                (b"Go away", (REALM, "Content-Type: text/plain")),
            )
        ),
        (answer(b"Not here", HTML, status="404 Not Found"), AirflowFailException, "answered 404, but no execution", 1),
        (answer(b"Go away", HTML, status="403 Forbidden"), AirflowFailException, "answered 403, but no execution", 1),
    ],
)
def test_another_server_answers(
    monkeypatch: pytest.MonkeyPatch,
    task_run: MakeRun,
    simulator: ServiceSimulator,
    answered: bytes,
    error: type[Exception],
    message: str,
    times: int,
) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    with TinyServer(answered) as other:
        connect(monkeypatch, simulator, extra={"webhook_base_url": other.address})
        with pytest.raises(error, match=message):
            task_run(workflow_id=workflow_id).attempt(1)
        assert len(other.received) >= times
        assert times > 1 or len(other.received) == 1
    assert held(simulator, workflow_id) == []


def not_registered(name: str) -> str:
    return json.dumps({"code": 404, "message": f'The requested webhook "{name}" is not registered.', "hint": "..."})


@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "not kept"])
@pytest.mark.parametrize(
    ("status", "text", "media_type"),
    [
        (404, not_registered("POST other"), "application/json"),
        (404, "<pre>Cannot POST /v1/orders</pre>", "text/html; charset=utf-8"),
        (403, "Authorization data is wrong!", "text/html; charset=utf-8"),
    ],
    ids=["of a webhook", "of a server", "of an authentication"],
)
def test_a_workflow_that_passes_on_the_refusal_of_another_server_runs_once(
    monkeypatch: pytest.MonkeyPatch,
    task_run: MakeRun,
    simulator: ServiceSimulator,
    status: int,
    text: str,
    media_type: str,
    is_kept: bool,
) -> None:
    connect(monkeypatch, simulator, extra={"retry_deadline": 30})
    answers = respond(status, respondWith="text", responseBody=text, headers={"Content-Type": media_type})
    settings = {} if is_kept else {"saveDataSuccessExecution": "none"}
    workflow_id = put(simulator, webhook(mode="responseNode"), answers, DONE, **settings)
    run = task_run(workflow_id=workflow_id)
    if is_kept:
        assert run.attempt(1)["status"] == "success"
    else:
        with pytest.raises(AirflowFailException, match=f"answered {status}, but no execution"):
            run.attempt(1)
    assert calls(simulator) == 1


@pytest.mark.parametrize(
    ("text", "media_type"),
    [
        (not_registered("POST w"), "application/json"),
        (PAGE.decode(), "text/html; charset=utf-8"),
        (GOING_LIVE.decode(), "application/json"),
    ],
    ids=["webhook", "page", "going live"],
)
def test_a_refusal_that_names_the_called_webhook_too_is_believed_only_after_a_search(
    monkeypatch: pytest.MonkeyPatch, task_run: MakeRun, simulator: ServiceSimulator, text: str, media_type: str
) -> None:
    connect(monkeypatch, simulator, extra={"retry_deadline": 30})
    answers = respond(404, respondWith="text", responseBody=text, headers={"Content-Type": media_type})
    workflow_id = put(simulator, webhook(mode="responseNode"), answers, DONE)
    assert task_run(workflow_id=workflow_id).attempt(1)["status"] == "success"
    assert (statuses(simulator, workflow_id), calls(simulator)) == (["success"], 1)


@pytest.mark.parametrize("mode", ["lastNode", "responseNode"])
def test_a_webhook_that_answers_later_and_is_not_live_yet_is_called_again(
    monkeypatch: pytest.MonkeyPatch, task_run: MakeRun, simulator: ServiceSimulator, mode: str
) -> None:
    connect(monkeypatch, simulator, extra={"retry_deadline": 30})
    simulator.state.publish_delay = 0.5
    workflow_id = put(simulator, webhook(mode=mode), respond(), DONE, active=False)
    assert task_run(workflow_id=workflow_id, activate=True).attempt(1)["status"] == "success"
    assert calls(simulator) > len(held(simulator, workflow_id)) == 1
