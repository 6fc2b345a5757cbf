"""Find what the bridge has started: its executions carry the run key, and lead to those of the workflow."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_service._core.runs import start_and_find
from airflow_provider_service._core.runs.bridge.definition import START_NODE
from airflow_provider_service._core.runs.search import (
    CLOCK_SKEW,
    EarlierRuns,
    FoundRun,
    RunSearch,
    list_back,
    starting_call,
)
from airflow_provider_service._core.runs.start_and_find import IsAnswered, never
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._constraints import ACTIVE_STATUSES, ENDED_STATUSES
from airflow_provider_service.client._execution_data import (
    Failure,
    failed_node,
    failure_of,
    parent_execution_id,
    sub_execution_id,
    with_data,
)
from airflow_provider_service.client.errors import ServiceNotFoundError
from airflow_provider_service.client.models import Execution

if TYPE_CHECKING:
    from airflow_provider_service._core.runs.run_key import CallTag, RunKey
    from airflow_provider_service.client import ServiceClient

log = logging.getLogger(__name__)

_CHILD_MODES = frozenset({"integrated", "retry", None})


class Started(NamedTuple):
    """What an execution of the bridge has started.

    :param execution_id: the execution; None if there is none.
    :param failure: why there is none; it names a node only if the service refused to start one.
    """

    execution_id: str | None
    failure: Failure | None = None


class Children:
    """The executions of a workflow that the bridge has started.

    :param workflow_id: the workflow.
    :param stopped: set from outside to end the search.
    :param are_kept: whether the workflow keeps its executions, so that a search can find them.
    """

    def __init__(self, workflow_id: str, stopped: threading.Event, *, are_kept: bool) -> None:
        self._workflow_id, self._stopped, self._are_kept = workflow_id, stopped, are_kept
        self._ended_since: dict[str, float] = {}

    def started_by(self, client: ServiceClient, execution_id: str) -> Started | None:
        """Find what an execution of the bridge has started; None while that is unknown.

        :raises ServiceNotFoundError: the execution of the bridge does not exist.
        """
        execution = with_data(client, execution_id)
        child = sub_execution_id(execution)
        if child is not None:
            return Started(child)
        if execution.status not in ENDED_STATUSES:
            return None
        failure = failure_of(execution)
        if execution.status == "error" and failed_node(execution) == START_NODE:
            return Started(None, failure)
        # It was canceled or killed, or does not show its data yet: older servers show an end before the data.
        is_over = self._starts_nothing_more(client, execution)  # before the search, which takes time itself
        child = self._of_parent(client, execution)
        if child is not None:
            return Started(child)
        if not is_over:
            return None
        return Started(None, Failure(None, failure.message or f"its execution is {execution.status}"))

    def wait_for(self, client: ServiceClient, execution_id: str) -> Started | None:
        """Wait until it is known what an execution of the bridge has started; None if that stays unknown."""

        def search() -> Started | None:
            return start_and_find.search_for(
                lambda: self.started_by(client, execution_id), start_and_find.VISIBLE_WITHIN_SECONDS, self._stopped
            )

        started = search()
        # If its end came late, this search was too short to show that it starts nothing more.
        return search() if started is None and execution_id in self._ended_since else started

    def _starts_nothing_more(self, client: ServiceClient, execution: Execution) -> bool:
        """Whether an execution of the bridge ended so long ago that anything it started is visible.

        A busy server was seen to start a workflow 0.6 s after the end that a canceled execution shows.
        """
        if execution.status == "success" or not self._are_kept:
            return False
        stopped_at = execution.stopped_at
        if stopped_at is not None and client.transport.server_time() - stopped_at > CLOCK_SKEW:
            return True
        now = clock().monotonic()
        return now - self._ended_since.setdefault(execution.id, now) >= start_and_find.VISIBLE_WITHIN_SECONDS

    def active(self, client: ServiceClient) -> Iterator[tuple[Execution, str]]:
        """List the executions that have not ended, each with the id of the bridge's execution that started it."""
        seen: set[str] = set()
        for status in ACTIVE_STATUSES:
            for execution in client.executions.list(workflow_id=self._workflow_id, status=status):
                parent = None if execution.id in seen else self._parent(client, execution)
                seen.add(execution.id)
                if parent is not None:
                    yield execution, parent

    def _of_parent(self, client: ServiceClient, parent: Execution) -> str | None:
        """Find the execution that names this parent, among those that were created after the parent."""
        later = list_back(client, self._workflow_id, lambda one: one.number < parent.number)
        return next((one.id for one in later if self._parent(client, one) == parent.id), None)

    def _parent(self, client: ServiceClient, execution: Execution) -> str | None:
        if execution.mode not in _CHILD_MODES:
            return None
        try:
            return parent_execution_id(with_data(client, execution.id))
        except ServiceNotFoundError:  # deleted meanwhile
            return None


class BridgeSearch:
    """Searches bridges for the calls of a task run, and finds what they have started.

    :param bridges: ids of the bridges.
    :param children: the executions of the workflow that the bridge has started.
    :param since: date and time by our clock before which no call was made; None if that is unknown.
    """

    def __init__(self, bridges: Iterable[str], children: Children, since: datetime | None) -> None:
        self._searches = [RunSearch(bridge, since, are_runs=False) for bridge in bridges]
        self._children = children

    def made_by(self, client: ServiceClient, tag: CallTag, is_answered: IsAnswered = never) -> str | None:
        """Find the execution that a call with exactly this tag has started."""
        called = (search.made_by(client, tag, is_answered) for search in self._searches)
        execution_id = next(filter(None, called), None)
        started = None if execution_id is None else self._children.started_by(client, execution_id)
        return started.execution_id if started else None

    def earlier(self, client: ServiceClient, key: RunKey, *, exhaustive: bool = False) -> EarlierRuns:
        """Find the executions that this attempt and earlier ones have started.

        :param exhaustive: search longer for executions that wait for a worker, before concluding that there is none.
        """
        found: dict[str, FoundRun] = {}
        unreadable: list[Execution] = []
        for search in self._searches:
            calls = search.earlier(client, key, exhaustive=exhaustive)
            unreadable += calls.unreadable
            for call in calls.found:
                started = self._children.wait_for(client, call.execution.id)
                if started is None:
                    unreadable.append(call.execution)
                elif started.execution_id is not None:
                    child = _read(client, started.execution_id)
                    found[child.id] = FoundRun(child, call.attempt)
                else:
                    log.info("Execution %s of the bridge started nothing", call.execution.id)
        if key.was_cleared:
            found = {**{run.execution.id: run for run in self._still_active(client, key)}, **found}
        return EarlierRuns(sorted(found.values(), key=lambda run: -run.execution.number), unreadable)

    def _still_active(self, client: ServiceClient, key: RunKey) -> Iterator[FoundRun]:
        """Find the executions that are active since before the DAG run was cleared; the bridge's own may be too old."""
        for child, parent in self._children.active(client):
            try:
                attempt = key.attempt_of(starting_call(with_data(client, parent)).tag)
            except ServiceNotFoundError:
                continue
            if attempt is not None:
                yield FoundRun(child, attempt)


def _read(client: ServiceClient, execution_id: str) -> Execution:
    try:
        return client.executions.get(execution_id)
    except ServiceNotFoundError:
        # It has ended and was not kept, so it may have succeeded: the wait decides what that means.
        return Execution(id=execution_id, status="success")
