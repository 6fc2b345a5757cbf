"""Read the payload that a task passed to a run, without the fields that the service and the task add."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.runs.searching import RUN_KEY_FIELD

if TYPE_CHECKING:
    from airflow_provider_service.simulator._engine.engine import Execution

# Fields that the service and the task add to those of a form.
_ADDED_TO_FORMS = {"submittedAt", "formMode", RUN_KEY_FIELD}


def payload_of(execution: Execution) -> Any:
    """Return the payload of a run, as its trigger received it; None for a schedule or a manual trigger."""
    initial = execution.run.initial
    if initial is None:
        return {}
    items = [item["json"] for item in initial.items]
    first = items[0] if items else {}
    kind = initial.node["type"].rpartition(".")[2]
    if kind in ("scheduleTrigger", "manualTrigger"):
        return None
    if kind == "formTrigger":
        return {name: value for name, value in first.items() if name not in _ADDED_TO_FORMS}
    if kind == "chatTrigger":
        return first.get("chatInput")
    if kind == "executeWorkflowTrigger":
        return items if len(items) > 1 else first
    is_call = isinstance(first, dict) and {"headers", "query", "body"} <= first.keys()
    if not is_call:
        return first
    return first["query"] if first["body"] == {} else first["body"]
