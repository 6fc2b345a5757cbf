"""The expressions that the engine evaluates, and those that it reports as unsupported."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_service.simulator._engine.expressions import ExpressionError, Scope, evaluate

SCOPE = Scope(
    {"a": {"b": [1, {"c": "x"}]}, "odd key": 2, "name": "Ann"},
    {"id": "7", "mode": "production"},
    {"id": "w", "name": "W"},
    {
        "My node": [[{"json": {"v": 5}}]],
        "Three": [[{"json": {"v": number}} for number in (1, 2, 3)]],
        "Both ways": [[{"json": {}}], [{"json": {}}]],
    },
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
        ("={{ $('My node').last().json?.v }}", 5),
        ("={{ $('Three').first().json.v }}", 1),
        ("={{ $('Three').last().json.v }}", 3),
        ("={{ $json.name[0] }}", "A"),
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("={{ $json.name.toUpperCase() }}", r"a call of toUpperCase\(\) is not simulated"),
        ("={{ $json.name.slice(1) }}", r"a call of slice\(\) is not simulated"),
        ("=Hello {{ $json.missing.trim() }}", r"a call of trim\(\) is not simulated"),
        ("={{ $json['name']() }}", "is not simulated"),
        ("={{ $json.keys() }}", "is not simulated"),
        ("={{ $('My node').all() }}", r"\.all is not simulated"),
        ("={{ $('My node').params }}", r"\.params is not simulated"),
        ("={{ $('Three').item.json.v }}", r"\.item of a node with several items is not simulated"),
        ("={{ $('Both ways').first().json }}", "of a node with items at several outputs is not simulated"),
        ("={{ $('My node').item.binary }}", "binary of the item of a node is not simulated"),
        ("={{ $execution.resumeUrl }}", r"resumeUrl of \$execution is not simulated"),
        ("={{ $workflow['tags'] }}", r"tags of \$workflow is not simulated"),
    ],
)
def test_what_is_not_evaluated_is_named(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        evaluate(text, SCOPE)
