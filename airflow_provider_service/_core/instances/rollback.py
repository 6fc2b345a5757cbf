"""The rollback of a failed deployment: first the versions that run, then drafts and tags, then created workflows.

Write workflows: drafts first, so that no version that runs changes before the service has accepted all drafts.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._constraints import plain_id
from airflow_provider_service.client._definitions import (
    are_same,
    content,
    is_as_defined,
    running,
    settings_that_stay,
    with_defaults,
)
from airflow_provider_service.client._models import NULL
from airflow_provider_service.client.errors import (
    ServiceConflictError,
    ServiceError,
    ServiceInvalidRequestError,
    ServiceNotFoundError,
    ServiceNotOfferedError,
)
from airflow_provider_service.client.resources._workflows import writable

if TYPE_CHECKING:
    from airflow_provider_service._core.instances.plan import WorkflowChange
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import Workflow


log = logging.getLogger(__name__)

#: Whether this thread rolls a deployment back, which no signal should end half done.
is_rolling_back: ContextVar[bool] = ContextVar("is_rolling_back", default=False)
#: How often, and how long, to wait for the service to release a webhook that another workflow has given up.
RELEASE_PAUSES = 20
RELEASE_PAUSE_SECONDS = 0.25
#: Refusals of an activation that the service may accept once other workflows are restored.
REFUSALS = (ServiceConflictError, ServiceInvalidRequestError)


class Rollback:
    """Records the changes of a deployment before they are made, and rolls them back."""

    def __init__(self, client: Resources, writer: Writer, known_ids: frozenset[str] = frozenset()) -> None:
        self._client, self._writer, self._known_ids = client, writer, known_ids
        self._changes: dict[str, tuple[Workflow, bool]] = {}
        self._created: dict[str, str | None] = {}
        self._sent: dict[str, tuple[Mapping[str, Any], str | None]] = {}
        self._tags: dict[str, str] = {}

    @property
    def names(self) -> list[str]:
        """The names of the workflows that were changed or created."""
        return [before.name for before, _ in self._changes.values()] + list(self._created)

    def note(self, change: WorkflowChange) -> None:
        """Record that an existing workflow is about to be changed."""
        if change.before is not None:
            self.note_workflow(change.before, has_other_tags=change.tags is not None)

    def note_workflow(self, before: Workflow, *, has_other_tags: bool = False) -> None:
        """Record the state of a workflow that is about to be changed."""
        self._changes[before.id] = (before, has_other_tags)

    def note_creation(self, desired: Mapping[str, Any], project_id: str | None) -> None:
        """Record that a workflow is about to be created: the answer with its id may be lost."""
        self._created[desired["name"]], self._sent[desired["name"]] = None, (desired, project_id)

    def note_refused(self, name: str) -> None:
        """Record that the service refused to create a workflow, so that one of this name is somebody else's."""
        del self._created[name]

    def note_created(self, name: str, workflow_id: str) -> None:
        """Record the id of a created workflow."""
        self._created[name] = workflow_id

    def note_tag(self, tag_id: str, name: str) -> None:
        """Record that a tag was created."""
        self._tags[tag_id] = name

    def go(self) -> list[str]:
        """Roll back all changes, as far as possible."""
        left: list[str] = []
        # Callers were changed last; they are rolled back first, so that they never call a missing workflow.
        refused = self._restore_each(reversed(self._changes), left)
        # The service accepts a caller only after the archived or deactivated workflow that it calls is restored.
        refused = self._restore_each(refused, left)
        for name in reversed(self._created):
            self._attempt(left, f"the new workflow {name!r}", partial(self._remove, name))
        # A webhook that a new workflow had taken over becomes free a moment after that workflow is deleted.
        for _ in range(RELEASE_PAUSES):
            if not refused:
                break
            clock().sleep(RELEASE_PAUSE_SECONDS)
            refused = self._restore_each(refused, left)
        for one in refused:
            self._attempt(left, self._named(one), partial(self._restore, *self._changes[one]))
        if self._tags:
            self._remove_tags(left)
        return left

    def _restore_each(self, workflow_ids: Iterable[str], left: list[str]) -> list[str]:
        """Roll back workflows; return those that the service refuses, perhaps because others are not restored yet."""
        refused = []
        for one in workflow_ids:
            try:
                self._attempt(left, self._named(one), partial(self._restore, *self._changes[one]), passing=REFUSALS)
            except REFUSALS:
                refused.append(one)
        return refused

    def _named(self, workflow_id: str) -> str:
        return f"workflow {self._changes[workflow_id][0].name!r}"

    @staticmethod
    def _attempt(
        left: list[str], what: str, step: Callable[[], object], *, passing: tuple[type[ServiceError], ...] = ()
    ) -> None:
        try:
            step()
        except passing:
            raise
        except ServiceError as error:
            left.append(f"{what}: {error}")
        else:
            log.info("Rolled back: %s", what)

    def _restore(self, before: Workflow, has_other_tags: bool) -> None:
        try:
            now = self._client.workflows.get(before.id)
        except ServiceNotFoundError:
            # Only here: in answer to a change, it may mean that a version or a tag no longer exists.
            log.info("Workflow %r was deleted meanwhile", before.name)
            return
        if now.is_archived and not before.is_archived:
            now = self._unarchive(before.id)
        if not before.active and now.active:
            now = self._client.workflows.deactivate(before.id)
        if self._writer.keeps_drafts:
            self._run_again(before, now)
        self._write_again(before)
        if not self._writer.keeps_drafts and before.active:
            self._client.workflows.activate(before.id)
        if has_other_tags:
            self._tag_again(before)
        self._require_same(before, self._client.workflows.get(before.id))

    def _unarchive(self, workflow_id: str) -> Workflow:
        try:
            self._client.workflows.unarchive(workflow_id)
        except ServiceError:
            # If it is no longer archived, the call succeeded and only its answer was lost.
            if self._client.workflows.get(workflow_id).is_archived:
                raise
        return self._client.workflows.get(workflow_id)

    def _run_again(self, before: Workflow, now: Workflow) -> None:
        is_other = not now.active or now.active_version_id != before.active_version_id
        if before.active and is_other:
            self._client.workflows.activate(before.id, version_id=before.active_version_id)

    def _write_again(self, before: Workflow) -> None:
        now = self._client.workflows.get(before.id)
        if self._writer.keeps_drafts and are_same(writable(now), writable(before)):
            return
        settings = with_defaults(before.settings, now.settings)
        content = {"pinData": NULL, **writable(before)} if now.pin_data else writable(before)
        if now.description and not before.description:
            content["description"] = ""
        if now.node_groups and not before.node_groups:
            content["nodeGroups"] = []
        self._writer.write_draft(before.id, {**content, "settings": {**settings, **content["settings"]}})

    def _tag_again(self, before: Workflow) -> None:
        tags = {str(tag.id): tag.name for tag in before.tags or ()}
        try:
            self._client.workflows.update_tags(before.id, list(tags))
        except ServiceNotFoundError:
            existing = {str(tag.id) for tag in self._client.tags.list()}
            self._client.workflows.update_tags(before.id, [one for one in tags if one in existing])
            if gone := [repr(name) for one, name in tags.items() if one not in existing]:
                raise ServiceError(f"tags that it had no longer exist: {', '.join(gone)}") from None

    @staticmethod
    def _require_same(before: Workflow, now: Workflow) -> None:
        is_as_visible = bool(before.is_archived) == bool(now.is_archived)
        same_state = is_as_visible and before.active == now.active and are_same(running(now), running(before))
        if not same_state or not are_same(writable(now), writable(before)):
            raise ServiceError("it differs from what it was before, even though the service accepted every change")
        if kept := settings_that_stay(before.settings, now.settings):
            raise ServiceError(f"the service cannot remove settings that were not set before: {', '.join(kept)}")

    def _remove(self, name: str) -> None:
        workflow_id = self._created[name]
        found = [workflow_id] if workflow_id else self._lost(name)
        for one in found:
            self._writer.delete(one)

    def _remove_tags(self, left: list[str]) -> None:
        try:
            # Not by the name: the service would take one with a comma for several.
            listed = self._client.workflows.list(exclude_pinned_data=True)
            used = {tag.id for one in listed for tag in one.tags or ()}
        except ServiceError as error:
            left.extend(f"the new tag {name!r}: {error}" for name in self._tags.values())
            return
        for tag_id, name in self._tags.items():
            if tag_id in used:
                log.info("The new tag %r stays, because a workflow has it", name)
            else:
                self._attempt(left, f"the new tag {name!r}", partial(self._remove_tag, tag_id))

    def _remove_tag(self, tag_id: str) -> None:
        with suppress(ServiceNotFoundError):
            self._client.tags.delete(tag_id)

    def _lost(self, name: str) -> list[str]:
        """Return the ids of workflows whose creation was not answered: new ones that are still as they were sent."""
        desired, project_id = self._sent[name]
        listed = self._client.workflows.list(name=name, project_id=project_id, exclude_pinned_data=True)
        found = (one for one in listed if not (one.active or one.is_archived) and is_as_defined(one, desired))
        return [one.id for one in found if one.id not in self._known_ids]


