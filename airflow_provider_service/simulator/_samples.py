"""Workflows that many tests need, made of real nodes, so that a real server runs them in the same way."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, Literal

Behaviour = Literal["immediate", "waiting", "failing", "long"]
ResponseMode = Literal["onReceived", "lastNode", "responseNode"]
TriggerKind = Literal["webhook", "schedule", "form", "chat", "sub-workflow", "manual"]

#: The output of a webhook or node that identifies the execution.
WITH_ID = '={{ {"executionId": $execution.id} }}'


def node(name: str, kind: str, version: float, parameters: dict[str, Any], column: int) -> dict[str, Any]:
    return {
        "name": name,
        "type": f"n8n-nodes-base.{kind}",
        "typeVersion": version,
        "position": [220 * column, 0],
        "parameters": parameters,
    }


def webhook(path: str, **parameters: Any) -> dict[str, Any]:
    """A webhook node that a ``POST`` to its path starts; ``parameters`` extend or replace the default ones."""
    return node("Webhook", "webhook", 2, {"httpMethod": "POST", "path": path, "options": {}, **parameters}, 0)


def trigger(kind: TriggerKind, path: str) -> dict[str, Any]:
    nodes = {
        "webhook": webhook(path, options={"responseData": WITH_ID}),
        "schedule": node("Schedule", "scheduleTrigger", 1.2, {"rule": {"interval": [{}]}}, 0),
        "form": {**node("Form", "formTrigger", 2.2, {"formTitle": "Form"}, 0), "webhookId": path},
        "chat": {
            **node("Chat", "chatTrigger", 1.1, {}, 0),
            "type": "@n8n/n8n-nodes-langchain.chatTrigger",
            "webhookId": path,
        },
        "sub-workflow": node("Called", "executeWorkflowTrigger", 1.1, {"inputSource": "passthrough"}, 0),
        "manual": node("Manual", "manualTrigger", 1, {}, 0),
    }
    return nodes[kind]


def respond(**parameters: Any) -> dict[str, Any]:
    return node("Respond", "respondToWebhook", 1.1, parameters, 1)


def wait(seconds: float) -> dict[str, Any]:
    return node("Wait", "wait", 1.1, {"amount": seconds, "unit": "seconds"}, 2)


def chain(name: str, nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """The body of a create, for a workflow whose nodes run one after the other."""
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
    by_node = response_mode == "responseNode"
    options = {"responseData": WITH_ID} if respond_with_id and not by_node else {}
    nodes = [webhook(path, responseMode=response_mode, options=options)]
    if by_node:
        nodes.append(respond(**({"respondWith": "json", "responseBody": WITH_ID} if respond_with_id else {})))
    if behaviour in ("waiting", "long"):
        nodes.append(wait(seconds if seconds is not None else {"waiting": 120, "long": 10}[behaviour]))
    if behaviour == "failing":
        nodes.append(node("Stop", "stopAndError", 1, {"errorMessage": "It failed"}, 3))
    nodes.append(node("Done", "noOp", 1, {}, 4))
    return chain(name, nodes)


def scripted_workflow(
    name: str, begin: dict[str, Any], *, seconds: float, output: list[dict[str, Any]] | None, error: str | None
) -> dict[str, Any]:
    nodes = [begin]
    if seconds:
        nodes.append(wait(seconds))
    if error is not None:
        # As an "errorMessage", a text that begins with "=" would be an expression.
        details = {"errorType": "errorObject", "errorObject": json.dumps({"message": error})}
        nodes.append(node("Fail", "stopAndError", 1, details, 3))
    elif output is not None:
        items = json.dumps([{"json": item} for item in output])
        nodes.append(node("Output", "code", 2, {"jsCode": f"return {items};"}, 3))
    else:
        nodes.append(node("Done", "noOp", 1, {}, 3))
    return chain(name, nodes)
