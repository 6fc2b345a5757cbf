"""Workflows: what their bodies may contain, their JSON, and the operations on drafts, versions and tags."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeGuard

from airflow_provider_service.simulator._gateway import Call, Reply, operation, page
from airflow_provider_service.simulator._state import State
from airflow_provider_service.simulator._stores.folders import ROOT
from airflow_provider_service.simulator._stores.workflows import Version, Workflow
from airflow_provider_service.simulator._validation import (
    PAGING,
    ApiError,
    Array,
    Body,
    Boolean,
    Enum,
    Family,
    Field,
    Number,
    Object,
    Param,
    Text,
    is_at_least,
    refuse,
)

_SAVE = Enum(("all", "none"))

_TELEMETRY_TAGS = Array(items=Object(required={"key": Text(), "value": Text()}, closed=True))

_SETTINGS = Object(
    closed=True,
    optional={
        "executionTimeout": Number(),
        "timezone": Text(),
        "errorWorkflow": Text(),
        "executionOrder": Text(),
        "callerPolicy": Enum(("any", "none", "workflowsFromAList", "workflowsFromSameOwner")),
        "callerIds": Text(),
        "saveDataSuccessExecution": _SAVE,
        "saveDataErrorExecution": _SAVE,
        "saveManualExecutions": Boolean(),
        "saveExecutionProgress": Boolean(),
        "timeSavedMode": Enum(("fixed", "dynamic")),
        "timeSavedPerExecution": Number(),
        "redactionPolicy": Enum(("none", "non-manual", "manual-only", "all")),
        "availableInMCP": Boolean(),
        "customTelemetryTags": _TELEMETRY_TAGS,
        "credentialResolverId": Text(),
        "binaryMode": Enum(("separate", "combined")),
    },
)

# check_structure reports a missing name, type or position, in the service's own words.
_NODE = Object(
    closed=True,
    optional={
        "id": Text(),
        "name": Text(),
        "webhookId": Text(),
        "disabled": Boolean(),
        "notesInFlow": Boolean(),
        "notes": Text(),
        "type": Text(),
        "typeVersion": Number(),
        "executeOnce": Boolean(),
        "alwaysOutputData": Boolean(),
        "retryOnFail": Boolean(),
        "maxTries": Number(),
        "waitBetweenTries": Number(),
        "continueOnFail": Boolean(),
        "onError": Text(),
        "position": Array(items=Number()),
        "parameters": Object(),
        "credentials": Object(),
        "customTelemetryTags": Object(closed=True, optional={"tag": _TELEMETRY_TAGS}),
    },
    read_only=("createdAt", "updatedAt"),
)


@dataclass(frozen=True, kw_only=True)
class _StaticData(Field):
    def _check_value(self, value: Any, where: str, family: Family) -> None:
        if isinstance(value, str):
            try:
                json.loads(value)
            except ValueError as error:
                raise refuse(where, "must be a JSON string") from error
        elif not isinstance(value, dict):
            raise refuse(where, "Invalid input")


_REQUIRED: dict[str, Field] = {
    "name": Text(),
    "nodes": Array(items=_NODE),
    "connections": Object(message="must be object"),
    "settings": _SETTINGS,
}
_OPTIONAL: dict[str, Field] = {
    "staticData": _StaticData(nullable=True),
    "pinData": Object(nullable=True),
    "nodeGroups": Array(),
    "shared": Array(),
    "parentFolderId": Text(nullable=True),
}
_READ_ONLY = (
    "id",
    "active",
    "activeVersion",
    "createdAt",
    "updatedAt",
    "isArchived",
    "meta",
    "tags",
    "triggerCount",
    "versionId",
)

_body = partial(Body, required=_REQUIRED, closed=True, read_only=_READ_ONLY)
CREATE_BODY = _body(optional={**_OPTIONAL, "projectId": Text()})
UPDATE_BODY = _body(optional={**_OPTIONAL, "description": Text(nullable=True)})
PUBLISH_BODY = Body(optional={"versionId": Text(), "name": Text(), "description": Text()}, required_body=False)


def check_name(name: str, least: int) -> None:
    if not least <= len(name) <= 128:
        raise ApiError(400, "Workflow name must be 1 to 128 characters long.")


def check_structure(body: dict[str, Any], version: str) -> None:
    """Refuse nodes that cannot be placed or told apart, connections that lead nowhere, and too much pinned data."""
    if is_at_least(version, "2.30"):
        faults = [
            f"nodes[{index}].{name} (invalid_type): Required"
            for index, node in enumerate(body["nodes"])
            for name in ("name", "type", "position")
            if name not in node
        ]
        faults += [fault for index, node in enumerate(body["nodes"]) for fault in _malformed(index, node)]
        faults = faults or [*_duplicates(body["nodes"], version), *_dangling(body)]
        if faults:
            raise ApiError(400, f"Workflow structure is invalid. {'; '.join(faults)}")
    pinned = json.dumps(body.get("pinData"), ensure_ascii=False, separators=(",", ":"))
    if len(pinned.encode()) > 12 << 20:
        raise ApiError(400, "Pinned data exceeds the maximum allowed size of 12 MB")


def _malformed(index: int, node: dict[str, Any]) -> list[str]:
    faults = [
        f"nodes[{index}].{name} (too_small): String must contain at least 1 character(s)"
        for name in ("name", "type")
        if node.get(name) == ""
    ]
    size = len(node.get("position", (0, 0)))
    if size < 2:
        faults.append(f"nodes[{index}].position (too_small): Array must contain at least 2 element(s)")
    if size > 2:
        faults.append(f"nodes[{index}].position (too_big): Array must contain at most 2 element(s)")
    return faults


def _duplicates(nodes: list[dict[str, Any]], version: str) -> list[str]:
    faults = []
    names: set[str] = set()
    names_by_id: dict[str, str] = {}
    for index, node in enumerate(nodes):
        name, node_id = _name(node), node.get("id")
        if node_id in names_by_id and is_at_least(version, "2.39"):
            both = f'Nodes "{names_by_id[node_id]}" and "{name}"'
            faults.append(f'nodes[{index}].id (duplicate_node_id): {both} share the node ID "{node_id}"')
        if node_id:
            names_by_id.setdefault(node_id, name)
        if name in names:
            faults.append(f'nodes[{index}].name (duplicate_node_name): Duplicate node name "{name}"')
        names.add(name)
    return faults


def _name(node: dict[str, Any]) -> str:
    return str(node.get("name") or node["type"].rpartition(".")[2])


def _dangling(body: dict[str, Any]) -> list[str]:
    names = set(map(_name, body["nodes"]))
    faults = []
    for source, by_kind in body["connections"].items():
        if source not in names:
            faults.append(f'connections.{source} (custom): Unknown source node "{source}"')
        for target in _targets(by_kind):
            if not isinstance(target, str) or target not in names:
                faults.append(f'connections.{source} (custom): Unknown target node "{target}"')
    return faults


def _targets(by_kind: Any) -> list[Any]:
    """The names of the connected nodes; None stands for anything that is not a connection."""
    outputs_by_kind: list[Any] = list(by_kind.values()) if isinstance(by_kind, dict) else [None]
    if not all(isinstance(outputs, list) for outputs in outputs_by_kind):
        return [None]
    names: list[Any] = []
    for output in (output for outputs in outputs_by_kind for output in outputs if output is not None):
        targets = output if isinstance(output, list) else [None]
        names += [target["node"] if _is_connection(target) else None for target in targets]
    return names


def _is_connection(target: Any) -> TypeGuard[dict[str, Any]]:
    if not isinstance(target, dict) or not target.get("node") or not target.get("type"):
        return False
    index = target.get("index")
    return isinstance(index, int) and index >= 0


# ---------------------------------------------------------------- JSON


def workflow_json(state: State, workflow: Workflow, *, pinned: bool = True) -> dict[str, Any]:
    version, active_version = workflow.active_version, None
    if version is not None:
        history = {"workflowPublishHistory": version.publish_history}
        active_version = {**version_json(version), "autosaved": False, **history}
    shared = {
        "updatedAt": workflow.shared_at,
        "createdAt": workflow.shared_at,
        "role": "workflow:owner",
        "workflowId": workflow.id,
        "projectId": workflow.project_id,
        "project": state.projects.find(workflow.project_id),
    }
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
        "meta": None,
        "versionId": workflow.version_id,
        "activeVersionId": active_version["versionId"] if active_version else None,
        "versionCounter": workflow.version_counter,
        "triggerCount": workflow.trigger_count,
        "sourceWorkflowId": None,
        "shared": [shared],
        "tags": state.workflows.tags_of(workflow),
        "activeVersion": active_version,
    }
    if pinned:
        answer["pinData"] = workflow.pin_data
    if not is_at_least(state.version, "2.0"):
        del answer["sourceWorkflowId"]
    return answer


def workflow_item(state: State, workflow: Workflow, *, pinned: bool = True) -> dict[str, Any]:
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


def version_summary(version: Version) -> dict[str, Any]:
    return {
        "updatedAt": version.created_at,
        "createdAt": version.created_at,
        "versionId": version.version_id,
        "workflowId": version.workflow_id,
        "authors": version.authors,
        "name": version.name,
        "description": version.description,
    }


def version_json(version: Version) -> dict[str, Any]:
    return {
        **version_summary(version),
        "nodes": version.nodes,
        "connections": version.connections,
        "nodeGroups": version.node_groups,
    }


# ---------------------------------------------------------------- drafts

_WORKFLOW = "/workflows/{workflowId}"
_EXCLUDE_PINNED_DATA = Param("excludePinnedData", "boolean")
_ACTIVATION_DEPRECATED = {"Deprecation": "@1784764800"}
_VERSION_DEPRECATED = {"Deprecation": "@1787702400"}
_MAY_NOT = "You do not have permission to {} this workflow. Ask the owner to share it with you."
_TAGS = Body(required={"id": Text()}, array=True)
_operation = partial(operation, family="lenient")


def _workflow(call: Call, *, missing: str = "Not Found") -> Workflow:
    return call.state.workflows.get(call.path["workflowId"], missing=missing)


@_operation(
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
    pinned = not call.query.get("excludePinnedData", False)
    matching = [workflow for workflow in call.state.workflows.all() if _matches(call, workflow)]
    return page(call, matching, shape=lambda workflow: workflow_item(call.state, workflow, pinned=pinned))


def _matches(call: Call, workflow: Workflow) -> bool:
    query = call.query
    if "active" in query and workflow.active != query["active"]:
        return False
    if query.get("name") and query["name"].lower() not in workflow.name.lower():
        return False
    if query.get("projectId") and workflow.project_id != query["projectId"]:
        return False
    tag_names = {name.strip() for name in query.get("tags", "").split(",")} - {""}
    return not tag_names or tag_names <= {tag["name"] for tag in call.state.workflows.tags_of(workflow)}


@_operation("POST", "/workflows", scope="workflow:create", body=CREATE_BODY)
def create_workflow(call: Call) -> dict[str, Any]:
    check_name(call.body["name"], 1)
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


@_operation("GET", _WORKFLOW, scope="workflow:read", query=(_EXCLUDE_PINNED_DATA,))
def get_workflow(call: Call) -> dict[str, Any]:
    return workflow_json(call.state, _workflow(call), pinned=not call.query.get("excludePinnedData", False))


@_operation(
    "PUT",
    _WORKFLOW,
    scope="workflow:update",
    query=(Param("publishIfActive", "boolean"),),
    body=UPDATE_BODY,
)
def update_workflow(call: Call) -> dict[str, Any]:
    """Replace the draft and, when the workflow is active, publish it."""
    workflow = _workflow(call, missing=_MAY_NOT.format("update"))
    if workflow.is_archived:
        raise ApiError(400, "Cannot update an archived workflow.")
    if [call.body.get(name) for name in ("nodes", "connections")] != [workflow.nodes, workflow.connections]:
        check_structure(call.body, call.state.version)
    check_name(call.body["name"], 0)
    _folder(call.state, workflow.project_id, call.body)
    call.state.workflows.update(workflow, call.body)
    if workflow.active and call.query.get("publishIfActive", True):
        if not call.key.allows("workflow:activate"):
            raise ApiError(
                403,
                "Your change was saved as a draft. Publishing it requires the workflow:activate scope.",
                reason="insufficient_api_key_scope",
                versionId=workflow.version_id,
            )
        call.state.workflows.publish(workflow)
    return workflow_without(call.state, workflow, "shared")


@_operation("DELETE", _WORKFLOW, scope="workflow:delete")
def delete_workflow(call: Call) -> dict[str, Any]:
    workflow = _workflow(call)
    call.state.workflows.delete(workflow)
    return workflow_without(call.state, workflow, "tags", "activeVersion")


@_operation("POST", f"{_WORKFLOW}/archive", scope="workflow:delete")
def archive_workflow(call: Call) -> dict[str, Any]:
    workflow = _workflow(call, missing="Workflow not found")
    call.state.workflows.archive(workflow)
    return workflow_without(call.state, workflow, "tags")


@_operation("POST", f"{_WORKFLOW}/unarchive", scope="workflow:delete")
def unarchive_workflow(call: Call) -> dict[str, Any]:
    workflow = _workflow(call, missing="Workflow not found")
    call.state.workflows.unarchive(workflow)
    return workflow_without(call.state, workflow, "tags")


@_operation(
    "PUT",
    f"{_WORKFLOW}/transfer",
    scope="workflow:move",
    status=204,
    body=Body(required={"destinationProjectId": Text()}),
)
def transfer_workflow(call: Call) -> None:
    missing = f'Could not find workflow with the id "{call.path["workflowId"]}". '
    workflow = _workflow(call, missing=f"{missing}Make sure you have the permission to move it.")
    call.state.workflows.transfer(workflow, call.body["destinationProjectId"])


# ---------------------------------------------------------------- publishing


@_operation("POST", f"{_WORKFLOW}/publish", scope="workflow:activate", body=PUBLISH_BODY)
def publish_workflow(call: Call) -> dict[str, Any]:
    workflow = _workflow(call, missing=_MAY_NOT.format("activate"))
    name, description = call.body.get("name"), call.body.get("description")
    call.state.workflows.publish(workflow, call.body.get("versionId"), name=name, description=description)
    return workflow_without(call.state, workflow, "tags", "shared")


@_operation("POST", f"{_WORKFLOW}/activate", scope="workflow:activate", body=PUBLISH_BODY)
def activate_workflow(call: Call) -> Reply:
    return Reply(publish_workflow(call), headers=_ACTIVATION_DEPRECATED)


@_operation("POST", f"{_WORKFLOW}/unpublish", scope="workflow:deactivate")
def unpublish_workflow(call: Call) -> dict[str, Any]:
    workflow = _workflow(call, missing=_MAY_NOT.format("deactivate"))
    call.state.workflows.unpublish(workflow)
    return workflow_without(call.state, workflow, "tags")


@_operation("POST", f"{_WORKFLOW}/deactivate", scope="workflow:deactivate")
def deactivate_workflow(call: Call) -> Reply:
    return Reply(unpublish_workflow(call), headers=_ACTIVATION_DEPRECATED)


# ---------------------------------------------------------------- versions


@_operation("GET", f"{_WORKFLOW}/history", scope="workflow:read", query=PAGING)
def list_workflow_history(call: Call) -> dict[str, Any]:
    return page(call, list(reversed(_workflow(call).versions.values())), shape=version_summary)


@_operation("GET", f"{_WORKFLOW}/versions/{{workflowVersionId}}", scope="workflow:read")
def get_workflow_version(call: Call) -> dict[str, Any]:
    return _version(call, "workflowId", "workflowVersionId", missing="Workflow not found")


@operation("GET", "/workflows/{id}/{versionId}", scope="workflow:read", family="strict")
def get_workflow_version_deprecated(call: Call) -> Reply:
    version = _version(call, "id", "versionId", missing="Version not found")
    return Reply(version, headers=_VERSION_DEPRECATED)


def _version(call: Call, workflow_key: str, version_key: str, *, missing: str) -> dict[str, Any]:
    workflow = call.state.workflows.get(call.path[workflow_key], missing=missing)
    version = workflow.versions.get(call.path[version_key])
    if version is None:
        raise ApiError(404, "Version not found")
    return version_json(version)


# ---------------------------------------------------------------- tags


@_operation("GET", f"{_WORKFLOW}/tags", scope="workflowTags:list")
def list_workflow_tags(call: Call) -> list[dict[str, Any]]:
    return call.state.workflows.tags_of(_workflow(call))


@_operation("PUT", f"{_WORKFLOW}/tags", scope="workflowTags:update", body=_TAGS)
def update_workflow_tags(call: Call) -> list[dict[str, Any]]:
    workflow = _workflow(call)
    call.state.workflows.set_tags(workflow, [tag["id"] for tag in call.body])
    return call.state.workflows.tags_of(workflow)
