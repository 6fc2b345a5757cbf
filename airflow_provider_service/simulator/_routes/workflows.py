"""Workflows: drafts, publishing, versions and tags."""

from __future__ import annotations

from functools import partial
from typing import Any

from airflow_provider_service.simulator._gateway import Call, Reply, operation
from airflow_provider_service.simulator._paging import page
from airflow_provider_service.simulator._routes.workflow_json import (
    version_json,
    version_summary,
    workflow_item,
    workflow_json,
    workflow_without,
)
from airflow_provider_service.simulator._routes.workflow_rules import (
    CREATE_BODY,
    PUBLISH_BODY,
    TAGS_BODY,
    UPDATE_BODY,
    check_structure,
)
from airflow_provider_service.simulator._state import State
from airflow_provider_service.simulator._stores.folders import ROOT
from airflow_provider_service.simulator._stores.workflows import Workflow
from airflow_provider_service.simulator._validation import PAGING, ApiError, Body, Param, Text

_WORKFLOW = "/workflows/{workflowId}"
_EXCLUDE_PINNED_DATA = Param("excludePinnedData", "boolean")
_ACTIVATION_DEPRECATED = {"Deprecation": "@1784764800"}
_VERSION_DEPRECATED = {"Deprecation": "@1787702400"}
_operation = partial(operation, family="lenient")


def _may_not(verb: str) -> str:
    return f"You do not have permission to {verb} this workflow. Ask the owner to share it with you."


def _workflow(call: Call, *, missing: str = "Not Found") -> Workflow:
    return call.state.workflows.get(call.path["workflowId"], missing=missing)


# ---------------------------------------------------------------- drafts


@_operation(
    "list_workflows",
    "GET",
    "/workflows",
    scope="workflow:list",
    query=(
        *PAGING,
        Param("offset", "integer", min=0),
        Param("active", "boolean"),
        Param("tags"),
        Param("name"),
        Param("projectId"),
        _EXCLUDE_PINNED_DATA,
    ),
)
def list_workflows(call: Call) -> dict[str, Any]:
    """Every workflow that matches all filters, including archived ones."""
    pinned = not call.query.get("excludePinnedData", False)
    found = [workflow for workflow in call.state.workflows.all() if _matches(call, workflow)]
    return page(call, found, shape=lambda workflow: workflow_item(call.state, workflow, pinned=pinned))


def _matches(call: Call, workflow: Workflow) -> bool:
    query = call.query
    if "active" in query and workflow.active != query["active"]:
        return False
    if query.get("name") and query["name"].lower() not in workflow.name.lower():
        return False
    if query.get("projectId") and workflow.project_id != query["projectId"]:
        return False
    wanted = {name.strip() for name in query.get("tags", "").split(",")} - {""}
    return not wanted or wanted <= {tag["name"] for tag in call.state.workflows.tags_of(workflow)}


@_operation("create_workflow", "POST", "/workflows", scope="workflow:create", body=CREATE_BODY)
def create_workflow(call: Call) -> dict[str, Any]:
    """Create an inactive workflow."""
    check_structure(call.body, call.state.version)
    project_id = call.body.get("projectId") or call.state.personal_project_id
    call.state.projects.get(project_id)
    folder = _folder(call.state, project_id, call.body)
    workflow = call.state.workflows.create(call.body, project_id=project_id)
    return {**workflow_json(call.state, workflow), "parentFolder": folder}


def _folder(state: State, project_id: str, body: dict[str, Any]) -> dict[str, Any] | None:
    """The folder named in a body; the project's root becomes None, in the body as well."""
    if body.get("parentFolderId") == ROOT:
        body["parentFolderId"] = None
    folder_id = body.get("parentFolderId")
    return state.folders.describe(state.folders.get(project_id, folder_id)) if folder_id else None


@_operation("get_workflow", "GET", _WORKFLOW, scope="workflow:read", query=(_EXCLUDE_PINNED_DATA,))
def get_workflow(call: Call) -> dict[str, Any]:
    """One workflow."""
    return workflow_json(call.state, _workflow(call), pinned=not call.query.get("excludePinnedData", False))


@_operation(
    "update_workflow",
    "PUT",
    _WORKFLOW,
    scope="workflow:update",
    query=(Param("publishIfActive", "boolean"),),
    body=UPDATE_BODY,
)
def update_workflow(call: Call) -> dict[str, Any]:
    """Replace the draft and, when the workflow is active, publish it."""
    workflow = _workflow(call, missing=_may_not("update"))
    if workflow.is_archived:
        raise ApiError(400, "Cannot update an archived workflow.")
    check_structure(call.body, call.state.version)
    _folder(call.state, workflow.project_id, call.body)
    call.state.workflows.update(workflow, call.body)
    if workflow.active and call.query.get("publishIfActive", True):
        if not call.allows("workflow:activate"):
            raise ApiError(
                403,
                "Your change was saved as a draft. Publishing it requires the workflow:activate scope.",
                reason="insufficient_api_key_scope",
                versionId=workflow.version_id,
            )
        call.state.workflows.publish(workflow)
    return workflow_without(call.state, workflow, "shared")


