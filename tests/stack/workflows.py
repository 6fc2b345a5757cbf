"""The workflows of the tests and their executions in the service."""

from __future__ import annotations

import uuid
from typing import Any

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client._execution_data import starting_items
from airflow_provider_service.client.models import Execution
from airflow_provider_service.simulator._samples import WITH_ID, respond, wait, webhook

ACTIVE = ("new", "running", "waiting")


def path() -> str:
    """A path that no other webhook has."""
    return uuid.uuid4().hex


def every_way_to_answer(seconds: float) -> dict[str, list[dict[str, Any]]]:
    """Workflows that take some seconds, by how their webhook answers."""
    return {
        "with the id": [webhook(path(), options={"responseData": WITH_ID}), wait(seconds)],
        "at once": [webhook(path()), wait(seconds)],
        "at the end": [webhook(path(), responseMode="lastNode"), wait(seconds)],
        "by a node": [webhook(path(), responseMode="responseNode"), respond(), wait(seconds)],
    }


def endless() -> list[dict[str, Any]]:
    """A workflow that sleeps until it is ended."""
    return [webhook(path(), options={"responseData": WITH_ID}), wait(86_400)]


def executions(client: ServiceClient, workflow_id: str) -> list[Execution]:
    """All executions of a workflow, with the data that started them, oldest first."""
    found = {one.id: one for one in client.executions.list(workflow_id=workflow_id, include_data=True)}
    for status in ("running", "waiting"):
        found |= {
            one.id: one for one in client.executions.list(workflow_id=workflow_id, status=status, include_data=True)
        }
    return sorted(found.values(), key=lambda one: int(one.id))


def payload(execution: Execution) -> dict[str, Any]:
    """The body of the call that started an execution."""
    return dict(next(iter(starting_items(execution)))["body"])
