"""The security audit: ``/audit``.

Figures about past executions: ``/insights/summary``.

The capabilities of the key: ``/discover``.

Community packages: ``/community-packages``.

Source control: ``/source-control``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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

_AUDIT_OPTIONS = Object(optional={"categories": Array(items=Enum(CATEGORIES)), "daysAbandonedWorkflow": Integer()})


@operation(
    "generate_audit",
    "POST",
    "/audit",
    scope="securityAudit:generate",
    family="strict",
    body=Body(optional={"additionalOptions": _AUDIT_OPTIONS}, required_body=False),
)
def generate_audit(call: Call) -> Any:
    options = call.body.get("additionalOptions", {})
    return call.state.audit.generate(options.get("categories", ()), options.get("daysAbandonedWorkflow"))


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


@dataclass(frozen=True)
class _Figures:
    """Sums over the executions of one time range."""

    executions: Sequence[Execution]

    def values(self) -> dict[str, float]:
        total = len(self.executions)
        failed = sum(run.status in _FAILURES for run in self.executions)
        run_time = sum(_milliseconds(run) for run in self.executions)
        return {
            "averageRunTime": round(run_time / total, 3) if total else 0,
            "failed": failed,
            "failureRate": round(failed / total, 3) if total else 0,
            "timeSaved": sum(_minutes_saved(run) for run in self.executions),
            "total": total,
        }


def _milliseconds(run: Execution) -> float:
    if run.started_at is None or run.stopped_at is None:
        return 0
    return (run.stopped_at - run.started_at) / timedelta(milliseconds=1)


def _minutes_saved(run: Execution) -> float:
    saved = run.run.snapshot.settings.get("timeSavedPerExecution", 0)
    return saved if run.finished and isinstance(saved, (int, float)) else 0


@operation(
    "get_insights_summary", "GET", "/insights/summary", scope="insights:read", family="lenient", query=_INSIGHTS_QUERY
)
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
    current = _figures(call, start, end).values()
    before = _figures(call, start - (end - start), start)
    earlier = before.values() if before.executions else None
    return {
        name: {
            "value": current[name],
            "unit": unit,
            "deviation": None if earlier is None else round(current[name] - earlier[name], 3),
        }
        for name, unit in _UNITS.items()
    }


def _figures(call: Call, start: datetime, end: datetime) -> _Figures:
    project_id = call.query.get("projectId")
    return _Figures(
        [
            run
            for run in call.state.executions
            if run.status in ("success", *_FAILURES)
            and run.mode != "manual"
            and run.stopped_at is not None
            and start <= run.stopped_at <= end
            and (project_id is None or run.project_id == project_id)
        ]
    )


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


@operation("discover", "GET", "/discover", scope=None, family="strict", query=_DISCOVER_QUERY)
def discover(call: Call) -> Any:
    allowed = [op for op in OPERATIONS.values() if all(call.allows(scope) for scope in op.scopes)]
    wanted_action = call.query.get("operation")
    shown = [op for op in allowed if wanted_action is None or wanted_action in _actions([op])]
    resources = {
        name: _describe([op for op in shown if _resource(op) == name], schemas="include" in call.query)
        for name in _unique(_resource(op) for op in shown)
        if call.query.get("resource", name) == name
    }
    filters = {
        "resource": {"description": "Show one resource only", "values": _unique(_resource(op) for op in allowed)},
        "operation": {"description": "Show endpoints of one operation only", "values": _actions(allowed)},
        "include": {"description": "Show more", "values": ["schemas"]},
    }
    scopes = [scope for scope in _scopes(OPERATIONS.values()) if call.allows(scope)]
    data = {"scopes": scopes, "resources": resources, "filters": filters, "specUrl": "/api/v1/openapi.yml"}
    return {"data": data}


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _scopes(operations: Iterable[Operation]) -> list[str]:
    return _unique(scope for op in operations for scope in op.scopes)


def _actions(operations: Iterable[Operation]) -> list[str]:
    return _unique(scope.partition(":")[2] for scope in _scopes(operations))


def _resource(op: Operation) -> str:
    parts = op.path.strip("/").split("/")
    if parts[-1] == "folders" or "folders" in parts:
        return "folders"
    return _NAMES.get(parts[0], parts[0])


def _describe(operations: list[Operation], *, schemas: bool) -> dict[str, Any]:
    return {"operations": _actions(operations), "endpoints": [_endpoint(op, schemas=schemas) for op in operations]}


def _endpoint(op: Operation, *, schemas: bool) -> dict[str, Any]:
    first, *rest = op.name.split("_")
    shown: dict[str, Any] = {
        "method": op.method,
        "path": f"/api/v1{op.path}",
        "operationId": first + "".join(word.capitalize() for word in rest),
    }
    if schemas and op.body is not None:
        shown["requestSchema"] = _body_schema(op.body)
    return shown


def _body_schema(body: Body) -> dict[str, Any]:
    described = Object(required=body.required, optional=body.optional, closed=body.closed)
    return _schema(Array(items=described, min=body.min) if body.array else described)


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
        return _with_bounds({"type": "array", "items": _schema(described.items)}, "Items", described.min, described.max)
    if isinstance(described, Text):
        shown = {"type": "string", **({"pattern": f"^{described.pattern}$"} if described.pattern else {})}
        return _with_bounds(shown, "Length", described.min, described.max)
    if isinstance(described, Enum):
        return {"type": "string", "enum": list(described.values)}
    if isinstance(described, Number):
        shown = {"type": "integer" if isinstance(described, Integer) else "number"}
        bounds = {"minimum": described.min, "maximum": described.max}
        return {**shown, **{name: bound for name, bound in bounds.items() if bound is not None}}
    return {"type": "boolean"} if isinstance(described, Boolean) else {}


def _with_bounds(shown: dict[str, Any], noun: str, least: int | None, most: int | None) -> dict[str, Any]:
    bounds = {f"min{noun}": least or None, f"max{noun}": most}
    return {**shown, **{name: bound for name, bound in bounds.items() if bound is not None}}


_INSTALL_OPTIONS = {"version": Text(), "verify": Boolean()}


def _options(call: Call) -> dict[str, Any]:
    return {name: call.body[name] for name in _INSTALL_OPTIONS if name in call.body}


@operation("list_community_packages", "GET", "/community-packages", scope="communityPackage:list", family="strict")
def list_community_packages(call: Call) -> Any:
    return list(call.state.community_packages.all())


@operation(
    "install_community_package",
    "POST",
    "/community-packages",
    scope="communityPackage:install",
    family="strict",
    body=Body(required={"name": Text()}, optional=_INSTALL_OPTIONS),
)
def install_community_package(call: Call) -> Any:
    return call.state.community_packages.install(call.body["name"], **_options(call))


@operation(
    "update_community_package",
    "PATCH",
    "/community-packages/{name}",
    scope="communityPackage:update",
    family="strict",
    body=Body(optional=_INSTALL_OPTIONS, required_body=False),
)
def update_community_package(call: Call) -> Any:
    return call.state.community_packages.update(call.path["name"], **_options(call))


@operation(
    "uninstall_community_package",
    "DELETE",
    "/community-packages/{name}",
    scope="communityPackage:uninstall",
    family="strict",
    status=204,
)
def uninstall_community_package(call: Call) -> None:
    call.state.community_packages.uninstall(call.path["name"])


_FILE = Object(required={"id": Text(min=1), "type": Enum(FILE_TYPES)})
_PUSH = Body(
    required={"commitMessage": Text(min=1, max=1000), "fileNames": Array(items=_FILE, min=1)},
    optional={"force": Boolean()},
)
_PULL = Body(optional={"force": Boolean(), "autoPublish": Enum(AUTO_PUBLISH)})
_STATUS_QUERY = (Param("direction", "enum", enum=("push", "pull"), required=True),)
_operation = partial(operation, family="lenient", feature="feat:sourceControl")


@_operation(
    "get_source_control_status", "GET", "/source-control/status", scope="sourceControl:read", query=_STATUS_QUERY
)
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
