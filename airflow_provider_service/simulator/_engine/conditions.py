"""The conditions of If, Switch and Filter nodes, with the operators that are simulated.

Anything else is an :class:`ExpressionError`, since a test must not pass because of a branch that was guessed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from airflow_provider_service.simulator._engine.expressions import ExpressionError, as_text

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt,
    "lt": operator.lt,
    "gte": operator.ge,
    "lte": operator.le,
}
_EQUALITY: dict[str, Callable[[Any, Any], bool]] = {"equals": operator.eq, "notEquals": operator.ne}
_TEXT: dict[str, Callable[[str, str], bool]] = {
    **_EQUALITY,
    "contains": operator.contains,
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "notContains": lambda left, right: right not in left,
    "notStartsWith": lambda left, right: not left.startswith(right),
    "notEndsWith": lambda left, right: not left.endswith(right),
}
_LENGTH = {f"length{name[0].upper()}{name[1:]}": compare for name, compare in {**_ORDER, **_EQUALITY}.items()}
_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


def holds(conditions: Mapping[str, Any], item: int = 0) -> bool:
    """Whether conditions hold; their values must have been evaluated.

    :param item: index of the item, for errors
    :raises ExpressionError: an operator is not simulated, or a value is not of its type
    """
    options = conditions.get("options") or {}
    combinator = conditions.get("combinator", "and")
    if combinator not in ("and", "or"):
        raise ExpressionError(f"combinator {combinator!r} is not simulated")
    results = (
        _holds(one, options, f"[condition {number}, item {item}]")
        for number, one in enumerate(conditions.get("conditions") or [])
    )
    return all(results) if combinator == "and" else any(results)


def _holds(condition: Mapping[str, Any], options: Mapping[str, Any], place: str) -> bool:
    by = condition.get("operator") or {}
    kind, operation = by.get("type"), by.get("operation")
    unknown = ExpressionError(f"operator {kind}:{operation} of conditions is not simulated")
    left, right = condition.get("leftValue"), condition.get("rightValue")
    if operation in ("exists", "notExists"):
        return (left is not None) is (operation == "exists")
    if kind not in _TYPES:
        raise unknown
    strict = options.get("typeValidation") == "strict"
    left = _as_type(left, kind, strict, place)
    if operation in ("empty", "notEmpty"):
        is_empty = left is None or (kind in ("string", "array", "object") and not left)
        return is_empty is (operation == "empty")
    if kind == "boolean" and operation in ("true", "false"):
        return bool(left) is (operation == "true")
    ignore_case = not options.get("caseSensitive")
    if kind == "array" and operation in ("contains", "notContains"):
        values = [_folded(one, ignore_case) for one in left or []]
        return any(_is_same(one, _folded(right, ignore_case)) for one in values) is (operation == "contains")
    if kind == "array" and operation in _LENGTH:
        return _LENGTH[operation](len(left or []), _known(_as_type(right, "number", strict, place)))
    right = _as_type(right, by.get("rightType", kind), strict, place)
    if kind == "string" and operation in _TEXT:
        return _TEXT[operation](_folded(left or "", ignore_case), _folded(right or "", ignore_case))
    if kind == "number" and operation in _ORDER:
        return _ORDER[operation](_known(left), _known(right))
    if kind in ("number", "boolean") and operation in _EQUALITY:
        return _EQUALITY[operation](left, _known(right))
    raise unknown


def _as_type(value: Any, kind: str, strict: bool, place: str) -> Any:
    """Convert a value as the service does; None stays None."""
    is_of_kind = isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
    if value is None or is_of_kind:
        return value
    if strict:
        found = next(name for name, types in reversed(_TYPES.items()) if isinstance(value, types))
        raise ExpressionError(
            f"Wrong type: '{as_text(value)}' is {_article(found)} but was expecting {_article(kind)} {place}"
        )
    if kind == "string":
        return as_text(value)
    if kind == "number" and isinstance(value, str) and value.strip():
        try:
            return float(value)
        except ValueError:
            raise ExpressionError(
                f"Conversion error: the string '{value}' can't be converted to a number {place}"
            ) from None
    if kind == "boolean" and str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    raise ExpressionError(f"the conversion of {as_text(value)!r} to {_article(kind)} is not simulated")


def _article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _known(value: Any) -> Any:
    # Here "undefined" and null are one, but the service compares them with numbers in different ways.
    if value is None:
        raise ExpressionError("a comparison with nothing is not simulated")
    return value


def _folded(value: Any, ignore_case: bool) -> Any:
    return value.lower() if ignore_case and isinstance(value, str) else value


def _is_same(left: Any, right: Any) -> bool:
    # The service compares lists and objects by identity.
    return not isinstance(left, (list, dict)) and isinstance(left, bool) is isinstance(right, bool) and left == right
