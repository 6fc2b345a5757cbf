"""Compare definitions with an instance, and make the plan that brings the instance in line with them.

The plan of a deployment, which is complete before anything is written.

The order in which workflows are deployed: those that are called come before those that call them.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from airflow_provider_service._core.instances.deployment_record import DeploymentRecord
from airflow_provider_service._core.instances.diff import changed_lines
from airflow_provider_service._core.instances.mapping import InstanceMapping, MappedNames
from airflow_provider_service._core.instances.matching import Matches, Resolver, name_with_id
from airflow_provider_service._core.instances.references import Directory, references, used_ids, with_references
from airflow_provider_service._core.instances.source import repeated_definitions
from airflow_provider_service.client._constraints import is_plain_id
from airflow_provider_service.client._definitions import (
    is_as_defined,
    read_definition,
    running,
    runs_as_defined,
    settings_not_kept,
    settings_that_stay,
    tag_names,
    with_defaults,
    with_known_ids,
    with_removals,
)
from airflow_provider_service.client._values import one_line
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from airflow_provider_service._core.instances.references import Entry, Kind
    from airflow_provider_service._core.instances.source import Source
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import Workflow


#: Actions on a workflow. A plan may combine several, such as an update and an activation.
Action = Literal["create", "rename", "update", "publish", "activate", "deactivate", "archive"]
UNCHANGED = "unchanged"


@dataclass(frozen=True)
class WorkflowChange:
    """The planned actions on one workflow."""

    name: str
    workflow_id: str
    actions: tuple[Action, ...]
    diff: tuple[str, ...]
    desired: Mapping[str, Any]
    before: Workflow | None
    tags: tuple[str, ...] | None
    folder_id: str | None
    project_id: str | None

    @property
    def goes_live(self) -> bool:
        """Whether a version runs afterwards that does not run before."""
        is_rewritten = bool(self.desired) and self.before is not None and self.before.active
        return bool({"activate", "publish"} & {*self.actions}) or (is_rewritten and "deactivate" not in self.actions)

    def __str__(self) -> str:
        return f"{self.name}: {', '.join(self.actions) or UNCHANGED}"


@dataclass(frozen=True)
class DeploymentPlan:
    """The changes of a deployment."""

    changes: Sequence[WorkflowChange]
    new_tags: tuple[str, ...] = ()
    leaving: Sequence[WorkflowChange] = ()
    record: DeploymentRecord | None = None
    not_kept: Mapping[str, int] = field(default_factory=dict)

    @property
    def every(self) -> list[WorkflowChange]:
        """The planned actions on each workflow, with or without a definition."""
        return [*self.changes, *self.leaving]

    @property
    def changed(self) -> list[WorkflowChange]:
        """The planned actions on each workflow that changes."""
        return [one for one in self.every if one.actions]

    @property
    def writes(self) -> bool:
        """Whether anything has to be written."""
        return bool(self.changed) or self._record_differs

    def owned_ids(self, ids: Mapping[str, str]) -> set[str]:
        """Return the ids to record, including those of workflows without a definition that are not archived."""
        kept = self.record.owned if self.record else frozenset[str]()
        deployed = {ids.get(one.workflow_id, one.workflow_id) for one in self.changes}
        return deployed | (kept - {one.workflow_id for one in self.leaving})

    @property
    def _record_differs(self) -> bool:
        return self.record is not None and self.record.differs(self.owned_ids({}))

    @property
    def known_ids(self) -> dict[str, str]:
        """The ids of the workflows that already exist, by name."""
        return {one.name: one.workflow_id for one in self.changes if one.before}

    @property
    def notes(self) -> list[str]:
        """What is no change, but worth knowing."""
        settings = ", ".join(f"{name} (workflows: {count})" for name, count in sorted(self.not_kept.items()))
        reason = "the service does not keep them, or keeps them only with a license"
        return [f"settings that are not compared, since {reason}: {settings}"] if settings else []

    def lines(self) -> Iterator[str]:
        """Yield the plan as readable lines: each workflow, its actions, and its changes."""
        counts = {action: len(names) for action, names in self.by_action().items() if names}
        yield "Plan: " + (", ".join(f"{action} {count}" for action, count in counts.items()) or "nothing to do")
        yield from self.notes
        for tag in self.new_tags:
            yield f"create tag {tag!r}"
        if self.record and self._record_differs:
            yield f"{self.record.name}: {'update' if self.record.existing else 'create'}"
        for change in self.changed:
            yield str(change)
            yield from (f"    {line}" for line in change.diff)

    def by_action(self) -> dict[str, list[str]]:
        """Return the names of the workflows for each action."""
        found: dict[str, list[str]] = {
            action: [one.name for one in self.every if action in one.actions] for action in get_args(Action)
        }
        return {**found, UNCHANGED: [one.name for one in self.changes if not one.actions]}


def refuse_all(problems: Sequence[str]) -> None:
    """Refuse a deployment if it has problems, and name all of them."""
    if problems:
        listed = "\n".join(f"- {one}" for one in dict.fromkeys(problems))
        raise ServiceInputError(f"the workflows cannot be deployed, and nothing was written:\n{listed}")


def called_by(definition: Mapping[str, Any]) -> set[str]:
    """Return the ids of the workflows that the nodes of a definition call."""
    return _named_in({"nodes": definition.get("nodes")})


def needed_by(definition: Mapping[str, Any]) -> set[str]:
    """Return the ids of the workflows that a definition starts: by its nodes, or when it fails."""
    error_workflow = (definition.get("settings") or {}).get("errorWorkflow")
    return _named_in({"nodes": definition.get("nodes"), "settings": {"errorWorkflow": error_workflow}})


def _named_in(definition: Mapping[str, Any]) -> set[str]:
    return {named.id for named in references(definition) if named.kind == "workflow" and named.id}


def in_order(calls: Mapping[str, set[str]]) -> list[str]:
    """Sort workflows so that each comes after those that it calls, unless they call each other."""
    done: list[str] = []
    open_ones: set[str] = set()

    def visit(name: str) -> None:
        if name in done or name in open_ones:
            return
        open_ones.add(name)
        for called in sorted(calls[name] & calls.keys()):
            visit(called)
        open_ones.discard(name)
        done.append(name)

    for name in sorted(calls):
        visit(name)
    return done


def circles(calls: Mapping[str, set[str]]) -> Iterator[Sequence[str]]:
    """Yield the groups of workflows in which each calls all others, directly or indirectly."""
    reached = {name: _reached(name, calls) for name in calls}
    seen: set[str] = set()
    for name in sorted(calls):
        group = [other for other in sorted(calls) if other in reached[name] and name in reached[other]]
        if len(group) > 1 and name not in seen:
            seen.update(group)
            yield group


def _reached(name: str, calls: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for called in calls[waiting.pop()] & calls.keys():
            if called not in found:
                found.add(called)
                waiting.append(called)
    return found


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DeploymentTarget:
    """The instance to deploy to, and how its objects are found."""

    client: Resources
    project_id: str | None = None
    folder_id: str | None = None
    project_ids: Mapping[str, str] = field(default_factory=dict)
    planned: Mapping[Kind, Sequence[Entry]] = field(default_factory=dict)
    workflow_ids: Mapping[str, str] = field(default_factory=dict)
    deployment_name: str | None = None
    archive_missing: bool = False
    mapping: InstanceMapping = field(default_factory=InstanceMapping)


def make_plan(sources: Sequence[Source], target: DeploymentTarget, *, activate: bool | None = None) -> DeploymentPlan:
    """Compare definitions with the workflows of an instance. Nothing is written."""
    return _Planner(sources, target, activate).plan()


class _Planner:
    def __init__(self, sources: Sequence[Source], target: DeploymentTarget, activate: bool | None) -> None:
        # Definitions name no projects.
        names = MappedNames(replace(target.mapping, projects={}), {one.id: one.name for one in sources if one.id})
        mapped = [names.source(one) for one in sources]
        names.log_unused()
        refuse_all(repeated_definitions(mapped))
        self._unmapped = names.problems
        self._sources = {one.name: one for one in mapped}
        self._target, self._activate = target, activate
        self._directory = Directory(target.client, project_id=target.project_id, planned=target.planned)
        self._called: dict[str, set[str]] = {}
        self._needed: dict[str, set[str]] = {}
        self._not_kept: Counter[str] = Counter()
        self._matches = Matches(mapped, self._directory, target.workflow_ids)
        by_id = {one.id: new.name for one, new in zip(sources, mapped, strict=True) if one.id}
        self._resolver = Resolver(target.client, self._directory, list(self._sources), by_id, self._matches.renamed)

    def plan(self) -> DeploymentPlan:
        existing = {name: self._existing(name) for name in self._sources}
        self._resolver.ids.update((name, one.id) for name, one in existing.items() if one)
        changes = {name: self._change(source, existing[name]) for name, source in self._sources.items()}
        new_tags = self._new_tags(list(changes.values()))
        names = {one.workflow_id: name for name, one in changes.items()}
        calls = {name: {names[one] for one in ids & names.keys()} - {name} for name, ids in self._called.items()}
        name = self._target.deployment_name
        record = DeploymentRecord.read(self._target.client, self._directory, name) if name else None
        leaving = self._leaving(record) if record and self._target.archive_missing else []
        problems = self._unmapped + self._matches.problems + self._resolver.problems
        refuse_all([*problems, *self._circles(calls, changes), *self._still_needed(leaving)])
        ordered = [changes[name] for name in in_order(calls)]
        return DeploymentPlan(ordered, new_tags, [*map(_archived, leaving)], record, dict(self._not_kept))

    def _leaving(self, record: DeploymentRecord) -> list[Workflow]:
        """Return the workflows to archive; callers come before the workflows that they call."""
        gone = record.owned - {*self._matches.ids.values()}
        read = (self._target.client.workflows.get(one) for one in filter(is_plain_id, gone))
        existing = {f"{one.name} {one.id}": one for one in read if not one.is_archived}
        called = {key: called_by(running(one)) for key, one in existing.items()}
        callers = {key: {other for other in existing if one.id in called[other]} for key, one in existing.items()}
        return [existing[key] for key in in_order(callers)]

    def _still_needed(self, leaving: Sequence[Workflow]) -> Iterator[str]:
        """Yield why workflows cannot be archived: an active workflow of any project or a definition starts them."""
        if not leaving:
            return
        known = {*self._matches.ids.values(), *(one.id for one in leaving)}
        active = self._target.client.workflows.list(active=True, exclude_pinned_data=True)
        others = (one for one in active if one.id not in known)
        needed = [*self._needed.items(), *((one.name, needed_by(running(one))) for one in others)]
        for gone in leaving:
            if names := [name for name, ids in needed if gone.id in ids]:
                yield (
                    f"{gone.name!r} ({gone.id}) has left the source and would be archived, but {_quoted(names)} "
                    "would still start it; change that first, or return it to the source"
                )

    def _existing(self, name: str) -> Workflow | None:
        workflow_id = self._matches.ids.get(name)
        # Lists omit the description and the pinned data, so their items cannot be compared.
        return self._target.client.workflows.get(workflow_id) if workflow_id else None

    def _change(self, source: Source, before: Workflow | None) -> WorkflowChange:
        desired, tags = self._desired(source, before), self._tags(source, before)
        state = _State.of(before, desired, is_active=self._is_active(source, before))
        return WorkflowChange(
            name=source.name,
            workflow_id=self._resolver.ids[source.name],
            actions=state.actions(has_other_tags=tags is not None),
            diff=tuple(map(self._with_names, _diff(before, desired if state.differs else None, tags))),
            desired=desired if state.is_written else {},
            before=before,
            tags=tags,
            folder_id=self._folder_id(source) if before is None else None,
            project_id=self._target.project_ids.get(source.name, self._target.project_id),
        )

    def _with_names(self, line: str) -> str:
        """Replace the ids of the deployed workflows in a line with their names."""
        for name, workflow_id in self._resolver.ids.items():
            line = line.replace(json.dumps(workflow_id), repr(name))
        return line

    def _desired(self, source: Source, before: Workflow | None) -> dict[str, Any]:
        used = used_ids(running(before)) if before else set()
        mapped = with_references(source.definition, lambda named: self._resolver.resolve(named, source.name, used))
        self._called[source.name], self._needed[source.name] = called_by(mapped), needed_by(mapped)
        desired = read_definition(mapped, f"the definition of {source.name!r}")
        if before:
            desired["nodes"] = with_known_ids(desired["nodes"], before)
        if before and source.id == before.id and source.name == name_with_id(before.name, before.id):
            desired["name"] = before.name  # the source's name has the id appended, because others share the name
        desired = with_removals(desired, before, source.removes) if before else desired
        existing = before.settings if before else None
        if kept := settings_that_stay(desired["settings"], existing):
            log.warning(
                "%r has settings that its definition lacks and the service cannot remove; they stay: %s",
                source.name,
                one_line(", ".join(kept)),
            )
        for setting in settings_not_kept(desired["settings"], existing):
            self._not_kept[setting] += 1
        return {**desired, "settings": with_defaults(desired["settings"], existing)}

    def _is_active(self, source: Source, before: Workflow | None) -> bool:
        if self._activate is not None:
            return self._activate
        said = source.definition.get("active")
        return said if isinstance(said, bool) else bool(before and before.active)

    def _tags(self, source: Source, before: Workflow | None) -> tuple[str, ...] | None:
        """Return the tags to set, or None if they do not change, as for a definition without tags."""
        if source.definition.get("tags") is None:
            return None
        desired = tag_names(source.definition)
        self._resolver.check_tags(sorted(desired), source.name)
        existing = {tag.name for tag in before.tags or ()} if before else set()
        return tuple(sorted(desired)) if desired != existing else None

    def _new_tags(self, changes: Sequence[WorkflowChange]) -> tuple[str, ...]:
        desired = {tag for one in changes for tag in one.tags or ()}
        known = {tag.name for tag in self._target.client.tags.list()} if desired else set()
        return tuple(sorted(desired - known))

    def _folder_id(self, source: Source) -> str | None:
        named = source.definition.get("parentFolder")
        path = named.get("name") if isinstance(named, Mapping) else named
        if not isinstance(path, str) or not path:
            return self._target.folder_id
        return self._resolver.folder_id(path, source.name, self._target.project_id)

    def _circles(self, calls: Mapping[str, set[str]], changes: Mapping[str, WorkflowChange]) -> list[str]:
        """Return why groups can never be activated: the service activates a workflow only after those that it calls."""
        return [
            f"the workflows {_quoted(group)} call each other, and the service activates a workflow only "
            "after those that it calls: activate them by hand once, or deploy them inactive"
            for group in circles(calls)
            if any("activate" in changes[name].actions for name in group)
        ]


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def _archived(before: Workflow) -> WorkflowChange:
    words = "it has left the source" + (", and it is active" if before.active else "")
    return WorkflowChange(
        name=before.name,
        workflow_id=before.id,
        actions=("archive",),
        diff=(words,),
        desired={},
        before=before,
        tags=None,
        folder_id=None,
        project_id=None,
    )


@dataclass(frozen=True)
class _State:
    """The state of a workflow, compared with the desired one."""

    exists: bool
    is_renamed: bool
    was_active: bool
    is_active: bool
    is_held: bool
    runs: bool

    @classmethod
    def of(cls, before: Workflow | None, desired: Mapping[str, Any], *, is_active: bool) -> _State:
        if before is None:
            return cls(exists=False, is_renamed=False, was_active=False, is_active=is_active, is_held=False, runs=False)
        content = {name: value for name, value in desired.items() if name != "name"}
        return cls(
            exists=True,
            is_renamed=before.name != desired["name"],
            was_active=before.active,
            is_active=is_active,
            is_held=is_as_defined(before, content),
            runs=runs_as_defined(before, content),
        )

    @property
    def is_rewritten(self) -> bool:
        """Whether the content must be written; not if it already runs, even if the draft differs."""
        return not self.is_held and not (self.is_active and self.runs)

    @property
    def is_written(self) -> bool:
        """Whether the definition is written: a name can only be written together with the content."""
        return self.is_renamed or self.is_rewritten

    @property
    def differs(self) -> bool:
        """Whether the definition differs from the version that runs or, for an inactive workflow, from its draft."""
        return self.is_renamed or not (self.runs if self.is_active and self.was_active else self.is_held)

    def actions(self, *, has_other_tags: bool) -> tuple[Action, ...]:
        """Return the necessary actions."""
        if not self.exists:
            return ("create", "activate") if self.is_active else ("create",)
        happens: dict[Action, bool] = {
            "deactivate": self.was_active and not self.is_active,
            "rename": self.is_renamed,
            "update": self.is_rewritten or has_other_tags,
            "publish": self.was_active and self.is_active and not self.runs and not self.is_written,
            "activate": self.is_active and not self.was_active,
        }
        return tuple(action for action, does in happens.items() if does)


def _diff(before: Workflow | None, desired: Mapping[str, Any] | None, tags: Sequence[str] | None) -> list[str]:
    lines = [] if desired is None else list(changed_lines(running(before) if before else {}, desired))
    if tags is not None:
        old = sorted(tag.name or "" for tag in (before.tags or () if before else ()))
        lines.append(f"tags: {', '.join(old) or 'none'} -> {', '.join(tags) or 'none'}")
    return lines