@_operation("delete_workflow", "DELETE", _WORKFLOW, scope="workflow:delete")
def delete_workflow(call: Call) -> dict[str, Any]:
    """Delete a workflow with its executions."""
    workflow = _workflow(call)
    call.state.workflows.delete(workflow)
    return workflow_without(call.state, workflow, "tags", "activeVersion")


@_operation("archive_workflow", "POST", f"{_WORKFLOW}/archive", scope="workflow:delete")
def archive_workflow(call: Call) -> dict[str, Any]:
    """Unpublish and archive a workflow."""
    workflow = _workflow(call, missing="Workflow not found")
    call.state.workflows.archive(workflow)
    return workflow_without(call.state, workflow, "tags")


@_operation("unarchive_workflow", "POST", f"{_WORKFLOW}/unarchive", scope="workflow:delete")
def unarchive_workflow(call: Call) -> dict[str, Any]:
    """Restore a workflow from the archive."""
    workflow = _workflow(call, missing="Workflow not found")
    call.state.workflows.unarchive(workflow)
    return workflow_without(call.state, workflow, "tags")


@_operation(
    "transfer_workflow",
    "PUT",
    f"{_WORKFLOW}/transfer",
    scope="workflow:move",
    status=204,
    body=Body(required={"destinationProjectId": Text()}),
)
def transfer_workflow(call: Call) -> None:
    """Move a workflow to another project."""
    call.state.workflows.transfer(_workflow(call), call.body["destinationProjectId"])


# ---------------------------------------------------------------- publishing


@_operation("publish_workflow", "POST", f"{_WORKFLOW}/publish", scope="workflow:activate", body=PUBLISH_BODY)
def publish_workflow(call: Call) -> dict[str, Any]:
    """Publish a version."""
    workflow = _workflow(call, missing=_may_not("activate"))
    body = call.body
    call.state.workflows.publish(
        workflow, body.get("versionId"), name=body.get("name"), description=body.get("description")
    )
    return workflow_without(call.state, workflow, "tags", "shared")


@_operation("activate_workflow", "POST", f"{_WORKFLOW}/activate", scope="workflow:activate", body=PUBLISH_BODY)
def activate_workflow(call: Call) -> Reply:
    """The deprecated name of publishing."""
    return Reply(publish_workflow(call), headers=_ACTIVATION_DEPRECATED)


@_operation("unpublish_workflow", "POST", f"{_WORKFLOW}/unpublish", scope="workflow:deactivate")
def unpublish_workflow(call: Call) -> dict[str, Any]:
    """Take a workflow out of production."""
    workflow = _workflow(call, missing=_may_not("deactivate"))
    call.state.workflows.unpublish(workflow)
    return workflow_without(call.state, workflow, "tags")


@_operation("deactivate_workflow", "POST", f"{_WORKFLOW}/deactivate", scope="workflow:deactivate")
def deactivate_workflow(call: Call) -> Reply:
    """The deprecated name of unpublishing."""
    return Reply(unpublish_workflow(call), headers=_ACTIVATION_DEPRECATED)


# ---------------------------------------------------------------- versions


@_operation("list_workflow_history", "GET", f"{_WORKFLOW}/history", scope="workflow:read", query=PAGING)
def list_workflow_history(call: Call) -> dict[str, Any]:
    """The versions, newest first."""
    return page(call, list(reversed(_workflow(call).versions.values())), shape=version_summary)


@_operation("get_workflow_version", "GET", f"{_WORKFLOW}/versions/{{workflowVersionId}}", scope="workflow:read")
def get_workflow_version(call: Call) -> dict[str, Any]:
    """One version with its nodes."""
    return _version(call, call.path["workflowId"], call.path["workflowVersionId"])


@operation(
    "get_workflow_version_deprecated",
    "GET",
    "/workflows/{id}/{versionId}",
    scope="workflow:read",
    family="strict",
)
def get_workflow_version_deprecated(call: Call) -> Reply:
    """The deprecated path of a version."""
    return Reply(_version(call, call.path["id"], call.path["versionId"]), headers=_VERSION_DEPRECATED)


def _version(call: Call, workflow_id: str, version_id: str) -> dict[str, Any]:
    version = call.state.workflows.get(workflow_id, missing="Version not found").versions.get(version_id)
    if version is None:
        raise ApiError(404, "Version not found")
    return version_json(version)


# ---------------------------------------------------------------- tags


@_operation("list_workflow_tags", "GET", f"{_WORKFLOW}/tags", scope="workflowTags:list")
def list_workflow_tags(call: Call) -> list[dict[str, Any]]:
    """The tags of a workflow."""
    return call.state.workflows.tags_of(_workflow(call))


@_operation("update_workflow_tags", "PUT", f"{_WORKFLOW}/tags", scope="workflowTags:update", body=TAGS_BODY)
def update_workflow_tags(call: Call) -> list[dict[str, Any]]:
    """Replace the tags of a workflow."""
    workflow = _workflow(call)
    call.state.workflows.set_tags(workflow, [tag["id"] for tag in call.body])
    return call.state.workflows.tags_of(workflow)
