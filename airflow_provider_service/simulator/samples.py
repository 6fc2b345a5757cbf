"""Workflows that tests need over and over, made of real nodes: a real server runs them just so."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

Behaviour = Literal["immediate", "waiting", "failing", "long"]
ResponseMode = Literal["onReceived", "lastNode", "responseNode"]

_WITH_ID = '={{ {"executionId": $execution.id} }}'


def node(name: str, kind: str, version: float, parameters: dict[str, Any], column: int) -> dict[str, Any]:
    """One node of a workflow's body."""
    return {
        "name": name,
        "type": f"n8n-nodes-base.{kind}",
        "typeVersion": version,
        "position": [220 * column, 0],
        "parameters": parameters,
    }


def chain(name: str, nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """A create body whose nodes run one after the other."""
    names = [each["name"] for each in nodes]
    connections = {
        first: {"main": [[{"node": second, "type": "main", "index": 0}]]} for first, second in pairwise(names)
    }
    return {"name": name, "nodes": nodes, "connections": connections, "settings": {}}


def webhook_workflow(
    name: str,
    path: str,
    behaviour: Behaviour,
    *,
    seconds: float | None = None,
    response_mode: ResponseMode = "onReceived",
    respond_with_id: bool = False,
) -> dict[str, Any]:
    """A create body for a workflow that a ``POST`` to its webhook starts."""
    by_node = response_mode == "responseNode"
    options = {"responseData": _WITH_ID} if respond_with_id and not by_node else {}
    trigger = {"httpMethod": "POST", "path": path, "responseMode": response_mode, "options": options}
    nodes = [node("Webhook", "webhook", 2, trigger, 0)]
    if by_node:
        answer = {"respondWith": "json", "responseBody": _WITH_ID} if respond_with_id else {}
        nodes.append(node("Respond", "respondToWebhook", 1.1, answer, 1))
    if behaviour in ("waiting", "long"):
        amount = seconds if seconds is not None else {"waiting": 120, "long": 10}[behaviour]
        nodes.append(node("Wait", "wait", 1.1, {"amount": amount, "unit": "seconds"}, 2))
    if behaviour == "failing":
        nodes.append(node("Stop", "stopAndError", 1, {"errorMessage": "It failed"}, 3))
    nodes.append(node("Done", "noOp", 1, {}, 4))
    return chain(name, nodes)
