"""A webhook with authentication of its own: the headers that a task sends, and those that it refuses to send."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client._http.start_answers import checked_headers
from airflow_provider_service.client.errors import (
    ServiceInputError,
    ServiceWebhookRefusedError,
)
from airflow_provider_service.simulator import ServiceSimulator

from .conftest import MakeRun
from .workflows import DONE, calls, held, put, unchecked, webhook, with_credential

Guarded = Callable[..., str]


@pytest.fixture
def guarded(simulator: ServiceSimulator) -> Guarded:
    """``guarded(name, value)`` makes a workflow whose webhook asks for a header."""

    def make(name: str = "X-Token", value: str = "secret-of-the-hook") -> str:
        own = simulator.in_loop(
            lambda: simulator.state.credentials.create("hook", "httpHeaderAuth", {"name": name, "value": value})
        )
        reference = {"httpHeaderAuth": {"id": own["id"], "name": "hook"}}
        return put(simulator, {**webhook(authentication="headerAuth"), "credentials": reference}, DONE)

    return make


def test_a_header_from_a_connection(
    monkeypatch: pytest.MonkeyPatch, task_run: MakeRun, simulator: ServiceSimulator, guarded: Guarded
) -> None:
    fields = {"conn_type": "http", "login": "X-Token", "password": "secret-of-the-hook"}
    monkeypatch.setenv("AIRFLOW_CONN_HOOK", json.dumps(fields))
    assert task_run(workflow_id=guarded(), webhook_conn_id="hook").attempt(1)["status"] == "success"


def test_a_header_from_an_argument_stays_unseen(
    task_run: MakeRun, guarded: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    run = task_run(workflow_id=guarded(), webhook_headers={"X-Token": "{{ 'secret-of' }}-the-hook"})
    assert run.attempt(1)["status"] == "success"
    assert "secret-of-the-hook" not in caplog.text + str(run.pushed) + repr(run.task.webhook_headers)


@pytest.mark.parametrize("headers", [None, {"X-Token": "wrong-secret"}])
def test_a_wrong_header(
    task_run: MakeRun, simulator: ServiceSimulator, guarded: Guarded, headers: dict[str, str] | None
) -> None:
    workflow_id = guarded()
    with pytest.raises(ServiceWebhookRefusedError, match=r"authentication refused .*403.*webhook_conn_id") as refused:
        task_run(workflow_id=workflow_id, webhook_headers=headers).attempt(1)
    assert "wrong-secret" not in str(refused.value)
    assert (calls(simulator), held(simulator, workflow_id)) == (1, [])


def test_authentication_that_the_webhook_itself_lacks(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, unchecked(), DONE)
    with pytest.raises(ServiceWebhookRefusedError, match="No authentication data defined on node!"):
        task_run(workflow_id=workflow_id).attempt(1)
    assert calls(simulator) == 1


@pytest.mark.parametrize("password", ["pass word", "wrong-secret"])
def test_user_and_password(
    monkeypatch: pytest.MonkeyPatch, task_run: MakeRun, simulator: ServiceSimulator, password: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HOOK", json.dumps({"conn_type": "http", "login": "me", "password": password}))
    workflow_id = with_credential(simulator, "basicAuth", "httpBasicAuth", {"user": "me", "password": "pass word"})
    run = task_run(workflow_id=workflow_id, webhook_conn_id="hook")
    if password == "pass word":
        assert run.attempt(1)["status"] == "success"
        return
    with pytest.raises(ServiceWebhookRefusedError, match=r"401.*Authentication data is wrong!.*webhook_conn_id"):
        run.attempt(1)
    assert (calls(simulator), held(simulator, workflow_id)) == (1, [])


TOKEN_SECRET = "a secret that is long enough for every algorithm " * 2


@pytest.mark.parametrize(
    ("token", "refused"),
    [
        (jwt.encode({}, TOKEN_SECRET), None),
        ("", "No token provided"),
        ("x", "jwt malformed"),
        ("a.b.c", "invalid token"),
        (jwt.encode({}, TOKEN_SECRET * 2, "HS512"), "invalid algorithm"),
        (jwt.encode({}, TOKEN_SECRET[1:]), "invalid signature"),
        (jwt.encode({"exp": 1}, TOKEN_SECRET), "jwt expired"),
        (jwt.encode({"nbf": 2**32}, TOKEN_SECRET), "jwt not active"),
    ],
)
def test_a_token(task_run: MakeRun, simulator: ServiceSimulator, token: str, refused: str | None) -> None:
    workflow_id = with_credential(simulator, "jwtAuth", "jwtAuth", {"secret": TOKEN_SECRET, "algorithm": "HS256"})
    run = task_run(workflow_id=workflow_id, webhook_headers={"Authorization": f"Bearer {token}".strip()})
    if refused is None:
        assert run.attempt(1)["status"] == "success"
        return
    with pytest.raises(ServiceWebhookRefusedError, match=refused):
        run.attempt(1)
    assert (calls(simulator), held(simulator, workflow_id)) == (1, [])


def test_a_connection_without_a_login(
    monkeypatch: pytest.MonkeyPatch, task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HOOK", json.dumps({"conn_type": "http", "password": "p"}))
    with pytest.raises(AirflowFailException, match="the webhook's connection has no login"):
        task_run(workflow_id=put(simulator, webhook(), DONE), webhook_conn_id="hook").attempt(1)


@pytest.mark.parametrize("value", ["secret\n", " secret", "sec\r\nret: x", "sécret€", 5, None])
def test_headers_that_cannot_be_sent_are_not_shown(value: Any) -> None:
    with pytest.raises(ServiceInputError, match="the value of header 'X-Token' must be text") as refused:
        checked_headers({"X-Token": value})
    assert "ret" not in str(refused.value).replace("header", "")


@pytest.mark.parametrize("name", ["", "X Token", "X:Token", "X-Tökn", 5])
def test_invalid_names_of_headers(name: Any) -> None:
    with pytest.raises(ServiceInputError, match="cannot be the name of a header"):
        checked_headers({name: "value"})


def test_headers_that_can_be_sent() -> None:
    assert checked_headers({"X-A": "a b\té", "X-Empty": ""}) == {"X-A": "a b\té", "X-Empty": ""}


def test_headers_must_be_a_mapping(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    run = task_run(workflow_id=put(simulator, webhook(), DONE), webhook_headers="X-Token: secret")
    with pytest.raises(AirflowFailException, match="webhook_headers must be a mapping, not str"):
        run.attempt(1)
