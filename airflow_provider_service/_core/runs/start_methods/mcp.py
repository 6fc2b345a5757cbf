"""Start a workflow through the service's MCP endpoint, which names the execution that it starts.

The call carries the run key if the trigger takes data of any shape. A schedule, a chat or a manual trigger does not: if
the answer to its call is lost, only the executions that were started since show whether the call has started one.

Find executions that show that a call started them, and when, but not which call.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from airflow_provider_service._core.arguments import require
from airflow_provider_service._core.runs.searching import (
    CLOCK_SKEW,
    KEY_IN_HEADERS,
    RUN_KEY_FIELD,
    RUN_KEY_HEADER,
    EarlierRuns,
    IsAnswered,
    IsOlder,
    KeyLocation,
    QueuedExecutions,
    RunSearch,
    began_before,
    find_earlier_runs,
    list_back,
    never,
    read_again,
)
from airflow_provider_service._core.runs.start_methods.start_method import CallStarter
from airflow_provider_service.client import errors
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._constraints import FAILED_STATUSES
from airflow_provider_service.client._execution_data import pinned_nodes
from airflow_provider_service.client._http.encoding import to_json
from airflow_provider_service.client._models import METHODS_WITHOUT_BODY
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import ServiceRunInDoubtError
from airflow_provider_service.client.resources._workflows import writable

if TYPE_CHECKING:
    from airflow_provider_service._core.runs.idempotent_start import IdempotentStart
    from airflow_provider_service._core.runs.request import Kind, RunRequest, Trigger
    from airflow_provider_service._core.runs.searching import CallTag, RunKey, Search
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client._constraints import ExecutionStatus, Mode
    from airflow_provider_service.client.models import Execution, StartedExecution, Workflow


class KeylessSearch:
    """Searches a workflow for executions that a task run may have started through MCP. None is certainly its own.

    :param workflow_id: the workflow.
    :param trigger: name of the node that began them. The service pins the data that a call passes to the node, which
        distinguishes these runs from those that the node begins by itself.
    :param mode: mode of the executions that such calls start.
    :param is_older: whether an execution was created before the calls.
    :param and_failed: also find failed executions. By default they are left out, because another may be started after
        them.
    """

    def __init__(
        self, workflow_id: str, trigger: str, mode: str, is_older: IsOlder, *, and_failed: bool = False
    ) -> None:
        self._workflow_id, self._trigger, self._mode, self._is_older = workflow_id, trigger, mode, is_older
        self._no_matter = frozenset() if and_failed else FAILED_STATUSES

    def made_by(self, client: ServiceClient, tag: CallTag, is_answered: IsAnswered = never) -> str | None:
        """Always None, because an execution does not show which call started it."""
        return None

    def earlier(self, client: ServiceClient, key: RunKey, *, exhaustive: bool = False) -> EarlierRuns:
        """Find the executions that this attempt or an earlier one may have started."""
        listed = list_back(client, self._workflow_id, self._is_older)
        queued = QueuedExecutions(self._workflow_id).read(client, exhaustive=exhaustive)
        candidates = (one for one in chain(listed, queued) if one.mode == self._mode and not self._is_older(one))
        return EarlierRuns(
            found=[],
            unreadable=[
                one for one in candidates if one.status not in self._no_matter and self._may_be_called(client, one)
            ],
        )

    def _may_be_called(self, client: ServiceClient, execution: Execution) -> bool:
        try:
            read = read_again(client, execution.id)
        except errors.ServiceNotFoundError:  # deleted meanwhile
            return False
        except (errors.ServiceAnswerTooLargeError, errors.ServiceUnexpectedResponseError):
            return True
        return not read.data or self._trigger in pinned_nodes(read)


def made_until(number: int) -> IsOlder:
    """Return a condition on executions: whether the number is at most this one."""
    return lambda execution: execution.number <= number


def newest_number(client: ServiceClient, workflow_id: str) -> int:
    """Return the number of the newest execution of a workflow, or 0 if it has none."""
    statuses: tuple[ExecutionStatus | None, ...] = ("running", None)
    lists = (client.executions.list(workflow_id=workflow_id, status=status, limit=1) for status in statuses)
    return max((one.number for one in chain.from_iterable(islice(one, 1) for one in lists)), default=0)


log = logging.getLogger(__name__)

AVAILABLE_SETTING = "availableInMCP"


def _fields(item: dict[str, Any]) -> dict[str, Any] | None:
    return item or None


KEY_IN_FORM = KeyLocation(RUN_KEY_FIELD, "trigger", _fields)


class _Call(NamedTuple):
    """How triggers of a kind are called.

    :param location: where the call leaves the run key; None if it cannot.
    :param mode: mode of the executions of the published version that such calls start.
    """

    location: KeyLocation | None
    mode: str


_CALLS: Mapping[Kind, _Call] = {
    "webhook": _Call(KEY_IN_HEADERS, "webhook"),
    "form": _Call(KEY_IN_FORM, "trigger"),
    "schedule": _Call(None, "trigger"),
    "chat": _Call(None, "chat"),
    "manual": _Call(None, "manual"),
}
_STARTED_IN: Mapping[Mode, frozenset[Kind]] = {
    "production": frozenset({"schedule", "form", "chat", "webhook"}),
    "manual": frozenset({"schedule", "form", "chat", "webhook", "manual"}),
}


class McpStartMethod:
    """The service's MCP endpoint."""

    name: ClassVar[str] = "mcp"

    def __init__(self, request: RunRequest, client: ServiceClient) -> None:
        self._request, self._client = request, client

    def reason_unavailable(self) -> str | None:
        """Say why this method cannot start the workflow, and what would change that; None if it can."""
        request, kinds = self._request, _STARTED_IN[self._request.mode]
        if not request.triggers(kinds):
            return request.missing_trigger_message(kinds)
        if request.only_for_webhooks:
            return request.only_for_webhooks
        if self._client.transport.config.mcp_api_key is None:
            return (
                "the connection has no mcp_api_key; switch on MCP in the service's settings, create a key there, and "
                "add it to the connection"
            )
        if not request.enable_mcp and not _is_available(request.workflow):
            return "the workflow is not available in MCP; switch that on in its settings, or set enable_mcp=True"
        return None

    def may_have_been_used(self) -> bool:
        """Whether an earlier attempt may have used this method."""
        return bool(self._triggers_ever())

    def keeps_executions(self) -> bool:
        """Whether the executions that it searches are kept."""
        return self._request.keeps_executions

    def earlier(self, start: IdempotentStart) -> EarlierRuns:
        """Find the executions that earlier attempts have started, from whichever trigger."""
        attempt = start.attempt
        triggers = self._triggers_ever()
        searches = {_CALLS[one.kind].location: self._search_by_key(one, attempt.since) for one in triggers}
        each = [search for search in searches.values() if search is not None]
        if attempt.may_have_started_unseen and attempt.is_counted:
            saved = attempt.saved_run()
            made_before = began_before(start.client, attempt.since, by_another_clock=True)
            is_older = made_until(saved.after) if saved is not None and saved.after else made_before
            each += [self._search_without_key(one, is_older) for one in triggers if _CALLS[one.kind].location is None]
        return EarlierRuns.joined(
            find_earlier_runs(start.client, search, attempt.key, start.stopped) for search in each
        )

    def starter(self, start: IdempotentStart) -> McpStarter:
        """Check the call, make the workflow available in MCP, and activate it if necessary."""
        request = self._request
        trigger = request.single_trigger(_STARTED_IN[request.mode])
        if trigger.kind != "chat":
            request.refuse_rendered_text()
        inputs = _inputs(trigger, request.payload, start.attempt.key)
        require(
            start.attempt.is_counted or _CALLS[trigger.kind].location is not None,
            f"a run_key cannot distinguish the runs of {request.label}, whose {trigger.kind} trigger takes no data; "
            "call without a run_key, or from a task; nothing was started",
        )
        request.refuse_unusable(may_be_inactive=request.mode == "manual")
        _make_available(request, start.client)
        if inputs is None:
            start.client.mcp.require_modes(stopped=start.stopped)  # before the call, to leave the call its time
        if request.mode == "production":
            request.make_active(start.client)
        search, after = self._search_by_key(trigger, clock().utcnow() - CLOCK_SKEW), 0
        if search is None:
            after = newest_number(start.client, request.workflow.id)
            search = self._search_without_key(trigger, made_until(after), and_failed=True)
        return McpStarter(request, McpCall(trigger.node, inputs, after), start, search)

    def _triggers_ever(self) -> list[Trigger]:
        """Return the triggers that may have been called through MCP, except those whose runs another method finds."""
        request = self._request
        others = {"webhook"} if request.start == "auto" and request.mode == "production" else set()
        return request.triggers_ever(_STARTED_IN[request.mode] - others)

    def _search_by_key(self, trigger: Trigger, since: datetime | None) -> Search | None:
        """Make a search for the executions of calls that carry a key; None if calls carry none."""
        location = _CALLS[trigger.kind].location
        if location is None:
            return None
        return RunSearch(self._request.workflow.id, since, location._replace(mode=self._mode_of(trigger)))

    def _search_without_key(self, trigger: Trigger, is_older: IsOlder, *, and_failed: bool = False) -> Search:
        mode = self._mode_of(trigger)
        return KeylessSearch(self._request.workflow.id, trigger.node, mode, is_older, and_failed=and_failed)

    def _mode_of(self, trigger: Trigger) -> str:
        return "manual" if self._request.mode == "manual" else _CALLS[trigger.kind].mode


