"""Carry out a plan: all of it or nothing.

A deployment by a task or a command: make the plan, carry it out unless it is a preview, and return the result.

The report on a plan: the changes of a deployment, workflow by workflow.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.instances.plan import UNCHANGED
from airflow_provider_service._core.instances.rollback import (
    RELEASE_PAUSE_SECONDS,
    RELEASE_PAUSES,
    Rollback,
    Writer,
    is_rolling_back,
    with_ids,
)
from airflow_provider_service._core.reports.report import WRITTEN_FIRST, Figure, Listing, Report, Table
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._lookup import create_tag
from airflow_provider_service.client._webhook_conflicts import with_holder
from airflow_provider_service.client.errors import ServiceConflictError, ServiceDeploymentError, ServiceError
from airflow_provider_service.client.resources._workflows import writable

if TYPE_CHECKING:
    from airflow_provider_service._core.instances.plan import DeploymentPlan, DeploymentTarget, WorkflowChange
    from airflow_provider_service.client.models import Workflow


log = logging.getLogger(__name__)


def apply_plan(plan: DeploymentPlan, target: DeploymentTarget) -> dict[str, str]:
    """Carry out a plan. If anything fails, all changes are rolled back."""
    return _Deployment(plan, target).carry_out()


class _Deployment:
    def __init__(self, plan: DeploymentPlan, target: DeploymentTarget) -> None:
        self._plan, self._target = plan, target
        self._client = target.client
        self._writer = Writer(target.client)
        existing = frozenset(one.workflow_id for one in plan.every if one.before)
        self._rollback = Rollback(target.client, self._writer, existing.union(target.workflow_ids.values()))
        self._begun: set[str] = set()
        self._versions: dict[str, str | None] = {}
        self._tag_ids: dict[str, str] = {}
        self._step = "starting"
        #: Ids by the tokens that stand for them in definitions; the id of an existing workflow stands for itself.
        self._ids = {one.workflow_id: one.workflow_id for one in plan.changes if one.before}

    def carry_out(self) -> dict[str, str]:
        try:
            self._change_all()
        # Also if the task is killed: a deployment must not remain half done.
        except BaseException as error:
            # Before anything else: the next signal may follow the first at once.
            before = is_rolling_back.set(True)
            try:
                self._go_back(error)
            finally:
                is_rolling_back.reset(before)
            raise
        return {one.name: self._ids[one.workflow_id] for one in self._plan.changes}

    def _change_all(self) -> None:
        self._create_tags()
        for change in self._plan.leaving:
            self._archive(change)
        for change in reversed(self._plan.changed):
            if "deactivate" in change.actions:
                self._deactivate(change)
        for change in self._plan.changed:
            if change.before is None:
                self._create(change)
        for change in self._plan.changed:
            if change.desired:
                self._write(change)
            if change.tags is not None:
                self._tag(change, change.tags)
        self._publish([one for one in self._plan.changed if one.goes_live])
        self._record()

    def _go_back(self, error: BaseException) -> None:
        """Roll back."""
        log.error("The deployment failed while %s; rolling back its changes", self._step)
        left = self._rollback.go()
        if isinstance(error, ServiceError):
            raise _failure(self._step, error, left, self._rollback.names) from error
        for one in left:
            log.error("Not rolled back: %s", one)

    def _create_tags(self) -> None:
        names = {tag for one in self._plan.changed for tag in one.tags or ()}
        if not names:
            return
        self._tag_ids = {tag.name or "": tag.id or "" for tag in self._client.tags.list()}
        # Not only the new ones of the plan: somebody may have deleted others since then.
        for name in sorted(names - self._tag_ids.keys()):
            self._step = f"creating tag {name!r}"
            tag, is_new = create_tag(self._client, name)
            self._tag_ids[name] = str(tag.id)
            if is_new:
                self._rollback.note_tag(str(tag.id), name)

    def _begin(self, change: WorkflowChange) -> None:
        """Before the first change of an existing workflow, note it for the rollback."""
        if change.before is None or change.workflow_id in self._begun:
            return
        if _state(self._client.workflows.get(change.workflow_id)) != _state(change.before):
            raise ServiceError("somebody has changed the workflow since the plan was made; repeat the deployment")
        self._begun.add(change.workflow_id)
        self._rollback.note(change)

    def _deactivate(self, change: WorkflowChange) -> None:
        self._step = f"deactivating {change.name!r}"
        self._begin(change)
        self._client.workflows.deactivate(change.workflow_id)

    def _archive(self, change: WorkflowChange) -> None:
        self._step = f"archiving {change.name!r}"
        self._begin(change)
        self._client.workflows.archive(change.workflow_id)

    def _create(self, change: WorkflowChange) -> None:
        """Create an empty workflow: its callers need its id, and its own content may need the ids of others."""
        self._step = f"creating {change.name!r}"
        empty = {"name": change.name, "nodes": [], "connections": {}, "settings": {}}
        self._ids[change.workflow_id] = self._created(empty, change.project_id, change.folder_id)

    def _created(self, desired: Mapping[str, Any], project_id: str | None, folder_id: str | None = None) -> str:
        self._rollback.note_creation(desired, project_id)
        try:
            made = self._writer.create(desired, project_id=project_id, folder_id=folder_id)
        except ServiceError as error:
            if error.not_processed:
                self._rollback.note_refused(desired["name"])
            raise
        self._rollback.note_created(desired["name"], made.id)
        return made.id

    def _write(self, change: WorkflowChange) -> None:
        self._step = f"writing {change.name!r}"
        self._begin(change)
        written = self._writer.write_draft(self._ids[change.workflow_id], with_ids(change.desired, self._ids))
        if self._writer.keeps_drafts:
            self._versions[change.workflow_id] = written.version_id

    def _tag(self, change: WorkflowChange, tags: Sequence[str]) -> None:
        self._step = f"setting the tags of {change.name!r}"
        self._begin(change)
        self._client.workflows.update_tags(self._ids[change.workflow_id], [self._tag_ids[tag] for tag in tags])

    def _publish(self, changes: Sequence[WorkflowChange]) -> None:
        """Activate workflows. One that takes over another's webhook is refused until the other has released it."""
        waiting, pauses = list(changes), RELEASE_PAUSES
        releases = any({"deactivate", "archive"} & {*one.actions} for one in self._plan.changed)
        while waiting:
            refusals = [(one, error) for one in waiting if (error := self._refusal(one))]
            if len(refusals) == len(waiting):
                # The service takes a moment to release a webhook. Unless a workflow gives one up, waiting is useless.
                if not (releases or len(refusals) < len(changes)) or not pauses:
                    change, error = refusals[0]
                    self._step = f"activating {change.name!r}"
                    raise with_holder(error, self._client, self._ids[change.workflow_id])
                pauses -= 1
                clock().sleep(RELEASE_PAUSE_SECONDS)
            waiting = [one for one, _ in refusals]

    def _refusal(self, change: WorkflowChange) -> ServiceConflictError | None:
        try:
            self._activate(change)
        except ServiceConflictError as error:
            return error
        return None

    def _activate(self, change: WorkflowChange) -> None:
        self._step = f"activating {change.name!r}"
        self._begin(change)
        # Without a version, the service would also publish what others have edited since.
        version_id = self._versions.get(change.workflow_id)
        self._client.workflows.activate(self._ids[change.workflow_id], version_id=version_id)

    def _record(self) -> None:
        """Record the deployed workflows last: a recorded workflow that was not deployed could be archived."""
        record, ids = self._plan.record, self._plan.owned_ids(self._ids)
        if record is None or not record.differs(ids):
            return
        self._step = f"writing {record.name!r}"
        desired = record.definition(ids)
        if record.existing is not None:
            self._rollback.note_workflow(self._client.workflows.get(record.existing.id))
            self._writer.write_draft(record.existing.id, desired)
            return
        self._created(desired, self._target.project_id)


