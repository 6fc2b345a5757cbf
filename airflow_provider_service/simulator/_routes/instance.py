"""Operations on the whole instance: audit, insights, what the key may do, community packages and source control."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from airflow_provider_service.simulator._engine.engine import Execution
from airflow_provider_service.simulator._gateway import OPERATIONS, Call, Operation, Reply, operation
from airflow_provider_service.simulator._stores.audit import CATEGORIES
from airflow_provider_service.simulator._stores.source_control import (
    AUTO_PUBLISH,
    FILE_TYPES,
    NOT_CONNECTED,
    SourceControlConflictError,
)
from airflow_provider_service.simulator._validation import (
    ApiError,
    Array,
    Body,
    Boolean,
    Enum,
    Field,
    Integer,
    Number,
    Object,
    Param,
    Text,
)

# ---------------------------------------------------------------- audit

_AUDIT_OPTIONS = Object(optional={"categories": Array(items=Enum(CATEGORIES)), "daysAbandonedWorkflow": Integer()})


@operation(
    "POST",
    "/audit",
    scope="securityAudit:generate",
    family="strict",
    body=Body(optional={"additionalOptions": _AUDIT_OPTIONS}, required_body=False),
)
def generate_audit(call: Call) -> Any:
    options = call.body.get("additionalOptions", {})
    return call.state.audit.generate(options.get("categories", ()), options.get("daysAbandonedWorkflow"))


# ---------------------------------------------------------------- insights

_INSIGHTS_QUERY = (Param("startDate", "datetime"), Param("endDate", "datetime"), Param("projectId"))
_DEFAULT_SPAN = timedelta(days=7)
_FAILURES = ("error", "crashed")
_UNITS = {
    "averageRunTime": "millisecond",
    "failed": "count",
    "failureRate": "ratio",
    "timeSaved": "minute",
    "total": "count",
}


@operation("GET", "/insights/summary", scope="insights:read", family="lenient", query=_INSIGHTS_QUERY)
def get_insights_summary(call: Call) -> Any:
    now = call.state.clock.now()
    end: datetime = call.query.get("endDate", now)
    start: datetime = call.query.get("startDate", now - _DEFAULT_SPAN)
    if {"startDate", "endDate"} <= set(call.query) and end < start:
        raise ApiError(400, "endDate must be the same as or after startDate")
    if not call.state.licensed and end - start < timedelta(days=1):
        raise ApiError(403, "Hourly data is not available with your current license")
    if not call.state.licensed and start < now - _DEFAULT_SPAN - timedelta(days=1):
        raise ApiError(403, "The selected date range exceeds the maximum history allowed by your license")
    current = _insights(call, start, end)
    before = _insights(call, start - (end - start), start)
    return {
        name: {
            "value": current[name],
            "unit": unit,
            "deviation": round(current[name] - before[name], 3) if before["total"] else None,
        }
        for name, unit in _UNITS.items()
    }


def _insights(call: Call, start: datetime, end: datetime) -> dict[str, float]:
    project_id = call.query.get("projectId")
    ended = [
        execution
        for execution in call.state.executions
        if execution.status in ("success", *_FAILURES)
        and execution.mode != "manual"
        and execution.stopped_at is not None
        and start <= execution.stopped_at <= end
        and (project_id is None or execution.project_id == project_id)
    ]
    total = len(ended)
    failed = sum(execution.status in _FAILURES for execution in ended)
    return {
        "averageRunTime": round(sum(map(_milliseconds, ended)) / total, 3) if total else 0,
        "failed": failed,
        "failureRate": round(failed / total, 3) if total else 0,
        "timeSaved": sum(map(_minutes_saved, ended)),
        "total": total,
    }


def _milliseconds(execution: Execution) -> float:
    if execution.started_at is None or execution.stopped_at is None:
        return 0
    return (execution.stopped_at - execution.started_at) / timedelta(milliseconds=1)


def _minutes_saved(execution: Execution) -> float:
    saved = execution.run.snapshot.settings.get("timeSavedPerExecution", 0)
    return saved if execution.finished and isinstance(saved, (int, float)) else 0


# ---------------------------------------------------------------- discovery

# The service names a resource after the first part of its path, except for these.
_NAMES = {
    "credentials": "credential",
    "workflows": "workflow",
    "users": "user",
    "data-tables": "datatable",
    "community-packages": "communitypackage",
    "source-control": "sourcecontrol",
}
_DISCOVER_QUERY = (Param("include", "enum", enum=("schemas",)), Param("resource"), Param("operation"))


@operation("GET", "/discover", scope=None, family="strict", query=_DISCOVER_QUERY)
def discover(call: Call) -> Any:
    allowed = [op for op in OPERATIONS.values() if all(map(call.key.allows, op.scopes))]
    wanted_action = call.query.get("operation")
    shown = [op for op in allowed if wanted_action is None or wanted_action in _actions([op])]
    resources = {}
    for name in _unique(map(_resource, shown)):
        if call.query.get("resource", name) == name:
            operations = [op for op in shown if _resource(op) == name]
            endpoints = [_endpoint(op, schemas="include" in call.query) for op in operations]
            resources[name] = {"operations": _actions(operations), "endpoints": endpoints}
    filters = {
        "resource": {"description": "Show one resource only", "values": _unique(map(_resource, allowed))},
        "operation": {"description": "Show endpoints of one operation only", "values": _actions(allowed)},
        "include": {"description": "Show more", "values": ["schemas"]},
    }
    scopes = list(filter(call.key.allows, _scopes(OPERATIONS.values())))
    return {"data": {"scopes": scopes, "resources": resources, "filters": filters, "specUrl": "/api/v1/openapi.yml"}}


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _scopes(operations: Iterable[Operation]) -> list[str]:
    return _unique(scope for op in operations for scope in op.scopes)


def _actions(operations: Iterable[Operation]) -> list[str]:
    return _unique(scope.partition(":")[2] for scope in _scopes(operations))


def _resource(op: Operation) -> str:
    parts = op.path.strip("/").split("/")
    return "folders" if "folders" in parts else _NAMES.get(parts[0], parts[0])


def _endpoint(op: Operation, *, schemas: bool) -> dict[str, Any]:
    first, *rest = op.name.split("_")
    shown: dict[str, Any] = {
        "method": op.method,
        "path": f"/api/v1{op.path}",
        "operationId": first + "".join(word.capitalize() for word in rest),
    }
    if schemas and op.body is not None:
        shown["requestSchema"] = _schema(op.body.described)
    return shown


def _schema(described: Field) -> dict[str, Any]:
    schema = _typed(described)
    return {**schema, "nullable": True} if described.nullable else schema


def _typed(described: Field) -> dict[str, Any]:
    if isinstance(described, Object):
        fields = {**described.required, **described.optional}
        shown: dict[str, Any] = {"type": "object", "properties": {name: _schema(f) for name, f in fields.items()}}
        if described.required:
            shown["required"] = list(described.required)
        if described.closed:
            shown["additionalProperties"] = False
        return shown
    if isinstance(described, Array):
        bounds = {"minItems": described.min or None, "maxItems": described.max}
        return {"type": "array", "items": _schema(described.items), **_given(bounds)}
    if isinstance(described, Text):
        pattern = {"pattern": f"^{described.pattern}$"} if described.pattern else {}
        return {"type": "string", **pattern, **_given({"minLength": described.min or None, "maxLength": described.max})}
    if isinstance(described, Enum):
        return {"type": "string", "enum": list(described.values)}
    if isinstance(described, Number):
        kind = "integer" if isinstance(described, Integer) else "number"
        return {"type": kind, **_given({"minimum": described.min, "maximum": described.max})}
    return {"type": "boolean"} if isinstance(described, Boolean) else {}


def _given(bounds: dict[str, Any]) -> dict[str, Any]:
    return {name: bound for name, bound in bounds.items() if bound is not None}


# ---------------------------------------------------------------- community packages

_INSTALL_OPTIONS = {"version": Text(), "verify": Boolean()}


def _options(call: Call) -> dict[str, Any]:
    return {name: call.body[name] for name in _INSTALL_OPTIONS if name in call.body}


@operation("GET", "/community-packages", scope="communityPackage:list", family="strict")
def list_community_packages(call: Call) -> Any:
    return list(call.state.community_packages.all())


@operation(
    "POST",
    "/community-packages",
    scope="communityPackage:install",
    family="strict",
    body=Body(required={"name": Text()}, optional=_INSTALL_OPTIONS),
)
def install_community_package(call: Call) -> Any:
    return call.state.community_packages.install(call.body["name"], **_options(call))


@operation(
    "PATCH",
    "/community-packages/{name}",
    scope="communityPackage:update",
    family="strict",
    body=Body(optional=_INSTALL_OPTIONS, required_body=False),
)
def update_community_package(call: Call) -> Any:
    return call.state.community_packages.update(call.path["name"], **_options(call))


@operation("DELETE", "/community-packages/{name}", scope="communityPackage:uninstall", family="strict", status=204)
def uninstall_community_package(call: Call) -> None:
    call.state.community_packages.uninstall(call.path["name"])


# ---------------------------------------------------------------- source control

_FILE = Object(required={"id": Text(min=1), "type": Enum(FILE_TYPES)})
_PUSH = Body(
    required={"commitMessage": Text(min=1, max=1000), "fileNames": Array(items=_FILE, min=1)},
    optional={"force": Boolean()},
)
_PULL = Body(optional={"force": Boolean(), "autoPublish": Enum(AUTO_PUBLISH)})
_STATUS_QUERY = (Param("direction", "enum", enum=("push", "pull"), required=True),)
_operation = partial(operation, family="lenient", feature="feat:sourceControl")


@_operation("GET", "/source-control/status", scope="sourceControl:read", query=_STATUS_QUERY)
def get_source_control_status(call: Call) -> Any:
    return {"data": call.state.source_control.status(call.query["direction"])}


@_operation("POST", "/source-control/push", scope="sourceControl:push", body=_PUSH)
def push_source_control(call: Call) -> Any:
    chosen = [(file["type"], file["id"]) for file in call.body["fileNames"]]
    try:
        pushed = call.state.source_control.push(call.body["commitMessage"], chosen, force=call.body.get("force", False))
    except SourceControlConflictError as conflict:
        message = "Some of the files have conflicts. Push with force to overwrite them."
        return Reply({"message": message, "conflicts": conflict.files}, status=409)
    return {"data": pushed}


@_operation("POST", "/source-control/pull", scope="sourceControl:pull", body=_PULL)
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
