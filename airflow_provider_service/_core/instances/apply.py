"""Carry out a plan, all of it or nothing, and return the result of a deployment by a task or a command.

``rollback.py`` says in which order a deployment writes, and how it takes everything back.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.instances.plan import UNCHANGED
from airflow_provider_service._core.instances.references import NEW_TOKEN
from airflow_provider_service._core.instances.rollback import (
    RELEASE_PAUSE_SECONDS,
    RELEASE_PAUSES,
    Rollback,
    Writer,
    is_rolling_back,
)
from airflow_provider_service._core.reports.report import WRITTEN_FIRST, Figure, Listing, Report, Table
from airflow_provider_service._core.text_table import first_of
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._constraints import plain_id
from airflow_provider_service.client._definitions import content
from airflow_provider_service.client._lookup import create_tag
from airflow_provider_service.client._webhook_conflicts import with_holder
from airflow_provider_service.client.errors import ServiceConflictError, ServiceDeploymentError, ServiceError
from airflow_provider_service.client.resources._workflows import writable

if TYPE_CHECKING:
    from airflow_provider_service._core.instances.deployment_record import DeploymentRecord
    from airflow_provider_service._core.instances.plan import DeploymentPlan, DeploymentTarget, WorkflowChange
    from airflow_provider_service.client.models import Workflow


log = logging.getLogger(__name__)


#: Workflows that the error of a rollback names; the log has a line for each.
_MAX_NAMED = 20
#: Time for the service to process a change whose answer did not come, before it is rolled back.
_CUT_OFF_SECONDS = 1.0
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
    outcome, ids = "planned", plan.known_ids
    if not preview:
        outcome, ids = "deployed" if plan.writes else "unchanged", apply_plan(plan, target)
        if plan.changed:
            log.info("Workflows deployed: %d", len(plan.changed))
    happened = {_HAPPENED.get(action, action): names for action, names in plan.by_action().items()}
    return {"outcome": outcome, **happened, "workflow_ids": ids}


def apply_plan(plan: DeploymentPlan, target: DeploymentTarget) -> dict[str, str]:
    """Carry out a plan, and return the ids of the workflows by name. If anything fails, all changes are rolled back."""
    deployment = _Deployment(plan, target)
    try:
        deployment.write_all()
    # Also if the task is killed: a deployment must not remain half done.
    except BaseException as error:
        # Before anything else: the next signal may follow the first at once.
        token = is_rolling_back.set(True)
        try:
            deployment.roll_back(error)
        finally:
            is_rolling_back.reset(token)
        raise
    return {change.name: deployment.ids[change.workflow_id] for change in plan.changes}


class _Deployment:
    def __init__(self, plan: DeploymentPlan, target: DeploymentTarget) -> None:
        self._plan, self._target = plan, target
        self._client = target.client
        self._writer = Writer(target.client)
        existing = frozenset(change.workflow_id for change in plan.every if change.before)
        self._rollback = Rollback(target.client, self._writer, existing.union(target.workflow_ids.values()))
        self._begun: set[str] = set()
        self._versions: dict[str, str | None] = {}
        self._tag_ids: dict[str, str] = {}
        self._step = "starting"
        #: Ids by the tokens that stand for them in definitions; the id of an existing workflow stands for itself.
        self.ids = {change.workflow_id: change.workflow_id for change in plan.changes if change.before}

    def write_all(self) -> None:
        self._create_tags()
        for change in self._plan.leaving:
            self._begin(change, "archiving")
            self._client.workflows.archive(change.workflow_id)
        for change in reversed(self._plan.changed):
            if "deactivate" in change.actions:
                self._begin(change, "deactivating")
                self._client.workflows.deactivate(change.workflow_id)
        for change in self._plan.changed:
            if change.before is None:
                self._begin(change, "creating")
                # Empty: its callers need its id, and its own content may need the ids of others.
                empty = {"name": change.name, "nodes": [], "connections": {}, "settings": {}}
                self.ids[change.workflow_id] = self._created(empty, change.project_id, change.folder_id)
        for change in self._plan.changed:
            if change.desired:
                self._begin(change, "writing")
                text = NEW_TOKEN.sub(self._id_of, json.dumps(change.desired))
                written = self._writer.write_draft(self.ids[change.workflow_id], json.loads(text))
                if self._writer.keeps_drafts:
                    self._versions[change.workflow_id] = written.version_id
            if change.tags is not None:
                self._begin(change, "setting the tags of")
                tag_ids = [self._tag_ids[tag] for tag in change.tags]
                self._client.workflows.update_tags(self.ids[change.workflow_id], tag_ids)
        self._publish([change for change in self._plan.changed if change.goes_live])
        if self._plan.record is not None:
            self._record(self._plan.record)

    def _id_of(self, token: re.Match[str]) -> str:
        # An id that is not plain could change more than a value.
        return plain_id(self.ids[token[0]]) if token[0] in self.ids else token[0]

    def roll_back(self, error: BaseException) -> None:
        log.error("The deployment failed while %s; rolling back its changes", self._step)
        if getattr(error, "status", None) is None:
            clock().sleep(_CUT_OFF_SECONDS)
        problems = self._rollback.go()
        if not isinstance(error, ServiceError):
            for problem in problems:
                log.error("Not rolled back: %s", problem)
            return
        changed = [*(before.name for before, _ in self._rollback.changes.values()), *self._rollback.created]
        text = f"the deployment failed while {self._step}: {error.explanation}"
        if problems:
            text += ". Not everything could be rolled back: " + "; ".join(problems)
        elif changed:
            named = first_of([*map(repr, changed)], _MAX_NAMED)
            text += f". Everything that it had changed was rolled back: {named}"
        else:
            text += ". Nothing had been changed"
        # Not because something is left: the next attempt brings it in line with the definitions.
        raise ServiceDeploymentError(text, final=error.final) from error

    def _create_tags(self) -> None:
        names = {tag for change in self._plan.changed for tag in change.tags or ()}
        if not names:
            return
        self._tag_ids = {tag.name or "": tag.id or "" for tag in self._client.tags.list()}
        # Not only the new ones of the plan: somebody may have deleted others since then.
        for name in sorted(names - self._tag_ids.keys()):
            self._step = f"creating tag {name!r}"
            tag, is_new = create_tag(self._client, name)
            self._tag_ids[name] = str(tag.id)
            if is_new:
                self._rollback.tags[str(tag.id)] = name

    def _begin(self, change: WorkflowChange, step: str) -> None:
        """Before the first change of an existing workflow, note it for the rollback."""
        self._step = f"{step} {change.name!r}"
        if change.before is None or change.workflow_id in self._begun:
            return
        if _state(self._client.workflows.get(change.workflow_id)) != _state(change.before):
            raise ServiceError("somebody has changed the workflow since the plan was made; repeat the deployment")
        self._begun.add(change.workflow_id)
        self._rollback.changes[change.before.id] = (change.before, change.tags is not None)

    def _created(self, desired: Mapping[str, Any], project_id: str | None, folder_id: str | None = None) -> str:
        name = desired["name"]
        # Noted before the answer with the id, which may be lost.
        self._rollback.sent[name], self._rollback.created[name] = (desired, project_id), None
        try:
            created = self._client.workflows.create(
                **content(desired), project_id=project_id, parent_folder_id=folder_id
            )
        except ServiceError as error:
            if error.not_processed:
                del self._rollback.created[name]  # one of this name is somebody else's
            raise
        self._rollback.created[name] = created.id
        return created.id

    def _publish(self, changes: Sequence[WorkflowChange]) -> None:
        """Activate workflows. One that takes over another's webhook is refused until the other has released it."""
        waiting, pauses = list(changes), RELEASE_PAUSES
        releases = any({"deactivate", "archive"} & {*change.actions} for change in self._plan.changed)
        while waiting:
            refusals = []
            for change in waiting:
                try:
                    self._begin(change, "activating")
                    # Without a version, the service would also publish what others have edited since.
                    version_id = self._versions.get(change.workflow_id)
                    self._client.workflows.activate(self.ids[change.workflow_id], version_id=version_id)
                except ServiceConflictError as refusal:
                    refusals.append((change, refusal))
            if len(refusals) == len(waiting):
                # The service takes a moment to release a webhook. Unless a workflow gives one up, waiting is useless.
                if not (releases or len(refusals) < len(changes)) or not pauses:
                    change, error = refusals[0]
                    self._step = f"activating {change.name!r}"
                    raise with_holder(error, self._client, self.ids[change.workflow_id])
                pauses -= 1
                clock().sleep(RELEASE_PAUSE_SECONDS)
            waiting = [change for change, _ in refusals]

    def _record(self, record: DeploymentRecord) -> None:
        """Record the deployed workflows last: a recorded workflow that was not deployed could be archived."""
        ids = self._plan.owned_ids(self.ids)
        if not record.differs(ids):
            return
        self._step = f"writing {record.name!r}"
        desired = record.definition(ids)
        if record.existing is not None:
            self._rollback.changes[record.existing.id] = (self._client.workflows.get(record.existing.id), False)
            self._writer.write_draft(record.existing.id, desired)
        else:
            self._created(desired, self._target.project_id)


def _state(workflow: Workflow) -> tuple[object, ...]:
    """What a person sees of a workflow; its dates may change when it runs, as its static data do."""
    fields = {**writable(workflow), "staticData": None}
    tags = {tag.id for tag in workflow.tags or ()}
    versions = (workflow.version_id, workflow.active_version_id)
    return fields, tags, versions, workflow.active, bool(workflow.is_archived)


def plan_report(plan: DeploymentPlan, *, made_at: datetime, url: str) -> Report:
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
                [(change.name, ", ".join(change.actions) or UNCHANGED) for change in plan.every],
                note="; ".join([f"Tags to create: {', '.join(plan.new_tags)}"] * bool(plan.new_tags) + [*plan.notes]),
            ),
            *(Listing(str(change), "\n".join(change.diff)) for change in plan.changed if change.diff),
        ],
    )
