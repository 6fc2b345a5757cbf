"""Bring an instance in line with a backup, in steps that can be repeated after any interruption.

The reports on a backup, and on a restore.
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
from airflow_provider_service._core.instances.desired_changes import DesiredStatePlan
from airflow_provider_service._core.instances.matching import Resolver
from airflow_provider_service._core.instances.plan import DeploymentPlan, DeploymentTarget, make_plan, refuse_all
from airflow_provider_service._core.instances.references import Directory, Gap, used_ids, with_references
from airflow_provider_service._core.instances.restore_objects import ObjectsPlan
from airflow_provider_service._core.instances.restore_reading import REMOVED
from airflow_provider_service._core.instances.restore_record import Record
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
    """The changes of a restore."""

    objects: Mapping[str, DesiredStatePlan]
    workflows: DeploymentPlan
    drafts: Sequence[str]
    left: Mapping[str, Sequence[str]]
    gaps: Sequence[Gap]

    @property
    def is_empty(self) -> bool:
        """Whether nothing has to be changed."""
        return not (self.workflows.changed or self.drafts or any(one.changes for one in self.objects.values()))

    def begun(self) -> dict[str, list[str]]:
        """Return the names of the objects to create or change, by kind."""
        found = {kind: [one.name for one in plan.changes] for kind, plan in self.objects.items()}
        changed = [one.name for one in self.workflows.changes if one.actions]
        return {**found, WORKFLOWS: [*changed, *(name for name in self.drafts if name not in changed)]}

    def counts(self) -> dict[str, dict[str, int]]:
        """Return the numbers of objects by kind and by action."""
        found = {kind: _counts(plan, self.left.get(kind, ())) for kind, plan in self.objects.items()}
        changes = self.workflows.changes
        created = sum(one.before is None for one in changes)
        updated = len({one.name for one in changes if one.before and one.actions} | {*self.drafts}) if changes else 0
        updated -= len({one.name for one in changes if one.before is None} & {*self.drafts})
        left = len(self.left.get(WORKFLOWS, ()))
        workflows = {"created": created, "updated": updated, "unchanged": len(changes) - created - updated}
        return {**found, WORKFLOWS: {**workflows, "left": left}}

    def to_result(self, *, preview: bool) -> dict[str, Any]:
        """Return a summary of the restore, as a task returns it."""
        return {
            "outcome": "planned" if preview else ("unchanged" if self.is_empty else "restored"),
            "counts": self.counts(),
            "left": {kind: list(names) for kind, names in self.left.items()},
            "not_restored": [one._asdict() for one in self.gaps],
            "credentials_without_secrets": [one.name for one in self.objects["credentials"].changes],
        }

    def lines(self) -> list[str]:
        """Return the plan as readable lines."""
        lines = [f"{kind}: {change.words()}" for kind, plan in self.objects.items() for change in plan.changes]
        lines += self.workflows.lines()
        lines += [f"draft of {name!r}: update" for name in self.drafts]
        return lines + [
            f"{kind}: {name!r} differs and stays unchanged" for kind in self.left for name in self.left[kind]
        ]


@dataclass
class Restore:
    """A restore of a backup into an instance."""

    client: Resources
    backup: StoredBackup
    on_conflict: OnConflict = "fail"
    activate: bool | None = None
    allow_empty: bool = False
    _planned: dict[Kind, list[Entry]] = field(default_factory=dict, init=False)

    def plan(self) -> RestorePlan:
        """Compare the backup with the instance. Nothing is written."""
        begun = Record(self.client, self.backup.digest).read()
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
        drafts += [name for name in self._new_drafts(workflows) if name not in drafts]
        left = {kind: names for kind, names in left.items() if names}
        if self.on_conflict == "fail" and left:
            _refuse_conflicts(left)
        emptied = [repr(one) for one in objects.emptied if one not in left.get("data_tables", ())]
        require_source(
            not emptied,
            f"the backup holds no rows of the data tables {', '.join(emptied[:_MAX_NAMED])}",
            "on_conflict='update' would delete all rows that the instance holds of them",
            allow_empty=self.allow_empty,
        )
        return RestorePlan(plans, workflows, drafts, left, objects.gaps)

    def carry_out(self, plan: RestorePlan) -> None:
        """Carry out a plan, and compare the instance with the backup afterwards.

        Objects are created and changed one after the other; workflows come last, all or nothing.
        """
        record = Record(self.client, self.backup.digest)
        if plan.is_empty:
            record.delete()
            return
        _require_possible(plan)
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
        self._write_drafts(keeps)
        self._compare(plan)
        record.delete()

    def _compare(self, plan: RestorePlan) -> None:
        """Require that the instance matches the backup in names, values, definitions and hashes of rows."""
        objects = ObjectsPlan(self.backup, Inventory(self.client))
        differing = [
            f"{kind}: {change.words()}"
            for kind, one in objects.plans.items()
            for change in _without(one, plan.left.get(kind, ()))[0].changes
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
            one.name: found
            for one in self.backup.workflows.values()
            if one.project is not None and (found := existing.project_id(one.project))
        }
        return DeploymentTarget(self.client, project_ids=ids, planned=self._planned, workflow_ids=workflow_ids)

    def _plan_workflows(
        self, keeps: Collection[str] = (), may_update: Collection[str] | None = None
    ) -> tuple[DeploymentPlan, list[str]]:
        """Return the plan for the workflows, and the names of those that differ and stay unchanged."""
        existing, stored = Directory(self.client).workflows, self.backup.workflows
        known = self._known_ids(existing)
        others = Counter(one.name for one in existing.values() if one.id not in known.values())
        ambiguous = [name for name in stored if name not in known and others[name] > 1]
        kept = {*keeps, *(() if may_update is None else stored.keys() - {*may_update})}
        left = [name for name in stored if name in keeps or (name in kept and name in ambiguous)]
        plan = self._make(left, known)
        if may_update is not None:
            changed = {*self._drafts(plan), *(one.name for one in plan.changes if one.actions)}
            more = [one.name for one in plan.changes if one.before and one.name in changed & kept]
            if more:
                left += more
                plan = plan if self.on_conflict == "fail" else self._make(left, known)
        return plan, sorted(left)

    def _known_ids(self, existing: Collection[str]) -> dict[str, str]:
        """Return the ids of the backup's workflows that exist in the instance, by name."""
        return {name: one.id for name, one in self.backup.workflows.items() if one.id and one.id in existing}

    def _make(self, left: Sequence[str], known: Mapping[str, str]) -> DeploymentPlan:
        stored = self.backup.workflows.items()
        sources = [one.source(is_known=name in known) for name, one in stored if name not in left]
        return make_plan(sources, self._target(known), activate=self.activate)

    def _with_drafts(self, plan: DeploymentPlan) -> list[StoredWorkflow]:
        """Return the workflows with a draft that become active: only these have one beside the version that runs."""
        names = {one.name for one in plan.changes}
        every = (one for name, one in self.backup.workflows.items() if name in names and one.draft is not None)
        return [one for one in every if self.activate is not False and one.definition.get("active")]

    def _new_drafts(self, plan: DeploymentPlan) -> list[str]:
        created = {one.name for one in plan.changes if one.before is None}
        return [one.name for one in self._with_drafts(plan) if one.name in created]

    def _drafts(self, plan: DeploymentPlan) -> dict[str, dict[str, Any]]:
        """Return the drafts that differ from those of existing workflows, by name, with the ids of this instance."""
        stored = self._with_drafts(plan)
        if not stored:
            return {}
        by_id = {one.id: name for name, one in self.backup.workflows.items() if one.id}
        names = [one.name for one in plan.changes]
        resolver = Resolver(Directory(self.client, planned=self._planned), names, by_id)
        resolver.ids.update(plan.known_ids)
        existing = {one.name: one.before for one in plan.changes if one.before and one.before.active_version}
        desired = {}
        for one in stored:
            draft = one.draft_of(resolver.ids[one.name])
            used = used_ids(writable(existing[one.name])) if one.name in existing else set()
            mapped = with_references(draft, partial(resolver.resolve, workflow=one.name, used=used))
            desired[one.name] = read_definition(mapped, f"the draft of {one.name!r}")
        refuse_all(resolver.problems)
        desired = {
            name: with_removals(desired[name], one, REMOVED) for name, one in existing.items() if name in desired
        }
        return {name: one for name, one in desired.items() if not is_as_defined(existing[name], one)}

    def _write_drafts(self, keeps: Sequence[str]) -> None:
        plan, _ = self._plan_workflows(keeps)
        writer = Writer(self.client)
        for name, desired in self._drafts(plan).items():
            log.info("Writing the draft of %r", name)
            writer.write_draft(plan.known_ids[name], desired)


