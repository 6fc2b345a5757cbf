"""Workflows on a real server, and the connection to it."""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from typing import Any

import pytest

from airflow_provider_service._core.instances.apply import apply_plan
from airflow_provider_service._core.instances.plan import DeploymentTarget, make_plan
from airflow_provider_service._core.instances.source import Source, read_source
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.client.errors import ServiceConflictError, ServiceNotOfferedError
from airflow_provider_service.simulator._samples import chain
from tests.instances.workflows import child
from tests.polling import wait_until

from .servers import LiveServer

#: The generation from which on what is written does not have to run at once.
DRAFTS = "2.35"


def connection(server: LiveServer, base_url: str | None = None) -> dict[str, Any]:
    """The fields of a connection to a server.

    :param base_url: another address that leads to it.
    """
    extra = {"key_header": server.key_header}
    return {"conn_type": "service", "host": base_url or server.base_url, "password": server.api_key, "extra": extra}


def connect(monkeypatch: pytest.MonkeyPatch, server: LiveServer, conn_id: str = "service_default") -> ServiceClient:
    """Make a server an Airflow connection, and a client that sees what it holds."""
    monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(connection(server)))
    return ServiceClient(ServiceConfig(base_url=server.base_url, api_key=server.api_key, key_header=server.key_header))


def allow_mcp(monkeypatch: pytest.MonkeyPatch, server: LiveServer) -> None:
    """Let the default connection start workflows through MCP."""
    server.owner.switch_mcp(True)
    fields = connection(server)
    extra = {**fields["extra"], "mcp_api_key": server.owner.new_mcp_key()}
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps({**fields, "extra": extra}))


def put(
    client: ServiceClient, *nodes: dict[str, Any], name: str | None = None, active: bool = False, **settings: Any
) -> str:
    """Create a workflow of a chain of nodes; its id."""
    for one in nodes:
        if one["type"].endswith(".webhook"):
            one["webhookId"] = str(uuid.uuid4())
    body = chain(name or f"run {uuid.uuid4().hex}", list(nodes))
    made = client.workflows.create(
        body["name"],
        nodes=body["nodes"],
        connections=body["connections"],
        settings={"executionOrder": "v1", **settings},
    )
    if active:
        client.workflows.activate(made.id)
    return made.id


def deploy(client: ServiceClient, sources: Any) -> dict[str, list[str]]:
    """Deploy definitions, or sources that were read already; the names of the workflows by what happened to them."""
    target = DeploymentTarget(client)
    plan = make_plan(sources if isinstance(sources[0], Source) else read_source(sources), target)
    apply_plan(plan, target)
    return {action: names for action, names in plan.by_action().items() if names}


def called(server: LiveServer, **more: Any) -> dict[str, Any]:
    """The definition of a workflow that others call. An older server cannot activate it, and calls it all the same."""
    return child(active=server.generation.major > 1, **more)


def path() -> str:
    """A path that no other webhook has."""
    return uuid.uuid4().hex


def delete_workflows(client: ServiceClient) -> None:
    """Delete all workflows of a server."""
    for workflow in list(client.workflows.list()):
        client.workflows.deactivate(workflow.id)
        wait_until(lambda one=workflow.id: deleted(client, one), seconds=120, what="the deletion of a workflow")


def delete_credentials(client: ServiceClient) -> None:
    """Delete all credentials of a server, unless it cannot list them."""
    with suppress(ServiceNotOfferedError):
        for credential in list(client.credentials.list()):
            client.credentials.delete(credential.id)


def execution_ids(client: ServiceClient, workflow_id: str) -> set[str]:
    """The ids of a workflow's executions. Without a status, the service leaves out those that run just now."""
    # In this order, none that ends in between is missed.
    lists = (client.executions.list(workflow_id=workflow_id, status=status) for status in ("running", None))
    return {execution.id for listed in lists for execution in listed}


def deleted(client: ServiceClient, workflow_id: str) -> bool:
    """Delete a workflow, unless it is still being unpublished."""
    try:
        client.workflows.delete(workflow_id)
    except ServiceConflictError:
        return False
    return True
