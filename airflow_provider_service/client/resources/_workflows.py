"""Workflows, their history, versions and tags."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from airflow_provider_service.client._http.paging import follow_cursor
from airflow_provider_service.client._models import Null, Number, ServiceModel, Timestamp
from airflow_provider_service.client.resources._base import Resource, references, require, require_id, without_none
from airflow_provider_service.client.resources._tags import Tag

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
    """Reduce a workflow to the fields that an update accepts, by their names on the wire."""
    wire = workflow.to_wire() if isinstance(workflow, Workflow) else workflow
    settings = wire.get("settings") or {}
    return {
        **{name: wire[name] for name in _WRITABLE if wire.get(name) is not None},
        # The service returns DEFAULT but does not accept it; a setting that is left out stays as it is.
        "settings": {name: value for name, value in settings.items() if value != "DEFAULT"},
    }


class Workflows(Resource):
    """Workflows. The API has no call that runs one: see ``run_workflow`` of the hook, ``webhooks`` and ``mcp``."""

    def list(
        self,
        *,
        active: bool | None = None,
        tags: str | Sequence[str] | None = None,
        name: str | None = None,
        project_id: str | None = None,
        exclude_pinned_data: bool | None = None,
        offset: int | None = None,
        limit: int | None = None,
    ) -> Iterator[Workflow]:
        """Iterate over workflows, archived ones included, in no useful order: ``GET /workflows``.

        :param active: only those that are published (True) or not published (False).
        :param tags: only those that have all tags of these names; an empty list demands none. The service takes a name
            with a comma for several, and services before 2.39 ignore all of them if a project is given too.
        :param name: only those whose name contains this text, in upper or lower case.
        :param project_id: only those of the project; an unknown project has none.
        :param exclude_pinned_data: leave out the nodes' pinned data.
        :param offset: number of workflows to skip.
        :param limit: maximum number of workflows; None for all.
        :raises ServiceInputError: a tag, the name or the project is empty.
        """
        for tag in tags.split(",") if isinstance(tags, str) else tags or ():
            require_id("tags", tag)
        require_id("project_id", project_id)
        require(not isinstance(name, str) or bool(name.strip()), "name must not be empty")
        query = {
            "active": active,
            "tags": tags if tags is None or isinstance(tags, str) else ",".join(tags),
            "name": name,
            "projectId": project_id,
            "excludePinnedData": exclude_pinned_data,
        }
        follow = partial(follow_cursor, offset=offset)
        return self._pages(Workflow, "/workflows", scope="workflow:list", query=query, limit=limit, follow=follow)

    def create(
        self,
        name: str,
        nodes: Sequence[Mapping[str, Any]],
        connections: Mapping[str, Any],
        settings: Mapping[str, Any],
        *,
        static_data: Mapping[str, Any] | str | None = None,
        pin_data: Mapping[str, Any] | None = None,
        node_groups: Sequence[Mapping[str, Any]] | None = None,
        shared: Sequence[Mapping[str, Any]] | None = None,
        project_id: str | None = None,
        parent_folder_id: str | None = None,
    ) -> Workflow:
        """Create an inactive workflow: ``POST /workflows``. Not safe to repeat: names are not unique.

        :param name: 1 to 128 characters.
        :param nodes: each needs ``type`` and ``position``.
        :param connections: connections by the name of the source node.
        :param settings: settings by name; ``{}`` for the defaults.
        :param static_data: data that is kept between executions.
        :param pin_data: pinned data by node.
        :param node_groups: groups of nodes, as the service returns them.
        :param shared: accepted and ignored by the server.
        :param project_id: project to create it in, by default the personal project of the key's user.
        :param parent_folder_id: folder to create it in, by default the project's root.
        :raises ServiceInvalidRequestError: the server does not accept the structure, a key or a setting.
        :raises ServiceNotFoundError: no such project or folder.
        """
        body = without_none(
            name=name,
            nodes=nodes,
            connections=connections,
            settings=settings,
            staticData=static_data,
            pinData=pin_data,
            nodeGroups=node_groups,
            shared=shared,
            projectId=project_id,
            parentFolderId=parent_folder_id,
        )
        return self._call(Workflow, "POST", "/workflows", scope="workflow:create", body=body)

    def get(self, workflow_id: str, *, exclude_pinned_data: bool | None = None) -> Workflow:
        """Read a workflow: ``GET /workflows/{workflowId}``.

        :param exclude_pinned_data: leave out the nodes' pinned data.
        :raises ServiceNotFoundError: no such workflow.
        """
        query = {"excludePinnedData": exclude_pinned_data}
        return self._call(Workflow, "GET", "/workflows/{}", workflow_id, scope="workflow:read", query=query)

    def update(
        self,
        workflow_id: str,
        name: str,
        nodes: Sequence[Mapping[str, Any]],
        connections: Mapping[str, Any],
        settings: Mapping[str, Any],
        *,
        description: str | None = None,
        static_data: Mapping[str, Any] | str | Null | None = None,
        pin_data: Mapping[str, Any] | Null | None = None,
        node_groups: Sequence[Mapping[str, Any]] | None = None,
        shared: Sequence[Mapping[str, Any]] | None = None,
        parent_folder_id: str | Null | None = None,
        publish_if_active: bool | None = None,
    ) -> Workflow:
        """Replace nodes and connections, and merge settings: ``PUT /workflows/{workflowId}``. Safe to repeat.

        :param settings: settings to change; the others stay as they are.
        :param description: the new description; an empty one removes it.
        :param static_data: data kept between executions; NULL removes it.
        :param pin_data: pinned data by node; NULL removes it.
        :param node_groups: groups of nodes, as the service returns them.
        :param shared: accepted and ignored by the server.
        :param parent_folder_id: folder to move it to; NULL for the project's root.
        :param publish_if_active: whether an active workflow runs the new version at once; the server's default is yes.
        :raises ServiceMissingScopeError: it is active and the key lacks ``workflow:activate``; the change is saved as
            the draft, but is not live.
        :raises ServiceInvalidRequestError: the workflow is archived, or a key is not accepted.
        :raises ServiceNotFoundError: no such workflow.
        """
        body = without_none(
            name=name,
            nodes=nodes,
            connections=connections,
            settings=settings,
            description=description,
            staticData=static_data,
            pinData=pin_data,
            nodeGroups=node_groups,
            shared=shared,
            parentFolderId=parent_folder_id,
        )
        query = {"publishIfActive": publish_if_active}
        return self._call(
            Workflow, "PUT", "/workflows/{}", workflow_id, scope="workflow:update", query=query, body=body
        )

    def delete(self, workflow_id: str) -> Workflow:
        """Delete a workflow and its executions: ``DELETE /workflows/{workflowId}``.

        Safe to repeat, but if an answer is lost, the automatic repeat raises ``ServiceNotFoundError`` although the
        object has been deleted.

        :raises ServiceConflictError: it is published, or was unpublished only just now.
        :raises ServiceNotFoundError: no such workflow.
        """
        return self._call(Workflow, "DELETE", "/workflows/{}", workflow_id, scope="workflow:delete")

    def archive(self, workflow_id: str) -> Workflow:
        """Unpublish and archive a workflow: ``POST /workflows/{workflowId}/archive``. Safe to repeat.

        :raises ServiceNotFoundError: no such workflow.
        """
        return self._call(
            Workflow, "POST", "/workflows/{}/archive", workflow_id, scope="workflow:delete", repeatable=True
        )

    def unarchive(self, workflow_id: str) -> Workflow:
        """Restore an archived workflow, inactive: ``POST /workflows/{workflowId}/unarchive``.

        Not safe to repeat: a second call is refused.

        :raises ServiceInvalidRequestError: it is not archived.
        """
        return self._call(Workflow, "POST", "/workflows/{}/unarchive", workflow_id, scope="workflow:delete")

    def publish(
        self,
        workflow_id: str,
        *,
        version_id: str | None = None,
        name: str | None = None,
        description: str | None = None,
    ) -> Workflow:
        """Publish a version: ``POST /workflows/{workflowId}/publish``. Safe to repeat.

        The webhook goes live a fraction of a second after the answer.

        :param version_id: version to publish, by default the current draft.
        :param name: name to give the version.
        :param description: description to give the version.
        :raises ServiceInvalidRequestError: it has no trigger, or is archived.
        :raises ServiceConflictError: another workflow uses one of its webhooks.
        :raises ServiceNotFoundError: no such version, or no such workflow for this key.
        """
        return self._publish("/workflows/{}/publish", workflow_id, version_id, name, description)

    def unpublish(self, workflow_id: str) -> Workflow:
        """Stop a workflow's triggers: ``POST /workflows/{workflowId}/unpublish``. Safe to repeat.

        :raises ServiceNotFoundError: no such workflow for this key.
        """
        return self._call(
            Workflow, "POST", "/workflows/{}/unpublish", workflow_id, scope="workflow:deactivate", repeatable=True
        )

    def activate(
        self,
        workflow_id: str,
        *,
        version_id: str | None = None,
        name: str | None = None,
        description: str | None = None,
    ) -> Workflow:
        """Publish under the older name, which every server knows: ``POST /workflows/{workflowId}/activate``.

        Otherwise the same as :meth:`publish`.
        """
        return self._publish("/workflows/{}/activate", workflow_id, version_id, name, description)

    def deactivate(self, workflow_id: str) -> Workflow:
        """Unpublish under the older name, which every server knows: ``POST /workflows/{workflowId}/deactivate``.

        Otherwise the same as :meth:`unpublish`.
        """
        return self._call(
            Workflow, "POST", "/workflows/{}/deactivate", workflow_id, scope="workflow:deactivate", repeatable=True
        )

    def transfer(self, workflow_id: str, destination_project_id: str) -> None:
        """Move a workflow to another project: ``PUT /workflows/{workflowId}/transfer``.

        Safe to repeat, but if an answer is lost, the automatic repeat raises ``ServiceInvalidRequestError`` although it
        has been moved.

        :raises ServiceInvalidRequestError: it is already in that project.
        :raises ServiceNotFoundError: no such workflow or project.
        """
        body = {"destinationProjectId": destination_project_id}
        self._run("PUT", "/workflows/{}/transfer", workflow_id, scope="workflow:move", body=body)

    def list_history(self, workflow_id: str, *, limit: int | None = None) -> Iterator[WorkflowVersion]:
        """Iterate over the versions without their nodes, newest first: ``GET /workflows/{workflowId}/history``.

        :param limit: maximum number of versions; None for all.
        :raises ServiceNotFoundError: no such workflow.
        """
        return self._pages(WorkflowVersion, "/workflows/{}/history", workflow_id, scope="workflow:read", limit=limit)

    def get_version(self, workflow_id: str, version_id: str) -> WorkflowVersion:
        """Read a version: ``GET /workflows/{workflowId}/versions/{workflowVersionId}``.

        :raises ServiceNotFoundError: no such version.
        """
        return self._call(
            WorkflowVersion, "GET", "/workflows/{}/versions/{}", workflow_id, version_id, scope="workflow:read"
        )

    def get_version_deprecated(self, workflow_id: str, version_id: str) -> WorkflowVersion:
        """Read a version at its older address: ``GET /workflows/{id}/{versionId}``. Prefer :meth:`get_version`.

        :raises ServiceNotFoundError: no such version.
        """
        return self._call(WorkflowVersion, "GET", "/workflows/{}/{}", workflow_id, version_id, scope="workflow:read")

    def list_tags(self, workflow_id: str) -> builtins.list[Tag]:
        """Read the tags of a workflow: ``GET /workflows/{workflowId}/tags``.

        :raises ServiceNotFoundError: no such workflow.
        """
        return self._call(builtins.list[Tag], "GET", "/workflows/{}/tags", workflow_id, scope="workflowTags:list")

    def update_tags(self, workflow_id: str, tag_ids: Sequence[str]) -> builtins.list[Tag]:
        """Replace the tags of a workflow: ``PUT /workflows/{workflowId}/tags``. Safe to repeat.

        :param tag_ids: ids of all the tags that it should have; an empty list removes all.
        :raises ServiceNotFoundError: no such workflow, or a tag that does not exist.
        """
        body = references(tag_ids)
        return self._call(
            builtins.list[Tag], "PUT", "/workflows/{}/tags", workflow_id, scope="workflowTags:update", body=body
        )

    def _publish(
        self, path: str, workflow_id: str, version_id: str | None, name: str | None, description: str | None
    ) -> Workflow:
        body = without_none(versionId=version_id, name=name, description=description) or None
        return self._call(Workflow, "POST", path, workflow_id, scope="workflow:activate", body=body, repeatable=True)
