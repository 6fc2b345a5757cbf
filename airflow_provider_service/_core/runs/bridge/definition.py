"""The bridge as this package defines it: nodes, connections, settings and version.

A call of its webhook carries ``{"workflowId": ..., "items": [...]}``. The bridge answers with the id of its own
execution before it does anything else, makes the items its current data, and starts the workflow with them, without
waiting for it.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_service.client.resources._webhooks import WEBHOOK_NODE

if TYPE_CHECKING:
    from airflow_provider_service.client.models import Workflow

#: Increases with every change of this module; an older bridge is updated, a newer one is left as it is.
VERSION = 1
NAME = "Airflow bridge"
TAG = "airflow-bridge"
CREDENTIAL_TYPE = "jwtAuth"
#: The node that starts the workflow.
START_NODE = "Start"

_TITLE = "## Bridge for Airflow"
_NOTE = f"""{_TITLE}
Starts sub-workflows and manual workflows for Airflow tasks. Made by airflow-provider-service, which updates it: changes
are overwritten. The executions are kept, because Airflow looks for its runs among them.

Version {VERSION}"""
_VERSION = re.compile(rf"{re.escape(_TITLE)}.*Version (\d{{1,9}})\s*", re.DOTALL)
_STICKY_NOTE = "n8n-nodes-base.stickyNote"
# Appended to an expression, this makes its value text: with null as the id, the service would start any workflow.
_AS_TEXT = "{{ '' }}"


class CredentialReference(NamedTuple):
    """A credential as a node refers to it."""

    id: str
    name: str


class Address(NamedTuple):
    """What distinguishes the webhook of one bridge from that of another."""

    path: str
    webhook_id: str

    @classmethod
    def new(cls) -> Address:
        """A new, unique address."""
        return cls(f"airflow-bridge-{uuid.uuid4().hex}", str(uuid.uuid4()))


def definition(name: str, address: Address, credential: CredentialReference) -> dict[str, Any]:
    """Return the definition with which the bridge is created or updated.

    :param name: name of the workflow.
    :param address: address of its webhook.
    :param credential: credential with which the webhook authenticates its callers.
    """
    webhook = {
        "httpMethod": "POST",
        "path": address.path,
        "authentication": CREDENTIAL_TYPE,
        "responseMode": "responseNode",
        "options": {},
    }
    workflow_id = "={{ $('Webhook').first().json.body.workflowId }}" + _AS_TEXT
    nodes = [
        _node("About", _STICKY_NOTE, 1, {"content": _NOTE, "height": 220, "width": 440}, column=0, row=-280),
        {
            **_node("Webhook", WEBHOOK_NODE, 2, webhook, column=0),
            "webhookId": address.webhook_id,
            "credentials": {CREDENTIAL_TYPE: credential._asdict()},
        },
        # The answer comes before the start, so that it names the execution even if the start fails. With "respond
        # immediately", older servers do not know the id.
        _node("Answer", "n8n-nodes-base.respondToWebhook", 1.1, _answer(), column=1),
        _node("Items", "n8n-nodes-base.splitOut", 1, {"fieldToSplitOut": "body.items", "options": {}}, column=2),
        _node(
            START_NODE,
            "n8n-nodes-base.executeWorkflow",
            1.2,
            {
                "workflowId": {"__rl": True, "mode": "id", "value": workflow_id},
                "options": {"waitForSubWorkflow": False},
            },
            column=3,
        ),
    ]
    return {
        "name": name,
        "nodes": nodes,
        "connections": dict([_arrow("Webhook", "Answer"), _arrow("Answer", "Items"), _arrow("Items", START_NODE)]),
        "settings": {
            "executionOrder": "v1",
            "saveDataSuccessExecution": "all",
            "saveDataErrorExecution": "all",
            "callerPolicy": "none",
        },
    }


def version_of(workflow: Workflow) -> int | None:
    """The version of a bridge; None for a workflow that is not a bridge."""
    for node in workflow.nodes or []:
        if node.get("type") == _STICKY_NOTE:
            found = _VERSION.match(str((node.get("parameters") or {}).get("content")))
            if found:
                return int(found[1])
    return None


def address_of(workflow: Workflow) -> Address | None:
    """The address of a bridge's webhook, if it has one."""
    node = _webhook_of(workflow)
    path, webhook_id = (node.get("parameters") or {}).get("path"), node.get("webhookId")
    return Address(str(path), str(webhook_id)) if path and webhook_id else None


def credential_of(workflow: Workflow) -> CredentialReference | None:
    """The credential of a bridge's webhook, if it has one."""
    found = (_webhook_of(workflow).get("credentials") or {}).get(CREDENTIAL_TYPE)
    if not isinstance(found, dict) or not found.get("id"):
        return None
    return CredentialReference(str(found["id"]), str(found.get("name")))


def _webhook_of(workflow: Workflow) -> Mapping[str, Any]:
    return next((node for node in workflow.nodes or [] if node.get("type") == WEBHOOK_NODE), {})


def _answer() -> dict[str, Any]:
    return {"respondWith": "json", "responseBody": '={{ {"executionId": $execution.id} }}', "options": {}}


def _node(
    name: str, kind: str, version: float, parameters: Mapping[str, Any], *, column: int, row: int = 0
) -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "typeVersion": version,
        "position": [240 * column, row],
        "parameters": dict(parameters),
    }


def _arrow(source: str, target: str) -> tuple[str, dict[str, Any]]:
    return source, {"main": [[{"node": target, "type": "main", "index": 0}]]}