def _state(workflow: Workflow) -> tuple[object, ...]:
    """What a person sees of a workflow; its dates may change when it runs, as its static data do."""
    content = {**writable(workflow), "staticData": None}
    tags = {tag.id for tag in workflow.tags or ()}
    versions = (workflow.version_id, workflow.active_version_id)
    return content, tags, versions, workflow.active, bool(workflow.is_archived)


def _failure(step: str, error: ServiceError, left: Sequence[str], changed: Sequence[str]) -> ServiceDeploymentError:
    text = f"the deployment failed while {step}: {error.explanation}"
    if left:
        text += ". Not everything could be rolled back: " + "; ".join(left)
    elif changed:
        text += f". Everything that it had changed was rolled back: {', '.join(map(repr, changed))}"
    else:
        text += ". Nothing had been changed"
    # Not because something is left: the next attempt brings it in line with the definitions.
    return ServiceDeploymentError(text, final=error.final)


_HAPPENED = {
    "create": "created",
    "rename": "renamed",
    "update": "updated",
    "publish": "published",
    "activate": "activated",
    "deactivate": "deactivated",
    "archive": "archived",
}


def deployed(plan: DeploymentPlan, target: DeploymentTarget, *, preview: bool) -> dict[str, Any]:
    """Carry out a plan, all of it or nothing, unless this is a preview."""
    if preview:
        return _result(plan, "planned", plan.known_ids)
    ids = apply_plan(plan, target)
    if plan.changed:
        log.info("Workflows deployed: %d", len(plan.changed))
    return _result(plan, "deployed" if plan.writes else "unchanged", ids)


def _result(plan: DeploymentPlan, outcome: str, ids: dict[str, str]) -> dict[str, Any]:
    happened = {_HAPPENED.get(action, action): names for action, names in plan.by_action().items()}
    return {"outcome": outcome, **happened, "workflow_ids": ids}


def plan_report(plan: DeploymentPlan, *, made_at: datetime, url: str) -> Report:
    """Return the report on a plan."""
    counts = {action: len(names) for action, names in plan.by_action().items()}
    changed = len(plan.changed)
    return Report(
        title="Plan of a deployment",
        message=f"Workflows to change: {changed} of {len(plan.every)}. {WRITTEN_FIRST}"
        if changed
        else "Nothing has to be changed.",
        made_at=made_at,
        url=url,
        figures=[Figure(action.capitalize(), count) for action, count in counts.items()],
        parts=[
            Table(
                "Workflows",
                ("Workflow", "What happens"),
                [(one.name, ", ".join(one.actions) or UNCHANGED) for one in plan.every],
                note="; ".join([f"Tags to create: {', '.join(plan.new_tags)}"] * bool(plan.new_tags) + plan.notes),
            ),
            *(Listing(str(one), "\n".join(one.diff)) for one in plan.changed if one.diff),
        ],
    )