def _counts(plan: DesiredStatePlan, left: Sequence[str]) -> dict[str, int]:
    created, updated = plan.count("create"), plan.count("update")
    return {"created": created, "updated": updated, "unchanged": plan.unchanged, "left": len(left)}


def _without(
    plan: DesiredStatePlan, keeps: Collection[str] = (), may_update: Collection[str] | None = None
) -> tuple[DesiredStatePlan, list[str]]:
    """Return a plan without the updates of objects that stay unchanged, and the names of these objects."""
    updates = [one for one in plan.changes if one.action == "update"]
    left = [one for one in updates if one.name in keeps or (may_update is not None and one.name not in may_update)]
    return replace(plan, changes=[one for one in plan.changes if one not in left]), [one.name for one in left]


def _refuse_conflicts(left: Mapping[str, Sequence[str]]) -> None:
    listed = "; ".join(f"{kind}: {', '.join(map(repr, names[:_MAX_NAMED]))}" for kind, names in left.items())
    raise ServiceInputError(
        f"the instance holds objects that differ from those of the backup, and nothing was written: {listed}; "
        "on_conflict='skip' leaves them unchanged, and on_conflict='update' restores them"
    )


def _require_projects(backup: StoredBackup, existing: Inventory) -> None:
    """Refuse to restore objects without the projects that they belong to."""
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


def _require_possible(plan: RestorePlan) -> None:
    problems = [
        str(change.details["problem"])
        for objects in plan.objects.values()
        for change in objects.changes
        if "problem" in change.details
    ]
    if problems:
        raise ServiceInputError(f"the backup cannot be restored, and nothing was written: {'; '.join(problems)}")


def backup_report(backup: Backup, *, made_at: datetime, url: str) -> Report:
    """Return the report on a backup."""
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
    """Return the report on the plan of a restore."""
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
                Figure(action.capitalize(), sum(one.get(action, 0) for one in counts.values()))
                for action in ("created", "updated", "unchanged", "left")
            ),
        ],
        parts=[
            Table(
                "Objects",
                ("Kind", "Created", "Updated", "Unchanged", "Left as they are"),
                [
                    (_words(kind), one["created"], one["updated"], one["unchanged"], one["left"])
                    for kind, one in counts.items()
                ],
            ),
            _gaps("Not restored", plan.gaps),
            Listing("Changes", "\n".join(plan.lines())),
        ],
    )


def _gaps(title: str, gaps: Sequence[Gap]) -> Table:
    return Table(title, ("What", "Why"), [tuple(one) for one in gaps])


def _words(kind: str) -> str:
    return kind.replace("_", " ").capitalize()
