"""The fields that Edit Fields (Set) and Split Out nodes make.

Anything that is not evaluated is an :class:`ExpressionError`, since a test must not pass because of fields that were
guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from airflow_provider_service.simulator._engine.expressions import (
    ExpressionError,
    Scope,
    as_text,
    evaluate,
    require_simulated,
)

SET = "n8n-nodes-base.set"
SPLIT_OUT = "n8n-nodes-base.splitOut"
#: Older versions have other parameters and defaults.
_OLDEST_SET = 3.3

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
# The steps of a path that lead into lists.
_INTO_LISTS = re.compile(r"\[|\.\d+(?:\.|$)")

Items = list[dict[str, Any]]


def set_fields(node: Mapping[str, Any], items: Items, scope_of: Callable[[dict[str, Any]], Scope]) -> Items:
    """The items of an Edit Fields (Set) node.

    :raises ExpressionError: its version or a parameter is not simulated, or a value is not of its type
    """
    version = float(node.get("typeVersion", 1))
    if version < _OLDEST_SET:
        raise ExpressionError(f"version {version:g} of {SET} is not simulated, only {_OLDEST_SET} and newer ones")
    parameters = node.get("parameters") or {}
    require_simulated(SET, parameters.get("options") or {}, dotNotation=True, ignoreConversionErrors=False)
    made: Items = []
    for index, item in enumerate(items):
        scope, fields = scope_of(item["json"]), {}
        if evaluate(parameters.get("includeOtherFields"), scope):
            require_simulated(SET, parameters, include="all")
            fields = dict(item["json"])
        for name, value in _values(parameters, scope, index).items():
            _assign(fields, name, value)
        made.append({"json": fields, "pairedItem": {"item": index}})
    return made


def _values(parameters: Mapping[str, Any], scope: Scope, item: int) -> dict[str, Any]:
    if parameters.get("mode") == "raw":
        output = evaluate(parameters.get("jsonOutput", "{}"), scope)
        output = _json_or_none(output) if isinstance(output, str) else output
        if not isinstance(output, dict):
            raise ExpressionError(f"The 'JSON Output' in item {item} contains invalid JSON")
        return output
    values = {}
    for assignment in (parameters.get("assignments") or {}).get("assignments", []):
        name = str(evaluate(assignment.get("name", ""), scope))
        values[name] = _typed(name, evaluate(assignment.get("value"), scope), assignment.get("type"), item)
    return values


def _typed(name: str, value: Any, kind: Any, item: int) -> Any:
    if kind not in _CONVERSIONS:
        raise ExpressionError(f"type {kind!r} of a field is not simulated")
    converted = None if value is None else _CONVERSIONS[kind](value)
    if converted is None and value is not None:
        shape = "array" if isinstance(value, list) else "object"
        described = shape if isinstance(value, (list, dict)) else f"'{as_text(value)}'"
        raise ExpressionError(f"'{name}' expects a {kind} but we got {described} [item {item}]")
    return converted


def as_number(value: Any) -> float | None:
    """Convert a value as the service does; None if it is not a number."""
    if isinstance(value, str):
        text = value.strip()
        number = float(text or 0) if not text or _NUMBER.fullmatch(text) else None
        return int(number) if number is not None and number.is_integer() else number
    return value * 1 if isinstance(value, (int, float)) else None


def _as_boolean(value: Any) -> bool | None:
    text = str(value).strip().lower()
    if text in ("true", "false"):
        return text == "true"
    number = as_number(value) if text else None
    return bool(number) if number in (0, 1) else None


def _json_or_none(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _as_list(value: Any) -> list[Any] | None:
    value = _json_or_none(value) if isinstance(value, str) else value
    return value if isinstance(value, list) else None


def _as_object(value: Any) -> dict[str, Any] | None:
    value = _json_or_none(value) if isinstance(value, str) else value
    return value if isinstance(value, dict) else None


_CONVERSIONS: dict[Any, Callable[[Any], Any]] = {
    "string": as_text,
    "number": as_number,
    "boolean": _as_boolean,
    "array": _as_list,
    "object": _as_object,
}


def _assign(fields: dict[str, Any], dotted: str, value: Any) -> None:
    if _INTO_LISTS.search(dotted):
        raise ExpressionError(f"the name {dotted!r} of a field is not simulated")
    *parents, last = dotted.split(".")
    for parent in parents:
        # A new dict each time, so that the outer item does not change with it.
        fields[parent] = dict(fields[parent]) if isinstance(fields.get(parent), dict) else {}
        fields = fields[parent]
    fields[last] = value


def split_out(node: Mapping[str, Any], items: Items, scope_of: Callable[[dict[str, Any]], Scope]) -> Items:
    """The items of a Split Out node.

    :raises ExpressionError: a parameter is not simulated
    """
    made: Items = []
    for index, item in enumerate(items):
        parameters = evaluate(node.get("parameters") or {}, scope_of(item["json"]))
        require_simulated(SPLIT_OUT, parameters, include="noOtherFields")
        require_simulated(SPLIT_OUT, parameters.get("options") or {}, destinationFieldName="", disableDotNotation=False)
        field = as_text(parameters.get("fieldToSplitOut")).strip().removeprefix("$json.")
        if not field or "," in field or _INTO_LISTS.search(field):
            raise ExpressionError(f"the fields {field!r} of {SPLIT_OUT} are not simulated, only a single one")
        made += [
            {"json": _as_item(entry, field), "pairedItem": {"item": index}} for entry in _entries(item["json"], field)
        ]
    return made


def _entries(value: Any, field: str) -> list[Any]:
    for step in [field] if field in value else field.split("."):
        if not isinstance(value, dict) or step not in value:
            return []
        value = value[step]
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else [value]


def _as_item(entry: Any, field: str) -> dict[str, Any]:
    if isinstance(entry, list):
        return {str(index): value for index, value in enumerate(entry)}
    return entry if isinstance(entry, dict) else {field: entry}
