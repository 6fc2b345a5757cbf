"""The promise of a deployment: all of it, or nothing, even if the task is killed by a signal.

The service has no transactions: it takes one change of one workflow at a time, and refuses some in the wrong order. So
the order is the machinery.

**Writing** (``apply.py``). No new version runs before the service has accepted everything else:

1. Tags are created; then workflows that leave are archived, and others deactivated, callers first.
2. New workflows are created without content, because their callers need their ids.
3. All drafts and tags are written. A definition that the service refuses is refused here, while the versions that run
   are unchanged. (A server without drafts runs each change at once; ``Writer.keeps_drafts`` tells them apart.)
4. Workflows are activated, which publishes their drafts. One that takes over a webhook is refused until the workflow
   that gave it up has released it, so it is repeated for some seconds.

**Noting.** Every change of a workflow is noted here before it is sent, since the answer may be lost. Right before its
first change, a workflow is read again: if somebody has changed it since the plan, the deployment fails, because it and
its rollback would undo that.

**Rolling back** (``Rollback.go``). In a command, no further signal ends it. The workflows that were changed come first,
in reverse order, so that a caller never calls a missing one. Each is unarchived or deactivated, then gets back the
version that ran, its draft and its tags; then it is read once more and compared. The service may refuse to activate

- a caller before the workflows that it calls are active again: all that are refused are tried again after the others;
- a workflow whose webhook a new workflow has taken: they are tried again after the new ones are deleted, with pauses.

So new workflows are deleted in between. One whose creation was not answered is found by its name, and deleted only if
it is as it was sent, is not active, and is none that the plan knew. New tags go last, unless a workflow has them by
now. What cannot be rolled back does not stop the rest: the error of the deployment lists it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from airflow_provider_service.client._clock import clock
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
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import Workflow


log = logging.getLogger(__name__)

#: Whether this thread rolls a deployment back, which no signal should end half done.
is_rolling_back: ContextVar[bool] = ContextVar("is_rolling_back", default=False)
#: How often, and how long, to wait for the service to release a webhook, or to unpublish what is to be deleted.
RELEASE_PAUSES = 20
RELEASE_PAUSE_SECONDS = 0.25
#: Refusals of an activation that the service may accept once other workflows are restored.
_REFUSALS = (ServiceConflictError, ServiceInvalidRequestError)


class Rollback:
    def __init__(self, client: Resources, writer: Writer, known_ids: frozenset[str]) -> None:
        self._client, self._writer = client, writer
        #: Ids of workflows that existed before, whatever their names are.
        self._known_ids = known_ids
        #: Changed workflows as they were before, and whether their tags change, by id.
        self.changes: dict[str, tuple[Workflow, bool]] = {}
        #: Ids of created workflows, by name; None until the creation is answered.
        self.created: dict[str, str | None] = {}
        #: What was sent to create them, and in which project.
        self.sent: dict[str, tuple[Mapping[str, Any], str | None]] = {}
        #: Names of created tags, by id.
        self.tags: dict[str, str] = {}

    def go(self) -> list[str]:
        """Roll back all changes, as far as possible, and return what could not be rolled back, and why."""
        problems: list[str] = []
        refused = self._restore_each(reversed(self.changes), problems)
        refused = self._restore_each(refused, problems)
        for name in reversed(self.created):
            with _collecting(problems, f"the new workflow {name!r}"):
                created_id = self.created[name]
                for workflow_id in [created_id] if created_id else self._unanswered(name):
                    self._writer.delete(workflow_id)
        for _ in range(RELEASE_PAUSES):
            if not refused:
                break
            clock().sleep(RELEASE_PAUSE_SECONDS)
            refused = self._restore_each(refused, problems)
        self._restore_each(refused, problems, is_last=True)
        if self.tags:
            self._remove_tags(problems)
        return problems

    def _restore_each(self, workflow_ids: Iterable[str], problems: list[str], *, is_last: bool = False) -> list[str]:
        """Roll back workflows; return those that the service refuses, perhaps because others are not restored yet."""
        refused = []
        for workflow_id in workflow_ids:
            before, has_other_tags = self.changes[workflow_id]
            try:
                with _collecting(problems, f"workflow {before.name!r}", passing=() if is_last else _REFUSALS):
                    self._restore(before, has_other_tags)
            except _REFUSALS:
                refused.append(workflow_id)
        return refused

    def _restore(self, before: Workflow, has_other_tags: bool) -> None:
        try:
            now = self._client.workflows.get(before.id)
        except ServiceNotFoundError:
            # Only here: in answer to a change, it may mean that a version or a tag no longer exists.
            log.info("Workflow %r was deleted meanwhile", before.name)
            return
        if now.is_archived and not before.is_archived:
            try:
                self._client.workflows.unarchive(before.id)
            except ServiceError:
                # If it is no longer archived, the call succeeded and only its answer was lost.
                if self._client.workflows.get(before.id).is_archived:
                    raise
            now = self._client.workflows.get(before.id)
        if not before.active and now.active:
            now = self._client.workflows.deactivate(before.id)
        runs_other = not now.active or now.active_version_id != before.active_version_id
        if self._writer.keeps_drafts and before.active and runs_other:
            self._client.workflows.activate(before.id, version_id=before.active_version_id)
        self._write_again(before)
        if not self._writer.keeps_drafts and before.active:
            self._client.workflows.activate(before.id)
        if has_other_tags:
            self._tag_again(before)
        self._require_same(before, self._client.workflows.get(before.id))

    def _write_again(self, before: Workflow) -> None:
        now = self._client.workflows.get(before.id)
        if self._writer.keeps_drafts and are_same(writable(now), writable(before)):
            return
        settings = with_defaults(before.settings, now.settings)
        desired = {"pinData": NULL, **writable(before)} if now.pin_data else writable(before)
        if now.description and not before.description:
            desired["description"] = ""
        if now.node_groups and not before.node_groups:
            desired["nodeGroups"] = []
        self._writer.write_draft(before.id, {**desired, "settings": {**settings, **desired["settings"]}})

    def _tag_again(self, before: Workflow) -> None:
        tags = {str(tag.id): tag.name for tag in before.tags or ()}
        try:
            self._client.workflows.update_tags(before.id, list(tags))
        except ServiceNotFoundError:
            existing = {str(tag.id) for tag in self._client.tags.list()}
            self._client.workflows.update_tags(before.id, [tag_id for tag_id in tags if tag_id in existing])
            if gone := [repr(name) for tag_id, name in tags.items() if tag_id not in existing]:
                raise ServiceError(f"tags that it had no longer exist: {', '.join(gone)}") from None

    @staticmethod
    def _require_same(before: Workflow, now: Workflow) -> None:
        is_as_visible = bool(before.is_archived) == bool(now.is_archived)
        same_state = is_as_visible and before.active == now.active and are_same(running(now), running(before))
        if not same_state or not are_same(writable(now), writable(before)):
            raise ServiceError("it differs from what it was before, even though the service accepted every change")
        if stay := settings_that_stay(before.settings, now.settings):
            raise ServiceError(f"the service cannot remove settings that were not set before: {', '.join(stay)}")

    def _unanswered(self, name: str) -> list[str]:
        """Return the ids of workflows whose creation was not answered: new ones that are still as they were sent."""
        desired, project_id = self.sent[name]
        listed = self._client.workflows.list(name=name, project_id=project_id, exclude_pinned_data=True)
        return [
            workflow.id
            for workflow in listed
            if not (workflow.active or workflow.is_archived)
            and is_as_defined(workflow, desired)
            and workflow.id not in self._known_ids
        ]

    def _remove_tags(self, problems: list[str]) -> None:
        try:
            # Not by the name: the service would take one with a comma for several.
            listed = self._client.workflows.list(exclude_pinned_data=True)
            used = {tag.id for workflow in listed for tag in workflow.tags or ()}
        except ServiceError as error:
            problems.extend(f"the new tag {name!r}: {error}" for name in self.tags.values())
            return
        for tag_id, name in self.tags.items():
            if tag_id in used:
                log.info("The new tag %r stays, because a workflow has it", name)
            else:
                with _collecting(problems, f"the new tag {name!r}"), suppress(ServiceNotFoundError):
                    self._client.tags.delete(tag_id)


@contextmanager
def _collecting(problems: list[str], what: str, *, passing: tuple[type[ServiceError], ...] = ()) -> Iterator[None]:
    """Add an error of the service to the problems, unless it is one to pass on."""
    try:
        yield
    except passing:
        raise
    except ServiceError as error:
        problems.append(f"{what}: {error}")
    else:
        log.info("Rolled back: %s", what)


class Writer:
    """Writes workflows in such a way that no version that runs changes before it is published."""

    def __init__(self, client: Resources) -> None:
        self._client = client
        #: Whether the server separates drafts from the version that runs; an older one runs each change at once.
        self.keeps_drafts = True

    def write_draft(self, workflow_id: str, desired: Mapping[str, Any]) -> Workflow:
        """Write a draft; on a server without drafts, the change takes effect at once."""
        fields = {**content(desired), "description": desired.get("description")}
        if self.keeps_drafts:
            try:
                return self._client.workflows.update(workflow_id, **fields, publish_if_active=False)
            except ServiceNotOfferedError:
                self.keeps_drafts = False
        return self._client.workflows.update(workflow_id, **fields)

    def delete(self, workflow_id: str) -> None:
        try:
            is_active = self._client.workflows.get(workflow_id).active
        except ServiceNotFoundError:
            return
        if is_active:
            self._client.workflows.deactivate(workflow_id)
        for attempt in range(RELEASE_PAUSES):
            try:
                self._client.workflows.delete(workflow_id)
            except ServiceNotFoundError:
                return
            except ServiceConflictError:
                if attempt == RELEASE_PAUSES - 1:
                    raise
                clock().sleep(RELEASE_PAUSE_SECONDS)
            else:
                return
