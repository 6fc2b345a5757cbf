"""Executions: reading, retrying, stopping, deleting, tagging."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Any

from airflow_provider_service.simulator._clock import epoch_milliseconds, stamp
from airflow_provider_service.simulator._engine.engine import STATUSES, Execution
from airflow_provider_service.simulator._gateway import Call, hold_open, keyset_page, operation
from airflow_provider_service.simulator._validation import (
    PAGING,
    ApiError,
    Array,
    Body,
    Boolean,
    Enum,
    Param,
    Text,
    parse_datetime,
)

_EXECUTION = "/executions/{executionId}"
_DATA_QUERY = (
    Param("includeData", "boolean"),
    Param("ignoreDataSizeLimit", "boolean"),
    Param("redactExecutionData", "boolean"),
)
_STOPPABLE = {"queued": "new", "running": "running", "waiting": "waiting"}
_operation = partial(operation, family="lenient")


# ---------------------------------------------------------------- JSON


def _stamp(moment: datetime | None) -> str | None:
    return None if moment is None else stamp(moment)


def _item(execution: Execution) -> dict[str, Any]:
    return {
        "id": str(execution.id),
        "finished": execution.finished,
        "mode": execution.mode,
        "retryOf": str(execution.retry_of) if execution.retry_of else None,
        "retrySuccessId": str(execution.retry_success_id) if execution.retry_success_id else None,
        "status": execution.status,
        "startedAt": _stamp(execution.started_at),
        "stoppedAt": _stamp(execution.stopped_at),
        "workflowId": execution.workflow_id,
        "waitTill": _stamp(execution.wait_till),
    }


def _stored(execution: Execution) -> dict[str, Any]:
    size = len(json.dumps(execution_data(execution)))
    return {"storedAt": "db", "jsonSizeBytes": size, "workflowVersionId": execution.version_id}


def _detail(execution: Execution) -> dict[str, Any]:
    return {
        **_item(execution),
        **_stored(execution),
        "createdAt": stamp(execution.created_at),
        "deletedAt": None,
        "tracingContext": None,
        "deduplicationKey": None,
        "binaryDataSizeBytes": 0,
        "usedPrivateCredentials": False,
    }


def _contents(execution: Execution) -> dict[str, Any]:
    snapshot = execution.run.snapshot
    return {
        "data": execution_data(execution),
        "workflowData": {
            "id": snapshot.workflow_id,
            "name": snapshot.name,
            "nodes": snapshot.nodes,
            "connections": snapshot.connections,
            "settings": snapshot.settings,
            "nodeGroups": snapshot.node_groups,
        },
        "customData": {} if execution.in_progress else execution.run.custom_data,
    }


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
            "nodeExecutionStack": [
                {
                    "node": pending.node,
                    "data": {"main": [pending.items]},
                    "source": pending.source and {"main": [pending.source_json()]},
                }
                for pending in stack
            ],
            "metadata": {},
            "waitingExecution": {},
            "waitingExecutionSource": {},
            "runtimeData": _runtime_data(execution),
        },
        **started_by,
        "resumeToken": execution.resume_token,
    }


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


# ---------------------------------------------------------------- reading


@_operation(
    "GET",
    "/executions",
    scope="execution:list",
    query=(
        *PAGING,
        *_DATA_QUERY,
        Param("status", "enum", enum=tuple(sorted(STATUSES))),
        Param("workflowId"),
        Param("projectId"),
        Param("startedAfter", "datetime"),
        Param("startedBefore", "datetime"),
    ),
)
def list_executions(call: Call) -> dict[str, Any]:
    with_data = call.query.get("includeData", False)

    def shape(execution: Execution) -> dict[str, Any]:
        item = _item(execution)
        return {**item, **_stored(execution), **_contents(execution)} if with_data else item

    def select(below: int | None) -> Iterator[Execution]:
        newest_first = call.state.executions.newest_first(
            status=call.query.get("status"), workflow_id=call.query.get("workflowId") or None, below=below
        )
        hidden = "new" if call.state.queue_mode else None
        return (run for run in newest_first if run.status != hidden and _matches(run, call.query))

    return keyset_page(call, select, id_of=lambda execution: execution.id, shape=shape)


def _matches(execution: Execution, query: dict[str, Any]) -> bool:
    if query.get("projectId") and execution.project_id != query["projectId"]:
        return False
    return _started_within(execution, query.get("startedAfter"), query.get("startedBefore"))


def _started_within(execution: Execution, after: datetime | None, before: datetime | None) -> bool:
    if after is None and before is None:
        return True
    started = execution.started_at
    return started is not None and (after is None or started >= after) and (before is None or started <= before)


def _execution(call: Call, *, missing: str = "Not Found") -> Execution:
    execution = call.state.executions.get(int(call.path["executionId"]))
    if execution is None:
        # If there is no workflow at all, the service looks no further.
        raise ApiError(404, missing if call.state.workflows.all() else "Not Found")
    return execution


@_operation("GET", _EXECUTION, scope="execution:read", query=_DATA_QUERY)
def get_execution(call: Call) -> dict[str, Any]:
    execution = _execution(call)
    detail = _detail(execution)
    return {**detail, **_contents(execution)} if call.query.get("includeData") else detail


@_operation("DELETE", _EXECUTION, scope="execution:delete")
def delete_execution(call: Call) -> dict[str, Any]:
    """Delete an execution that is not running; the answer contains its id as a number."""
    execution = _execution(call)
    if execution.status == "running":
        raise ApiError(400, "Cannot delete a running execution")
    answer = {**_detail(execution), "id": execution.id}
    call.state.engine.remove(execution)
    return answer


# ---------------------------------------------------------------- retrying and stopping


@_operation(
    "POST",
    f"{_EXECUTION}/retry",
    scope="execution:retry",
    body=Body(optional={"loadWorkflow": Boolean()}, required_body=False),
)
async def retry_execution(call: Call) -> dict[str, Any]:
    """Run the rest of an execution again; answers when the new one has ended (or sleeps)."""
    execution_id = call.path["executionId"]
    original = _execution(call, missing=f'The execution with the ID "{execution_id}" does not exist.')
    if original.status == "new":
        raise ApiError(409, "Execution is queued to run (not yet started) so it cannot be retried")
    if original.status == "success":
        raise ApiError(409, "The execution succeeded, so it cannot be retried.")
    snapshot = None
    if call.body.get("loadWorkflow"):
        snapshot = call.state.workflows.get(original.workflow_id).snapshot()
    execution = call.state.engine.retry(original, snapshot)
    await hold_open(call.request, call.state, lambda: not execution.in_progress)
    item = _item(execution)
    names = ("id", "mode", "startedAt", "workflowId", "finished", "retryOf", "status")
    answer = {**{name: item[name] for name in names}, "storedAt": "db", **_contents(execution)}
    answer["workflowData"] |= {"active": False, "activeVersionId": None}
    if execution.wait_till is not None:
        answer["waitTill"] = item["waitTill"]
    if original.is_annotated:
        answer["annotation"] = {"id": original.id, "vote": None, "tags": _tags(call, original)}
    return answer


@_operation("POST", f"{_EXECUTION}/stop", scope="execution:stop")
def stop_execution(call: Call) -> dict[str, Any]:
    """Cancel an execution at once; the answer does not contain its id."""
    execution = _execution(call, missing="Failed to find execution to stop")
    if execution.status not in _STOPPABLE.values():
        text = f"Only running or waiting executions can be stopped and {execution.id} is currently {execution.status}"
        raise ApiError(409, text)
    call.state.engine.stop(execution)
    item = _item(execution)
    # For an execution that never left the queue, the answer has the epoch while null is stored.
    item["startedAt"] = item["startedAt"] or "1970-01-01T00:00:00.000Z"
    return {name: item[name] for name in ("mode", "startedAt", "stoppedAt", "finished", "status")}


@_operation(
    "POST",
    "/executions/stop",
    scope="execution:stop",
    body=Body(
        required={"status": Array(items=Enum(tuple(_STOPPABLE)), min=1)},
        optional={"workflowId": Text(), "startedAfter": Text(), "startedBefore": Text()},
    ),
)
def stop_many_executions(call: Call) -> dict[str, int]:
    """Cancel every matching execution; without ``workflowId`` those of every workflow."""
    workflow_id = call.body.get("workflowId", "all")
    if workflow_id != "all":
        call.state.workflows.get(workflow_id, missing="Workflow not found or not accessible")
    after, before = (_body_moment(call.body, name) for name in ("startedAfter", "startedBefore"))
    chosen = [
        execution
        for status in dict.fromkeys(call.body["status"])
        for execution in call.state.executions.with_status(_STOPPABLE[status])
        if workflow_id in ("all", execution.workflow_id) and _started_within(execution, after, before)
    ]
    # An execution that was started in the meantime by the end of another is still stopped: it was selected before.
    for execution in chosen:
        call.state.engine.stop(execution)
    return {"stopped": len(chosen)}


def _body_moment(body: dict[str, Any], name: str) -> datetime | None:
    if name not in body:
        return None
    moment = parse_datetime(body[name])
    if moment is None:
        raise ApiError(400, f"request/body/{name} Invalid datetime")
    return moment


# ---------------------------------------------------------------- annotation tags


@_operation("GET", f"{_EXECUTION}/tags", scope="executionTags:list")
def list_execution_tags(call: Call) -> list[dict[str, Any]]:
    return _tags(call, _execution(call))


def _tags(call: Call, execution: Execution) -> list[dict[str, Any]]:
    return [call.state.executions.annotation_tags[tag_id] for tag_id in execution.tag_ids]


@_operation("PUT", f"{_EXECUTION}/tags", scope="executionTags:update", body=Body(required={"id": Text()}, array=True))
def update_execution_tags(call: Call) -> list[dict[str, Any]]:
    execution = _execution(call)
    tag_ids = list(dict.fromkeys(tag["id"] for tag in call.body))
    if any(tag_id not in call.state.executions.annotation_tags for tag_id in tag_ids):
        raise ApiError(404, "Some tags not found")
    execution.tag_ids = tag_ids
    execution.is_annotated = True
    return _tags(call, execution)