#: The service takes a moment to unpublish a workflow, and refuses to delete it until then.
_DELETE_ATTEMPTS = 20
_DELETE_PAUSE_SECONDS = 0.25


class Writer:
    """Writes workflows."""

    def __init__(self, client: Resources) -> None:
        self._client = client
        #: Whether the server separates drafts from the version that runs; an older one runs each change at once.
        self.keeps_drafts = True

    def create(self, desired: Mapping[str, Any], *, project_id: str | None, folder_id: str | None) -> Workflow:
        """Create an inactive workflow."""
        return self._client.workflows.create(**content(desired), project_id=project_id, parent_folder_id=folder_id)

    def write_draft(self, workflow_id: str, desired: Mapping[str, Any]) -> Workflow:
        """Write a draft; on a server without drafts, the change takes effect at once."""

        def write(publish_if_active: bool | None = None) -> Workflow:
            return self._client.workflows.update(
                workflow_id,
                **content(desired),
                description=desired.get("description"),
                publish_if_active=publish_if_active,
            )

        if self.keeps_drafts:
            try:
                return write(publish_if_active=False)
            except ServiceNotOfferedError:
                self.keeps_drafts = False
        return write()

    def delete(self, workflow_id: str) -> None:
        """Delete a workflow, whether it is active or not, unless it no longer exists."""
        try:
            is_active = self._client.workflows.get(workflow_id).active
        except ServiceNotFoundError:
            return
        if is_active:
            self._client.workflows.deactivate(workflow_id)
        for attempt in range(_DELETE_ATTEMPTS):
            try:
                self._client.workflows.delete(workflow_id)
            except ServiceNotFoundError:
                return
            except ServiceConflictError:
                if attempt == _DELETE_ATTEMPTS - 1:
                    raise
                clock().sleep(_DELETE_PAUSE_SECONDS)
            else:
                return


def with_ids(desired: Mapping[str, Any], ids: Mapping[str, str]) -> dict[str, Any]:
    """Return a definition with the tokens in it replaced by the ids that they stand for."""
    text = json.dumps(desired)
    for token, workflow_id in ids.items():
        text = text.replace(token, plain_id(workflow_id))
    done: dict[str, Any] = json.loads(text)
    return done
