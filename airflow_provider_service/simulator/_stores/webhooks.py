"""The registry of live webhooks and the workflows that answer them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_provider_service.simulator._engine.nodes import WEBHOOK


@dataclass(frozen=True)
class LiveWebhook:
    """A registered webhook: the node that answers, and the published version it belongs to.

    ``output`` is the node's output for the method, ``params`` the values of the parameters in the path of a call.
    """

    workflow_id: str
    version_id: str
    node: dict[str, Any]
    output: int = 0
    params: dict[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The path below ``/webhook/`` that the editor shows; with its parameters by name."""
        path = _path(self.node)
        return f"{self.node['webhookId']}/{path}" if _has_parameters(path) else path


class WebhookRegistry:
    """Live webhooks by method and path."""

    def __init__(self) -> None:
        self._live: dict[tuple[str, str], LiveWebhook] = {}

    def find(self, method: str, path: str) -> LiveWebhook | None:
        # A quirk: a path with parameters also answers literally, and then has no parameters.
        return self._live.get((method, path)) or self._by_webhook_id(path, method)

    def methods(self, path: str) -> list[str]:
        """The methods that are answered on a path."""
        fixed = sorted(method for method, known in self._live if known == path)
        return fixed or [method for method, _ in self._live if self._by_webhook_id(path, method)][:1]

    def _by_webhook_id(self, path: str, method: str) -> LiveWebhook | None:
        """The webhook with parameters that answers: the one with most of the call's segments, in any order."""
        webhook_id, *segments = path.split("/")
        best, most = None, -1
        for (taken, template), live in self._live.items():
            parts = template.split("/")
            fixed = [part for part in parts if not part.startswith(":")]
            is_meant = taken == method and live.node.get("webhookId") == webhook_id and _has_parameters(template)
            if is_meant and len(parts) == len(segments) and set(fixed) <= set(segments) and len(fixed) > most:
                named = {part[1:]: one for part, one in zip(parts, segments, strict=True) if part.startswith(":")}
                best, most = replace(live, params=named), len(fixed)
        return best

    def conflicts(self, workflow_id: str, nodes: Sequence[dict[str, Any]]) -> bool:
        """Whether another live workflow answers one of these nodes' webhooks, by a path without parameters."""
        return any(not _has_parameters(path) for _, path in self._taken(workflow_id, nodes))

    def _taken(self, workflow_id: str, nodes: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
        keys = [key for node in nodes for key in _keys(node)]
        return [key for key in keys if key in self._live and self._live[key].workflow_id != workflow_id]

    def register(self, workflow_id: str, version_id: str, nodes: Sequence[dict[str, Any]]) -> None:
        """Make a version's webhooks live in place of the workflow's earlier ones.

        If another workflow has already registered one of them, none goes live; the service does not report this.
        """
        self.remove(workflow_id)
        if self._taken(workflow_id, nodes):
            return
        for node in nodes:
            for output, key in enumerate(_keys(node)):
                self._live[key] = LiveWebhook(workflow_id, version_id, node, output)

    def remove(self, workflow_id: str) -> None:
        """Take down every webhook of a workflow."""
        self._live = {key: live for key, live in self._live.items() if live.workflow_id != workflow_id}


def _keys(node: dict[str, Any]) -> list[tuple[str, str]]:
    if node["type"] != WEBHOOK or node.get("disabled"):
        return []
    parameters = node.get("parameters") or {}
    methods = parameters.get("httpMethod", ["GET", "POST"] if parameters.get("multipleMethods") else "GET")
    return [(method, _path(node)) for method in (methods if isinstance(methods, list) else [methods])]


def _path(node: dict[str, Any]) -> str:
    return str((node.get("parameters") or {}).get("path") or node.get("webhookId", "")).strip("/")


def _has_parameters(path: str) -> bool:
    return any(part.startswith(":") for part in path.split("/"))
