"""Bring an instance in line with a backup, in steps that can be repeated after any interruption.

Objects are created and changed one after the other; workflows, which name the others, come last, all of them or none.
A record in the instance says what an attempt began, and the end compares the whole instance with the backup.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

from airflow_provider_service._core.arguments import require_source
from airflow_provider_service._core.instances.apply import apply_plan
from airflow_provider_service._core.instances.backup import Inventory
from airflow_provider_service._core.instances.deployment_record import RestoreRecord
from airflow_provider_service._core.instances.desired_changes import DesiredStatePlan
from airflow_provider_service._core.instances.faults import refuse_all
from airflow_provider_service._core.instances.matching import Resolver
from airflow_provider_service._core.instances.plan import DeploymentPlan, DeploymentTarget, make_plan
from airflow_provider_service._core.instances.references import Directory, Gap, used_ids, with_references
from airflow_provider_service._core.instances.restore_objects import ObjectsPlan
from airflow_provider_service._core.instances.restore_reading import REMOVED
from airflow_provider_service._core.instances.rollback import Writer
from airflow_provider_service._core.reports.report import WRITTEN_FIRST, Figure, Listing, Report, Table
from airflow_provider_service.client._definitions import is_as_defined, read_definition, with_removals
from airflow_provider_service.client.errors import ServiceError, ServiceInputError
from airflow_provider_service.client.resources._workflows import writable

if TYPE_CHECKING:
    from airflow_provider_service._core.instances.backup import Backup
    from airflow_provider_service._core.instances.references import Entry, Kind
    from airflow_provider_service._core.instances.restore_reading import StoredBackup, StoredWorkflow
    from airflow_provider_service.client._client import Resources


log = logging.getLogger(__name__)

#: How to treat an existing object that differs from the one in the backup.
OnConflict = Literal["skip", "update", "fail"]
ON_CONFLICT = get_args(OnConflict)
WORKFLOWS = "workflows"
_MAX_NAMED = 20


@dataclass(frozen=True)
class RestorePlan:
    objects: Mapping[str, DesiredStatePlan]  #: All objects except workflows, by kind, in the order of the changes.
    workflows: DeploymentPlan
    drafts: Sequence[str]  #: Names of the workflows whose drafts are written as well.
    left: Mapping[str, Sequence[str]]  #: Names of differing objects that stay unchanged, by kind.
    gaps: Sequence[Gap]  #: Objects that cannot be restored to this instance, and why.

    @property
    def is_empty(self) -> bool:
        return not (self.workflows.changed or self.drafts or any(plan.changes for plan in self.objects.values()))

    def begun(self) -> dict[str, list[str]]:
        objects = {kind: [change.name for change in plan.changes] for kind, plan in self.objects.items()}
        changed = [change.name for change in self.workflows.changes if change.actions]
        return {**objects, WORKFLOWS: [*changed, *(name for name in self.drafts if name not in changed)]}

    def counts(self) -> dict[str, dict[str, int]]:
        changes = self.workflows.changes
        created = {change.name for change in changes if change.before is None}
        updated = {change.name for change in changes if change.actions} | {*self.drafts} if changes else set()
        numbers = {
            kind: (plan.count("create"), plan.count("update"), plan.unchanged) for kind, plan in self.objects.items()
        }
        numbers[WORKFLOWS] = (len(created), len(updated - created), len(changes) - len(updated | created))
        return {
            kind: {"created": new, "updated": changed, "unchanged": same, "left": len(self.left.get(kind, ()))}
            for kind, (new, changed, same) in numbers.items()
        }

    def to_result(self, *, preview: bool) -> dict[str, Any]:
        return {
            "outcome": "planned" if preview else ("unchanged" if self.is_empty else "restored"),
            "counts": self.counts(),
            "left": {kind: list(names) for kind, names in self.left.items()},
            "not_restored": [gap._asdict() for gap in self.gaps],
            "credentials_without_secrets": [change.name for change in self.objects["credentials"].changes],
        }

    def lines(self) -> list[str]:
        lines = [f"{kind}: {change.words()}" for kind, plan in self.objects.items() for change in plan.changes]
        lines += self.workflows.lines()
        lines += [f"draft of {name!r}: update" for name in self.drafts]
        return lines + [
            f"{kind}: {name!r} differs and stays unchanged" for kind in self.left for name in self.left[kind]
        ]


@dataclass
class Restore:
    client: Resources
    backup: StoredBackup
    on_conflict: OnConflict = "fail"
    activate: bool | None = None  #: None for the state of each workflow in the backup.
    allow_empty: bool = False  #: Whether all rows of a table are deleted if the backup holds none of it.
    _planned: dict[Kind, list[Entry]] = field(default_factory=dict, init=False)

    def plan(self) -> RestorePlan:
        begun = RestoreRecord(self.client, self.backup.digest).read()
        if begun is not None:
            log.info("An earlier attempt began this restore; this one finishes what that was to create or change")

        def may_update(kind: str) -> Collection[str] | None:
            return None if self.on_conflict == "update" else (begun or {}).get(kind, ())

        existing = Inventory(self.client)
        _require_projects(self.backup, existing)
        objects = ObjectsPlan(self.backup, existing)
        plans, left = {}, {}
        for kind, plan in objects.plans.items():
            plans[kind], left[kind] = _without(plan, may_update=may_update(kind))
        self._planned = objects.planned
        workflows, left[WORKFLOWS] = self._plan_workflows(may_update=may_update(WORKFLOWS))
        drafts = list(self._drafts(workflows))
        created = {change.name for change in workflows.changes if change.before is None}
        drafts += [stored.name for stored in self._with_drafts(workflows) if stored.name in created - {*drafts}]
        left = {kind: names for kind, names in left.items() if names}
        if self.on_conflict == "fail" and left:
            listed = "; ".join(f"{kind}: {', '.join(map(repr, names[:_MAX_NAMED]))}" for kind, names in left.items())
            raise ServiceInputError(
                f"the instance holds objects that differ from those of the backup, and nothing was written: {listed}; "
                "on_conflict='skip' leaves them unchanged, and on_conflict='update' restores them"
            )
        emptied = [repr(label) for label in objects.emptied if label not in left.get("data_tables", ())]
        require_source(
            not emptied,
            f"the backup holds no rows of the data tables {', '.join(emptied[:_MAX_NAMED])}",
            "on_conflict='update' would delete all rows that the instance holds of them",
            allow_empty=self.allow_empty,
        )
        return RestorePlan(plans, workflows, drafts, left, objects.gaps)

    def carry_out(self, plan: RestorePlan) -> None:
        """Carry out a plan, and compare the instance with the backup afterwards."""
        record = RestoreRecord(self.client, self.backup.digest)
        if plan.is_empty:
            record.delete()
            return
        changes = [change for objects in plan.objects.values() for change in objects.changes]
        if problems := [str(change.details["problem"]) for change in changes if "problem" in change.details]:
            raise ServiceInputError(f"the backup cannot be restored, and nothing was written: {'; '.join(problems)}")
        if record.read() is None:
            record.write(plan.begun())
        for kind, objects in plan.objects.items():
            for change in objects.changes:
                log.info("%s: %s", kind, change.words())
                change.perform(self.client)
        self._planned = {}
        keeps = plan.left.get(WORKFLOWS, ())
        may_update = None if self.on_conflict == "update" else plan.begun()[WORKFLOWS]
        workflows, left = self._plan_workflows(keeps, may_update)
        if changed := sorted({*left} - {*keeps}):
            raise ServiceError(
                f"others changed workflows during the restore, so no workflow was written: "
                f"{', '.join(map(repr, changed[:_MAX_NAMED]))}; run the task again, or set on_conflict='update'"
            )
        apply_plan(workflows, self._target(self._known_ids(Directory(self.client).workflows)))
        written, _ = self._plan_workflows(keeps)
        writer = Writer(self.client)
        for name, desired in self._drafts(written).items():
            log.info("Writing the draft of %r", name)
            writer.write_draft(written.known_ids[name], desired)
        self._compare(plan)
        record.delete()

    def _compare(self, plan: RestorePlan) -> None:
        objects = ObjectsPlan(self.backup, Inventory(self.client))
        differing = [
            f"{kind}: {change.words()}"
            for kind, found in objects.plans.items()
            for change in _without(found, plan.left.get(kind, ()))[0].changes
        ]
        workflows, _ = self._plan_workflows(plan.left.get(WORKFLOWS, ()))
        differing += map(str, workflows.changed)
        differing += [f"draft of {name!r}" for name in self._drafts(workflows)]
        if differing:
            raise ServiceError(
                "the instance differs from the backup, even though the service accepted every change; perhaps others "
                f"change it at the same time: {'; '.join(differing[:_MAX_NAMED])}"
            )

    def _target(self, workflow_ids: Mapping[str, str]) -> DeploymentTarget:
        existing = Inventory(self.client)
        ids = {
            stored.name: project_id
            for stored in self.backup.workflows.values()
            if stored.project is not None and (project_id := existing.project_id(stored.project))
        }
        return DeploymentTarget(self.client, project_ids=ids, planned=self._planned, workflow_ids=workflow_ids)

    def _plan_workflows(
        self, keeps: Collection[str] = (), may_update: Collection[str] | None = None
    ) -> tuple[DeploymentPlan, list[str]]:
        """Return the plan for the workflows, and the names of those that differ and stay unchanged.

        :param keeps: names of workflows that stay unchanged.
        :param may_update: names of the only existing workflows that may be changed; None for all others.
        """
        existing, stored = Directory(self.client).workflows, self.backup.workflows
        known = self._known_ids(existing)
        others = Counter(workflow.name for workflow in existing.values() if workflow.id not in known.values())
        ambiguous = [name for name in stored if name not in known and others[name] > 1]
        kept = {*keeps, *(() if may_update is None else stored.keys() - {*may_update})}
        left = [name for name in stored if name in keeps or (name in kept and name in ambiguous)]
        plan = self._make(left, known)
        if may_update is not None:
            changed = {*self._drafts(plan), *(change.name for change in plan.changes if change.actions)}
            differing = [change.name for change in plan.changes if change.before and change.name in changed & kept]
            if differing:
                left += differing
                plan = plan if self.on_conflict == "fail" else self._make(left, known)
        return plan, sorted(left)

    def _known_ids(self, existing: Collection[str]) -> dict[str, str]:
        stored = self.backup.workflows.items()
        return {name: workflow.id for name, workflow in stored if workflow.id and workflow.id in existing}

    def _make(self, left: Sequence[str], known: Mapping[str, str]) -> DeploymentPlan:
        stored = self.backup.workflows.items()
        sources = [workflow.source(is_known=name in known) for name, workflow in stored if name not in left]
        return make_plan(sources, self._target(known), activate=self.activate)

    def _with_drafts(self, plan: DeploymentPlan) -> list[StoredWorkflow]:
        """Return the workflows with a draft that become active: only these have one beside the version that runs."""
        names = {change.name for change in plan.changes}
        return [
            stored
            for name, stored in self.backup.workflows.items()
            if name in names
            and stored.draft is not None
            and stored.definition.get("active")
            and self.activate is not False
        ]

    def _drafts(self, plan: DeploymentPlan) -> dict[str, dict[str, Any]]:
        """Return the drafts that differ from those of existing workflows, by name, with the ids of this instance."""
        with_drafts = self._with_drafts(plan)
        if not with_drafts:
            return {}
        by_id = {stored.id: name for name, stored in self.backup.workflows.items() if stored.id}
        names = [change.name for change in plan.changes]
        resolver = Resolver(Directory(self.client, planned=self._planned), names, by_id)
        resolver.ids.update(plan.known_ids)
        existing = {
            change.name: change.before for change in plan.changes if change.before and change.before.active_version
        }
        desired = {}
        for stored in with_drafts:
            name = stored.name
            draft = stored.draft_of(resolver.ids[name])
            used = used_ids(writable(existing[name])) if name in existing else set()
            mapped = with_references(draft, partial(resolver.resolve, workflow=repr(name), used=used))
            desired[name] = read_definition(mapped, f"the draft of {name!r}")
        refuse_all(resolver.problems)
        desired = {
            name: with_removals(desired[name], workflow, REMOVED)
            for name, workflow in existing.items()
            if name in desired
        }
        return {name: draft for name, draft in desired.items() if not is_as_defined(existing[name], draft)}


def _without(
    plan: DesiredStatePlan, keeps: Collection[str] = (), may_update: Collection[str] | None = None
) -> tuple[DesiredStatePlan, list[str]]:
    """Return a plan without the updates of objects that stay unchanged, and the names of these objects."""
    changes, left = [], []
    for change in plan.changes:
        is_left = change.name in keeps or (may_update is not None and change.name not in may_update)
        if change.action == "update" and is_left:
            left.append(change.name)
        else:
            changes.append(change)
    return replace(plan, changes=changes), left


def _require_projects(backup: StoredBackup, existing: Inventory) -> None:
    if existing.team_projects is None:  # everything is personal
        return
    contents = backup.contents
    objects = (contents.variables or [], contents.credentials or [], contents.data_tables or [])
    used = {one.project for many in (*objects, backup.workflows.values()) for one in many if one.project}
    known = {one.name for one in (*existing.team_projects.values(), *(contents.projects or ()))}
    if missing := sorted(used - known):
        raise ServiceInputError(
            f"the instance has no project {', '.join(map(repr, missing))}, to which selected objects belong, and "
            "nothing was written; select the projects as well, or map them to others"
        )


def backup_report(backup: Backup, *, made_at: datetime, url: str) -> Report:
    return Report(
        title="Backup",
        message=f"The backup was written to {backup.path}.",
        made_at=made_at,
        url=url,
        figures=[
            *(Figure(_words(kind), count) for kind, count in backup.counts.items()),
            Figure("Bytes", backup.size),
            Figure("Older backups deleted", backup.deleted),
        ],
        parts=[_gaps("Not in the backup", backup.gaps), Listing("SHA-256 of the archive", backup.sha256)],
    )


def restore_report(plan: RestorePlan, manifest: Mapping[str, Any], *, made_at: datetime, url: str) -> Report:
    counts = plan.counts()
    return Report(
        title="Plan of a restore",
        message="Nothing has to be changed."
        if plan.is_empty
        else f"The plan brings the instance in line with the backup. {WRITTEN_FIRST}",
        made_at=made_at,
        url=url,
        figures=[
            Figure("Backup of", str(manifest.get("made_at"))),
            *(
                Figure(action.capitalize(), sum(numbers[action] for numbers in counts.values()))
                for action in ("created", "updated", "unchanged", "left")
            ),
        ],
        parts=[
            Table(
                "Objects",
                ("Kind", "Created", "Updated", "Unchanged", "Left as they are"),
                [
                    (_words(kind), numbers["created"], numbers["updated"], numbers["unchanged"], numbers["left"])
                    for kind, numbers in counts.items()
                ],
            ),
            _gaps("Not restored", plan.gaps),
            Listing("Changes", "\n".join(plan.lines())),
        ],
    )


def _gaps(title: str, gaps: Sequence[Gap]) -> Table:
    return Table(title, ("What", "Why"), [tuple(gap) for gap in gaps])


def _words(kind: str) -> str:
    return kind.replace("_", " ").capitalize()
