"""The request for a run, and the triggers of the workflow that can begin it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from airflow_provider_service._core.arguments import is_structure, require
from airflow_provider_service.client._webhook_conflicts import naming_the_holder
from airflow_provider_service.client.resources._webhooks import methods_of

if TYPE_CHECKING:
    from airflow_provider_service._airflow.connection import WebhookHeaders
    from airflow_provider_service._core.arguments import OnRetry, Start
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client._constraints import Mode
    from airflow_provider_service.client.models import Workflow

log = logging.getLogger(__name__)

Kind = Literal["webhook", "schedule", "form", "chat", "manual", "sub-workflow"]

#: Makes the headers of a call for the authentication that the webhook's node asks for.
MakeHeaders = Callable[[str], Mapping[str, str]]

_KIND_OF_TYPE: Mapping[str, Kind] = {
    "n8n-nodes-base.webhook": "webhook",
    "n8n-nodes-base.scheduleTrigger": "schedule",
    "n8n-nodes-base.formTrigger": "form",
    "@n8n/n8n-nodes-langchain.chatTrigger": "chat",
    "n8n-nodes-base.manualTrigger": "manual",
    "n8n-nodes-base.executeWorkflowTrigger": "sub-workflow",
}
# Other triggers, which nothing outside can start: of an error, a feed, a mail, a message, and timers of older versions.
_EVENT_TYPE = re.compile(r"Trigger$|\.(cron|emailReadImap|interval)$")


class Trigger(NamedTuple):
    node: str
    kind: Kind
    #: The first HTTP method that a webhook accepts.
    method: str


@dataclass(frozen=True)
class RunRequest:
    workflow: Workflow
    payload: Any
    trigger_node: str | None
    headers: WebhookHeaders
    activate: bool
    start: Start = "auto"
    mode: Mode = "production"
    enable_mcp: bool = False
    on_retry: OnRetry = "new"
    path_parameters: Mapping[str, Any] | None = None
    webhook_method: str | None = None
    files: Mapping[str, Any] | None = None
    #: Whether the payload was rendered from a template.
    has_rendered_payload: bool = False
    #: Show which task started the run; ``headers`` override them.
    parent_headers: Mapping[str, str] = field(default_factory=dict)

    def all_headers(self, authentication: str) -> dict[str, str]:
        further = dict(self.headers(authentication))
        names = {name.lower() for name in further}
        return {**{name: value for name, value in self.parent_headers.items() if name.lower() not in names}, **further}

    @property
    def only_for_webhooks(self) -> str:
        """A clause for messages that names the arguments that only a webhook's call takes; empty if none is given."""
        arguments = {
            "path_parameters": self.path_parameters,
            "webhook_method": self.webhook_method,
            "files": self.files,
            **self.headers.arguments,
        }
        names = ", ".join(name for name, value in arguments.items() if value)
        return f"only the call of a webhook takes {names}" if names else ""

    @property
    def label(self) -> str:
        return f"workflow {self.workflow.id} ({self.workflow.name})"

    @property
    def keeps_executions(self) -> bool:
        if self.mode == "manual":
            return (self.workflow.settings or {}).get("saveManualExecutions") is not False
        return self.workflow.keeps_executions

    def make_active(self, client: Resources) -> None:
        self.refuse_unusable()
        if self.workflow.active:
            return
        log.info("Activating %s: its draft is published, and soon live", self.label)
        with naming_the_holder(client, self.workflow.id):
            client.workflows.activate(self.workflow.id)

    def refuse_rendered_text(self) -> None:
        """Refuse a mapping or list in the form of text, which is what a template renders to by default."""
        require(
            not (self.has_rendered_payload and isinstance(self.payload, str) and is_structure(self.payload)),
            "payload is the text of a mapping or a list, because a template renders to text. Give the DAG "
            "render_template_as_native_obj=True, or pass a mapping whose values are templates, or the output of the "
            "other task itself; nothing was started",
        )

    def refuse_unusable(self, *, may_be_inactive: bool = False) -> None:
        require(not self.workflow.is_archived, f"{self.label} is archived; nothing was started")
        require(
            self.workflow.active or self.activate or may_be_inactive,
            f"{self.label} is not active; nothing was started. Activate it in n8n, by ServiceActivateWorkflowOperator, "
            "or by activate=True, which publishes its draft",
        )

    def triggers(self, kinds: Collection[Kind]) -> list[Trigger]:
        triggers = [trigger for trigger in self.all_triggers() if trigger.kind in kinds]
        return [trigger for trigger in triggers if self.trigger_node in (None, trigger.node)]

    def triggers_ever(self, kinds: Collection[Kind]) -> list[Trigger]:
        """Return all triggers of these kinds in the published version and the draft, even those that are disabled."""
        version = self.workflow.active_version
        nodes = [*((version.nodes if version else None) or []), *(self.workflow.nodes or [])]
        return [trigger for trigger in dict.fromkeys(_triggers_among(nodes)) if trigger.kind in kinds]

    def missing_trigger_message(self, kinds: Collection[Kind]) -> str:
        named = "" if self.trigger_node is None else f" named {self.trigger_node!r}"
        others = [f"{trigger.node!r} ({trigger.kind})" for trigger in self.all_triggers()] + self._events()
        return f"it has no {' or '.join(sorted(kinds))} trigger{named}; its triggers: {', '.join(others) or 'none'}"

    def reason_unavailable(self) -> str | None:
        """Say why no method can start the workflow, and what would change that; None if a method may be able to."""
        if self.all_triggers():
            return None
        events, disabled = self._events(), ", ".join(repr(trigger.node) for trigger in _triggers_among(self.nodes))
        why = "it has no trigger"
        if events:
            why = f"it starts only on events or timers of the service, at {', '.join(events)}"
        elif disabled:
            why = f"its triggers are disabled: {disabled}"
        return (
            f"{why}. Add a webhook, or the trigger 'When Executed by Another Workflow', and connect it to the same node"
        )

    def _events(self) -> list[str]:
        """List the triggers that only the service itself starts, each with its type."""
        types = ((node.get("name"), str(node.get("type"))) for node in self.nodes if not node.get("disabled"))
        return [f"{name!r} ({kind})" for name, kind in types if _EVENT_TYPE.search(kind) and kind not in _KIND_OF_TYPE]

    def single_trigger(self, kinds: Collection[Kind]) -> Trigger:
        triggers = self.triggers(kinds)
        require(triggers, f"{self.label}: {self.missing_trigger_message(kinds)}; nothing was started")
        names = ", ".join(repr(trigger.node) for trigger in triggers)
        several = f"{self.label} has several triggers; choose one by trigger_node: {names}; nothing was started"
        require(len(triggers) == 1, several)
        return triggers[0]

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """The nodes that would run: the published ones, or those of the draft if requested or nothing is published."""
        version = self.workflow.active_version if self.mode == "production" else None
        return (version.nodes if version else None) or self.workflow.nodes or []

    def all_triggers(self) -> list[Trigger]:
        """Return the enabled triggers of the version that would run."""
        return _triggers_among(node for node in self.nodes if not node.get("disabled"))


def _triggers_among(nodes: Iterable[Mapping[str, Any]]) -> list[Trigger]:
    triggers = []
    for node in nodes:
        kind, parameters = _KIND_OF_TYPE.get(str(node.get("type"))), node.get("parameters")
        if kind is not None:
            method = methods_of(parameters)[0] if isinstance(parameters, Mapping) else ""
            triggers.append(Trigger(str(node.get("name")), kind, method))
    return triggers
