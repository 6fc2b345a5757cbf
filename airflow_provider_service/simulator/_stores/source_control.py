"""Source control: a simulated repository that the instance pulls from and pushes to."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow_provider_service.simulator._host import Host
from airflow_provider_service.simulator._stores.credentials import CredentialStore
from airflow_provider_service.simulator._stores.projects import ProjectStore, VariableStore
from airflow_provider_service.simulator._stores.workflows import TagStore, Workflow, WorkflowStore
from airflow_provider_service.simulator._validation import ApiError

FILE_TYPES = ("credential", "workflow", "tags", "variables", "file", "folders", "project", "datatable")
AUTO_PUBLISH = ("none", "all", "published")
NOT_CONNECTED = "Source Control is not connected to a repository"

_SHOWN = (
    "file",
    "id",
    "name",
    "type",
    "status",
    "location",
    "conflict",
    "updatedAt",
    "pushed",
    "isLocalPublished",
    "owner",
    "publishingError",
)


def example_files() -> list[dict[str, Any]]:
    webhook = {
        "id": "4a1f0f5e-5f0c-4c1e-9d53-0c6f5d1f7a01",
        "name": "Webhook",
        "type": "n8n-nodes-base.webhook",
        "typeVersion": 2,
        "position": [0, 0],
        "parameters": {"httpMethod": "POST", "path": "pulled-workflow", "options": {}},
    }
    workflow = {"name": "Pulled workflow", "nodes": [webhook], "connections": {}, "settings": {}}
    return [
        {"id": "PulledWorkflow01", "name": "Pulled workflow", "type": "workflow", "content": workflow},
        {"id": "variables", "name": "variables", "type": "variables", "content": [{"key": "stage", "value": "test"}]},
        {"id": "mappings", "name": "tags", "type": "tags", "content": [{"id": "PulledTag0000001", "name": "pulled"}]},
    ]


class SourceControlConflictError(Exception):
    def __init__(self, files: list[dict[str, Any]]) -> None:
        super().__init__("conflict")
        self.files = files


class SourceControlStore:
    """``failure`` is the text of the 400 with which the next pulls fail, as if the repository could not be reached."""

    def __init__(
        self,
        host: Host,
        tags: TagStore,
        variables: VariableStore,
        credentials: CredentialStore,
        projects: ProjectStore,
        workflows: WorkflowStore,
    ) -> None:
        self._host = host
        self._tags = tags
        self._variables = variables
        self._credentials = credentials
        self._projects = projects
        self._workflows = workflows
        self._remote: dict[tuple[str, str], dict[str, Any]] = {}
        self._local: dict[tuple[str, str], dict[str, Any]] = {}
        self._synced: dict[str, str] = {}
        self.connected = False
        self.failure: str | None = None
        self.commits: list[dict[str, Any]] = []
        self.connect(example_files())

    # ------------------------------------------------------------ set up by tests

    def connect(self, files: Iterable[Mapping[str, Any]] = ()) -> None:
        """Connect to a repository with these changes to pull.

        Each has ``id``, ``name``, ``type``, and optionally ``status`` ("new" by default; "deleted" deletes the object),
        ``conflict`` and ``content``: a workflow body, a list of ``{key, value}`` variables or of ``{id, name}`` tags,
        or a credential's ``{type}``.
        """
        self.connected = True
        self._remote = self._files(files, "remote")

    def disconnect(self) -> None:
        self.connected = False

    def change_locally(self, files: Iterable[Mapping[str, Any]]) -> None:
        """Add local changes other than those of workflows, which are found automatically."""
        self._local.update(self._files(files, "local"))

    def _files(self, files: Iterable[Mapping[str, Any]], location: str) -> dict[tuple[str, str], dict[str, Any]]:
        return {
            (file["type"], file["id"]): {
                "file": f"{file['type']}/{file['id']}.json",
                "status": "new",
                "location": location,
                "conflict": False,
                "updatedAt": self._host.stamp(),
                "content": None,
                **file,
            }
            for file in files
        }

    # ------------------------------------------------------------ status

    def status(self, direction: str) -> list[dict[str, Any]]:
        self._check_connected()
        pending = self._remote if direction == "pull" else self._pending_locally()
        return [_shown(pending_file) for pending_file in pending.values()]

    def _check_connected(self) -> None:
        if not self.connected:
            raise ApiError(400, NOT_CONNECTED)

    def _pending_locally(self) -> dict[tuple[str, str], dict[str, Any]]:
        pending = dict(self._local)
        workflows = {workflow.id: workflow for workflow in self._workflows.all()}
        for workflow in workflows.values():
            if self._synced.get(workflow.id) != _fingerprint(workflow):
                status = "modified" if workflow.id in self._synced else "created"
                pending.update(self._files([self._workflow_file(workflow, status)], "local"))
        gone = [key for key in self._synced if key not in workflows]
        deleted = [{"id": key, "name": key, "type": "workflow", "status": "deleted"} for key in gone]
        pending.update(self._files(deleted, "local"))
        for key, changed in pending.items():
            changed["conflict"] = changed["conflict"] or key in self._remote
        return pending

    def _workflow_file(self, workflow: Workflow, status: str) -> dict[str, Any]:
        project = self._projects.get(workflow.project_id)
        owner = {"type": project["type"], "projectId": project["id"], "projectName": project["name"]}
        return {
            "id": workflow.id,
            "name": workflow.name,
            "type": "workflow",
            "status": status,
            "updatedAt": workflow.updated_at,
            "isLocalPublished": workflow.active,
            "owner": owner,
        }

    # ------------------------------------------------------------ push and pull

    def push(self, message: str, wanted: Sequence[tuple[str, str]], *, force: bool = False) -> list[dict[str, Any]]:
        self._check_connected()
        pending = self._pending_locally()
        missing = [f"{kind} {key}" for kind, key in wanted if (kind, key) not in pending]
        if missing:
            raise ApiError(400, f"No pending changes found for: {', '.join(missing)}")
        chosen = {key: pending[key] for key in wanted}
        conflicts = [_shown(changed) for changed in chosen.values() if changed["conflict"]]
        if conflicts and not force:
            raise SourceControlConflictError(conflicts)
        for key in chosen:
            self._local.pop(key, None)
            self._remote.pop(key, None)
            if key[0] == "workflow":
                self._mark_synced(key[1])
        files = [_shown({**changed, "conflict": False, "pushed": True}) for changed in chosen.values()]
        self.commits.append({"id": uuid.uuid4().hex, "message": message, "files": files})
        return files

    def pull(self, *, force: bool = False, auto_publish: str = "none") -> list[dict[str, Any]]:
        self._check_connected()
        local = self._pending_locally()
        files = [{**waiting, "conflict": waiting["conflict"] or key in local} for key, waiting in self._remote.items()]
        if any(waiting["conflict"] for waiting in files) and not force:
            raise SourceControlConflictError([_shown(waiting) for waiting in files])
        self._remote = {}
        for waiting in files:
            self._local.pop((waiting["type"], waiting["id"]), None)
            self._apply(waiting, auto_publish)
        return [_shown({**waiting, "conflict": False}) for waiting in files]

    def _apply(self, waiting: dict[str, Any], auto_publish: str) -> None:
        kind, content = waiting["type"], waiting["content"]
        if kind == "workflow":
            self._apply_workflow(waiting, auto_publish)
        elif kind == "variables":
            for pair in content or ():
                variable = self._variables.named(pair["key"])
                if variable is None:
                    self._variables.create(pair["key"], pair["value"])
                else:
                    variable["value"] = pair["value"]
        elif kind == "tags":
            for tag in content or ():
                if self._tags.find(tag["id"]) is None and self._tags.named(tag["name"]) is None:
                    self._tags.create(tag["name"], tag_id=tag["id"])
        elif kind == "credential" and self._credentials.find(waiting["id"]) is None:
            # A repository never contains secrets, so the imported credential is a stub.
            type_name, project_id = (content or {}).get("type", "httpHeaderAuth"), self._host.personal_project_id
            self._credentials.add(waiting["name"], type_name, {}, project_id, credential_id=waiting["id"])

    def _apply_workflow(self, waiting: dict[str, Any], auto_publish: str) -> None:
        store = self._workflows
        workflow = store.find(waiting["id"])
        if waiting["status"] == "deleted":
            if workflow is not None:
                store.unpublish(workflow)
                workflow.unpublished_by = None
                store.delete(workflow)
        else:
            was_published = workflow is not None and workflow.active
            if workflow is None:
                workflow = store.create(waiting["content"], workflow_id=waiting["id"])
            else:
                store.update(workflow, waiting["content"])
            if auto_publish == "all" or (auto_publish == "published" and was_published):
                try:
                    store.publish(workflow)
                except ApiError as error:
                    waiting["publishingError"] = error.message
        self._mark_synced(waiting["id"])

    def _mark_synced(self, workflow_id: str) -> None:
        workflow = self._workflows.find(workflow_id)
        if workflow is None:
            self._synced.pop(workflow_id, None)
        else:
            self._synced[workflow_id] = _fingerprint(workflow)


def _fingerprint(workflow: Workflow) -> str:
    return f"{workflow.version_id} {workflow.name} {sorted(workflow.settings.items(), key=str)}"


def _shown(changed: Mapping[str, Any]) -> dict[str, Any]:
    return {name: changed[name] for name in _SHOWN if name in changed}
