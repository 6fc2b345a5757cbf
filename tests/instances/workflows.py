"""Definitions as people write them: objects are named by their names."""

from __future__ import annotations

from itertools import pairwise
from typing import Any


def node(name: str, kind: str, parameters: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "type": f"n8n-nodes-base.{kind}",
        "typeVersion": 2,
        "position": [0, 0],
        "parameters": parameters or {},
        **more,
    }


def webhook(path: str, **more: Any) -> dict[str, Any]:
    return node("Webhook", "webhook", {"httpMethod": "POST", "path": path, "options": {}}, **more)


def address(value: Any) -> dict[str, Any]:
    return {"__rl": True, "mode": "list", "value": value}


def calling(name: str) -> dict[str, Any]:
    return node("Call", "executeWorkflow", {"workflowId": address({"name": name}), "options": {}}, typeVersion=1.2)


def workflow(name: str, *nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    names = [one["name"] for one in nodes]
    connections = {
        source: {"main": [[{"node": target, "type": "main", "index": 0}]]} for source, target in pairwise(names)
    }
    return {"name": name, "nodes": list(nodes), "connections": connections, "settings": {}, **more}


def child(**more: Any) -> dict[str, Any]:
    trigger = node("Start", "executeWorkflowTrigger", {"inputSource": "passthrough"}, typeVersion=1.1)
    return workflow("child", trigger, **{"active": True, **more})


def parent(path: str = "parent", **more: Any) -> dict[str, Any]:
    return workflow("parent", webhook(path), calling("child"), **{"active": True, **more})
