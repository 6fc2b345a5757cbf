"""The registry of live webhooks and the workflows that answer them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_service.simulator.engine.nodes import WEBHOOK


@dataclass(frozen=True)
class LiveWebhook:
    """A registered webhook: the node that answers, and the published version it belongs to."""

    workflow_id: str
    version_id: str
    node: dict[str, Any]


class WebhookRegistry:
    """Live webhooks by method and path."""

    def __init__(self) -> None:
        self._live: dict[tuple[str, str], LiveWebhook] = {}

    def find(self, method: str, path: str) -> LiveWebhook | None:
        return self._live.get((method, path))

    def methods(self, path: str) -> list[str]:
        """The methods that are answered on a path."""
        return sorted(method for method, known in self._live if known == path)

    def conflicts(self, workflow_id: str, nodes: Sequence[dict[str, Any]]) -> bool:
        """Whether another live workflow answers one of these nodes' webhooks."""
        taken = (self._live.get(key) for node in nodes for key in _keys(node))
        return any(live is not None and live.workflow_id != workflow_id for live in taken)

    def register(self, workflow_id: str, version_id: str, nodes: Sequence[dict[str, Any]]) -> None:
        """Make a version's webhooks live in place of the workflow's earlier ones.

        If another workflow has already registered one of them, none goes live; the service does not report this.
        """
        self.remove(workflow_id)
        if self.conflicts(workflow_id, nodes):
            return
        for node in nodes:
            for key in _keys(node):
                self._live[key] = LiveWebhook(workflow_id, version_id, node)

    def remove(self, workflow_id: str) -> None:
        """Take down every webhook of a workflow."""
        self._live = {key: live for key, live in self._live.items() if live.workflow_id != workflow_id}


def _keys(node: dict[str, Any]) -> list[tuple[str, str]]:
    if node["type"] != WEBHOOK or node.get("disabled"):
        return []
    parameters = node.get("parameters") or {}
    methods = parameters.get("httpMethod", "GET")
    path = str(parameters.get("path") or node.get("webhookId", "")).strip("/")
    return [(method, path) for method in (methods if isinstance(methods, list) else [methods])]
