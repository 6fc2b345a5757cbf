"""What the bodies of workflow operations may contain."""

from __future__ import annotations

import json
from typing import Any

from airflow_provider_service.simulator._generations import is_at_least
from airflow_provider_service.simulator._validation import (
    Any_,
    ApiError,
    Array,
    Body,
    Boolean,
    Enum,
    Field,
    Number,
    Object,
    Text,
)

_MOST_PINNED_DATA = 12 << 20  # bytes
_SAVE = Enum(("all", "none", "DEFAULT"))

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
        "saveExecutionProgress": Any_(),
        "timeSavedMode": Enum(("fixed", "dynamic")),
        "timeSavedPerExecution": Number(),
        "redactionPolicy": Text(),
        "availableInMCP": Boolean(),
        "customTelemetryTags": Array(items=Object(required={"key": Text(), "value": Text()})),
        "credentialResolverId": Text(nullable=True),
        "binaryMode": Text(),
    },
)

# check_structure reports a missing type or position, in the service's own words.
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
        "onError": Enum(("stopWorkflow", "continueRegularOutput", "continueErrorOutput")),
        "position": Array(items=Number()),
        "parameters": Object(),
        "credentials": Object(),
        "color": Text(),
        "rewireOutputLogTo": Text(),
        "extendsCredential": Text(),
        "customTelemetryTags": Any_(),
    },
    read_only=("createdAt", "updatedAt"),
)

_REQUIRED: dict[str, Field] = {
    "name": Text(min=1, max=128),
    "nodes": Array(items=_NODE),
    "connections": Object(),
    "settings": _SETTINGS,
}
_OPTIONAL: dict[str, Field] = {
    "staticData": Any_(),
    "pinData": Object(nullable=True),
    "nodeGroups": Array(),
    "shared": Array(),
    "parentFolderId": Text(nullable=True),
}
_READ_ONLY = (
    "id",
    "active",
    "activeVersion",
    "activeVersionId",
    "createdAt",
    "updatedAt",
    "isArchived",
    "meta",
    "tags",
    "triggerCount",
    "versionCounter",
    "versionId",
)

CREATE_BODY = Body(required=_REQUIRED, optional={**_OPTIONAL, "projectId": Text()}, closed=True, read_only=_READ_ONLY)
UPDATE_BODY = Body(
    required=_REQUIRED,
    optional={**_OPTIONAL, "description": Text(nullable=True)},
    closed=True,
    read_only=_READ_ONLY,
)
PUBLISH_BODY = Body(optional={"versionId": Text(), "name": Text(), "description": Text()}, required_body=False)
TAGS_BODY = Body(required={"id": Text()}, array=True)


def check_structure(body: dict[str, Any], version: str) -> None:
    """Refuse nodes that cannot be placed or told apart, connections that lead nowhere, and too much pinned data.

    :param version: of the simulated service
    :raises ApiError: a 400 that names every fault
    """
    faults = [
        f"nodes[{index}].{name} (invalid_type): Required"
        for index, node in enumerate(body["nodes"])
        for name in ("type", "position")
        if name not in node
    ]
    if is_at_least(version, "2.30"):
        faults += [fault for index, node in enumerate(body["nodes"]) for fault in _malformed(index, node)]
    faults = faults or [*_duplicates(body["nodes"], version), *_dangling(body)]
    if faults:
        raise ApiError(400, f"Workflow structure is invalid. {'; '.join(faults)}")
    pinned = json.dumps(body.get("pinData"), ensure_ascii=False, separators=(",", ":"))
    if len(pinned.encode()) > _MOST_PINNED_DATA:
        raise ApiError(400, f"Pinned data exceeds the maximum allowed size of {_MOST_PINNED_DATA >> 20} MB")


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
        if name in names and is_at_least(version, "2.30"):
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
    found: list[Any] = []
    for output in (output for outputs in outputs_by_kind for output in outputs if output is not None):
        ends = output if isinstance(output, list) else [None]
        found += [end.get("node") if isinstance(end, dict) else None for end in ends]
    return found
