"""Source control: ``/source-control``."""

from __future__ import annotations

from functools import partial
from typing import Any

from airflow_provider_service.simulator._gateway import Call, Reply, operation
from airflow_provider_service.simulator._stores.source_control import (
    AUTO_PUBLISH,
    FILE_TYPES,
    NOT_CONNECTED,
    SourceControlConflictError,
)
from airflow_provider_service.simulator._validation import Array, Body, Boolean, Enum, Object, Param, Text

_FILE = Object(required={"id": Text(min=1), "type": Enum(FILE_TYPES)})
_PUSH = Body(
    required={"commitMessage": Text(min=1, max=1000), "fileNames": Array(items=_FILE, min=1)},
    optional={"force": Boolean()},
)
_PULL = Body(optional={"force": Boolean(), "autoPublish": Enum(AUTO_PUBLISH)})
_QUERY = (Param("direction", "enum", enum=("push", "pull"), required=True),)
_operation = partial(operation, family="lenient", feature="feat:sourceControl")


@_operation("get_source_control_status", "GET", "/source-control/status", scope="sourceControl:read", query=_QUERY)
def get_source_control_status(call: Call) -> Any:
    return {"data": call.state.source_control.status(call.query["direction"])}


@_operation("push_source_control", "POST", "/source-control/push", scope="sourceControl:push", body=_PUSH)
def push_source_control(call: Call) -> Any:
    wanted = [(given["type"], given["id"]) for given in call.body["fileNames"]]
    try:
        pushed = call.state.source_control.push(call.body["commitMessage"], wanted, force=call.body.get("force", False))
    except SourceControlConflictError as conflict:
        message = "Some of the files have conflicts. Push with force to overwrite them."
        return Reply({"message": message, "conflicts": conflict.files}, status=409)
    return {"data": pushed}


@_operation("pull_source_control", "POST", "/source-control/pull", scope="sourceControl:pull", body=_PULL)
def pull_source_control(call: Call) -> Any:
    store = call.state.source_control
    if not store.connected:
        return Reply({"status": "Error", "message": NOT_CONNECTED}, status=400)
    if store.failure is not None:
        return Reply(store.failure, status=400, media_type="text/plain")
    try:
        return store.pull(force=call.body.get("force", False), auto_publish=call.body.get("autoPublish", "none"))
    except SourceControlConflictError as conflict:
        return Reply(conflict.files, status=409)
