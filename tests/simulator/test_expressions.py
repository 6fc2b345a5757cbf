"""The expressions that the engine evaluates, and those that it reports as unsupported."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_service.simulator.engine.expressions import ExpressionError, Scope, evaluate

SCOPE = Scope(
    {"a": {"b": [1, {"c": "x"}]}, "odd key": 2},
    {"id": "7", "mode": "production"},
    {"id": "w", "name": "W"},
    {"My node": {"v": 5}},
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("=plain", "plain"),
        ("={{ $json.a.b[1].c }}", "x"),
        ("={{ $json['odd key'] }}", 2),
        ("={{ $json.a?.missing?.deeper }}", None),
        ("={{ $json.a.b.length }}", 2),
        ("={{ $('My node').item.json.v }}", 5),
        ("={{ $('My node').first().json.v }}", 5),
        ("=run {{ $execution.id }} of {{ $workflow.name }}", "run 7 of W"),
        ("={{ {a: -1.5, 'b': true, \"c\": [null, $execution.id],} }}", {"a": -1.5, "b": True, "c": [None, "7"]}),
        ("={{ 'it\\'s' }}", "it's"),
        ("={{ ($execution.id) }}", "7"),
        ("=value: {{ $json.a }}", 'value: {"b":[1,{"c":"x"}]}'),
    ],
)
def test_expressions(text: str, value: Any) -> None:
    assert evaluate(text, SCOPE) == value


@pytest.mark.parametrize(
    "text",
    [
        "={{ 1 + 1 }}",
        "={{ $now }}",
        "={{ {a: } }}",
        "={{ {a: {b: 1}} }}",
        "={{ [1 2] }}",
        "={{ $('Nope').item.json }}",
        "={{ $json. }}",
        "={{ }}",
    ],
)
def test_expressions_outside_the_subset(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(text, SCOPE)
