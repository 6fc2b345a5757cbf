"""Workflows: their drafts and versions, publishing, their live webhooks, and their tags."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from airflow_provider_service.simulator._engine.engine import Engine
from airflow_provider_service.simulator._engine.nodes import WEBHOOK
from airflow_provider_service.simulator._engine.run import Callee, Snapshot, called_workflows
from airflow_provider_service.simulator._host import Host
from airflow_provider_service.simulator._stores.credentials import CredentialStore
from airflow_provider_service.simulator._stores.projects import ProjectStore, UserStore
from airflow_provider_service.simulator._stores.publishing import NodeTypes
from airflow_provider_service.simulator._validation import ApiError, is_at_least

# Attributes of a workflow that a request's body sets, by their key in the body.
_WRITABLE = {
    "name": "name",
    "description": "description",
    "nodes": "nodes",
    "connections": "connections",
    "nodeGroups": "node_groups",
    "staticData": "static_data",
    "pinData": "pin_data",
    "parentFolderId": "parent_folder_id",
}
_UNSET = {"errorWorkflow": "DEFAULT", "timezone": "DEFAULT", "executionTimeout": -1}


@dataclass(eq=False)
class Version:
    version_id: str
    workflow_id: str
    nodes: list[dict[str, Any]]
    connections: Mapping[str, Any]
    node_groups: list[Any]
    authors: str
    created_at: str
    name: str | None = None
    description: str | None = None
    publish_history: list[dict[str, Any]] = field(default_factory=list)


@dataclass(eq=False)
class Workflow:
    """A workflow. Its lists and dicts are replaced when it changes, never changed in place, because runs keep them."""

    id: str
    name: str
    nodes: list[dict[str, Any]]
    connections: Mapping[str, Any]
    settings: dict[str, Any]
    project_id: str
    created_at: str
    updated_at: str
    shared_at: str
    version_id: str = ""
    version_counter: int = 1
    node_groups: list[Any] = field(default_factory=list)
    description: str | None = None
    static_data: Any = None
    pin_data: Any = None
    parent_folder_id: str | None = None
    is_archived: bool = False
    active_version: Version | None = None
    live_version: Version | None = None  # follows the active version a little later
    versions: dict[str, Version] = field(default_factory=dict)  # oldest first
    tag_ids: list[str] = field(default_factory=list)
    trigger_count: int = 0  # stays as it was when the workflow was last published
    unpublished_by: datetime | None = None  # until then its webhooks are being taken down

    @property
    def active(self) -> bool:
        return self.active_version is not None

    def snapshot(self, version: Version | None = None) -> Snapshot:
        source = version or self
        return Snapshot(
            self.id, self.name, source.nodes, source.connections, self.settings, source.node_groups, source.version_id
        )


class WorkflowStore:
    def __init__(
        self,
        host: Host,
        engine: Engine,
        users: UserStore,
        projects: ProjectStore,
        tags: TagStore,
        credentials: CredentialStore,
        node_types: NodeTypes,
    ) -> None:
        self._host = host
        self._node_types = node_types
        self._credentials = credentials
        self._engine = engine
        self._users = users
        self._projects = projects
        self._tags = tags
        self._workflows: dict[str, Workflow] = {}
        self.webhooks = WebhookRegistry()
        engine.find_callee = self._callee

    def all(self) -> Sequence[Workflow]:
        """Every workflow by id, an order that does not depend on age or name."""
        return sorted(self._workflows.values(), key=lambda workflow: workflow.id)

    def find(self, workflow_id: str) -> Workflow | None:
        return self._workflows.get(workflow_id)

    def get(self, workflow_id: str, *, missing: str = "Not Found") -> Workflow:
        workflow = self._workflows.get(workflow_id)
        if workflow is None:
            raise ApiError(404, missing)
        return workflow

    def _callee(self, workflow_id: str) -> Callee | None:
        """A workflow as another one starts it: the version that has gone live, or, before 2.0, the draft."""
        workflow = self._workflows.get(workflow_id)
        if workflow is None:
            return None
        version = workflow.live_version if workflow.active else None
        if not is_at_least(self._host.version, "2.0"):
            version = workflow.versions[workflow.version_id]
        return None if version is None else Callee(workflow.snapshot(version), workflow.project_id)

    # ------------------------------------------------------------ drafts

    def create(
        self, body: Mapping[str, Any], *, project_id: str | None = None, workflow_id: str | None = None
    ) -> Workflow:
        now = self._host.stamp()
        project_id = project_id or self._host.personal_project_id
        workflow = Workflow(
            id=workflow_id or self._host.new_id(),
            name=body["name"],
            nodes=self._filled(body["nodes"], project_id),
            connections=body["connections"],
            settings=self._stored(body.get("settings") or {}),
            project_id=project_id,
            created_at=now,
            updated_at=now,
            shared_at=now,
            node_groups=body.get("nodeGroups") or [],
            static_data=_read(body.get("staticData")),
            pin_data=body.get("pinData"),
            parent_folder_id=body.get("parentFolderId"),
        )
        self._new_version(workflow)
        self._workflows[workflow.id] = workflow
        return workflow

    def update(self, workflow: Workflow, body: Mapping[str, Any]) -> None:
        """Replace the draft; settings are merged, and only changed nodes or connections create a new version."""
        before = (workflow.nodes, workflow.connections)
        for key, attribute in _WRITABLE.items():
            if key in body:
                setattr(workflow, attribute, _read(body[key]) if key == "staticData" else body[key])
        if "nodes" in body:
            workflow.nodes = self._filled(workflow.nodes, workflow.project_id)
        settings = {**workflow.settings, **self._stored(body.get("settings") or {})}
        # A quirk: an update, but not a creation, drops a setting whose value says that it is not set.
        workflow.settings = {key: value for key, value in settings.items() if _UNSET.get(key) != value}
        if (workflow.nodes, workflow.connections) != before:
            self._new_version(workflow)
        self._touch(workflow)

    def _filled(self, nodes: Sequence[Mapping[str, Any]], project_id: str) -> list[dict[str, Any]]:
        return self._credentials.found_for(list(map(self._with_ids, nodes)), project_id)

    def _with_ids(self, node: Mapping[str, Any]) -> dict[str, Any]:
        """The node with the ids that it lacks, new ones each time; older versions accept nodes without a name."""
        filled = {"name": node["type"].rpartition(".")[2], **node}
        filled["id"] = filled.get("id") or str(uuid.uuid4())
        if self._node_types.has_webhooks(filled) and not filled.get("webhookId"):
            filled["webhookId"] = str(uuid.uuid4())
        return filled

    def _stored(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings without those that the service accepts but does not store."""
        dropped = {"binaryMode", "credentialResolverId", *(() if self._host.licensed else ("redactionPolicy",))}
        return {key: value for key, value in settings.items() if key not in dropped}

    def _touch(self, workflow: Workflow) -> None:
        workflow.version_counter += 1
        workflow.updated_at = self._host.stamp()

    def _new_version(self, workflow: Workflow) -> None:
        version = Version(
            version_id=str(uuid.uuid4()),
            workflow_id=workflow.id,
            nodes=workflow.nodes,
            connections=workflow.connections,
            node_groups=workflow.node_groups,
            authors=self._users.owner_name,
            created_at=self._host.stamp(),
        )
        workflow.versions[version.version_id] = version
        workflow.version_id = version.version_id

    def set_tags(self, workflow: Workflow, tag_ids: Sequence[str]) -> None:
        if any(self._tags.find(tag_id) is None for tag_id in tag_ids):
            raise ApiError(404, "Some tags not found")
        workflow.tag_ids = list(dict.fromkeys(tag_ids))

    def tags_of(self, workflow: Workflow) -> list[dict[str, Any]]:
        tags = map(self._tags.find, workflow.tag_ids)
        return [tag for tag in tags if tag is not None]

    def transfer(self, workflow: Workflow, project_id: str) -> None:
        """Move a workflow to another project; it leaves its folder."""
        if self._projects.find(project_id) is None:
            text = f'Could not find project with the id "{project_id}". '
            raise ApiError(404, text + "Make sure you have the permission to create workflows in it.")
        if workflow.project_id == project_id:
            raise ApiError(400, "You can't transfer a workflow into the same destination it already belongs to.")
        workflow.project_id = project_id
        workflow.parent_folder_id = None
        workflow.shared_at = self._host.stamp()

    def archive(self, workflow: Workflow) -> None:
        if workflow.is_archived:
            return
        self.unpublish(workflow)
        workflow.is_archived = True
        self._new_version(workflow)
        self._touch(workflow)

    def unarchive(self, workflow: Workflow) -> None:
        """Restore an archived workflow; it stays inactive."""
        if not workflow.is_archived:
            raise ApiError(400, "Workflow is not archived.")
        workflow.is_archived = False
        self._new_version(workflow)
        self._touch(workflow)

    def delete(self, workflow: Workflow) -> None:
        if workflow.active:
            raise ApiError(409, "Cannot delete a published workflow. Unpublish it before deleting.")
        if workflow.unpublished_by is not None and self._host.clock.now() < workflow.unpublished_by:
            raise ApiError(409, "Workflow is still being unpublished. Please try again in a few moments.")
        self._drop(workflow)

    def _drop(self, workflow: Workflow) -> None:
        self.webhooks.remove(workflow.id)
        del self._workflows[workflow.id]
        self._engine.remove_workflow(workflow.id)

    def delete_project(self, project_id: str) -> None:
        for workflow in self.all():
            if workflow.project_id == project_id:
                self._drop(workflow)

    # ------------------------------------------------------------ publishing

    def publish(
        self,
        workflow: Workflow,
        version_id: str | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        delay: float | None = None,
    ) -> None:
        """Publish a version, by default that of the draft; its webhooks go live ``delay`` seconds later."""
        if workflow.is_archived:
            raise ApiError(400, "Cannot activate an archived workflow.")
        version = workflow.versions.get(version_id or workflow.version_id)
        if version is None:
            raise ApiError(404, "Version not found")
        self._node_types.require_publishable(version.nodes, version.connections)
        self._require_published_callees(workflow, version)
        self._host.settle()
        if self.webhooks.conflicts(workflow.id, version.nodes):
            raise ApiError(409, "There is a conflict with one of the webhooks.")
        version.name = version.name if name is None else name
        version.description = version.description if description is None else description
        if workflow.active_version is version:
            return
        workflow.active_version = version
        workflow.unpublished_by = None
        self._record_publishing(version, "activated")
        self._touch(workflow)
        count = self._node_types.count_triggers(version.nodes)
        if not is_at_least(self._host.version, "2.41"):
            workflow.trigger_count = count

        def go_live(_moment: datetime) -> None:
            # It may have been unpublished or published again in the meantime.
            if workflow.active_version is version and workflow.id in self._workflows:
                workflow.live_version, workflow.trigger_count = version, count
                self.webhooks.register(workflow.id, version.version_id, version.nodes)

        self._host.schedule.at(self._in(self._host.publish_delay if delay is None else delay), go_live)

    def _in(self, seconds: float) -> datetime:
        return self._host.clock.now() + timedelta(seconds=seconds)

    def _require_published_callees(self, workflow: Workflow, version: Version) -> None:
        faults = []
        for node, called_id in called_workflows(version.nodes):
            called = self._workflows.get(called_id)
            if called is workflow or (called is not None and called.active):
                continue
            named = f' ("{called.name}")' if called else ""
            faults.append(f'Node "{node}" references workflow {called_id}{named} which is not published')
        if faults:
            text = f"Cannot publish workflow: {'; '.join(faults)}."
            raise ApiError(400, f"{text} Please publish all referenced sub-workflows first.")

    def unpublish(self, workflow: Workflow) -> None:
        """Unpublish a workflow; its webhooks stop working a little later."""
        version = workflow.active_version
        if version is None:
            return
        workflow.active_version = None
        workflow.unpublished_by = self._in(self._host.publish_delay)
        self._record_publishing(version, "deactivated")
        self._touch(workflow)

        def go_down(_moment: datetime) -> None:
            if not workflow.active:
                workflow.live_version = None
                self.webhooks.remove(workflow.id)

        self._host.schedule.at(self._in(self._host.publish_delay), go_down)

    def _record_publishing(self, version: Version, event: str) -> None:
        versions = self._workflows[version.workflow_id].versions.values()
        version.publish_history.append(
            {
                "id": 1 + sum(len(each.publish_history) for each in versions),
                "workflowId": version.workflow_id,
                "versionId": version.version_id,
                "event": event,
                "userId": self._host.owner_id,
                "createdAt": self._host.stamp(),
            }
        )


