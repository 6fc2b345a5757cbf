"""An execution's ``data``, as the API shows it with ``includeData=true``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_service.simulator._clock import epoch_milliseconds
from airflow_provider_service.simulator._engine.run import Pending

if TYPE_CHECKING:
    from airflow_provider_service.simulator._engine.engine import Execution


def execution_data(execution: Execution) -> dict[str, Any]:
    """Until an execution has ended (or saves its progress), only the trigger's input is there, on the stack."""
    run = execution.run
    in_memory = execution.status in ("new", "running")
    hidden = in_memory and not run.snapshot.settings.get("saveExecutionProgress")
    result: dict[str, Any] = {"runData": {} if hidden else run.run_data}
    if run.pinned:
        result["pinData"] = run.pinned
    last_node = run.last_node
    if execution.status == "waiting":
        waiting = run.waiting_entry()
        result["runData"] = {**run.run_data, **waiting}
        last_node = next(iter(waiting), last_node)
    if last_node is not None and not hidden:
        result["lastNodeExecuted"] = last_node
    if run.error is not None:
        result["error"] = run.error
    stack = ([run.initial] if run.initial else []) if hidden else run.stack
    parent = execution.parent
    started_by = {}
    if parent is not None:
        parent_ids = {"executionId": str(parent.id), "workflowId": parent.workflow_id}
        started_by = {"parentExecution": {**parent_ids, "shouldResume": False}}
    return {
        "version": 1,
        "startData": {},
        "resultData": result,
        "executionData": {
            "contextData": {},
            "nodeExecutionStack": [_stack_entry(pending) for pending in stack],
            "metadata": {},
            "waitingExecution": {},
            "waitingExecutionSource": {},
            "runtimeData": _runtime_data(execution),
        },
        **started_by,
        "resumeToken": execution.resume_token,
    }


def _stack_entry(pending: Pending) -> dict[str, Any]:
    source = None if pending.source is None else {"main": [pending.source_json()]}
    return {"node": pending.node, "data": {"main": [pending.items]}, "source": source}


def _runtime_data(execution: Execution) -> dict[str, Any]:
    data: dict[str, Any] = {
        "version": 1,
        "establishedAt": epoch_milliseconds(execution.created_at),
        "source": execution.mode,
    }
    if execution.run.initial is not None:
        node = execution.run.initial.node
        data["triggerNode"] = {"name": node["name"], "type": node["type"]}
    data["redaction"] = {"version": 2, "production": False, "manual": False}
    return data
