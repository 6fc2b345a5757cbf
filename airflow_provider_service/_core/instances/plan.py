"""Compare definitions with an instance, and make the plan that brings the instance in line with them.

The plan is complete before anything is written: every problem is found first, and one error names them all.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from airflow_provider_service._core.instances.deployment_record import DeploymentRecord
from airflow_provider_service._core.instances.diff import changed_lines
from airflow_provider_service._core.instances.faults import Contract, Problem, refuse_all
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
from airflow_provider_service.client._lookup import get_folder
from airflow_provider_service.client._values import one_line
from airflow_provider_service.client.errors import ServiceLookupError
from airflow_provider_service.client.resources._tags import MAX_TAG_CHARS

if TYPE_CHECKING:
    from airflow_provider_service._core.instances.references import Entry, Kind
    from airflow_provider_service._core.instances.source import Source
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import Workflow


log = logging.getLogger(__name__)

#: Actions on a workflow. A plan may combine several, such as an update and an activation.
Action = Literal["create", "rename", "update", "publish", "activate", "deactivate", "archive"]
UNCHANGED = "unchanged"
_QUOTED_ID = re.compile(r'"([\w.-]+)"')


@dataclass(frozen=True)
class WorkflowChange:
    name: str
    workflow_id: str  #: For a new workflow, a token that stands for the id in ``desired``.
    actions: tuple[Action, ...]
    diff: tuple[str, ...]
    desired: Mapping[str, Any]  #: The fields to write; empty if the content does not change.
    before: Workflow | None
    tags: tuple[str, ...] | None = None  #: None if they do not change.
    folder_id: str | None = None
    project_id: str | None = None

    @property
    def goes_live(self) -> bool:
        """Whether a version runs afterwards that does not run before."""
        is_rewritten = bool(self.desired) and self.before is not None and self.before.active
        return bool({"activate", "publish"} & {*self.actions}) or (is_rewritten and "deactivate" not in self.actions)

    def __str__(self) -> str:
        return f"{self.name}: {', '.join(self.actions) or UNCHANGED}"


@dataclass(frozen=True)
class DeploymentPlan:
    changes: Sequence[WorkflowChange]  #: One for each definition; workflows that are called come before their callers.
    new_tags: tuple[str, ...] = ()
    leaving: Sequence[WorkflowChange] = ()  #: Archived; callers come before the workflows that they call.
    record: DeploymentRecord | None = None
    notes: Sequence[str] = ()  #: What is no change, but worth knowing.

    @property
    def every(self) -> list[WorkflowChange]:
        return [*self.changes, *self.leaving]

    @property
    def changed(self) -> list[WorkflowChange]:
        return [change for change in self.every if change.actions]

    @property
    def writes(self) -> bool:
        return bool(self.changed) or self._record_differs

    @property
    def _record_differs(self) -> bool:
        return self.record is not None and self.record.differs(self.owned_ids({}))

    def owned_ids(self, ids: Mapping[str, str]) -> set[str]:
        """Return the ids to record; ``ids`` holds those of created workflows, by the tokens that stand for them."""
        owned = self.record.owned if self.record else frozenset[str]()
        deployed = {ids.get(change.workflow_id, change.workflow_id) for change in self.changes}
        return deployed | (owned - {change.workflow_id for change in self.leaving})

    @property
    def known_ids(self) -> dict[str, str]:
        return {change.name: change.workflow_id for change in self.changes if change.before}

    def lines(self) -> Iterator[str]:
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
        names: dict[str, list[str]] = {
            action: [change.name for change in self.every if action in change.actions] for action in get_args(Action)
        }
        return {**names, UNCHANGED: [change.name for change in self.changes if not change.actions]}


@dataclass(frozen=True)
class DeploymentTarget:
    client: Resources
    project_id: str | None = None  #: None to look in all projects, and create in the personal one of the key's user.
    folder_id: str | None = None
    #: Projects in which to create workflows, by the names of the workflows, where they are not ``project_id``.
    project_ids: Mapping[str, str] = field(default_factory=dict)
    #: Objects that do not exist yet, but will before the plan is carried out.
    planned: Mapping[Kind, Sequence[Entry]] = field(default_factory=dict)
    #: Known ids of workflows, by the names of their sources; the others are looked up by name among the rest.
    workflow_ids: Mapping[str, str] = field(default_factory=dict)
    deployment_name: str | None = None
    archive_missing: bool = False
    mapping: InstanceMapping = field(default_factory=InstanceMapping)


def make_plan(sources: Sequence[Source], target: DeploymentTarget, *, activate: bool | None = None) -> DeploymentPlan:
    """``activate`` is None for the value in each definition, or else the current state."""
    return _Planner(sources, target, activate).plan()


class _Planner:
    def __init__(self, sources: Sequence[Source], target: DeploymentTarget, activate: bool | None) -> None:
        # Definitions name no projects.
        names = MappedNames(
            replace(target.mapping, projects={}), {source.id: source.name for source in sources if source.id}
        )
        mapped = [names.source(source) for source in sources]
        names.log_unused()
        refuse_all(repeated_definitions(mapped))
        self._sources = {source.name: source for source in mapped}
        self._target, self._client, self._activate = target, target.client, activate
        self._directory = Directory(target.client, project_id=target.project_id, planned=target.planned)
        self._started: dict[str, set[str]] = {}
        #: How many definitions have a setting that the service does not keep, by its name.
        self._not_kept: Counter[str] = Counter()
        self._matches = Matches(mapped, self._directory, target.workflow_ids)
        by_id = {source.id: new.name for source, new in zip(sources, mapped, strict=True) if source.id}
        self._resolver = Resolver(self._directory, list(self._sources), by_id, self._matches.renamed)
        #: The resolver adds its own.
        self._problems = self._resolver.problems
        self._problems += names.problems + self._matches.problems

    def plan(self) -> DeploymentPlan:
        # Lists omit the description and the pinned data, so their items cannot be compared.
        existing = {
            name: self._client.workflows.get(self._matches.ids[name]) if name in self._matches.ids else None
            for name in self._sources
        }
        self._resolver.ids.update((name, workflow.id) for name, workflow in existing.items() if workflow)
        self._names_by_id = {workflow_id: name for name, workflow_id in self._resolver.ids.items()}
        calls, changes = dict[str, set[str]](), dict[str, WorkflowChange]()
        for name, source in self._sources.items():
            changes[name], calls[name] = self._change(source, existing[name])
        tags = {tag for change in changes.values() for tag in change.tags or ()}
        new_tags = tags - {tag.name for tag in self._client.tags.list()} if tags else tags
        names = {change.workflow_id: name for name, change in changes.items()}
        calls = {name: {names[id_] for id_ in ids & names.keys()} - {name} for name, ids in calls.items()}
        deployment = self._target.deployment_name
        record = DeploymentRecord.read(self._client, self._directory, deployment) if deployment else None
        leaving = self._leaving(record) if record and self._target.archive_missing else []
        notes = []
        if written := [name for name, change in changes.items() if change.desired]:
            contract = Contract(self._client)
            for name in written:
                change = changes[name]
                self._problems += contract.problems(self._sources[name].title, change.desired, change.before)
            notes += sorted(contract.gaps)
        refuse_all([*self._problems, *_circles(calls, changes), *self._still_needed(leaving)])
        ordered = [changes[name] for name in _in_order(calls)]
        archived = []
        for workflow in leaving:
            reason = "it has left the source" + (", and it is active" if workflow.active else "")
            archived.append(WorkflowChange(workflow.name, workflow.id, ("archive",), (reason,), {}, workflow))
        if self._not_kept:
            settings = ", ".join(f"{name} (workflows: {count})" for name, count in sorted(self._not_kept.items()))
            reason = "the service does not keep them, or keeps them only with a license"
            notes.append(f"settings that are not compared, since {reason}: {settings}")
        return DeploymentPlan(ordered, tuple(sorted(new_tags)), archived, record, notes)

    def _change(self, source: Source, before: Workflow | None) -> tuple[WorkflowChange, set[str]]:
        """Return the change of a workflow, and the ids of the workflows that its nodes call."""
        used = used_ids(running(before)) if before else set()
        mapped = with_references(source.definition, lambda named: self._resolver.resolve(named, source.title, used))
        self._started[source.name] = _started_by(mapped, when_it_fails=True)
        desired, tags = self._desired(source, mapped, before), self._tags(source, before)
        is_active = self._activate
        if is_active is None:
            said = source.definition.get("active")
            is_active = said if isinstance(said, bool) else bool(before and before.active)
        actions, is_other, is_written = _actions(before, desired, is_active=is_active, has_other_tags=tags is not None)
        change = WorkflowChange(
            name=source.name,
            workflow_id=self._resolver.ids[source.name],
            actions=actions,
            diff=self._diff(before, desired if is_other else None, tags),
            desired=desired if is_written else {},
            before=before,
            tags=tags,
            folder_id=self._folder_id(source) if before is None else None,
            project_id=self._target.project_ids.get(source.name, self._target.project_id),
        )
        return change, _started_by(mapped)

    def _desired(self, source: Source, mapped: Mapping[str, Any], before: Workflow | None) -> dict[str, Any]:
        desired = read_definition(mapped, f"the definition of {source.name!r}")
        if before:
            desired["nodes"] = with_known_ids(desired["nodes"], before)
            if source.id == before.id and source.name == name_with_id(before.name, before.id):
                desired["name"] = before.name  # the source's name has the id appended, because others share the name
            desired = with_removals(desired, before, source.removes)
        existing = before.settings if before else None
        if stay := settings_that_stay(desired["settings"], existing):
            log.warning(
                "%r has settings that its definition lacks and the service cannot remove; they stay: %s",
                source.name,
                one_line(", ".join(stay)),
            )
        self._not_kept.update(settings_not_kept(desired["settings"], existing))
        return {**desired, "settings": with_defaults(desired["settings"], existing)}

    def _tags(self, source: Source, before: Workflow | None) -> tuple[str, ...] | None:
        """Return the tags to set, or None if they do not change, as for a definition without tags."""
        if source.definition.get("tags") is None:
            return None
        desired = sorted(tag_names(source.definition))
        self._problems += [
            Problem(source.title, f"{tag!r} cannot be the name of a tag: it must have 1 to {MAX_TAG_CHARS} characters")
            for tag in desired
            if not 1 <= len(tag.strip()) <= MAX_TAG_CHARS
        ]
        existing = {tag.name for tag in before.tags or ()} if before else set()
        return tuple(desired) if {*desired} != existing else None

    def _folder_id(self, source: Source) -> str | None:
        named = source.definition.get("parentFolder")
        path = named.get("name") if isinstance(named, Mapping) else named
        if not isinstance(path, str) or not path:
            return self._target.folder_id
        if self._target.project_id is None:
            text = f"folder {path!r} can only be found in a project, and none is given"
            self._problems.append(Problem(source.title, text))
            return None
        try:
            return get_folder(self._client, path, project_id=self._target.project_id).id
        except ServiceLookupError as error:
            self._problems.append(Problem(source.title, str(error)))
            return None

    def _diff(
        self, before: Workflow | None, desired: Mapping[str, Any] | None, tags: Sequence[str] | None
    ) -> tuple[str, ...]:
        """Describe the changes in lines, with the names of the deployed workflows in place of their ids."""
        lines = [] if desired is None else list(changed_lines(running(before) if before else {}, desired))
        if tags is not None:
            old = sorted(tag.name or "" for tag in (before.tags or () if before else ()))
            lines.append(f"tags: {', '.join(old) or 'none'} -> {', '.join(tags) or 'none'}")
        return tuple(_QUOTED_ID.sub(self._named, line) for line in lines)

    def _named(self, quoted: re.Match[str]) -> str:
        name = self._names_by_id.get(quoted[1])
        return quoted[0] if name is None else repr(name)

    def _leaving(self, record: DeploymentRecord) -> list[Workflow]:
        """Return the workflows to archive; callers come before the workflows that they call."""
        gone = record.owned - {*self._matches.ids.values()}
        read = (self._client.workflows.get(workflow_id) for workflow_id in filter(is_plain_id, gone))
        existing = {f"{workflow.name} {workflow.id}": workflow for workflow in read if not workflow.is_archived}
        called = {key: _started_by(running(workflow)) for key, workflow in existing.items()}
        callers = {
            key: {other for other in existing if workflow.id in called[other]} for key, workflow in existing.items()
        }
        return [existing[key] for key in _in_order(callers)]

    def _still_needed(self, leaving: Sequence[Workflow]) -> Iterator[Problem]:
        """Yield why workflows cannot be archived: an active workflow of any project or a definition starts them."""
        if not leaving:
            return
        known = {*self._matches.ids.values(), *(workflow.id for workflow in leaving)}
        started = list(self._started.items())
        for workflow in self._client.workflows.list(active=True, exclude_pinned_data=True):
            if workflow.id not in known:
                started.append((workflow.name, _started_by(running(workflow), when_it_fails=True)))
        for gone in leaving:
            if names := [name for name, ids in started if gone.id in ids]:
                text = (
                    f"{gone.name!r} ({gone.id}) has left the source and would be archived, but "
                    f"{', '.join(map(repr, names))} would still start it; change that first, or return it to the source"
                )
                yield Problem("", text)


def _actions(
    before: Workflow | None, desired: Mapping[str, Any], *, is_active: bool, has_other_tags: bool
) -> tuple[tuple[Action, ...], bool, bool]:
    """Return the necessary actions, whether the plan shows other content, and whether content is written."""
    if before is None:
        return ("create", "activate") if is_active else ("create",), True, True
    content = {name: value for name, value in desired.items() if name != "name"}
    is_renamed = before.name != desired["name"]
    is_held, runs = is_as_defined(before, content), runs_as_defined(before, content)
    # What runs already is not written, even if the draft differs. A name can only be written together with the content.
    is_rewritten = not is_held and not (is_active and runs)
    is_written = is_renamed or is_rewritten
    is_other = is_renamed or not (runs if is_active and before.active else is_held)
    happens: dict[Action, bool] = {
        "deactivate": before.active and not is_active,
        "rename": is_renamed,
        "update": is_rewritten or has_other_tags,
        "publish": before.active and is_active and not runs and not is_written,
        "activate": is_active and not before.active,
    }
    return tuple(action for action, does in happens.items() if does), is_other, is_written


def _started_by(definition: Mapping[str, Any], *, when_it_fails: bool = False) -> set[str]:
    part = {"nodes": definition.get("nodes")}
    if when_it_fails:
        part["settings"] = {"errorWorkflow": (definition.get("settings") or {}).get("errorWorkflow")}
    return {named.id for named in references(part) if named.kind == "workflow" and named.id}


def _in_order(calls: Mapping[str, set[str]]) -> list[str]:
    """Sort workflows so that each comes after those that it calls, unless they call each other."""
    done = dict[str, None]()
    begun = set[str]()
    for first in sorted(calls):
        waiting = [first]
        while waiting:
            name = waiting[-1]
            if name in begun:
                done.setdefault(waiting.pop())
            else:
                begun.add(name)
                waiting += sorted((calls[name] & calls.keys()) - begun, reverse=True)
    return list(done)


def _circles(calls: Mapping[str, set[str]], changes: Mapping[str, WorkflowChange]) -> Iterator[Problem]:
    """Yield why groups can never be activated: the service activates a workflow only after those that it calls."""
    reached = {name: _reached(name, calls) for name in calls}
    grouped: set[str] = set()
    for name in sorted(calls):
        group = [other for other in sorted(reached[name]) if name in reached[other]]
        if len(group) > 1 and name not in grouped:
            grouped.update(group)
            if any("activate" in changes[other].actions for other in group):
                yield Problem(
                    "",
                    f"the workflows {', '.join(map(repr, group))} call each other, and the service activates a "
                    "workflow only after those that it calls: activate them by hand once, or deploy them inactive",
                )


def _reached(name: str, calls: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [name]
    while waiting:
        new = (calls[waiting.pop()] & calls.keys()) - reached
        reached |= new
        waiting += new
    return reached
