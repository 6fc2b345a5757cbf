"""What keeps the service from publishing a workflow: its nodes, as far as the simulator knows what they need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_provider_service.simulator._engine.fields import SPLIT_OUT
from airflow_provider_service.simulator._engine.nodes import WEBHOOK, Node, is_trigger

# Credentials that a webhook, or a request in its first versions, needs by its authentication.
_CREDENTIALS = {"basicAuth": "httpBasicAuth", "headerAuth": "httpHeaderAuth", "jwtAuth": "jwtAuth"}
_AUTHENTICATED = (WEBHOOK, "n8n-nodes-base.httpRequest")
# Parameters that must not be empty.
_REQUIRED = {
    "n8n-nodes-base.httpRequest": "url",
    "n8n-nodes-base.formTrigger": "formTitle",
    SPLIT_OUT: "fieldToSplitOut",
}


def configuration_issues(nodes: Sequence[Node], connections: Mapping[str, Any]) -> str | None:
    """The refusal to publish these nodes, or None. It ignores those that are disabled, or that nothing starts."""
    connected = _connected(connections)
    faults = [
        f'Node "{node["name"]}":\n  - {issue}'
        for node in nodes
        if not node.get("disabled") and (is_trigger(node) or node["name"] in connected)
        if (issue := _issue(node)) is not None
    ]
    if not faults:
        return None
    count = f"{len(faults)} node{'s' if len(faults) > 1 else ''}"
    return "\n\n".join([f"Cannot publish workflow: {count} have configuration issues:", *faults])


def _issue(node: Node) -> str | None:
    parameters = node.get("parameters") or {}
    required = _REQUIRED.get(node["type"])
    if required is not None and parameters.get(required, "") == "":
        return f"Missing or invalid required parameters: {required}"
    credential = _CREDENTIALS.get(str(parameters.get("authentication"))) if node["type"] in _AUTHENTICATED else None
    reference = (node.get("credentials") or {}).get(credential) if credential else None
    if credential and not reference:
        return f"Missing required credential: {credential}"
    if credential and not (isinstance(reference, dict) and reference.get("id")):
        return f"Credential not configured: {credential}"
    return None


def _connected(connections: Mapping[str, Any]) -> set[str]:
    names = {source for source, by_kind in connections.items() if by_kind}
    for by_kind in connections.values():
        names |= {target["node"] for outputs in by_kind.values() for targets in outputs for target in targets or []}
    return names