def _read(static_data: Any) -> dict[str, Any] | None:
    """Static data as the service keeps it: an object, which may be sent as text; anything else is dropped."""
    read = json.loads(static_data) if isinstance(static_data, str) else static_data
    return read if isinstance(read, dict) else None


# ---------------------------------------------------------------- live webhooks


@dataclass(frozen=True)
class LiveWebhook:
    """``output`` is the node's output for the method, ``params`` are those in the path of a call."""

    workflow_id: str
    version_id: str
    node: dict[str, Any]
    output: int = 0
    params: dict[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The path below ``/webhook/`` that the editor shows; with its parameters by name."""
        path = _path(self.node)
        return f"{self.node['webhookId']}/{path}" if _has_parameters(path) else path


class WebhookRegistry:
    def __init__(self) -> None:
        self._live: dict[tuple[str, str], LiveWebhook] = {}

    def find(self, method: str, path: str) -> LiveWebhook | None:
        # A quirk: a path with parameters also answers literally, and then has no parameters.
        return self._live.get((method, path)) or self._by_webhook_id(path, method)

    def methods(self, path: str) -> list[str]:
        fixed = sorted(method for method, live_path in self._live if live_path == path)
        return fixed or [method for method, _ in self._live if self._by_webhook_id(path, method)][:1]

    def _by_webhook_id(self, path: str, method: str) -> LiveWebhook | None:
        """The webhook with parameters that answers: the one with most of the call's segments, in any order."""
        webhook_id, *segments = path.split("/")
        best, most = None, -1
        for (taken, template), live in self._live.items():
            parts = template.split("/")
            fixed = [part for part in parts if not part.startswith(":")]
            is_meant = taken == method and live.node.get("webhookId") == webhook_id and _has_parameters(template)
            if is_meant and len(parts) == len(segments) and set(fixed) <= set(segments) and len(fixed) > most:
                pairs = zip(parts, segments, strict=True)
                params = {part[1:]: segment for part, segment in pairs if part.startswith(":")}
                best, most = replace(live, params=params), len(fixed)
        return best

    def conflicts(self, workflow_id: str, nodes: Sequence[dict[str, Any]]) -> bool:
        """Whether another live workflow answers one of these nodes' webhooks, by a path without parameters."""
        return any(not _has_parameters(path) for _, path in self._taken(workflow_id, nodes))

    def _taken(self, workflow_id: str, nodes: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
        keys = [key for node in nodes for key in _keys(node)]
        return [key for key in keys if key in self._live and self._live[key].workflow_id != workflow_id]

    def register(self, workflow_id: str, version_id: str, nodes: Sequence[dict[str, Any]]) -> None:
        """Replace the workflow's webhooks. If another workflow has one of them, none goes live, as in the service."""
        self.remove(workflow_id)
        if self._taken(workflow_id, nodes):
            return
        for node in nodes:
            for output, key in enumerate(_keys(node)):
                self._live[key] = LiveWebhook(workflow_id, version_id, node, output)

    def remove(self, workflow_id: str) -> None:
        self._live = {key: live for key, live in self._live.items() if live.workflow_id != workflow_id}


def _keys(node: dict[str, Any]) -> list[tuple[str, str]]:
    if node["type"] != WEBHOOK or node.get("disabled"):
        return []
    parameters = node.get("parameters") or {}
    methods = parameters.get("httpMethod", ["GET", "POST"] if parameters.get("multipleMethods") else "GET")
    return [(method, _path(node)) for method in (methods if isinstance(methods, list) else [methods])]


def _path(node: dict[str, Any]) -> str:
    return str((node.get("parameters") or {}).get("path") or node.get("webhookId", "")).strip("/")


def _has_parameters(path: str) -> bool:
    return any(part.startswith(":") for part in path.split("/"))


# ---------------------------------------------------------------- tags


class TagStore:
    """Tags in creation order; names are unique and case-sensitive."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._tags: dict[str, dict[str, Any]] = {}

    def all(self) -> Sequence[dict[str, Any]]:
        return list(self._tags.values())

    def find(self, tag_id: str) -> dict[str, Any] | None:
        return self._tags.get(tag_id)

    def named(self, name: str) -> dict[str, Any] | None:
        return next((tag for tag in self._tags.values() if tag["name"] == name), None)

    def get(self, tag_id: str) -> dict[str, Any]:
        tag = self._tags.get(tag_id)
        if tag is None:
            raise ApiError(404, "Not Found")
        return tag

    def create(self, name: str, *, tag_id: str | None = None) -> dict[str, Any]:
        name = self._check_name(name)
        now = self._host.stamp()
        tag = {"id": tag_id or self._host.new_id(), "name": name, "createdAt": now, "updatedAt": now}
        self._tags[tag["id"]] = tag
        return tag

    def rename(self, tag_id: str, name: str) -> bool:
        tag = self.get(tag_id)
        name = self._check_name(name, besides=tag_id)
        if name == tag["name"]:
            return False
        tag.update(name=name, updatedAt=self._host.stamp())
        return True

    def delete(self, tag_id: str) -> dict[str, Any]:
        return self._tags.pop(self.get(tag_id)["id"])

    def _check_name(self, name: str, *, besides: str | None = None) -> str:
        name = name.strip()
        holder = self.named(name)
        if not 0 < len(name) <= 24 or (holder is not None and holder["id"] != besides):
            raise ApiError(409, "Tag already exists")
        return name
