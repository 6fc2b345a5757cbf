"""Start a workflow through MCP: choose the trigger, check the inputs, and make the item that the run begins with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from airflow_provider_service.simulator._clock import stamp
from airflow_provider_service.simulator._engine.engine import Execution
from airflow_provider_service.simulator._engine.nodes import WEBHOOK, Node
from airflow_provider_service.simulator._engine.run import Snapshot
from airflow_provider_service.simulator._state import State
from airflow_provider_service.simulator._stores.workflows import Workflow

_SCHEDULE = "n8n-nodes-base.scheduleTrigger"
_FORM = "n8n-nodes-base.formTrigger"
_CHAT = "@n8n/n8n-nodes-langchain.chatTrigger"
_MANUAL = "n8n-nodes-base.manualTrigger"
_NAMES = {
    _SCHEDULE: "Schedule Trigger",
    WEBHOOK: "Webhook Trigger",
    _FORM: "Form Trigger",
    _CHAT: "Chat Trigger",
    _MANUAL: "Manual Trigger",
}
# The key of the inputs that a trigger requires, and how the service describes them.
_INPUTS = {
    _CHAT: ("chatInput", "{ chatInput: string }"),
    _FORM: ("formData", "{ formData: { FIELD_NAME: VALUE } }"),
    WEBHOOK: ("webhookData", "{ webhookData: { headers?, query?, body? } }"),
}


Mode = Literal["production", "manual"]


class NotStartedError(Exception):
    """The endpoint refuses to start the workflow."""


def start_workflow(
    state: State, workflow_id: str, mode: Mode, trigger_name: str | None, inputs: Mapping[str, Any] | None
) -> Execution:
    """Start the version that is live or, in the mode "manual", the draft."""
    workflow = _available(state.workflows.find(workflow_id))
    manual = mode == "manual"
    if not manual and workflow.live_version is None:
        raise NotStartedError(f"Workflow '{workflow_id}' has no published (active) version to execute")
    snapshot = workflow.snapshot(None if manual else workflow.live_version)
    trigger = _trigger(snapshot, mode, trigger_name, inputs)
    item = {"json": _item(state.clock.now(), trigger, inputs or {}), "pairedItem": {"item": 0}}
    pinned = {**((workflow.pin_data or {}) if manual else {}), trigger["name"]: [item]}
    execution_mode = "manual" if manual else {WEBHOOK: "webhook", _CHAT: "chat"}.get(trigger["type"], "trigger")
    execution = state.engine.start(snapshot, trigger, [item], workflow.project_id, mode=execution_mode, pinned=pinned)
    execution.version_id = workflow.version_id  # the service shows that of the draft, though the published version runs
    return execution


def _available(workflow: Workflow | None) -> Workflow:
    if workflow is None:
        raise NotStartedError("Workflow not found or you don't have permission to access it.")
    if workflow.is_archived:
        raise NotStartedError(f"Workflow '{workflow.id}' is archived and cannot be accessed.")
    if not workflow.settings.get("availableInMCP"):
        raise NotStartedError(
            "Workflow is not available in MCP. Enable MCP access from the workflow card in the workflows list, "
            "or from the workflow settings."
        )
    return workflow


# ---------------------------------------------------------------- the trigger


def _trigger(snapshot: Snapshot, mode: Mode, name: str | None, inputs: Mapping[str, Any] | None) -> Node:
    supported = [kind for kind in _NAMES if mode == "manual" or kind != _MANUAL]
    eligible = [node for node in snapshot.nodes if node["type"] in supported and not node.get("disabled")]
    available = ", ".join(node["name"] for node in eligible) or "none"
    if name:
        trigger = _named(snapshot, name, mode, supported, available)
        _check_inputs(trigger, inputs)
        return trigger
    if not eligible:
        names = ", ".join(_NAMES[kind] for kind in supported)
        raise NotStartedError(
            f"This workflow has no trigger that can be executed in {mode} mode. Supported triggers: {names}."
        )
    if inputs is not None:
        raise NotStartedError(f"Provide triggerNodeName when passing inputs. Available triggers: {available}.")
    if all(node["type"] in _INPUTS for node in eligible):
        raise NotStartedError(
            f"Provide triggerNodeName and inputs to execute this workflow. Available triggers: {available}."
        )
    if len(eligible) > 1:
        raise NotStartedError(
            "This workflow has multiple triggers. Provide triggerNodeName to specify which one to execute. "
            f"Available triggers: {available}."
        )
    return eligible[0]


def _named(snapshot: Snapshot, name: str, mode: Mode, supported: Sequence[str], available: str) -> Node:
    node = snapshot.node(name)
    if node is None:
        raise NotStartedError(f'Trigger node "{name}" was not found. Available triggers: {available}.')
    if node.get("disabled"):
        raise NotStartedError(f'Trigger node "{name}" is disabled. Enable it or choose another trigger: {available}.')
    if node["type"] == _MANUAL and mode == "production":
        raise NotStartedError(
            f'Trigger node "{name}" cannot be used in production mode. '
            "Use a webhook, form, chat, or schedule trigger, or execute in manual mode."
        )
    if node["type"] not in supported:
        raise NotStartedError(
            f'Trigger node "{name}" is not supported for MCP execution. Available triggers: {available}.'
        )
    return node


def _check_inputs(trigger: Node, inputs: Mapping[str, Any] | None) -> None:
    key, described = _INPUTS.get(trigger["type"], (None, ""))
    if key is None and inputs is not None:
        raise NotStartedError(f'Trigger node "{trigger["name"]}" does not accept inputs. Omit inputs.')
    if key is not None and key not in (inputs or {}):
        raise NotStartedError(f'Trigger node "{trigger["name"]}" requires inputs matching {described}.')


# ---------------------------------------------------------------- its item


def _item(now: datetime, trigger: Node, inputs: Mapping[str, Any]) -> dict[str, Any]:
    if trigger["type"] == WEBHOOK:
        data = inputs["webhookData"]
        return {name: data.get(name, {}) for name in ("headers", "query", "body")}
    if trigger["type"] == _FORM:
        return {"submittedAt": stamp(now), "formMode": "mcp", **inputs["formData"]}
    if trigger["type"] == _CHAT:
        session = f"mcp-session-{int(now.timestamp() * 1000)}"
        return {"sessionId": session, "action": "sendMessage", "chatInput": inputs["chatInput"]}
    if trigger["type"] == _SCHEDULE:
        time_of_day = f"{now.hour % 12 or 12}:{now:%M:%S} {'am' if now.hour < 12 else 'pm'}"
        return {
            "timestamp": now.isoformat(timespec="milliseconds"),
            "Readable date": f"{now:%B} {_ordinal(now.day)} {now:%Y}, {time_of_day}",
            "Readable time": time_of_day,
            "Day of week": f"{now:%A}",
            "Year": f"{now:%Y}",
            "Month": f"{now:%B}",
            "Day of month": f"{now:%d}",
            "Hour": f"{now:%H}",
            "Minute": f"{now:%M}",
            "Second": f"{now:%S}",
            "Timezone": "UTC (UTC+00:00)",
        }
    return {}


def _ordinal(day: int) -> str:
    suffix = "th" if 11 <= day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{suffix}"
