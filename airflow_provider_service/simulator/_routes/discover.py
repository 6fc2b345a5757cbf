"""The capabilities of the key: ``/discover``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airflow_provider_service.simulator._gateway import OPERATIONS, Call, Operation, operation
from airflow_provider_service.simulator._validation import (
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

# The service names a resource after the first part of its path, except for these.
_NAMES = {
    "credentials": "credential",
    "workflows": "workflow",
    "users": "user",
    "data-tables": "datatable",
    "community-packages": "communitypackage",
    "source-control": "sourcecontrol",
}
_QUERY = (Param("include", "enum", enum=("schemas",)), Param("resource"), Param("operation"))


@operation("discover", "GET", "/discover", scope=None, family="strict", query=_QUERY)
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
