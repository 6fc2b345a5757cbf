"""Workflows on the simulator whose executions end, or stay, in every state."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.simulator import _samples as samples
from tests.polling import wait_until

HOSTILE = "<img src=x onerror=alert(1)>\"'&{{ 7*7 }}"
STATUSES = {"succeeds": "success", "fails": "error", "waits": "waiting", "runs": "running"}
PAYLOAD = "payload-that-nobody-else-sees"

StartRun = Callable[..., tuple[str, str]]


def step(name: str, kind: str, column: int, **parameters: Any) -> dict[str, Any]:
    """A node that stands where the editor would put it."""
    return samples.node(name, kind, 2, parameters, column)


def nodes_of_kind(ending: str) -> list[dict[str, Any]]:
    """The nodes of a workflow that reads three items, and ends as named."""
    items = json.dumps([{"json": {"order": PAYLOAD}} for _ in range(3)])
    endings = {
        "succeeds": step("Done", "noOp", 2),
        "fails": step(HOSTILE, "stopAndError", 2, errorMessage=f"The shop is closed {HOSTILE}"),
        "waits": {**step("Sleep", "wait", 2, amount=86_400, unit="seconds"), "typeVersion": 1.1},
        "runs": {**step("Work", "wait", 2, amount=40, unit="seconds"), "typeVersion": 1.1},
    }
    return [
        samples.webhook(f"pages-{ending}", options={"responseData": samples.WITH_ID}),
        step("Read orders", "code", 1, jsCode=f"return {items};"),
        endings[ending],
        step("Last", "noOp", 3),
    ]


@pytest.fixture
def start(client: ServiceClient, simulator: ServiceSimulator) -> StartRun:
    """``start("fails")`` runs a workflow once; returns the ids of workflow and execution."""

    def run(
        ending: str,
        name: str = HOSTILE,
        settings: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        payload: Any = None,
    ) -> tuple[str, str]:
        body = samples.chain(name, nodes_of_kind(ending))
        workflow = client.workflows.create(**{**body, "settings": settings or {}})
        client.workflows.activate(workflow.id)
        trigger = client.webhooks.find(client.workflows.get(workflow.id))
        called = client.webhooks.call(trigger, payload or {"order": PAYLOAD}, headers=headers)
        execution_id = str(called.execution_id)
        wait_until(
            lambda: client.executions.get(execution_id).status == STATUSES[ending],
            seconds=60,
            what=STATUSES[ending],
            interval=0.02,
        )
        return workflow.id, execution_id

    return run
