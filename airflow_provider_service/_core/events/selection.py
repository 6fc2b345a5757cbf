"""Which workflows a watcher watches, and their ids, which are read for all watchers and renewed every few polls."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_service._core.arguments import as_texts, require, require_flag, text_or_texts
from airflow_provider_service._core.references import PROJECT, TAG, tag_name_in, workflows_with_tag
from airflow_provider_service.client._lookup import get_workflow

if TYPE_CHECKING:
    from airflow_provider_service._core.events.finished_executions import Snapshot, Workflows
    from airflow_provider_service._core.waits.watch import FaultTolerance
    from airflow_provider_service.client import ServiceClient


#: Polls after which the workflows of a tag or a project are read again.
POLLS_TO_RENEWAL = 10


class Selection(NamedTuple):
    """The workflows of a watcher: some by their ids or names, those of a tag or a project, or all."""

    workflow_id: tuple[str, ...] | None = None
    workflow_name: tuple[str, ...] | None = None
    tag_id: str | None = None
    tag_name: str | None = None
    project_id: str | None = None
    project_name: str | None = None
    all_workflows: bool = False

    @classmethod
    def of_arguments(cls, arguments: Mapping[str, Any]) -> Selection:
        """Read the arguments of a trigger, in which a single id or name need not be a list."""
        require_flag("all_workflows", arguments["all_workflows"])
        for name in (*TAG.fields, *PROJECT.fields):
            if arguments[name] is not None:
                as_texts(name, [arguments[name]])
        several = {name: _texts(name, arguments[name]) for name in ("workflow_id", "workflow_name")}
        selection = cls(**{**arguments, **several})
        selection._check()
        return selection

    def _check(self) -> None:
        has_project = self.project_id is not None or self.project_name is not None
        criteria = [self.workflow_id, self.workflow_name, self.tag_id, self.tag_name, self.all_workflows or None]
        chosen = sum(criterion is not None for criterion in criteria)
        narrows = self.workflow_id is None and not self.all_workflows
        require(
            chosen == 1 or (chosen == 0 and has_project),
            "give one of workflow_id, workflow_name, tag_id, tag_name, project_id, project_name and all_workflows=True",
        )
        require(not has_project or narrows, "a project can only narrow workflow_name, tag_id and tag_name")
        PROJECT.check(self, are_rendered=True)

    @property
    def key(self) -> str:
        if self.workflow_id is not None and len(self.workflow_id) == 1:
            return self.workflow_id[0]
        return hashlib.sha256(json.dumps(self._asdict(), sort_keys=True).encode()).hexdigest()[:32]

    @property
    def changes(self) -> bool:
        """Whether workflows may join or leave the selection while it is watched."""
        return self.workflow_id is None and self.workflow_name is None and not self.all_workflows

    def __str__(self) -> str:
        conditions = {name: value for name, value in self._asdict().items() if value}
        if self.all_workflows:
            return "all workflows"
        words = {name: ", ".join(value) if isinstance(value, tuple) else value for name, value in conditions.items()}
        return " and ".join(f"{name} {value}" for name, value in words.items())

    def find(self, client: ServiceClient) -> Workflows:
        if self.all_workflows:
            return None
        if self.workflow_id is not None:
            return frozenset(self.workflow_id)
        project_id = PROJECT.id_in(self, client)
        if self.workflow_name is not None:
            return frozenset(get_workflow(client, name, project_id=project_id).id for name in self.workflow_name)
        tag = tag_name_in(self, client)
        # Archived workflows count, because one that was just archived may still run.
        listed = workflows_with_tag(client, tag, project_id=project_id)
        return frozenset(workflow.id for workflow in listed)


def _texts(name: str, value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    texts = text_or_texts(name, value)
    require(texts, f"{name} must not be empty")
    return tuple(sorted(set(texts)))


@dataclass
class _Membership:
    workflows: Workflows
    #: The number of the poll that reads them again.
    due: int
    faults: FaultTolerance
    #: The workflows that are known to belong, or not to belong, to the selection.
    seen: set[str | None] = field(default_factory=set)


class Members:
    def __init__(self) -> None:
        self._memberships: dict[tuple[str, Selection], _Membership] = {}
        self._finding = asyncio.Lock()

    async def of(
        self,
        selection: Selection,
        snapshot: Snapshot,
        poll: int,
        find: Callable[[Callable[[ServiceClient], Workflows]], Awaitable[Workflows]],
    ) -> Workflows:
        """The workflows are read again if the poll has seen a new one, or every few polls; ``find`` passes a client."""
        from airflow_provider_service._core.waits.watch import FaultTolerance  # not when a DAG file is parsed

        seen = {execution.workflow_id for execution in (*snapshot.active, *snapshot.ended)}
        key = snapshot.base_url, selection
        async with self._finding:
            membership = self._memberships.get(key)
            if membership is None:
                workflows, faults = await find(selection.find), FaultTolerance(f"the workflows of {selection}", None)
                membership = self._memberships[key] = _Membership(workflows, poll + POLLS_TO_RENEWAL, faults)
            elif selection.changes and (poll >= membership.due or not membership.seen.issuperset(seen)):
                try:
                    membership.workflows, membership.due = await find(selection.find), poll + POLLS_TO_RENEWAL
                except Exception as error:  # noqa: BLE001 - whatever it is, it may have passed by the next poll
                    membership.faults.tolerates(error)
                    return membership.workflows
                membership.faults.succeeded()
            membership.seen.update(seen)
            return membership.workflows
