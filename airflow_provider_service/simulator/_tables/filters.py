"""Row filters: ``{"type": "and"|"or", "filters": [{"columnName", "condition", "value"}]}`` as a predicate."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from airflow_provider_service.simulator._tables.types import coerce, comparable, invalid, is_equal_number
from airflow_provider_service.simulator._validation import ApiError, Param

Row = dict[str, Any]
Predicate = Callable[[Row], bool]

# The query parameter that carries a filter.
FILTER = Param("filter", "json")

# The bodies of updates and upserts take only the conditions of the published contract; queries take all.
BODY_CONDITIONS = ("eq", "neq", "like", "ilike", "gt", "gte", "lt", "lte")
CONDITIONS = (*BODY_CONDITIONS, "isEmpty", "isNotEmpty")

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


def check_filter(value: Any) -> Mapping[str, Any]:
    """Refuse a filter that is not of the documented shape.

    :raises ApiError: 400 ``Invalid filter fields``
    """
    refused = ApiError(400, "Invalid filter fields")
    if not isinstance(value, dict) or value.get("type", "and") not in ("and", "or"):
        raise refused
    conditions = value.get("filters", [])
    if not isinstance(conditions, list):
        raise refused
    for condition in conditions:
        if not (
            isinstance(condition, dict)
            and isinstance(condition.get("columnName"), str)
            and condition["columnName"]
            and condition.get("condition", "eq") in CONDITIONS
            and "value" in condition
            and not isinstance(condition["value"], (dict, list))
        ):
            raise refused
    return value


def compile_filter(value: Any, types: Mapping[str, str], search: Predicate | None = None) -> Predicate | None:
    """Build the predicate of a filter and a search; None if it has no condition.

    :param types: column name to type, system columns included
    :param search: what rows must meet besides
    :raises ApiError: 400 for a wrong shape, an unknown column or a value its column does not accept
    """
    described = check_filter(value)
    tests = [_compile(condition, types) for condition in described.get("filters", [])]
    if search is not None:
        # The service writes "a OR b AND search", which binds the search to the last condition.
        tests[-1:] = [_both(tests[-1], search) if tests else search]
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    if described.get("type", "and") == "or":
        return lambda row: any(test(row) for test in tests)
    return lambda row: all(test(row) for test in tests)


def _both(first: Predicate, second: Predicate) -> Predicate:
    return lambda row: first(row) and second(row)


def _compile(condition: Mapping[str, Any], types: Mapping[str, str]) -> Predicate:
    column = condition["columnName"]
    if column not in types:
        raise invalid(f"unknown column name '{column}'")
    column_type = types[column]
    value = coerce(column, column_type, condition["value"])
    name = condition.get("condition", "eq")
    if name in ("eq", "neq"):
        return _equality(column, column_type, value, wanted=name == "eq")
    if name in ("isEmpty", "isNotEmpty"):
        empty = (None, "")
        return lambda row: (row[column] in empty) == (name == "isEmpty")
    if value is None:
        raise invalid(f"{name.upper()} filter value cannot be null or undefined")
    if name in _ORDER:
        return _ordering(column, column_type, value, _ORDER[name])
    if not isinstance(value, str) or not isinstance(condition["value"], str):
        raise invalid(f"{name.upper()} filter value must be a string")
    matches = pattern(value, ignore_case=name == "ilike")
    return lambda row: row[column] is not None and matches(comparable(column_type, row[column]))


def _equality(column: str, column_type: str, value: Any, *, wanted: bool) -> Predicate:
    if value is None:
        return lambda row: (row[column] is None) == wanted
    if column_type == "date":
        # The stored text and the compared text are never equal: see types.py.
        return lambda _row: not wanted
    if column_type == "number":
        return lambda row: (row[column] is not None and is_equal_number(row[column], value)) == wanted
    return lambda row: (row[column] == value) == wanted


def _ordering(column: str, column_type: str, value: Any, compare: Callable[[Any, Any], bool]) -> Predicate:
    return lambda row: row[column] is not None and compare(comparable(column_type, row[column]), value)


def pattern(text: str, *, ignore_case: bool) -> Callable[[str], bool]:
    """A LIKE match: ``%`` is the only wildcard; a text without it may occur anywhere.

    :param ignore_case: whether upper and lower case are equal, as in SQLite: only for A to Z
    """
    wildcard = text if "%" in text else f"%{text}%"
    flags = re.DOTALL | (re.IGNORECASE | re.ASCII if ignore_case else 0)
    expression = re.compile(".*".join(re.escape(part) for part in wildcard.split("%")), flags)
    return lambda candidate: expression.fullmatch(candidate) is not None
