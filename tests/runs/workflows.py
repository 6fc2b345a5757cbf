"""Workflows with all kinds of webhooks, created in a simulator."""

from __future__ import annotations

from typing import Any

from starlette.types import ASGIApp

from airflow_provider_service._core.runs.bridge import BridgeSecret, Installer
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.simulator import _samples as samples
from airflow_provider_service.simulator._engine.engine import Execution
from airflow_provider_service.simulator._samples import WITH_ID as WITH_ID
from airflow_provider_service.simulator._samples import chain, node
from airflow_provider_service.simulator._samples import wait as wait


def webhook(path: str = "w", *, name: str = "Webhook", mode: str = "onReceived", **parameters: Any) -> dict[str, Any]:
    """A webhook node."""
    return {**samples.webhook(path, responseMode=mode, **parameters), "name": name}


def unchecked(path: str = "w") -> dict[str, Any]:
    """A webhook node that asks for user and password, and whose credential has been deleted."""
    credentials = {"httpBasicAuth": {"id": "deleted", "name": "hook"}}
    return {**webhook(path, authentication="basicAuth"), "credentials": credentials}


def respond(status: int = 200, **parameters: Any) -> dict[str, Any]:
    """A node that answers the webhook's call."""
    headers = parameters.pop("headers", {})
    entries = [{"name": name, "value": value} for name, value in headers.items()]
    options = {"responseCode": status, "responseHeaders": {"entries": entries}}
    return samples.respond(**parameters, options=options)


def puts_out(expression: str) -> dict[str, Any]:
    """A node whose output is the value of an expression."""
    return node("Output", "set", 3.4, {"mode": "raw", "jsonOutput": expression}, 3)


SCHEDULE = node("Clock", "scheduleTrigger", 1.2, {"rule": {"interval": [{}]}}, 0)
FORM = {
    **node("Form", "formTrigger", 2.2, {"formTitle": "Approval"}, 0),
    "webhookId": "f",
}
CHAT = {**node("Chat", "chatTrigger", 1.1, {}, 0), "type": "@n8n/n8n-nodes-langchain.chatTrigger", "webhookId": "c"}
MANUAL = node("Button", "manualTrigger", 1, {}, 0)
CALLED = node("Called", "executeWorkflowTrigger", 1.1, {"inputSource": "passthrough"}, 0)

FAIL = node("Fail", "stopAndError", 1, {"errorMessage": "It failed"}, 3)
DONE = node("Done", "noOp", 1, {}, 4)


def put(
    simulator: ServiceSimulator, *nodes: dict[str, Any], active: bool = True, name: str = "Workflow", **settings: Any
) -> str:
    """Create a workflow of a chain of nodes, live when this returns unless it is not to be; its id."""

    def create() -> str:
        workflow = simulator.state.workflows.create({**chain(name, list(nodes)), "settings": settings})
        if active:
            simulator.state.workflows.publish(workflow, delay=0)
            simulator.state.settle()
        return str(workflow.id)

    return simulator.in_loop(create)


def put_bridge(simulator: ServiceSimulator) -> str:
    """Install the bridge of the simulator's own key, live when this returns; its id."""
    config = ServiceConfig(base_url=simulator.base_url, api_key=simulator.api_key)
    with ServiceClient(config) as client:
        workflow = Installer(client, BridgeSecret(config)).install().workflow
    simulator.in_loop(lambda: simulator.clock.advance(1))
    simulator.clear_requests()
    return workflow.id


def held(simulator: ServiceSimulator, workflow_id: str) -> list[Execution]:
    """The executions that the service holds of a workflow, oldest first."""

    def look() -> list[Execution]:
        simulator.state.settle()
        return simulator.state.executions.of_workflow(workflow_id)

    return simulator.in_loop(look)


def started_with(execution: Execution) -> dict[str, Any]:
    """The item that started an execution: headers, query and body of the call."""
    assert execution.run.initial is not None
    return dict(execution.run.initial.items[0]["json"])


def bridge_of(simulator: ServiceSimulator) -> str:
    """The id of the one bridge."""
    [found] = [one.id for one in simulator.state.workflows.all() if one.name == "Airflow bridge"]
    return found


def bridged(simulator: ServiceSimulator) -> list[Execution]:
    """The executions of the bridge, oldest first."""
    return held(simulator, bridge_of(simulator))


def statuses(simulator: ServiceSimulator, workflow_id: str) -> list[str]:
    """The statuses of the executions that the service holds of a workflow, oldest first."""
    return [execution.status for execution in held(simulator, workflow_id)]


def calls(simulator: ServiceSimulator) -> int:
    """How often a webhook has been called."""
    return sum("/webhook/" in request.path for request in simulator.requests)


def answers_as(simulator: ServiceSimulator, workflow_id: str, live: dict[str, Any]) -> None:
    """Let a different webhook node answer than the one that the API shows."""
    version = simulator.state.workflows.get(workflow_id).active_version
    assert version is not None
    simulator.in_loop(lambda: simulator.state.workflows.webhooks.register(workflow_id, version.version_id, [live]))


def with_credential(
    simulator: ServiceSimulator, authentication: str, credential_type: str, data: dict[str, str], **settings: Any
) -> str:
    """Store a workflow whose webhook asks for a credential, and return its id."""
    own = simulator.in_loop(lambda: simulator.state.credentials.create("hook", credential_type, data))
    reference = {credential_type: {"id": own["id"], "name": "hook"}}
    return put(simulator, {**webhook(authentication=authentication), "credentials": reference}, DONE, **settings)


def put_behind_prefix(simulator: ServiceSimulator, prefix: str) -> None:
    """Let a running simulator answer below a path prefix only, as a service behind a proxy does."""

    def proxy(inner: ASGIApp) -> ASGIApp:
        async def stripped(scope: Any, receive: Any, send: Any) -> None:
            path = scope["path"]
            shorter = path[len(prefix) :] if path.startswith(f"{prefix}/") else "/elsewhere"
            await inner({**scope, "path": shorter, "raw_path": scope["raw_path"][len(prefix) :]}, receive, send)

        return stripped

    simulator.wrap(proxy)


def set_live(simulator: ServiceSimulator, workflow_id: str, live: bool) -> None:
    """Make the webhook of an active workflow live or not, as just after its activation."""
    webhooks, workflow = simulator.state.workflows.webhooks, simulator.state.workflows.get(workflow_id)
    if live:
        simulator.in_loop(lambda: webhooks.register(workflow_id, workflow.version_id, workflow.nodes))
    else:
        simulator.in_loop(lambda: webhooks.remove(workflow_id))
