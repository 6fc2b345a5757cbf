"""The behaviour of each simulated node type. Unknown types pass their items through."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_provider_service.simulator._engine.branches import FILTER, IF, SWITCH, route
from airflow_provider_service.simulator._engine.expressions import ExpressionError, Scope, as_text, evaluate
from airflow_provider_service.simulator._validation import parse_datetime

Node = dict[str, Any]
Items = list[dict[str, Any]]

WEBHOOK = "n8n-nodes-base.webhook"
WAIT = "n8n-nodes-base.wait"
RESPOND = "n8n-nodes-base.respondToWebhook"
SUB_WORKFLOW_TRIGGER = "n8n-nodes-base.executeWorkflowTrigger"
MERGE = "n8n-nodes-base.merge"

# Trigger nodes that cannot start a production run by themselves.
_PASSIVE_TRIGGERS = frozenset(
    f"n8n-nodes-base.{name}" for name in ("manualTrigger", "errorTrigger", "evaluationTrigger")
)
# The end of a wait that time does not end.
FOREVER = datetime(3000, 1, 1, tzinfo=UTC)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_UNITS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400}
_THROW = re.compile(r"""throw\s+new\s+(\w*Error)\s*\(\s*(["'`])(.*?)\2\s*\)""", re.DOTALL)

# The only code that runs is code that returns a list in JSON.
_RETURN = re.compile(r"\s*return\s*(\[.*\])\s*;?\s*", re.DOTALL)


def is_trigger(node: Node) -> bool:
    """Whether a run may begin at this node."""
    kind: str = node["type"]
    return kind == WEBHOOK or kind.endswith("Trigger")


def activates(node: Node) -> bool:
    """Whether this node lets its workflow be published."""
    return is_trigger(node) and not node.get("disabled") and node["type"] not in _PASSIVE_TRIGGERS


def is_counted(node: Node) -> bool:
    """Whether this node counts as one of the workflow's triggers."""
    return activates(node) and node["type"] != SUB_WORKFLOW_TRIGGER


@dataclass(frozen=True)
class WebhookAnswer:
    """The response that a Respond to Webhook node sends."""

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


def operation_error(node: Node, message: str) -> dict[str, Any]:
    """The error object of a node that refuses to continue."""
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


def run_node(node: Node, items: Items, scope_of: Callable[[dict[str, Any]], Scope], moment: datetime) -> Outcome:
    """Run one node.

    :param scope_of: the expression scope for one input item's JSON
    :raises NodeFailedError: the node fails
    """
    behaviour = _BEHAVIOURS.get(node["type"])
    if behaviour is None or node.get("disabled"):
        return Outcome(items)
    try:
        return behaviour(node, items, scope_of, moment)
    except ExpressionError as error:
        raise NodeFailedError(operation_error(node, str(error))) from error
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        # The workflow's author may write any parameters; a bad one ends this run, not the simulator.
        raise NodeFailedError(operation_error(node, f"Bad parameters: {error}")) from error


def _first(items: Items) -> dict[str, Any]:
    found: dict[str, Any] = items[0]["json"] if items else {}
    return found


def _parameters(node: Node, items: Items, scope_of: Callable[[dict[str, Any]], Scope]) -> dict[str, Any]:
    found: dict[str, Any] = evaluate(node.get("parameters") or {}, scope_of(_first(items)))
    return found


def _wait(node: Node, items: Items, scope_of: Callable[[dict[str, Any]], Scope], moment: datetime) -> Outcome:
    parameters = _parameters(node, items, scope_of)
    resume = parameters.get("resume", "timeInterval")
    if resume == "timeInterval":
        # The defaults changed with version 1.1 of the node.
        recent = float(node.get("typeVersion", 1)) >= 1.1
        seconds = _UNITS.get(parameters.get("unit", "seconds" if recent else "hours"), 1)
        try:
            amount = float(parameters.get("amount", 5 if recent else 1))
        except (TypeError, ValueError) as error:
            raise NodeFailedError(operation_error(node, "Invalid wait amount. Please enter a number.")) from error
        return Outcome(items, wait_until=moment + timedelta(seconds=max(amount, 0) * seconds))
    if resume == "specificTime":
        until = parse_datetime(str(parameters.get("dateTime", "")))
        if until is None:
            raise NodeFailedError(operation_error(node, "Invalid date. Please use a valid ISO date."))
        return Outcome(items, wait_until=max(until, moment))
    return Outcome(items, wait_until=FOREVER)


def _stop_and_error(
    node: Node, items: Items, scope_of: Callable[[dict[str, Any]], Scope], _moment: datetime
) -> Outcome:
    parameters = _parameters(node, items, scope_of)
    message = as_text(parameters.get("errorMessage"))
    if parameters.get("errorType") == "errorObject":
        details = parameters.get("errorObject", "{}")
        message = as_text(details)
        parsed = _json_or_none(details) if isinstance(details, str) else details
        if isinstance(parsed, dict):
            message = as_text(
                next((parsed[key] for key in ("message", "description", "error") if key in parsed), parsed)
            )
    raise NodeFailedError(operation_error(node, message or "An error occurred"))


def _set(node: Node, items: Items, scope_of: Callable[[dict[str, Any]], Scope], _moment: datetime) -> Outcome:
    parameters = node.get("parameters") or {}
    made: Items = []
    for index, item in enumerate(items):
        scope = scope_of(item["json"])
        fields = dict(item["json"]) if parameters.get("includeOtherFields") else {}
        if parameters.get("mode") == "raw":
            output = evaluate(parameters.get("jsonOutput", "{}"), scope)
            output = _json_or_none(output) if isinstance(output, str) else output
            if not isinstance(output, dict):
                raise NodeFailedError(operation_error(node, "The 'JSON Output' in item 0 contains invalid JSON"))
            fields.update(output)
        for assignment in (parameters.get("assignments") or {}).get("assignments", []):
            value = _typed(evaluate(assignment.get("value"), scope), assignment.get("type"))
            _assign(fields, str(evaluate(assignment.get("name", ""), scope)), value)
        made.append({"json": fields, "pairedItem": {"item": index}})
    return Outcome(made)


def _typed(value: Any, kind: str | None) -> Any:
    if kind == "string" and value is not None and not isinstance(value, str):
        return as_text(value)
    if kind == "number" and isinstance(value, str):
        number = float(value) if re.fullmatch(r"\s*-?\d+(\.\d+)?\s*", value) else None
        return int(number) if number is not None and number.is_integer() else number
    if kind == "boolean" and isinstance(value, str):
        return value == "true"
    if kind in ("object", "array") and isinstance(value, str):
        return _json_or_none(value)
    return value


def _assign(fields: dict[str, Any], dotted: str, value: Any) -> None:
    *parents, last = dotted.split(".")
    for parent in parents:
        # A new dict each time, so that the outer item does not change with it.
        fields[parent] = dict(fields[parent]) if isinstance(fields.get(parent), dict) else {}
        fields = fields[parent]
    fields[last] = value


def _code(node: Node, items: Items, _scope_of: Callable[[dict[str, Any]], Scope], _moment: datetime) -> Outcome:
    code = str((node.get("parameters") or {}).get("jsCode", ""))
    thrown = _THROW.search(code)
    if thrown is None:
        returned = _RETURN.fullmatch(code)
        written = _json_or_none(returned[1]) if returned else None
        return Outcome(_as_items(written) if isinstance(written, list) else items)
    line = code[: thrown.start()].count("\n") + 1
    message = f"{thrown[3]} [line {line}]"
    # Errors thrown in code carry no "node".
    raise NodeFailedError(
        {"message": message, "name": thrown[1], "lineNumber": line, "stack": f"{thrown[1]}: {message}"}
    )


def _as_items(values: list[Any]) -> Items:
    """Convert what code returns to items; an object without "json" is the JSON of an item."""
    return [value if "json" in value else {"json": value} for value in values if isinstance(value, dict)]


def _execution_data(
    node: Node, items: Items, scope_of: Callable[[dict[str, Any]], Scope], _moment: datetime
) -> Outcome:
    saved = (_parameters(node, items, scope_of).get("dataToSave") or {}).get("values", [])
    return Outcome(items, custom_data={str(pair.get("key", "")): as_text(pair.get("value")) for pair in saved})


def _respond(node: Node, items: Items, scope_of: Callable[[dict[str, Any]], Scope], _moment: datetime) -> Outcome:
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
        body = _json_or_failure(node, body) if isinstance(body, str) else body
    elif respond_with == "noData":
        body = None
    elif respond_with == "text":
        media_type = media_type or "text/html; charset=utf-8"
    status = int(options.get("responseCode", 200))
    if not 200 <= status <= 599:
        raise NodeFailedError(operation_error(node, f"Invalid status code: {status}"))
    return Outcome(items, answer=WebhookAnswer(status, body, headers, media_type))


def _route(node: Node, items: Items, scope_of: Callable[[dict[str, Any]], Scope], _moment: datetime) -> Outcome:
    first, *others = route(node, items, scope_of) or [[]]
    return Outcome(first, others)


def _merge(node: Node, items: Items, _scope_of: Callable[[dict[str, Any]], Scope], _moment: datetime) -> Outcome:
    mode = (node.get("parameters") or {}).get("mode", "append")
    if mode != "append":
        raise ExpressionError(f"mode {mode!r} of {MERGE} is not simulated, only 'append'")
    return Outcome(items)


def _split_out(node: Node, items: Items, scope_of: Callable[[dict[str, Any]], Scope], _moment: datetime) -> Outcome:
    field_name = as_text(_parameters(node, items, scope_of).get("fieldToSplitOut"))
    made: Items = []
    for index, item in enumerate(items):
        value: Any = item["json"]
        for step in field_name.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        entries = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else [value]
        made += [
            {"json": entry if isinstance(entry, dict) else {field_name: entry}, "pairedItem": {"item": index}}
            for entry in entries
        ]
    return Outcome(made)


def _execute_workflow(
    node: Node, items: Items, scope_of: Callable[[dict[str, Any]], Scope], _moment: datetime
) -> Outcome:
    parameters = _parameters(node, items, scope_of)
    if (parameters.get("options") or {}).get("waitForSubWorkflow", True):
        raise NodeFailedError(operation_error(node, "The simulator does not wait for sub-workflows"))
    passed = [{**item, "pairedItem": {"item": index}} for index, item in enumerate(items)]
    return Outcome(passed, calls=as_text((parameters.get("workflowId") or {}).get("value")))


def _sub_workflow_trigger(
    node: Node, items: Items, _scope_of: Callable[[dict[str, Any]], Scope], _moment: datetime
) -> Outcome:
    parameters = node.get("parameters") or {}
    source = parameters.get("inputSource", "passthrough")
    if source == "passthrough":
        return Outcome(items)
    if source == "jsonExample":
        names = list(json.loads(parameters.get("jsonExample", "{}")))
    else:
        names = [str(one.get("name")) for one in (parameters.get("workflowInputs") or {}).get("values", [])]
    return Outcome([{**item, "json": {name: item["json"].get(name) for name in names}} for item in items])


def _json_or_failure(node: Node, text: str) -> Any:
    """Read a JSON parameter.

    :raises NodeFailedError: it is not JSON
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise NodeFailedError(operation_error(node, "Invalid JSON in 'Response Body' field")) from error


def _json_or_none(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


_BEHAVIOURS: dict[str, Callable[[Node, Items, Callable[[dict[str, Any]], Scope], datetime], Outcome]] = {
    WAIT: _wait,
    RESPOND: _respond,
    "n8n-nodes-base.stopAndError": _stop_and_error,
    "n8n-nodes-base.set": _set,
    "n8n-nodes-base.code": _code,
    "n8n-nodes-base.executionData": _execution_data,
    IF: _route,
    FILTER: _route,
    SWITCH: _route,
    MERGE: _merge,
    "n8n-nodes-base.splitOut": _split_out,
    "n8n-nodes-base.executeWorkflow": _execute_workflow,
    SUB_WORKFLOW_TRIGGER: _sub_workflow_trigger,
}
