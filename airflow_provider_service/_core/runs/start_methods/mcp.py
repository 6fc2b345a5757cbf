"""Start a workflow through the service's MCP endpoint, which names the execution that it starts.

The call carries the run key if the trigger takes data of any shape. A schedule, a chat or a manual trigger does not: if
the answer to its call is lost, only the executions that were started since show whether the call has started one. They
show that a call started them, and when, but not which call.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.arguments import require
from airflow_provider_service._core.runs.attempt import CLOCK_SKEW, RunKey
from airflow_provider_service._core.runs.searching import (
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
from airflow_provider_service._core.runs.start_methods.start_method import StartMethod
from airflow_provider_service.client import errors
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._constraints import FAILED_STATUSES
from airflow_provider_service.client._execution_data import pinned_nodes
from airflow_provider_service.client._http.encoding import to_json
from airflow_provider_service.client._models import METHODS_WITHOUT_BODY
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.resources._workflows import writable

if TYPE_CHECKING:
    from airflow_provider_service._core.runs.request import Kind, RunRequest, Trigger
    from airflow_provider_service._core.runs.searching import Search
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client._constraints import Mode
    from airflow_provider_service.client.models import Execution, StartedExecution, Workflow

log = logging.getLogger(__name__)

AVAILABLE_SETTING = "availableInMCP"
KEY_IN_FORM = KeyLocation(RUN_KEY_FIELD, "trigger", None)

# For each kind of trigger, where its call leaves the run key, if it can, and the mode of the executions of the
# published version that such calls start.
_CALLS: Mapping[Kind, tuple[KeyLocation | None, str]] = {
    "webhook": (KEY_IN_HEADERS, "webhook"),
    "form": (KEY_IN_FORM, "trigger"),
    "schedule": (None, "trigger"),
    "chat": (None, "chat"),
    "manual": (None, "manual"),
}
_STARTED_IN: Mapping[Mode, frozenset[Kind]] = {
    "production": frozenset({"schedule", "form", "chat", "webhook"}),
    "manual": frozenset({"schedule", "form", "chat", "webhook", "manual"}),
}


class McpStartMethod(StartMethod):
    name = "mcp"
    # Set by ``prepare``: the node that begins the run, and the data that the call passes to it.
    _trigger_node: str
    _inputs: dict[str, Any] | None
    _overdue_at = float("inf")
    _was_overdue = False

    def reason_unavailable(self) -> str | None:
        request, kinds = self.request, _STARTED_IN[self.request.mode]
        if not request.triggers(kinds):
            return request.missing_trigger_message(kinds)
        if request.only_for_webhooks:
            return request.only_for_webhooks
        if self.client.transport.config.mcp_api_key is None:
            return (
                "the connection has no mcp_api_key; switch on MCP in the service's settings, create a key there, and "
                "add it to the connection"
            )
        if not request.enable_mcp and not _is_available(request.workflow):
            return "the workflow is not available in MCP; switch that on in its settings, or set enable_mcp=True"
        return None

    def may_have_been_used(self) -> bool:
        return bool(self._triggers_ever())

    def keeps_executions(self) -> bool:
        return self.request.keeps_executions

    def earlier(self) -> EarlierRuns:
        attempt, triggers = self.attempt, self._triggers_ever()
        by_key = {_CALLS[trigger.kind][0]: self._search_by_key(trigger, attempt.since) for trigger in triggers}
        searches = [search for search in by_key.values() if search is not None]
        if attempt.may_have_started_unseen and attempt.is_counted:
            saved = attempt.saved_run()
            made_before = began_before(self.client, attempt.since, by_another_clock=True)
            is_older = _made_until(saved.after) if saved is not None and saved.after else made_before
            keyless = [trigger for trigger in triggers if _CALLS[trigger.kind][0] is None]
            searches += [self._search_without_key(trigger, is_older) for trigger in keyless]
        return EarlierRuns.joined(
            find_earlier_runs(self.client, search, attempt.key, self.stopped) for search in searches
        )

    def prepare(self) -> None:
        request, client = self.request, self.client
        trigger = request.single_trigger(_STARTED_IN[request.mode])
        if trigger.kind != "chat":
            request.refuse_rendered_text()
        self._inputs = _inputs(trigger, request.payload, self.attempt.key)
        require(
            self.attempt.is_counted or _CALLS[trigger.kind][0] is not None,
            f"a run_key cannot distinguish the runs of {request.label}, whose {trigger.kind} trigger takes no data; "
            "call without a run_key, or from a task; nothing was started",
        )
        request.refuse_unusable(may_be_inactive=request.mode == "manual")
        _make_available(request, client)
        if self._inputs is None:
            client.mcp.require_modes(stopped=self.stopped)  # before the call, to leave the call its time
        if request.mode == "production":
            request.make_active(client)
        search = self._search_by_key(trigger, clock().utcnow() - CLOCK_SKEW)
        if search is None:
            self.after = _newest_number(client, request.workflow.id)
            search = self._search_without_key(trigger, _made_until(self.after), and_failed=True)
        self.called, self.search, self.is_kept = f"{request.label} through MCP", search, request.keeps_executions
        self._trigger_node = trigger.node
        config = client.transport.config
        self._overdue_seconds = config.retry_deadline + config.timeout

    def _triggers_ever(self) -> list[Trigger]:
        """Return the triggers that may have been called through MCP, except those whose runs another method finds."""
        request = self.request
        others = {"webhook"} if request.start == "auto" and request.mode == "production" else set()
        return request.triggers_ever(_STARTED_IN[request.mode] - others)

    def _search_by_key(self, trigger: Trigger, since: datetime | None) -> Search | None:
        """Make a search for the executions of calls that carry a key; None if calls carry none."""
        location, _ = _CALLS[trigger.kind]
        if location is None:
            return None
        return RunSearch(self.request.workflow.id, since, location._replace(mode=self._mode_of(trigger)))

    def _search_without_key(self, trigger: Trigger, is_older: IsOlder, *, and_failed: bool = False) -> Search:
        mode = self._mode_of(trigger)
        return KeylessSearch(self.request.workflow.id, trigger.node, mode, is_older, and_failed=and_failed)

    def _mode_of(self, trigger: Trigger) -> str:
        return "manual" if self.request.mode == "manual" else _CALLS[trigger.kind][1]

    def send(self) -> StartedExecution:
        self._expect_answer()
        return self.client.mcp.execute_workflow(
            self.request.workflow.id,
            trigger_node=self._trigger_node,
            inputs=self._inputs,
            mode=self.request.mode,
            timeout=self.timeout,
            stopped=self.stopped,
        )

    def _expect_answer(self) -> None:
        self._overdue_at, self._was_overdue = clock().monotonic() + self._overdue_seconds, False

    def look_meanwhile(self, is_answered: IsAnswered = never) -> str | None:
        """Search for the execution, and give up a call whose answer must have been lost."""
        execution_id = super().look_meanwhile(is_answered)
        if execution_id is not None or is_answered() or clock().monotonic() < self._overdue_at:
            return execution_id
        runs = self.search_as_next()
        execution_id = runs.own(self.attempt.key)
        if execution_id is not None:
            return execution_id
        # It may be queued, without an answer until it runs.
        if any(execution.status == "new" for execution in runs.unreadable):
            self._expect_answer()
            return None
        if not self._was_overdue:  # the run may have begun during this search, and its answer may be on its way
            self._was_overdue = True
            return None
        doubt = runs.doubt(self.client.base_url, all_are_kept=self.is_kept)
        raise errors.ServiceRunInDoubtError(
            f"{self.called}: no answer within {self._overdue_seconds:g} s; the call may have run the workflow: "
            f"{doubt or 'it may still be on its way'}"
        )

    def started_by(self, answer: StartedExecution) -> str:
        return answer.execution_id

    def is_refusal(self, error: errors.ServiceApiError) -> bool:
        return error.not_processed


def _inputs(trigger: Trigger, payload: Any, key: RunKey) -> dict[str, Any] | None:
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


class KeylessSearch:
    """Searches for executions that a task run may have started through MCP; none is certainly its own.

    The service pins the data that a call passes to the trigger's node, which distinguishes these runs from those that
    the node begins by itself. Failed ones are left out by default, because another may be started after them.
    """

    def __init__(
        self, workflow_id: str, trigger: str, mode: str, is_older: IsOlder, *, and_failed: bool = False
    ) -> None:
        self._workflow_id, self._trigger, self._mode, self._is_older = workflow_id, trigger, mode, is_older
        self._no_matter = frozenset() if and_failed else FAILED_STATUSES

    def made_by(self, client: ServiceClient, key: RunKey, is_answered: IsAnswered = never) -> str | None:
        """Always None, because an execution does not show which call started it."""
        return None

    def earlier(self, client: ServiceClient, key: RunKey, *, exhaustive: bool = False) -> EarlierRuns:
        listed = list_back(client, self._workflow_id, self._is_older)
        queued = QueuedExecutions(self._workflow_id).read(client, exhaustive=exhaustive)
        unreadable = [
            execution
            for execution in chain(listed, queued)
            if execution.mode == self._mode
            and not self._is_older(execution)
            and execution.status not in self._no_matter
            and self._may_be_called(client, execution)
        ]
        return EarlierRuns([], unreadable)

    def _may_be_called(self, client: ServiceClient, execution: Execution) -> bool:
        try:
            execution = read_again(client, execution.id)
        except errors.ServiceNotFoundError:  # deleted meanwhile
            return False
        except (errors.ServiceAnswerTooLargeError, errors.ServiceUnexpectedResponseError):
            return True
        return not execution.data or self._trigger in pinned_nodes(execution)


def _made_until(number: int) -> IsOlder:
    return lambda execution: execution.number <= number


def _newest_number(client: ServiceClient, workflow_id: str) -> int:
    """Return the number of the newest execution of a workflow, or 0 if it has none."""
    newest = 0
    for status in ("running", None):
        for execution in islice(client.executions.list(workflow_id=workflow_id, status=status, limit=1), 1):
            newest = max(newest, execution.number)
    return newest
