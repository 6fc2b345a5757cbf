"""Workflows and their versions as JSON."""

from __future__ import annotations

from typing import Any

from airflow_provider_service.simulator._generations import is_at_least
from airflow_provider_service.simulator._state import State
from airflow_provider_service.simulator._stores.workflows import Version, Workflow


def workflow_json(state: State, workflow: Workflow, *, pinned: bool = True) -> dict[str, Any]:
    """The whole workflow.

    :param pinned: include ``pinData``
    """
    answer = {
        "updatedAt": workflow.updated_at,
        "createdAt": workflow.created_at,
        "id": workflow.id,
        "name": workflow.name,
        "description": workflow.description,
        "active": workflow.active,
        "isArchived": workflow.is_archived,
        "nodes": workflow.nodes,
        "connections": workflow.connections,
        "nodeGroups": workflow.node_groups,
        "settings": workflow.settings,
        "staticData": workflow.static_data,
        "meta": workflow.meta,
        "versionId": workflow.version_id,
        "activeVersionId": workflow.active_version.version_id if workflow.active_version else None,
        "versionCounter": workflow.version_counter,
        "triggerCount": workflow.trigger_count,
        "sourceWorkflowId": None,
        "shared": [_shared(state, workflow)],
        "tags": state.workflows.tags_of(workflow),
        "activeVersion": _active_version(workflow),
    }
    if pinned:
        answer["pinData"] = workflow.pin_data
    if not is_at_least(state.version, "2.0"):
        del answer["sourceWorkflowId"]
    return answer


def workflow_item(state: State, workflow: Workflow, *, pinned: bool = True) -> dict[str, Any]:
    """The workflow as lists show it."""
    answer = workflow_json(state, workflow, pinned=pinned)
    for name in ("description", "versionCounter", "sourceWorkflowId"):
        answer.pop(name, None)
    for share in answer["shared"]:
        del share["project"]
    if answer["activeVersion"]:
        del answer["activeVersion"]["workflowPublishHistory"]
    return answer


def workflow_without(state: State, workflow: Workflow, *names: str) -> dict[str, Any]:
    """The workflow as in the answer to a change: each kind of change leaves out different fields."""
    return {name: value for name, value in workflow_json(state, workflow).items() if name not in names}


def _shared(state: State, workflow: Workflow) -> dict[str, Any]:
    return {
        "updatedAt": workflow.shared_at,
        "createdAt": workflow.shared_at,
        "role": "workflow:owner",
        "workflowId": workflow.id,
        "projectId": workflow.project_id,
        "project": state.projects.find(workflow.project_id),
    }


def _active_version(workflow: Workflow) -> dict[str, Any] | None:
    version = workflow.active_version
    if version is None:
        return None
    return {**version_json(version), "autosaved": False, "workflowPublishHistory": version.publish_history}


def version_summary(version: Version) -> dict[str, Any]:
    """The version as the history shows it."""
    return {
        "updatedAt": version.updated_at,
        "createdAt": version.created_at,
        "versionId": version.version_id,
        "workflowId": version.workflow_id,
        "authors": version.authors,
        "name": version.name,
        "description": version.description,
    }


def version_json(version: Version) -> dict[str, Any]:
    """The version with its nodes."""
    return {
        **version_summary(version),
        "nodes": version.nodes,
        "connections": version.connections,
        "nodeGroups": version.node_groups,
    }
