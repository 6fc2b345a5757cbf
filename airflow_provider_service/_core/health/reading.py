"""Perform a check of the health of workflows, once or, for a sensor, poll by poll.

The statistics come from the executions themselves: the service's insights lag behind, and do not distinguish workflows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, islice
from random import Random
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.health.report import Health, Member
from airflow_provider_service._core.health.statistics import History, Tally, breaches
from airflow_provider_service._core.references import OPTIONAL_WORKFLOW, PROJECT, tag_name_in, workflows_with_tag
from airflow_provider_service._core.waits.conditions import PollResult
from airflow_provider_service.client._models import in_utc
from airflow_provider_service.client.errors import ServiceLookupError, ServiceNotOfferedError
from airflow_provider_service.links.service import EXECUTIONS_PAGE, WORKFLOW_EXECUTIONS_PAGE, page_url

if TYPE_CHECKING:
    from airflow_provider_service._core.health.check import HealthCheck
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client.models import Execution, Workflow


log = logging.getLogger(__name__)

# A line is logged each time that so many executions have been read.
PROGRESS_EVERY = 10_000
# So many older executions in a row, a page, mean that there are no newer ones behind them.
OLDER_IN_A_ROW = 250


def perform(check: HealthCheck, client: ServiceClient, window_end: datetime | None = None) -> Health:
    """Read the executions of the window and judge each workflow. Safe to repeat.

    One page is in memory at a time, and of each workflow its counts and a limited number of durations.

    :param window_end: end of the window; None, or a time to come, for now.
    """
    project_id = PROJECT.id_in(check, client)
    # What is kept of each workflow while executions are read: whole workflows may be large.
    workflows = {
        workflow.id: (workflow.name, workflow.active, workflow.keeps_executions)
        for workflow in _workflows(check, client, project_id)
        if check.workflow_id or not workflow.is_archived
    }
    if not workflows:
        # A check of nothing must not pass.
        raise ServiceLookupError("there is no workflow to check, or this key may not see it")
    # The offset of the service's clock is known once it has answered.
    now = client.transport.server_clock.now()
    # In UTC, because a time zone whose clocks change would make the window longer or shorter.
    end = min(in_utc(window_end).astimezone(UTC), now) if window_end else now
    since = end - timedelta(seconds=check.window)
    before = end if end < now else None
    random = Random(0)
    tallies = {workflow_id: Tally(random) for workflow_id in workflows}
    history = History(since, end)
    has_run = set()
    # Running executions are in none of these lists, and would count as nothing.
    filters = [(id_, None) for id_ in workflows] if check.names_workflows else [(None, project_id)]
    lists = (partial(client.executions.list, workflow_id=id_, project_id=project) for id_, project in filters)
    executions = chain.from_iterable(_started_since(since, before, list_executions) for list_executions in lists)
    for number, execution in enumerate(executions, start=1):
        # Runs in the editor say nothing about the workflow in production.
        if execution.workflow_id in tallies and execution.mode != "manual" and execution.started_at is not None:
            has_run.add(execution.workflow_id)
            tallies[execution.workflow_id].count(execution.status, execution.started_at, execution.stopped_at)
            history.count(execution.status, execution.started_at)
        if number % PROGRESS_EVERY == 0:
            log.info("%d executions of the window were read", number)
    members = []
    for id_, (name, is_active, keeps_executions) in workflows.items():
        if check.names_workflows or is_active or id_ in has_run:
            statistics = tallies[id_].statistics(end)
            url = page_url(client.base_url, WORKFLOW_EXECUTIONS_PAGE, id_)
            members.append(Member(id_, name, keeps_executions, statistics, breaches(check, statistics), url))
    url = members[0].url if len(members) == 1 else page_url(client.base_url, EXECUTIONS_PAGE)
    return Health(since, end, now, check.window, check.judges, members, history, url)


def _workflows(check: HealthCheck, client: ServiceClient, project_id: str | None) -> Iterator[Workflow]:
    if check.workflow_id is not None:
        yield client.workflows.get(check.workflow_id, exclude_pinned_data=True)
    elif check.workflow_name is not None:
        yield OPTIONAL_WORKFLOW.named_in(check, client)
    else:
        yield from workflows_with_tag(client, tag_name_in(check, client), project_id=project_id)


def _started_since(
    since: datetime, before: datetime | None, list_executions: Callable[..., Iterator[Execution]]
) -> Iterator[Execution]:
    executions = list_executions(started_after=since, started_before=before)
    try:
        first = list(islice(executions, 1))
    except ServiceNotOfferedError:  # before n8n 2.37, which has the parameter
        return _newest(list_executions(), since, before)
    return chain(first, executions)


def _newest(executions: Iterator[Execution], since: datetime, before: datetime | None) -> Iterator[Execution]:
    """Return the executions that started in a window; the list is ordered by ids, not quite by starts."""
    older = 0
    for execution in executions:
        if execution.started_at is None:
            continue
        if execution.started_at > since:
            older = 0
            if before is None or execution.started_at < before:
                yield execution
            continue
        older += 1
        if older == OLDER_IN_A_ROW:
            return


@dataclass(frozen=True)
class HealthPoll:
    check: HealthCheck
    subject: str = "the health of workflows"
    unmet: str = "the workflows were not healthy"

    def poll(self, client: ServiceClient) -> PollResult:
        health = perform(self.check, client)
        return PollResult(health.is_healthy, health.message, health.to_xcom())

    def to_arguments(self) -> dict[str, Any]:
        return asdict(self.check)
