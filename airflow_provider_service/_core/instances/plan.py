"""The plan of a deployment, which is complete before anything is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from airflow_provider_service._core.instances.deployment_record import DeploymentRecord
    from airflow_provider_service.client.models import Workflow

#: Actions on a workflow. A plan may combine several, such as an update and an activation.
Action = Literal["create", "rename", "update", "publish", "activate", "deactivate", "archive"]
UNCHANGED = "unchanged"


@dataclass(frozen=True)
class WorkflowChange:
    """The planned actions on one workflow.

    :param name: name of the workflow.
    :param workflow_id: its id; for a new one, a token that stands for the id in ``desired``.
    :param actions: actions on it; empty if it is up to date.
    :param diff: the changes, as lines.
    :param desired: the fields to write, with the ids of this instance; empty if its content does not change.
    :param before: the existing workflow; None if it does not exist yet.
    :param tags: names of the tags to set; None if they do not change.
    :param folder_id: id of the folder in which to create it.
    :param project_id: id of the project in which to create it; None for the personal project of the key's user.
    """

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
    """The changes of a deployment.

    :param changes: one for each definition; workflows that are called come before their callers.
    :param new_tags: names of the tags to create.
    :param leaving: one for each workflow to archive; callers come before the workflows that they call.
    :param record: the workflows that earlier deployments with the same name have deployed; None without a record.
    :param not_kept: how many definitions have a setting that the service does not keep, by its name.
    """

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
        """Return the ids to record, including those of workflows without a definition that are not archived.

        :param ids: ids of the created workflows, by the tokens that stand for them.
        """
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
    """Refuse a deployment if it has problems, and name all of them.

    :raises ServiceInputError: there are problems.
    """
    if problems:
        listed = "\n".join(f"- {one}" for one in dict.fromkeys(problems))
        raise ServiceInputError(f"the workflows cannot be deployed, and nothing was written:\n{listed}")
