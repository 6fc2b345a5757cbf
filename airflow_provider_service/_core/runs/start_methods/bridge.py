"""Start a workflow through the bridge, a workflow on the service that starts others. Its call carries the run key."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_service._airflow.arguments import require
from airflow_provider_service._core.runs.bridge.access import BridgeSecret
from airflow_provider_service._core.runs.bridge.children import BridgeSearch, Children
from airflow_provider_service._core.runs.bridge.install import Installer, all_bridges, find_bridge, project_of
from airflow_provider_service._core.runs.search import CLOCK_SKEW, RUN_KEY_HEADER, find_earlier_runs
from airflow_provider_service._core.runs.starting import CallStarter
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._http.start_answers import is_refusal
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import (
    ServiceInputError,
    ServiceInvalidRequestError,
    ServiceRunInDoubtError,
    ServiceRunNotStartedError,
    ServiceWebhookRefusedError,
)
from airflow_provider_service.links.service import execution_url

if TYPE_CHECKING:
    from airflow_provider_service._core.runs.bridge.children import Started
    from airflow_provider_service._core.runs.idempotent_start import IdempotentStart
    from airflow_provider_service._core.runs.request import Kind, RunRequest, Trigger
    from airflow_provider_service._core.runs.search import EarlierRuns
    from airflow_provider_service.client import ServiceClient, errors
    from airflow_provider_service.client.models import WebhookAnswer, Workflow

log = logging.getLogger(__name__)

# In the order in which the service chooses the trigger that begins the run.
_BEGUN_AT: tuple[Kind, ...] = ("sub-workflow", "manual")
_ONLY_PUBLISHED = (
    "the server starts only published workflows, but cannot publish one that has only a manual trigger; use "
    'start="mcp" with mode="manual", or give it a sub-workflow trigger'
)
_NOT_ACTIVE = "Workflow is not active and cannot be executed."
# Other workflows can start a workflow only some moments after its activation.
PUBLISHED_WITHIN_SECONDS = 10.0
_PAUSE_SECONDS = 0.5


class BridgeStartMethod:
    """The bridge."""

    name: ClassVar[str] = "bridge"

    def __init__(self, request: RunRequest, client: ServiceClient) -> None:
        self._request, self._client = request, client

    def reason_unavailable(self) -> str | None:
        """Say why this method cannot start the workflow, and what would change that; None if it can."""
        request = self._request
        if request.mode == "manual":
            return "the bridge runs the published version, not the draft"
        if request.only_for_webhooks:
            return request.only_for_webhooks
        first = _first_trigger(request)
        if first is None:
            return request.missing_trigger_message(set(_BEGUN_AT))
        if request.trigger_node not in (None, first.node):
            return f"through the bridge, the service begins at {first.node!r}, not at {request.trigger_node!r}"
        if _is_out_of_reach(request.workflow):
            return f"its only trigger is manual, and {_ONLY_PUBLISHED}"
        return None

    def may_have_been_used(self) -> bool:
        """Whether an earlier attempt may have used this method."""
        return bool(self._request.triggers_ever(set(_BEGUN_AT)))

    def keeps_executions(self) -> bool:
        """Whether the executions that it searches, which are those of the bridge, are kept."""
        return all(one.keeps_executions for one in all_bridges(self._client))

    def earlier(self, start: IdempotentStart) -> EarlierRuns:
        """Find the executions that earlier attempts have started."""
        bridges = [one.id for one in all_bridges(start.client)]
        search = BridgeSearch(bridges, self._children(start), start.attempt.since)
        return find_earlier_runs(start.client, search, start.attempt.key, start.stopped)

    def starter(self, start: IdempotentStart) -> BridgeStarter:
        """Check the payload, install the bridge if there is none, and activate the workflow if necessary."""
        request = self._request
        request.refuse_rendered_text()
        items = _items(request.payload)
        may_be_inactive = _starts_drafts(request.workflow)
        request.refuse_unusable(may_be_inactive=may_be_inactive)
        bridge = self._bridge(start.client)
        if request.activate or not may_be_inactive:
            self._make_active(start.client)
        return BridgeStarter(request, start, bridge, items, self._children(start))

    def _children(self, start: IdempotentStart) -> Children:
        workflow = self._request.workflow
        return Children(workflow.id, start.stopped, are_kept=workflow.keeps_executions)

    def _bridge(self, client: ServiceClient) -> Workflow:
        """Find the bridge of the workflow's project or any that accepts this connection's calls, or install one."""
        secret = BridgeSecret(client.transport.config)
        bridges = [one for one in all_bridges(client) if one.active]
        found = find_bridge(bridges, secret, project_id=project_of(self._request.workflow))
        found = found or find_bridge(bridges, secret)
        if found is not None:
            return found
        log.info("The bridge is missing; installing it")
        return Installer(client, secret).install().workflow

    def _make_active(self, client: ServiceClient) -> None:
        try:
            self._request.make_active(client)
        except ServiceInvalidRequestError as error:
            # Older servers cannot activate it, but can start it. If a server cannot, the bridge reports that.
            log.info("%s was not activated: %s", self._request.label, error)


class BridgeStarter(CallStarter):
    """Calls the bridge until it is known which execution it has started.

    :param bridge: the bridge.
    :param items: the input of the workflow.
    :param children: the executions of the workflow that the bridge has started.
    """

    answers_at_once = True

    def __init__(
        self, request: RunRequest, start: IdempotentStart, bridge: Workflow, items: Sequence[Any], children: Children
    ) -> None:
        search = BridgeSearch([bridge.id], children, clock().utcnow() - CLOCK_SKEW)
        super().__init__(start, f"bridge {bridge.id}", search, is_kept=bridge.keeps_executions)
        self._request, self._bridge, self._children = request, bridge, children
        self._deadline: float | None = None
        self._body = {"workflowId": request.workflow.id, "items": list(items)}

    def send(self) -> WebhookAnswer:
        """Call the bridge."""
        client = self._client
        headers = BridgeSecret(client.transport.config).headers(client)
        return client.webhooks.call(
            client.webhooks.find(self._bridge),
            self._body,
            headers={**headers, RUN_KEY_HEADER: self._key.header},
            timeout=self._timeout,
            stopped=self._stopped,
        )

    def started_by(self, answer: WebhookAnswer) -> str | None:
        """Find the execution that the call has started; None if the workflow cannot be started yet."""
        execution_id = answer.execution_id
        if execution_id is None:
            raise ServiceRunInDoubtError(
                f"{self._called} answered {answer.status} without naming its execution, so it is unknown what "
                f"it started; install it again: {shown(answer.body)}"
            )
        started = self._children.wait_for(self._client, execution_id)
        if started is not None and started.execution_id is not None:
            return started.execution_id
        is_too_early = started is not None and _is_too_early(started) and clock().monotonic() < self._published_by()
        if not is_too_early or clock().wait(self._stopped, _PAUSE_SECONDS):
            raise self._failed(execution_id, started)
        return None

    def _published_by(self) -> float:
        """Return the time until which the server may not know yet that the workflow was activated."""
        self._deadline = self._deadline or clock().monotonic() + PUBLISHED_WITHIN_SECONDS
        return self._deadline

    def is_refusal(self, error: errors.ServiceApiError) -> bool:
        """Whether a failed call certainly ran nothing, and would not if it were repeated."""
        if isinstance(error, ServiceWebhookRefusedError):
            log.error("Bridge %s refuses the calls of this connection; install it again", self._bridge.id)
        return is_refusal(error)

    def _failed(self, execution_id: str, started: Started | None) -> errors.ServiceError:
        page = execution_url(self._client.base_url, self._bridge.id, execution_id)
        if started is None:
            return ServiceRunInDoubtError(
                f"execution {execution_id} of the bridge does not show what it started: {page}"
            )
        self.started_nothing = True
        node, message = started.failure or (None, None)
        refused = f"the bridge could not start {self._request.label}: {message}"
        if node is None:
            return ServiceRunNotStartedError(f"{refused}; nothing was started: {page}")
        return ServiceInputError(f"{refused}; nothing was started: {page}")


def _first_trigger(request: RunRequest) -> Trigger | None:
    """Return the trigger that begins the run, whichever is named: one for sub-workflows rather than a manual one."""
    for kind in _BEGUN_AT:
        found = next((one for one in request.all_triggers() if one.kind == kind), None)
        if found is not None:
            return found
    return None


def _is_out_of_reach(workflow: Workflow) -> bool:
    """Whether other workflows cannot start it, because its only trigger is manual."""
    kinds = [str(node.get("type")) for node in workflow.nodes or [] if not node.get("disabled")]
    others = [kind for kind in kinds if kind.endswith(("Trigger", ".webhook")) and not kind.endswith(".manualTrigger")]
    return not (_starts_drafts(workflow) or workflow.active or others)


def _starts_drafts(workflow: Workflow) -> bool:
    """Whether other workflows start it although it is not active, as on older servers."""
    return "source_workflow_id" not in workflow.model_fields_set


def _is_too_early(started: Started) -> bool:
    return started.failure is not None and started.failure.message == _NOT_ACTIVE


def _items(payload: Any) -> list[Any]:
    """Return the input items of a workflow: a mapping is one item, and None an empty one.

    :raises ServiceInputError: the payload is neither a mapping nor a list of mappings.
    """
    if payload is None:
        return [{}]
    if isinstance(payload, Mapping):
        return [payload]
    is_list = isinstance(payload, (list, tuple)) and bool(payload) and all(isinstance(one, Mapping) for one in payload)
    require(
        is_list,
        f"a sub-workflow takes a mapping or a list of mappings as its payload, not {shown(payload)}; nothing was "
        "started",
    )
    return list(payload)
