"""No secret stands in the local variables of this package when a task, the hook or the notifier fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG

from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.notifications.workflow import ServiceNotifier
from airflow_provider_service.operators.credentials import (
    ServiceCreateCredentialOperator,
    ServiceUpdateCredentialOperator,
)
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.simulator import ServiceSimulator
from tests.frames import showing

SECRET = "secret-of-this-test"
KEY, MCP_KEY = "api-key-of-this-test", "mcp-key-of-this-test"
DATA = {"name": "X-Token", "value": SECRET, "nested": [SECRET]}
HEADER = {"name": "tracker", "credential_type": "httpHeaderAuth"}
HEADERS = {"X-Token": SECRET}
FROM_CONNECTION = {"data_conn_id": "other", "data_conn_fields": {"value": "password", "name": "extra.missing"}}
Execute = Callable[..., Any]


def create_credential(execute: Execute) -> None:
    execute(ServiceCreateCredentialOperator, **{**HEADER, "credential_type": "unknown"}, data=DATA)


def credential_from_connection(execute: Execute) -> None:
    execute(ServiceCreateCredentialOperator, **HEADER, **FROM_CONNECTION)


def credential_that_is_text(execute: Execute) -> None:
    execute(ServiceCreateCredentialOperator, **HEADER, data=SECRET)


def change_credential(execute: Execute) -> None:
    execute(ServiceUpdateCredentialOperator, credential_id="none", data=DATA)


def run_by_hook(execute: Execute) -> None:
    with ServiceHook() as hook:
        hook.run_workflow(workflow_name="Fails", webhook_headers=HEADERS, webhook_conn_id="other", poll_interval=0.05)


def run_by_hook_that_cannot_be_sent(execute: Execute) -> None:
    with ServiceHook() as hook:
        hook.run_workflow(workflow_name="Fails", webhook_headers={**HEADERS, "X-Bad": f"{SECRET}\n"})


def run_without_login(execute: Execute) -> None:
    with ServiceHook() as hook:
        hook.run_workflow(workflow_name="Fails", webhook_headers=HEADERS, webhook_conn_id="nobody")


def run_by_operator(execute: Execute) -> None:
    arguments = {"workflow_name": "Fails", "webhook_headers": HEADERS, "webhook_conn_id": "other"}
    execute(ServiceRunWorkflowOperator, **arguments, poll_interval=0.05)


def notify(execute: Execute) -> None:
    notifier = ServiceNotifier(workflow_id="none", webhook_conn_id="other")
    notifier.log.disabled = True
    notifier.notify({"ti": SimpleNamespace(), "dag": DAG("dag", schedule=None)})  # type: ignore[typeddict-item,typeddict-unknown-key]


def bad_connection(execute: Execute) -> None:
    _ = ServiceHook("bad").config


@pytest.mark.parametrize(
    "fail",
    [
        create_credential,
        credential_from_connection,
        credential_that_is_text,
        change_credential,
        run_by_hook,
        run_by_hook_that_cannot_be_sent,
        run_without_login,
        run_by_operator,
        notify,
        bad_connection,
    ],
    ids=lambda fail: fail.__name__,
)
def test_no_secret_is_in_the_frames_of_a_failure(
    fail: Callable[[Execute], None], execute: Execute, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, fields in {
        "other": {"login": "X-Own", "password": SECRET},
        "nobody": {"password": SECRET},
        "bad": {"host": "http://x.test", "password": KEY, "extra": {"mcp_api_key": MCP_KEY, "page_size": "none"}},
    }.items():
        connection = {"conn_type": "service" if name == "bad" else "generic", **fields}
        monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(connection))
    simulator.create_webhook_workflow("Fails", path="fails", behaviour="failing")

    with pytest.raises(Exception) as caught:  # noqa: PT011 - of whatever kind
        fail(execute)

    assert not showing(caught.value, SECRET, KEY, MCP_KEY, simulator.api_key)