class McpCall(NamedTuple):
    """A call of the endpoint.

    :param trigger_node: name of the node that begins the run.
    :param inputs: data for the node.
    :param after: number of the newest execution before the call; 0 if it does not matter.
    """

    trigger_node: str
    inputs: dict[str, Any] | None
    after: int


class McpStarter(CallStarter):
    """Calls the endpoint until it is known which execution the call started.

    :param search: finds the execution when the answer is lost.
    """

    answers_at_once = True

    def __init__(self, request: RunRequest, call: McpCall, start: IdempotentStart, search: Search) -> None:
        super().__init__(start, f"{request.label} through MCP", search, is_kept=request.keeps_executions)
        self._request, self._call = request, call
        self.after = call.after
        config = self._client.transport.config
        self._overdue_seconds = config.retry_deadline + config.timeout
        self._overdue_at = float("inf")
        self._was_overdue = False

    def send(self) -> StartedExecution:
        """Call the endpoint."""
        self._overdue_at, self._was_overdue = clock().monotonic() + self._overdue_seconds, False
        return self._client.mcp.execute_workflow(
            self._request.workflow.id,
            trigger_node=self._call.trigger_node,
            inputs=self._call.inputs,
            mode=self._request.mode,
            timeout=self._timeout,
            stopped=self._stopped,
        )

    def look_meanwhile(self, is_answered: IsAnswered) -> str | None:
        """Search for the execution, and give up a call whose answer must have been lost.

        :raises ServiceRunInDoubtError: the call is given up, and may have started an execution.
        """
        found = super().look_meanwhile(is_answered)
        if found is not None or is_answered() or clock().monotonic() < self._overdue_at:
            return found
        runs = self.search_as_next()
        found = runs.own(self._key)
        if found is not None:
            return found
        if any(one.status == "new" for one in runs.unreadable):  # it may be queued, without an answer until it runs
            self._overdue_at, self._was_overdue = clock().monotonic() + self._overdue_seconds, False
            return None
        if not self._was_overdue:  # the run may have begun during this search, and its answer may be on its way
            self._was_overdue = True
            return None
        doubt = runs.doubt(self._client.base_url, all_are_kept=self._is_kept)
        raise ServiceRunInDoubtError(
            f"{self._called}: no answer within {self._overdue_seconds:g} s; the call may have run the workflow: "
            f"{doubt or 'it may still be on its way'}"
        )

    def started_by(self, answer: StartedExecution) -> str:
        """Return the execution that the endpoint names."""
        return answer.execution_id

    def is_refusal(self, error: errors.ServiceApiError) -> bool:
        """Whether a failed call certainly ran nothing."""
        return error.not_processed


