"""Export: select workflows and add everything that they refer to."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_service.simulator.packages.archive import Package
from airflow_provider_service.simulator.validation import ApiError

if TYPE_CHECKING:
    from airflow_provider_service.simulator.state import State
    from airflow_provider_service.simulator.stores.workflows import Version, Workflow

VERSION_POLICIES = ("published-strict", "prefer-published", "ignore-unpublished", "latest")

_VARIABLE = re.compile(r"\$vars\.([A-Za-z_][A-Za-z0-9_]*)")


def export(state: State, options: Mapping[str, Any]) -> Package:
    """Create the package that an export's body requests.

    :raises ApiError: 400 if nothing or too much is requested, something is not found, or nothing is published
    """
    package = Package(
        source_id=hashlib.sha256(state.owner_id.encode()).hexdigest(),
        exported_at=state.stamp(),
    )
    for workflow in _chosen(state, options, package):
        version = _version(workflow, options.get("workflowVersionPolicy", "latest"))
        if version is not None:
            _add_workflow(state, package, workflow, version, options)
    return package


def _chosen(state: State, options: Mapping[str, Any], package: Package) -> list[Workflow]:
    loose = "workflowIds" in options or "folderIds" in options
    if not loose and "projectIds" not in options:
        raise ApiError(400, "At least one workflowId, folderId, or projectId is required")
    if loose and "projectIds" in options:
        raise ApiError(400, "Provide either workflowIds/folderIds or projectIds, not both")
    if any(not options[name] for name in ("workflowIds", "folderIds", "projectIds") if name in options):
        raise ApiError(400, "Array must contain at least 1 element(s)")
    named = _found("workflow", options.get("workflowIds", ()), state.workflows.find)
    folders = _found("folder", options.get("folderIds", ()), state.folders.find)
    projects = _found("project", options.get("projectIds", ()), state.projects.find)
    for project in projects:
        package.add("projects", {"id": project["id"], "name": project["name"]})
        folders += [folder for folder in state.folders.of_project(project["id"]) if folder["parentFolderId"] is None]
    folder_ids = _add_folders(state, package, folders)
    project_ids = {project["id"] for project in projects}
    archived_too = options.get("includeArchivedWorkflows", False)
    within = [w for w in state.workflows.all() if w.parent_folder_id in folder_ids or w.project_id in project_ids]
    chosen = {workflow.id: workflow for workflow in (*named, *within) if archived_too or not workflow.is_archived}
    if options.get("workflowVersionPolicy") == "published-strict":
        unpublished = sum(not workflow.active for workflow in chosen.values())
        if unpublished:
            raise ApiError(400, f"{unpublished} workflow(s) have no published version. Export aborted.")
    return list(chosen.values())


def _found(noun: str, ids: Sequence[str], find: Callable[[str], Any]) -> list[Any]:
    found = [find(key) for key in dict.fromkeys(ids)]
    missing = sum(thing is None for thing in found)
    if missing:
        raise ApiError(400, f"{missing} {noun}(s) not found or not accessible. Export aborted.")
    return found


def _add_folders(state: State, package: Package, tops: Iterable[Mapping[str, Any]]) -> set[str]:
    ids: set[str] = set()
    for top in tops:
        for folder_id in (top["id"], *state.folders.descendants(top["id"])):
            folder = state.folders.find(folder_id)
            if folder is not None and folder_id not in ids:
                ids.add(folder_id)
                names = ("id", "name", "parentFolderId", "projectId")
                package.add("folders", {name: folder[name] for name in names})
    return ids


def _version(workflow: Workflow, policy: str) -> Version | None:
    draft = workflow.versions[workflow.version_id]
    if policy == "latest":
        return draft
    if policy == "prefer-published":
        return workflow.active_version or draft
    return workflow.active_version


def _add_workflow(
    state: State, package: Package, workflow: Workflow, version: Version, options: Mapping[str, Any]
) -> None:
    tags = state.workflows.tags_of(workflow) if options.get("includeTags", True) else []
    for tag in tags:
        package.add("tags", {"id": tag["id"], "name": tag["name"]})
    for credential in _credentials(state, version.nodes):
        package.add("credentials", {name: credential[name] for name in ("id", "name", "type")})
    for key in sorted(set(_VARIABLE.findall(json.dumps(version.nodes)))):
        _add_variable(state, package, key, workflow.project_id, options.get("includeVariableValues", True))
    package.add(
        "workflows",
        {
            "id": workflow.id,
            "name": workflow.name,
            "nodes": version.nodes,
            "connections": version.connections,
            "settings": workflow.settings,
            "versionId": version.version_id,
            "parentFolderId": workflow.parent_folder_id,
            "projectId": workflow.project_id,
            "isArchived": workflow.is_archived,
            "tagIds": [tag["id"] for tag in tags],
            "publishedVersionId": workflow.active_version.version_id if workflow.active_version else None,
        },
    )


def _credentials(state: State, nodes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    references = (reference for node in nodes for reference in (node.get("credentials") or {}).values())
    ids = dict.fromkeys(reference.get("id") for reference in references if isinstance(reference, dict))
    found = (state.credentials.find(key) for key in ids if isinstance(key, str))
    return [credential for credential in found if credential is not None]


def _add_variable(state: State, package: Package, key: str, project_id: str, with_value: bool) -> None:
    variable = state.variables.named(key, project_id) or state.variables.named(key)
    if variable is not None:
        value = {"value": variable["value"]} if with_value else {}
        package.add("variables", {"id": key, "name": key, "type": "string", **value})
