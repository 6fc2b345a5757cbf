"""Workflows and their versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_service.client.models._base import Number, ServiceModel, Timestamp
from airflow_provider_service.client.models._tags import Tag

# The keys that an update accepts; every other key of an answer is read-only and would be refused.
_WRITABLE = ("name", "nodes", "connections", "description", "staticData", "pinData", "nodeGroups")


class WorkflowVersion(ServiceModel):
    """A version of a workflow; the items of the history have no nodes and connections."""

    version_id: str
    workflow_id: str
    authors: str | None = None
    name: str | None = None
    description: str | None = None
    autosaved: bool | None = None
    nodes: list[dict[str, Any]] | None = None
    connections: dict[str, Any] | None = None
    node_groups: list[dict[str, Any]] | None = None
    workflow_publish_history: list[dict[str, Any]] | None = None
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None


class Workflow(ServiceModel):
    """A workflow.

    ``nodes`` and ``connections`` are the draft; ``active_version`` is what runs. Items of a list have no
    ``description``; the answers to publish and activate have no ``tags`` and ``shared``.
    """

    id: str
    name: str
    active: bool
    description: str | None = None
    active_version_id: str | None = None
    version_id: str | None = None
    version_counter: Number | None = None
    is_archived: bool | None = None
    trigger_count: Number | None = None
    source_workflow_id: str | None = None
    nodes: list[dict[str, Any]] | None = None
    connections: dict[str, Any] | None = None
    node_groups: list[dict[str, Any]] | None = None
    settings: dict[str, Any] | None = None
    static_data: dict[str, Any] | str | None = None
    pin_data: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None
    tags: list[Tag] | None = None
    shared: list[dict[str, Any]] | None = None
    parent_folder: dict[str, Any] | None = None
    active_version: WorkflowVersion | None = None
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None

    @property
    def keeps_executions(self) -> bool:
        """Whether ended executions can be read, as far as the workflow's own settings determine that."""
        settings = self.settings or {}
        return "none" not in (settings.get("saveDataSuccessExecution"), settings.get("saveDataErrorExecution"))


def writable(workflow: Workflow | Mapping[str, Any]) -> dict[str, Any]:
    """Reduce a workflow to the fields that an update accepts, by their names on the wire.

    :param workflow: a workflow as it was read.
    :returns: name, nodes, connections and settings, and, unless they are empty, description, staticData, pinData
        and nodeGroups.
    """
    wire = workflow.to_wire() if isinstance(workflow, Workflow) else workflow
    settings = wire.get("settings") or {}
    return {
        **{name: wire[name] for name in _WRITABLE if wire.get(name) is not None},
        # The service returns DEFAULT but does not accept it; a setting that is left out stays as it is.
        "settings": {name: value for name, value in settings.items() if value != "DEFAULT"},
    }
