"""Start a workflow through the bridge, a workflow on the service that starts others. Its call carries the run key.

The bridge's executions carry the run key, and lead to those of the workflow: they name what they have started, or what
they have started names them as its parent.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_service._core.arguments import require_items
from airflow_provider_service._core.runs import searching
from airflow_provider_service._core.runs.attempt import CLOCK_SKEW, RunKey
from airflow_provider_service._core.runs.bridge import (
    START_NODE,
    BridgeSecret,
    Installer,
    all_bridges,
    find_bridge,
    project_of,
)
from airflow_provider_service._core.runs.searching import (
    RUN_KEY_HEADER,
    EarlierRuns,
    FoundRun,
    IsAnswered,
    RunSearch,
    find_earlier_runs,
    list_back,
    never,
    starting_call,
)
from airflow_provider_service._core.runs.start_methods.start_method import StartMethod
from airflow_provider_service.client import errors
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
from airflow_provider_service.client._http.start_answers import is_refusal
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.resources._executions import Execution
from airflow_provider_service.links.service import execution_url

if TYPE_CHECKING:
    from airflow_provider_service._core.runs.request import Kind
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client.models import WebhookAnswer, Workflow

log = logging.getLogger(__name__)

#: Seconds after its activation within which a server may not know yet that it can start a workflow.
PUBLISHED_WITHIN_SECONDS = 10.0
#: Seconds until the next call of the bridge for a workflow that the server cannot start yet.
_PAUSE_SECONDS = 0.5
# In the order in which the service chooses the trigger that begins the run.
_BEGUN_AT: tuple[Kind, ...] = ("sub-workflow", "manual")
_CHILD_MODES = frozenset({"integrated", "retry", None})
_ONLY_PUBLISHED = (
    "the server starts only published workflows, but cannot publish one that has only a manual trigger; use "
    'start="mcp" with mode="manual", or give it a sub-workflow trigger'
)
_NOT_ACTIVE = "Workflow is not active and cannot be executed."


class BridgeStartMethod(StartMethod):
    name = "bridge"
    # Set by ``prepare``.
    _bridge: Workflow
    _items: list[Any]
    # The time until which the server may not know yet that the workflow was activated; None until it says so.
    _published_by: float | None = None

    @cached_property
    def _children(self) -> Children:
        workflow = self.request.workflow
        return Children(workflow.id, self.stopped, are_kept=workflow.keeps_executions)

    def reason_unavailable(self) -> str | None:
        request = self.request
        if request.mode == "manual":
            return "the bridge runs the published version, not the draft"
        if request.only_for_webhooks:
            return request.only_for_webhooks
        # The service begins at this trigger, whichever is named.
        triggers = request.all_triggers()
        first = next((trigger for kind in _BEGUN_AT for trigger in triggers if trigger.kind == kind), None)
        if first is None:
            return request.missing_trigger_message(set(_BEGUN_AT))
        if request.trigger_node not in (None, first.node):
            return f"through the bridge, the service begins at {first.node!r}, not at {request.trigger_node!r}"
        if _is_out_of_reach(request.workflow):
            return f"its only trigger is manual, and {_ONLY_PUBLISHED}"
        return None

    def may_have_been_used(self) -> bool:
        return bool(self.request.triggers_ever(set(_BEGUN_AT)))

    def keeps_executions(self) -> bool:
        return all(bridge.keeps_executions for bridge in all_bridges(self.client))

    def earlier(self) -> EarlierRuns:
        bridges = [bridge.id for bridge in all_bridges(self.client)]
        search = BridgeSearch(bridges, self._children, self.attempt.since)
        return find_earlier_runs(self.client, search, self.attempt.key, self.stopped)

    def prepare(self) -> None:
        request = self.request
        request.refuse_rendered_text()
        self._items = _items(request.payload)
        may_be_inactive = _starts_drafts(request.workflow)
        request.refuse_unusable(may_be_inactive=may_be_inactive)
        self._bridge = bridge = self._find_or_install()
        if request.activate or not may_be_inactive:
            try:
                request.make_active(self.client)
            except errors.ServiceInvalidRequestError as error:
                # Older servers cannot activate it, but can start it. If a server cannot, the bridge reports that.
                log.info("%s was not activated: %s", request.label, error)
        self.called, self.is_kept = f"bridge {bridge.id}", bridge.keeps_executions
        self.search = BridgeSearch([bridge.id], self._children, clock().utcnow() - CLOCK_SKEW)

    def _find_or_install(self) -> Workflow:
        """Find the bridge of the workflow's project or any that accepts this connection's calls, or install one."""
        secret = BridgeSecret(self.client.transport.config)
        bridges = [bridge for bridge in all_bridges(self.client) if bridge.active]
        bridge = find_bridge(bridges, secret, project_id=project_of(self.request.workflow))
        bridge = bridge or find_bridge(bridges, secret)
        if bridge is not None:
            return bridge
        log.info("The bridge is missing; installing it")
        return Installer(self.client, secret).install().workflow

    def send(self) -> WebhookAnswer:
        headers = BridgeSecret(self.client.transport.config).headers(self.client)
        return self.client.webhooks.call(
            self.client.webhooks.find(self._bridge),
            {"workflowId": self.request.workflow.id, "items": self._items},
            headers={**headers, RUN_KEY_HEADER: self.attempt.key.header},
            timeout=self.timeout,
            stopped=self.stopped,
        )

    def started_by(self, answer: WebhookAnswer) -> str | None:
        execution_id = answer.execution_id
        if execution_id is None:
            raise errors.ServiceRunInDoubtError(
                f"{self.called} answered {answer.status} without naming its execution, so it is unknown what "
                f"it started; install it again: {shown(answer.body)}"
            )
        started = self._children.wait_for(self.client, execution_id)
        if started is not None and started.execution_id is not None:
            return started.execution_id
        is_too_early = False
        if started is not None and started.failure is not None and started.failure.message == _NOT_ACTIVE:
            self._published_by = self._published_by or clock().monotonic() + PUBLISHED_WITHIN_SECONDS
            is_too_early = clock().monotonic() < self._published_by
        if not is_too_early or clock().wait(self.stopped, _PAUSE_SECONDS):
            raise self._failed(execution_id, started)
        return None

    def is_refusal(self, error: errors.ServiceApiError) -> bool:
        if isinstance(error, errors.ServiceWebhookRefusedError):
            log.error("Bridge %s refuses the calls of this connection; install it again", self._bridge.id)
        return is_refusal(error)

    def _failed(self, execution_id: str, started: Started | None) -> errors.ServiceError:
        page = execution_url(self.client.base_url, self._bridge.id, execution_id)
        if started is None:
            return errors.ServiceRunInDoubtError(
                f"execution {execution_id} of the bridge does not show what it started: {page}"
            )
        self.started_nothing = True
        node, message = started.failure or (None, None)
        text = f"the bridge could not start {self.request.label}: {message}; nothing was started: {page}"
        return errors.ServiceRunNotStartedError(text) if node is None else errors.ServiceInputError(text)


def _is_out_of_reach(workflow: Workflow) -> bool:
    """Whether other workflows cannot start it, because its only trigger is manual."""
    kinds = [str(node.get("type")) for node in workflow.nodes or [] if not node.get("disabled")]
    others = [kind for kind in kinds if kind.endswith(("Trigger", ".webhook")) and not kind.endswith(".manualTrigger")]
    return not (_starts_drafts(workflow) or workflow.active or others)


def _starts_drafts(workflow: Workflow) -> bool:
    """Whether other workflows start it although it is not active, as on older servers."""
    return "source_workflow_id" not in workflow.model_fields_set


def _items(payload: Any) -> list[Any]:
    if payload is None:
        return [{}]
    if isinstance(payload, Mapping):
        return [payload]
    require_items(payload)
    return list(payload)


class BridgeSearch:
    def __init__(self, bridges: Iterable[str], children: Children, since: datetime | None) -> None:
        self._searches = [RunSearch(bridge, since, are_runs=False) for bridge in bridges]
        self._children = children

    def made_by(self, client: ServiceClient, key: RunKey, is_answered: IsAnswered = never) -> str | None:
        called = (search.made_by(client, key, is_answered) for search in self._searches)
        execution_id = next(filter(None, called), None)
        started = None if execution_id is None else self._children.started_by(client, execution_id)
        return started.execution_id if started else None

    def earlier(self, client: ServiceClient, key: RunKey, *, exhaustive: bool = False) -> EarlierRuns:
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
            except errors.ServiceNotFoundError:
                continue
            if attempt is not None:
                yield FoundRun(child, attempt)


def _read(client: ServiceClient, execution_id: str) -> Execution:
    try:
        return client.executions.get(execution_id)
    except errors.ServiceNotFoundError:
        # It has ended and was not kept, so it may have succeeded: the wait decides what that means.
        return Execution(id=execution_id, status="success")


class Started(NamedTuple):
    execution_id: str | None
    #: Why there is none; it names a node only if the service refused to start one.
    failure: Failure | None = None


class Children:
    """The executions of a workflow that the bridge has started."""

    def __init__(self, workflow_id: str, stopped: threading.Event, *, are_kept: bool) -> None:
        self._workflow_id, self._stopped, self._are_kept = workflow_id, stopped, are_kept
        self._ended_since: dict[str, float] = {}

    def started_by(self, client: ServiceClient, execution_id: str) -> Started | None:
        """Find what an execution of the bridge has started; None while that is unknown."""
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
            return searching.search_for(
                lambda: self.started_by(client, execution_id), searching.VISIBLE_WITHIN_SECONDS, self._stopped
            )

        started = search()
        # If its end came late, this search was too short to show that it starts nothing more.
        return search() if started is None and execution_id in self._ended_since else started

    def _starts_nothing_more(self, client: ServiceClient, execution: Execution) -> bool:
        """A busy server was seen to start a workflow 0.6 s after the end that a canceled execution shows."""
        if execution.status == "success" or not self._are_kept:
            return False
        stopped_at = execution.stopped_at
        if stopped_at is not None and client.transport.server_clock.now() - stopped_at > CLOCK_SKEW:
            return True
        now = clock().monotonic()
        return now - self._ended_since.setdefault(execution.id, now) >= searching.VISIBLE_WITHIN_SECONDS

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
        later = list_back(client, self._workflow_id, lambda execution: execution.number < parent.number)
        return next((execution.id for execution in later if self._parent(client, execution) == parent.id), None)

    def _parent(self, client: ServiceClient, execution: Execution) -> str | None:
        if execution.mode not in _CHILD_MODES:
            return None
        try:
            return parent_execution_id(with_data(client, execution.id))
        except errors.ServiceNotFoundError:  # deleted meanwhile
            return None
