"""Import: find what would block it, then write the package's contents into the instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_service.simulator.packages.archive import Package
from airflow_provider_service.simulator.validation import ApiError

if TYPE_CHECKING:
    from airflow_provider_service.simulator.state import State
    from airflow_provider_service.simulator.stores.workflows import Workflow

# Form fields with a closed set of values; the first one given is the default.
POLICIES = {
    "workflowConflictPolicy": ("new-version", "fail", "skip"),
    "credentialMatchingMode": ("id-only", "name-and-type", "type-only"),
    "credentialMissingMode": ("create-stub", "must-preexist"),
    "workflowIdPolicy": ("source", "new"),
    "missingNodeTypeMode": ("fail", "import-anyway"),
    "workflowPublishingPolicy": ("preserve-published-state", "match-source", "publish-all", "unpublish-all"),
    "projectConflictPolicy": ("merge", "fail", "overwrite"),
    "folderConflictPolicy": ("merge", "fail", "overwrite"),
    "overwriteDeletionPolicy": ("archive", "hard-delete"),
    "dataTableMatchingMode": ("by-id",),
    "dataTableMissingMode": ("create", "must-preexist", "do-nothing"),
    "dataTableSchemaConflictPolicy": ("keep-existing", "fail"),
    "variableMissingMode": ("create-with-value", "create-stub", "must-preexist", "do-nothing"),
    "variableConflictPolicy": ("keep-existing", "overwrite", "fail"),
    "variableParentPolicy": ("global", "project"),
    "tagMissingMode": ("create", "do-nothing"),
    "tagConflictPolicy": ("skip", "fail", "rename"),
}
_CONFLICTS = ("workflow-conflict", "project-conflict", "folder-conflict", "variable-conflict")


class PackageImport:
    """One import of one package. Nothing is written before everything has been checked."""

    def __init__(
        self,
        state: State,
        package: Package,
        options: Mapping[str, str],
        *,
        credential_bindings: Mapping[str, str],
        project_id: str,
        folder_id: str | None,
    ) -> None:
        self._state = state
        self._entities = package.entities
        self._package = package
        self._policy = {name: options.get(name, values[0]) for name, values in POLICIES.items()}
        self._project_id = project_id
        self._folder_id = folder_id
        self._credentials = {
            key: self._match_credential(key, credential_bindings) for key in package.entities["credentials"]
        }
        self._projects: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        self._tags: dict[str, str] = {}

    def run(self) -> dict[str, Any]:
        """Import the package and return the report.

        :raises ApiError: 409 (a conflict among the issues) or 422, with ``issues``
        """
        issues = [
            *self._workflow_issues(),
            *self._container_issues(),
            *self._credential_issues(),
            *self._variable_issues(),
        ]
        if issues:
            status = 409 if any(issue["type"] in _CONFLICTS for issue in issues) else 422
            text = f"Import blocked: {len(issues)} issue(s) must be resolved before the package can be imported."
            raise ApiError(status, text, issues=issues)
        projects, folders = self._put_projects(), self._put_folders()
        credentials, variables, tags = self._put_credentials(), self._put_variables(), self._put_tags()
        stubs = set(credentials["stubbed"])
        workflows = [self._put_workflow(entity, stubs) for entity in self._entities["workflows"].values()]
        package = self._package
        return {
            "package": {
                "sourceN8nVersion": package.source_version,
                "sourceId": package.source_id,
                "exportedAt": package.exported_at,
            },
            "workflows": workflows,
            "removedWorkflows": [],
            "removedFolders": [],
            "folders": folders,
            "projects": projects,
            "bindings": {
                "workflows": {row["sourceWorkflowId"]: row["localId"] for row in workflows},
                "credentials": {key: value for key, value in self._credentials.items() if value},
            },
            "credentials": credentials,
            "dataTables": {"matched": 0, "created": 0},
            "variables": variables,
            "tags": tags,
        }

    # ------------------------------------------------------------ what blocks it

    def _workflow_issues(self) -> list[dict[str, Any]]:
        if self._policy["workflowConflictPolicy"] != "fail":
            return []
        return [
            {"type": "workflow-conflict", "sourceWorkflowId": key, "existingWorkflowId": key, "name": entity["name"]}
            for key, entity in self._entities["workflows"].items()
            if self._state.workflows.find(key) is not None
        ]

    def _container_issues(self) -> list[dict[str, Any]]:
        stores: dict[str, Any] = {"project": self._state.projects, "folder": self._state.folders}
        return [
            {"type": f"{kind}-conflict", "sourceId": key, "name": entity["name"]}
            for kind, store in stores.items()
            if self._policy[f"{kind}ConflictPolicy"] == "fail"
            for key, entity in self._entities[f"{kind}s"].items()
            if store.find(key) is not None
        ]

    def _credential_issues(self) -> list[dict[str, Any]]:
        if self._policy["credentialMissingMode"] != "must-preexist":
            return []
        return [
            {
                "type": "credential-unresolved",
                "kind": "not_found",
                "sourceId": key,
                "usedByWorkflows": self._users_of_credential(key),
            }
            for key, local in self._credentials.items()
            if local is None
        ]

    def _users_of_credential(self, credential_id: str) -> list[str]:
        return [
            key
            for key, entity in self._entities["workflows"].items()
            if any(
                reference.get("id") == credential_id
                for node in entity["nodes"]
                for reference in (node.get("credentials") or {}).values()
            )
        ]

    def _variable_issues(self) -> list[dict[str, Any]]:
        issues = []
        for key, entity in self._entities["variables"].items():
            known = self._state.variables.named(key, self._variable_place())
            if known is None and self._policy["variableMissingMode"] == "must-preexist":
                issues.append({"type": "variable-unresolved", "name": key})
            differs = known is not None and entity.get("value", known["value"]) != known["value"]
            if differs and self._policy["variableConflictPolicy"] == "fail":
                issues.append({"type": "variable-conflict", "name": key})
        return issues

    def _variable_place(self) -> str | None:
        return self._project_id if self._policy["variableParentPolicy"] == "project" else None

    def _match_credential(self, source_id: str, bindings: Mapping[str, str]) -> str | None:
        wanted, store = self._entities["credentials"][source_id], self._state.credentials
        mode = self._policy["credentialMatchingMode"]
        if source_id in bindings or mode == "id-only":
            found = store.find(bindings.get(source_id, source_id))
            return None if found is None else found["id"]
        for credential in store.all():
            if credential["type"] == wanted["type"] and (mode == "type-only" or credential["name"] == wanted["name"]):
                known: str = credential["id"]
                return known
        return None

    # ------------------------------------------------------------ writing

    def _put_projects(self) -> list[dict[str, Any]]:
        report = []
        for key, entity in self._entities["projects"].items():
            project = self._state.projects.find(key)
            status = "created" if project is None else "skipped"
            if project is None:
                project = self._state.projects.create(entity["name"], self._state.owner_id, project_id=key)
            self._projects[key] = project["id"]
            report.append({"sourceProjectId": key, "localId": key, "name": project["name"], "status": status})
        return report

    def _put_folders(self) -> list[dict[str, Any]]:
        report = []
        for key, entity in self._entities["folders"].items():
            folder = self._state.folders.find(key)
            status = "created" if folder is None else "skipped"
            if folder is None:
                # Parents come first in a package, so their ids are known; a top folder goes to the import's target.
                parent = self._folders.get(entity.get("parentFolderId") or "", self._top_folder(entity))
                folder = self._state.folders.create(self._target_project(entity), entity["name"], parent, folder_id=key)
            self._folders[key] = folder["id"]
            shown = {"localId": folder["id"], "name": folder["name"], "parentFolderId": folder["parentFolderId"]}
            report.append({"sourceFolderId": key, **shown, "status": status})
        return report

    def _target_project(self, entity: Mapping[str, Any]) -> str:
        return self._projects.get(entity.get("projectId") or "", self._project_id)

    def _top_folder(self, entity: Mapping[str, Any]) -> str | None:
        return self._folder_id if self._target_project(entity) == self._project_id else None

    def _put_credentials(self) -> dict[str, list[str]]:
        report: dict[str, list[str]] = {"matched": [], "stubbed": []}
        for key, local in self._credentials.items():
            report["matched" if local else "stubbed"].append(key)
            if local is None:
                entity = self._entities["credentials"][key]
                self._state.credentials.add(entity["name"], entity["type"], {}, self._project_id, credential_id=key)
                self._credentials[key] = key
        return report

    def _put_variables(self) -> dict[str, list[str]]:
        report: dict[str, list[str]] = {
            "matched": [],
            "created": [],
            "stubbed": [],
            "updated": [],
            "missing": [],
        }
        for key, entity in self._entities["variables"].items():
            outcome = self._put_variable(key, entity)
            report[outcome].append(key)
        return report

    def _put_variable(self, key: str, entity: Mapping[str, Any]) -> str:
        place = self._variable_place()
        known = self._state.variables.named(key, place)
        mode = self._policy["variableMissingMode"]
        if known is not None:
            if self._policy["variableConflictPolicy"] == "overwrite" and "value" in entity:
                known["value"] = entity["value"]
                return "updated"
            return "matched"
        if mode == "do-nothing":
            return "missing"
        with_value = mode == "create-with-value" and "value" in entity
        self._state.variables.create(key, entity["value"] if with_value else "", place)
        return "created" if with_value else "stubbed"

    def _put_tags(self) -> dict[str, list[str]]:
        report: dict[str, list[str]] = {
            "matched": [],
            "created": [],
            "renamed": [],
            "reconciled": [],
            "skipped": [],
        }
        for key, entity in self._entities["tags"].items():
            name = entity["name"]
            tag = self._state.tags.find(key) or self._state.tags.named(name)
            if tag is None and self._policy["tagMissingMode"] == "do-nothing":
                report["skipped"].append(name)
                continue
            report["created" if tag is None else "matched"].append(name)
            tag = tag or self._state.tags.create(name, tag_id=key)
            self._tags[key] = tag["id"]
        return report

    def _put_workflow(self, entity: Mapping[str, Any], stubs: set[str]) -> dict[str, Any]:
        store = self._state.workflows
        workflow = store.find(entity["id"])
        publishing: dict[str, Any] = {"state": "unchanged"}
        if workflow is not None and self._policy["workflowConflictPolicy"] == "skip":
            return _report(entity, workflow, publishing, "skipped")
        body = {**entity, "nodes": self._bound(entity["nodes"]), "parentFolderId": self._parent_folder(entity)}
        status = "created" if workflow is None else "updated"
        was_published = workflow is not None and workflow.active
        if workflow is None:
            new_id = None if self._policy["workflowIdPolicy"] == "new" else entity["id"]
            workflow = store.create(body, project_id=self._target_project(entity), workflow_id=new_id)
        else:
            store.update(workflow, body)
        store.set_tags(workflow, [self._tags[key] for key in entity.get("tagIds", ()) if key in self._tags])
        wanted = self._wants_publishing(entity, was_published)
        if wanted is not None:
            publishing = self._publish(workflow, stubs) if wanted else self._unpublish(workflow)
        return _report(entity, workflow, publishing, status)

    def _bound(self, nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The nodes, with the credentials of this instance."""
        bound = []
        for node in nodes:
            references = {
                kind: {**reference, "id": self._credentials.get(reference.get("id")) or reference.get("id")}
                for kind, reference in (node.get("credentials") or {}).items()
            }
            bound.append({**node, "credentials": references} if references else node)
        return bound

    def _parent_folder(self, entity: Mapping[str, Any]) -> str | None:
        return self._folders.get(entity.get("parentFolderId") or "", self._top_folder(entity))

    def _wants_publishing(self, entity: Mapping[str, Any], was_published: bool) -> bool | None:
        policy = self._policy["workflowPublishingPolicy"]
        if policy == "preserve-published-state":
            return True if was_published else None
        if policy == "match-source":
            return entity.get("publishedVersionId") is not None
        return policy == "publish-all"

    def _publish(self, workflow: Workflow, stubs: set[str]) -> dict[str, Any]:
        references = (ref for node in workflow.nodes for ref in (node.get("credentials") or {}).values())
        if any(reference.get("id") in stubs for reference in references):
            return {"state": "blocked", "blockedReason": "stub-credential"}
        try:
            self._state.workflows.publish(workflow)
        except ApiError as error:
            return {"state": "failed", "error": error.message}
        return {"state": "published"}

    def _unpublish(self, workflow: Workflow) -> dict[str, Any]:
        if not workflow.active:
            return {"state": "unchanged"}
        self._state.workflows.unpublish(workflow)
        return {"state": "unpublished"}


def _report(entity: Mapping[str, Any], workflow: Workflow, publishing: dict[str, Any], status: str) -> dict[str, Any]:
    return {
        "sourceWorkflowId": entity["id"],
        "localId": workflow.id,
        "name": workflow.name,
        "projectId": workflow.project_id,
        "parentFolderId": workflow.parent_folder_id,
        "activeVersionId": workflow.active_version.version_id if workflow.active_version else None,
        "isArchived": workflow.is_archived,
        "publishing": publishing,
        "status": status,
    }