def _inputs(trigger: Trigger, payload: Any, key: RunKey) -> dict[str, Any] | None:
    """Return the data that the call passes to a trigger.

    :raises ServiceInputError: the trigger does not take such a payload.
    """
    if trigger.kind == "chat":
        require(isinstance(payload, str), f"a chat takes text as payload, not {shown(payload)}; nothing was started")
        return {"chatInput": payload}
    if trigger.kind not in ("form", "webhook"):
        require(payload is None, f"a {trigger.kind} trigger takes no payload, but one was given; nothing was started")
        return None
    data = {} if payload is None else payload
    takes = f"through MCP, a {trigger.kind} takes a mapping as its payload"
    require(isinstance(data, Mapping), f"{takes}, not {shown(data)}; nothing was started")
    if trigger.kind == "form":
        return {"formData": {**data, RUN_KEY_FIELD: key.header}}
    headers = {RUN_KEY_HEADER.lower(): key.header}
    if trigger.method in METHODS_WITHOUT_BODY:
        query = {name: value if isinstance(value, str) else to_json(value) for name, value in data.items()}
        return {"webhookData": {"headers": headers, "query": query}}
    return {"webhookData": {"headers": headers, "body": dict(data)}}


def _is_available(workflow: Workflow) -> bool:
    return (workflow.settings or {}).get(AVAILABLE_SETTING) is True


def _make_available(request: RunRequest, client: ServiceClient) -> None:
    if _is_available(request.workflow):
        return
    client.mcp.require_modes()  # an older endpoint would refuse the call after the workflow was changed
    log.info("Making %s available in MCP: its setting %s was not true", request.label, AVAILABLE_SETTING)
    # Its draft may have been changed since the task read it.
    content = writable(client.workflows.get(request.workflow.id))
    client.workflows.update(
        request.workflow.id,
        content["name"],
        content["nodes"],
        content["connections"],
        {AVAILABLE_SETTING: True},
        publish_if_active=False,
    )
