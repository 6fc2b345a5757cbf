"""Folders: a tree in each project that holds workflows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_provider_service.simulator._host import Host
from airflow_provider_service.simulator._stores.projects import ProjectStore
from airflow_provider_service.simulator._stores.workflows import Workflow, WorkflowStore
from airflow_provider_service.simulator._validation import ApiError

ROOT = "0"
FIELDS = ("id", "name", "parentFolderId", "createdAt", "updatedAt")


class FolderStore:
    """Folders in creation order. ``"0"`` is a project's root wherever a folder is expected."""

    def __init__(self, host: Host, projects: ProjectStore, workflows: WorkflowStore) -> None:
        self._host = host
        self._projects = projects
        self._workflows = workflows
        self._folders: dict[str, dict[str, Any]] = {}

    def of_project(self, project_id: str) -> Sequence[dict[str, Any]]:
        return [folder for folder in self._folders.values() if folder["projectId"] == project_id]

    def find(self, folder_id: str) -> dict[str, Any] | None:
        return self._folders.get(folder_id)

    def get(self, project_id: str, folder_id: str) -> dict[str, Any]:
        self._projects.get(project_id)
        folder = self._folders.get(folder_id)
        if folder is None or folder["projectId"] != project_id:
            raise ApiError(404, f"Could not find the folder: {folder_id}")
        return folder

    def describe(self, folder: Mapping[str, Any]) -> dict[str, Any]:
        return {name: folder[name] for name in FIELDS}

    def totals(self, folder_id: str) -> tuple[int, int]:
        """The numbers of subfolders and workflows below, at any depth."""
        below = self.descendants(folder_id)
        return len(below), len(self._workflows_in([folder_id, *below]))

    def descendants(self, folder_id: str) -> list[str]:
        """The ids of all folders below, parents first."""
        tree = [folder_id]
        for parent in tree:  # it grows meanwhile
            tree += [folder["id"] for folder in self._folders.values() if folder["parentFolderId"] == parent]
        return tree[1:]

    def create(
        self, project_id: str, name: str, parent_id: str | None = None, *, folder_id: str | None = None
    ) -> dict[str, Any]:
        self._projects.get(project_id)
        now = self._host.stamp()
        folder: dict[str, Any] = {
            "id": folder_id or self._host.new_id(),
            "name": _check_name(name),
            "parentFolderId": self._parent(project_id, parent_id),
            "projectId": project_id,
            "createdAt": now,
            "updatedAt": now,
        }
        self._folders[folder["id"]] = folder
        return folder

    def update(self, project_id: str, folder_id: str, change: Mapping[str, str]) -> dict[str, Any]:
        folder = self.get(project_id, folder_id)
        parent_id = folder["parentFolderId"]
        if "parentFolderId" in change:
            parent_id = self._parent(project_id, change["parentFolderId"])
            if parent_id in (folder_id, *self.descendants(folder_id)):
                raise ApiError(400, "Cannot set a folder's parent to itself or to a folder below it")
        name = _check_name(change.get("name", folder["name"]))
        folder.update(name=name, parentFolderId=parent_id, updatedAt=self._host.stamp())
        return folder

    def delete(self, project_id: str, folder_id: str, transfer_to: str | None = None) -> None:
        """Delete a folder; its contents move to ``transfer_to``, or workflows are archived at the project's root."""
        self.get(project_id, folder_id)
        below = [folder_id, *self.descendants(folder_id)]
        if transfer_to is None:
            for workflow in self._workflows_in(below):
                self._workflows.archive(workflow)
                workflow.parent_folder_id = None
        else:
            target = self._parent(project_id, transfer_to)
            if target in below:
                raise ApiError(400, "Cannot transfer a folder's content into itself")
            for workflow in self._workflows_in([folder_id]):
                workflow.parent_folder_id = target
            for child in self._folders.values():
                if child["parentFolderId"] == folder_id:
                    child["parentFolderId"] = target
            below = [folder_id]
        for doomed in below:
            del self._folders[doomed]

    def delete_project(self, project_id: str) -> None:
        self._folders = {key: folder for key, folder in self._folders.items() if folder["projectId"] != project_id}

    def _workflows_in(self, folder_ids: Sequence[str]) -> list[Workflow]:
        return [workflow for workflow in self._workflows.all() if workflow.parent_folder_id in folder_ids]

    def _parent(self, project_id: str, parent_id: str | None) -> str | None:
        if parent_id is None or parent_id == ROOT:
            return None
        parent: str = self.get(project_id, parent_id)["id"]
        return parent


def _check_name(name: str) -> str:
    name = name.strip()
    if not name:
        raise ApiError(400, "Folder name cannot be empty")
    if len(name) > 128:
        raise ApiError(400, "Folder name cannot be longer than 128 characters")
    return name
