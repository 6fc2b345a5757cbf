"""The behaviour of each simulated node type. Unknown types pass their items through.

Parameters that are not simulated are an :class:`ExpressionError`, since a test must not pass because of fields that
were guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from airflow_provider_service.simulator._engine.expressions import (
    FILTER,
    IF,
    SWITCH,
    ExpressionError,
    Items,
    Scope,
    ScopeOf,
    as_text,
    evaluate,
    require_simulated,
    route,
)
from airflow_provider_service.simulator._validation import parse_datetime

Node = dict[str, Any]

WEBHOOK = "n8n-nodes-base.webhook"
WAIT = "n8n-nodes-base.wait"
RESPOND = "n8n-nodes-base.respondToWebhook"
CODE = "n8n-nodes-base.code"
EXECUTE_WORKFLOW = "n8n-nodes-base.executeWorkflow"
SUB_WORKFLOW_TRIGGER = "n8n-nodes-base.executeWorkflowTrigger"
MERGE = "n8n-nodes-base.merge"
SET = "n8n-nodes-base.set"
SPLIT_OUT = "n8n-nodes-base.splitOut"

# The end of a wait that time does not end.
FOREVER = datetime(3000, 1, 1, tzinfo=UTC)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_UNITS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400}
_THROW = re.compile(r"""throw\s+new\s+(\w*Error)\s*\(\s*(["'`])(.*?)\2\s*\)""", re.DOTALL)
# Comments may come before what always throws.
_THROWS_FIRST = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*throw\b", re.DOTALL)
# The only code that runs is code that returns a list in JSON.
_RETURN = re.compile(r"\s*return\s*(\[.*\])\s*;?\s*", re.DOTALL)


@dataclass(frozen=True)
class WebhookAnswer:
    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str | None = None


@dataclass(frozen=True)
class Outcome:
    """The result of running a node: items for its first output and for the others, and side effects."""

    items: Items
    others: Sequence[Items] = ()
    wait_until: datetime | None = None
    answer: WebhookAnswer | None = None
    custom_data: Mapping[str, str] = field(default_factory=dict)
    calls: str | None = None  # id of a workflow to start with the items
    metadata: Mapping[str, Any] | None = None


class NodeFailedError(Exception):
    """The node failed; ``error`` is the object found in the execution's data."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.error = error


class NotSimulatedError(NodeFailedError):
    """The simulator cannot tell what the node would do, so that the run ends, whatever the node does after errors."""


def operation_error(node: Node, message: str) -> dict[str, Any]:
    return {
        "level": "warning",
        "tags": {},
        "context": {},
        "functionality": "regular",
        "name": "NodeOperationError",
        "node": node,
        "messages": [],
        "message": message,
        "description": None,
        "stack": f"NodeOperationError: {message}",
    }


def run_node(node: Node, items: Items, scope_of: ScopeOf, moment: datetime) -> Outcome:
    behaviour = _BEHAVIOURS.get(node["type"])
    if behaviour is None or node.get("disabled"):
        return Outcome(items)
    try:
        return behaviour(node, items, scope_of, moment)
    except ExpressionError as error:
        raise NotSimulatedError(operation_error(node, str(error))) from error
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        # The workflow's author may write any parameters; a bad one ends this run, not the simulator.
        raise NotSimulatedError(operation_error(node, f"Bad parameters: {error}")) from error


def _first(items: Items) -> dict[str, Any]:
    first: dict[str, Any] = items[0]["json"] if items else {}
    return first


def _parameters(node: Node, items: Items, scope_of: ScopeOf) -> dict[str, Any]:
    parameters: dict[str, Any] = evaluate(node.get("parameters") or {}, scope_of(_first(items)))
    return parameters


def _wait(node: Node, items: Items, scope_of: ScopeOf, moment: datetime) -> Outcome:
    require_simulated(WAIT, node, executeOnce=False)
    parameters = _parameters(node, items, scope_of)
    resume = parameters.get("resume", "timeInterval")
    if resume == "timeInterval":
        # The defaults changed with version 1.1 of the node.
        recent = float(node.get("typeVersion", 1)) >= 1.1
        unit = parameters.get("unit", "seconds" if recent else "hours")
        if unit not in _UNITS:
            text = "Invalid wait unit. Valid units are 'seconds', 'minutes', 'hours', or 'days'."
            raise NodeFailedError(operation_error(node, text))
        amount = as_number(parameters.get("amount", 5 if recent else 1))
        if amount is None or amount < 0:
            text = "Invalid wait amount. Please enter a number that is 0 or greater."
            raise NodeFailedError(operation_error(node, text))
        return Outcome(items, wait_until=moment + timedelta(seconds=amount * _UNITS[unit]))
    if resume == "specificTime":
        until = parse_datetime(str(parameters.get("dateTime", "")))
        if until is None:
            raise NodeFailedError(operation_error(node, "Invalid date. Please use a valid ISO date."))
        return Outcome(items, wait_until=max(until, moment))
    require_simulated(WAIT, parameters, limitWaitTime=False)
    return Outcome(items, wait_until=FOREVER)


def _stop_and_error(node: Node, items: Items, scope_of: ScopeOf, _moment: datetime) -> Outcome:
    parameters = _parameters(node, items, scope_of)
    message = as_text(parameters.get("errorMessage"))
    if parameters.get("errorType") == "errorObject":
        details = parameters.get("errorObject", "{}")
        message = as_text(details)
        parsed = _of_type(dict, details)
        if parsed is not None:
            keys = (key for key in ("message", "description", "error") if key in parsed)
            message = as_text(next((parsed[key] for key in keys), parsed))
    raise NodeFailedError(operation_error(node, message or "An error occurred"))


def _code(node: Node, items: Items, _scope_of: ScopeOf, _moment: datetime) -> Outcome:
    code = str((node.get("parameters") or {}).get("jsCode", ""))
    returned = _RETURN.fullmatch(code)
    written = _of_type(list, returned[1]) if returned else None
    if written is not None:
        objects = [value for value in written if isinstance(value, dict)]
        # An object without "json" is the JSON of an item.
        return Outcome([value if "json" in value else {"json": value} for value in objects])
    thrown = _THROW.search(code)
    if thrown is None:
        return Outcome(items)
    line = code[: thrown.start()].count("\n") + 1
    if not _THROWS_FIRST.match(code):
        raise ExpressionError(f"code that does not always throw is not simulated (line {line})")
    message = f"{thrown[3]} [line {line}]"
    # Errors thrown in code carry no "node".
    raise NodeFailedError(
        {"message": message, "name": thrown[1], "lineNumber": line, "stack": f"{thrown[1]}: {message}"}
    )


def _execution_data(node: Node, items: Items, scope_of: ScopeOf, _moment: datetime) -> Outcome:
    saved = (_parameters(node, items, scope_of).get("dataToSave") or {}).get("values", [])
    return Outcome(items, custom_data={str(pair.get("key", "")): as_text(pair.get("value")) for pair in saved})


def _respond(node: Node, items: Items, scope_of: ScopeOf, _moment: datetime) -> Outcome:
    parameters = _parameters(node, items, scope_of)
    options = parameters.get("options") or {}
    entries = (options.get("responseHeaders") or {}).get("entries", [])
    headers = {str(entry.get("name", "")).lower(): as_text(entry.get("value")) for entry in entries}
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise NodeFailedError(operation_error(node, f'Invalid character in header content ["{name}"]'))
    media_type = headers.pop("content-type", None)
    respond_with = parameters.get("respondWith", "firstIncomingItem")
    body: Any = as_text(parameters.get("responseBody"))
    if respond_with == "firstIncomingItem":
        body = _first(items)
    elif respond_with == "allIncomingItems":
        body = [item["json"] for item in items]
    elif respond_with == "json":
        body = parameters.get("responseBody", {})
        if isinstance(body, str):
            try:
                body = json.loads(body)
            except ValueError as error:
                raise NodeFailedError(operation_error(node, "Invalid JSON in 'Response Body' field")) from error
    elif respond_with == "noData":
        body = None
    elif respond_with == "text":
        media_type = media_type or "text/html; charset=utf-8"
    status = int(options.get("responseCode", 200))
    if not 200 <= status <= 599:
        raise NodeFailedError(operation_error(node, f"Invalid status code: {status}"))
    return Outcome(items, answer=WebhookAnswer(status, body, headers, media_type))


def _route(node: Node, items: Items, scope_of: ScopeOf, _moment: datetime) -> Outcome:
    first, *others = route(node, items, scope_of) or [[]]
    return Outcome(first, others)


def _merge(node: Node, items: Items, _scope_of: ScopeOf, _moment: datetime) -> Outcome:
    require_simulated(MERGE, node.get("parameters") or {}, mode="append")
    return Outcome(items)


def _execute_workflow(node: Node, items: Items, scope_of: ScopeOf, _moment: datetime) -> Outcome:
    parameters = _parameters(node, items, scope_of)
    if (parameters.get("options") or {}).get("waitForSubWorkflow", True):
        raise ExpressionError("The simulator does not wait for sub-workflows")
    require_simulated(EXECUTE_WORKFLOW, parameters, mode="once", source="database")
    inputs = parameters.get("workflowInputs") or {}
    if inputs.get("value") or inputs.get("schema"):
        raise ExpressionError(f"workflowInputs of {EXECUTE_WORKFLOW} are not simulated")
    passed = [{**item, "pairedItem": {"item": index}} for index, item in enumerate(items)]
    return Outcome(passed, calls=as_text((parameters.get("workflowId") or {}).get("value")))


def _sub_workflow_trigger(node: Node, items: Items, _scope_of: ScopeOf, _moment: datetime) -> Outcome:
    parameters = node.get("parameters") or {}
    source = parameters.get("inputSource", "passthrough")
    if source == "passthrough":
        return Outcome(items)
    if source == "jsonExample":
        names = list(json.loads(parameters.get("jsonExample", "{}")))
    else:
        inputs = (parameters.get("workflowInputs") or {}).get("values", [])
        names = [str(described.get("name")) for described in inputs]
    return Outcome([{**item, "json": {name: item["json"].get(name) for name in names}} for item in items])


# ---------------------------------------------------------------- nodes that make fields

#: Older versions have other parameters and defaults.
_OLDEST_SET = 3.3

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
# The steps of a path that lead into lists.
_INTO_LISTS = re.compile(r"\[|\.\d+(?:\.|$)")


def _set(node: Node, items: Items, scope_of: ScopeOf, _moment: datetime) -> Outcome:
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
    return Outcome(made)


def _values(parameters: Mapping[str, Any], scope: Scope, item: int) -> dict[str, Any]:
    if parameters.get("mode") == "raw":
        output: dict[str, Any] | None = _of_type(dict, evaluate(parameters.get("jsonOutput", "{}"), scope))
        if output is None:
            raise ExpressionError(f"The 'JSON Output' in item {item} contains invalid JSON")
        return output
    values = {}
    for assignment in (parameters.get("assignments") or {}).get("assignments", []):
        name = str(evaluate(assignment.get("name", ""), scope))
        values[name] = _typed(name, evaluate(assignment.get("value"), scope), assignment.get("type"), item)
    return values


def _typed(name: str, value: Any, kind: Any, item: int) -> Any:
    if kind not in CONVERSIONS:
        raise ExpressionError(f"type {kind!r} of a field is not simulated")
    converted = None if value is None else CONVERSIONS[kind](value)
    if converted is None and value is not None:
        shape = "array" if isinstance(value, list) else "object"
        described = shape if isinstance(value, (list, dict)) else f"'{as_text(value)}'"
        raise ExpressionError(f"'{name}' expects a {kind} but we got {described} [item {item}]")
    return converted


def as_number(value: Any) -> float | None:
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


def _of_type(kind: type, value: Any) -> Any:
    """The value, read as JSON if it is a text; None if it is not of this type."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    return value if isinstance(value, kind) else None


CONVERSIONS: dict[Any, Callable[[Any], Any]] = {
    "string": as_text,
    "number": as_number,
    "boolean": _as_boolean,
    "array": partial(_of_type, list),
    "object": partial(_of_type, dict),
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


def _split_out(node: Node, items: Items, scope_of: ScopeOf, _moment: datetime) -> Outcome:
    made: Items = []
    for index, item in enumerate(items):
        parameters = evaluate(node.get("parameters") or {}, scope_of(item["json"]))
        require_simulated(SPLIT_OUT, parameters, include="noOtherFields")
        require_simulated(SPLIT_OUT, parameters.get("options") or {}, destinationFieldName="", disableDotNotation=False)
        name = as_text(parameters.get("fieldToSplitOut")).strip().removeprefix("$json.")
        if not name or "," in name or _INTO_LISTS.search(name):
            raise ExpressionError(f"the fields {name!r} of {SPLIT_OUT} are not simulated, only a single one")
        for entry in _entries(item["json"], name):
            made.append({"json": _as_item(entry, name), "pairedItem": {"item": index}})
    return Outcome(made)


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


# ---------------------------------------------------------------- all of them

_BEHAVIOURS: dict[str, Callable[[Node, Items, ScopeOf, datetime], Outcome]] = {
    WAIT: _wait,
    RESPOND: _respond,
    "n8n-nodes-base.stopAndError": _stop_and_error,
    SET: _set,
    CODE: _code,
    "n8n-nodes-base.executionData": _execution_data,
    IF: _route,
    FILTER: _route,
    SWITCH: _route,
    MERGE: _merge,
    SPLIT_OUT: _split_out,
    EXECUTE_WORKFLOW: _execute_workflow,
    SUB_WORKFLOW_TRIGGER: _sub_workflow_trigger,
}
