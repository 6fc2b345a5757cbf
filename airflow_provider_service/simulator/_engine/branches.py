"""Nodes that choose outputs for their items: If, Filter and Switch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from airflow_provider_service.simulator._engine.conditions import holds
from airflow_provider_service.simulator._engine.expressions import ExpressionError, Scope, as_text, evaluate

IF = "n8n-nodes-base.if"
FILTER = "n8n-nodes-base.filter"
SWITCH = "n8n-nodes-base.switch"
#: The oldest versions of the nodes whose conditions are simulated.
_OLDEST = {IF: 2, FILTER: 2, SWITCH: 3}

Items = list[dict[str, Any]]


def route(node: Mapping[str, Any], items: Items, scope_of: Callable[[dict[str, Any]], Scope]) -> list[Items]:
    """The items of each output.

    :raises ExpressionError: the node's version, or something in its conditions, is not simulated
    """
    kind, version = node["type"], float(node.get("typeVersion", 1))
    if version < _OLDEST[kind]:
        raise ExpressionError(f"version {version:g} of {kind} is not simulated, only {_OLDEST[kind]} and newer ones")
    written = node.get("parameters") or {}
    outputs: list[Items] = [[] for _ in range(_count(kind, written))]
    for index, item in enumerate(items):
        parameters = evaluate(written, scope_of(item["json"]))
        for output in _outputs(kind, parameters, len(outputs), index):
            outputs[output].append({"pairedItem": {"item": index}, **item})
    return outputs


def _count(kind: str, parameters: Mapping[str, Any]) -> int:
    if kind != SWITCH:
        return 2
    if parameters.get("mode") == "expression":
        return int(parameters.get("numberOutputs", 4))
    return len(_rules(parameters)) + int(_fallback(parameters) == "extra")


def _outputs(kind: str, parameters: Mapping[str, Any], count: int, item: int) -> list[int]:
    if kind == SWITCH:
        return _switched(parameters, count, item)
    is_true = holds(parameters.get("conditions") or {}, item)
    # The second output of a Filter, with the items that it discards, is in the data although nothing can follow it.
    return [0] if is_true else [1]


def _switched(parameters: Mapping[str, Any], count: int, item: int) -> list[int]:
    if parameters.get("mode") == "expression":
        return [_existing(parameters.get("output"), count)]
    to_all = (parameters.get("options") or {}).get("allMatchingOutputs")
    matching = [at for at, rule in enumerate(_rules(parameters)) if holds(rule.get("conditions") or {}, item)]
    if matching:
        return matching if to_all else matching[:1]
    fallback = _fallback(parameters)
    if fallback == "none":
        return []
    return [count - 1 if fallback == "extra" else _existing(fallback, count)]


def _rules(parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (parameters.get("rules") or {}).get("values") or []
    return found


def _fallback(parameters: Mapping[str, Any]) -> Any:
    return (parameters.get("options") or {}).get("fallbackOutput", "none")


def _existing(output: Any, count: int) -> int:
    if isinstance(output, bool) or not isinstance(output, int) or not 0 <= output < count:
        raise ExpressionError(f"there is no output {as_text(output)} among {count}")
    return output
