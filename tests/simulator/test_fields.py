"""Edit Fields (Set) and Split Out make the fields that the service would make, or fail; so do parameters of others."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_service.simulator._samples import chain, node, webhook

from .api_client import Api
from .engine_helpers import DONE, output, ran, run, seen

THREE = node("Three", "code", 2, {"jsCode": 'return [{"v": 1}, {"v": [[2], 3]}, {"v": 4}];'}, 1)


def typed(kind: str | None, value: Any) -> dict[str, Any]:
    return {"assignments": {"assignments": [{"name": "n", "value": value, "type": kind}]}}


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (typed("number", "12"), {"n": 12}),
        (typed("boolean", "true"), {"n": True}),
        (typed("object", '{"k": 1}'), {"n": {"k": 1}}),
        (
            {"assignments": {"assignments": [{"name": "a.b", "value": "=x{{ $json.body.v }}", "type": "string"}]}},
            {"a": {"b": "x7"}},
        ),
        ({"mode": "raw", "jsonOutput": '={"v": {{ $json.body.v }}}'}, {"v": 7}),
        ({"mode": "raw", "jsonOutput": "={{ {v: $json.body.v, list: [1, 'two']} }}"}, {"v": 7, "list": [1, "two"]}),
    ],
)
def test_set(api: Api, parameters: dict[str, Any], expected: dict[str, Any]) -> None:
    found = seen(api, run(api, [node("Set", "set", 3.4, parameters, 1)], {"v": 7}))
    assert output(found) == [expected]


def test_set_can_keep_the_other_fields(api: Api) -> None:
    assigned = {"assignments": [{"name": "body.extra", "value": 1, "type": "number"}]}
    found = seen(
        api, run(api, [node("Set", "set", 3.4, {"assignments": assigned, "includeOtherFields": True}, 1)], {"v": 7})
    )
    assert output(found)[0]["body"] == {"v": 7, "extra": 1}
    trigger = found["data"]["resultData"]["runData"]["Webhook"][0]["data"]["main"][0][0]["json"]
    assert trigger["body"] == {"v": 7}


@pytest.mark.parametrize(
    ("kind", "version", "parameters", "message"),
    [
        ("set", 3.4, typed("number", "12 pieces"), "'n' expects a number but we got '12 pieces' [item 0]"),
        ("set", 3.4, typed("boolean", "yes"), "'n' expects a boolean but we got 'yes' [item 0]"),
        ("set", 3.4, typed("array", "={{ {a: 1} }}"), "'n' expects a array but we got object [item 0]"),
        ("set", 3.4, typed("dateTime", "2026-01-01"), "type 'dateTime' of a field is not simulated"),
        ("set", 3.4, typed(None, "x"), "type None of a field is not simulated"),
        ("set", 3.4, {"mode": "raw", "jsonOutput": '{"a[0]": 1}'}, "the name 'a[0]' of a field is not simulated"),
        ("set", 3.4, {"includeOtherFields": True, "include": "selected"}, "include 'selected' of "),
        ("set", 3.4, {"options": {"dotNotation": False}}, "dotNotation False of "),
        ("set", 3.2, {"fields": {"values": []}}, "version 3.2 of n8n-nodes-base.set is not simulated"),
        ("set", 2, {"values": {"string": []}}, "version 2 of n8n-nodes-base.set is not simulated"),
        ("splitOut", 1, {"fieldToSplitOut": "a, b"}, "the fields 'a, b' of "),
        ("splitOut", 1, {"fieldToSplitOut": "v", "include": "allOtherFields"}, "include 'allOtherFields' of "),
        ("splitOut", 1, {"fieldToSplitOut": "v", "options": {"destinationFieldName": "x"}}, "destinationFieldName 'x'"),
        (
            "executeWorkflow",
            1.1,
            {"workflowId": "=x", "mode": "each", "options": {"waitForSubWorkflow": False}},
            "mode 'each' of ",
        ),
        (
            "executeWorkflow",
            1.2,
            {
                "workflowId": "=x",
                "workflowInputs": {"value": {"a": 1}},
                "options": {"waitForSubWorkflow": False},
            },
            "workflowInputs of ",
        ),
        ("wait", 1.1, {"resume": "webhook", "limitWaitTime": True}, "limitWaitTime True of "),
    ],
)
def test_parameters_that_are_not_evaluated_fail_their_node_by_name(
    api: Api, kind: str, version: float, parameters: dict[str, Any], message: str
) -> None:
    found = seen(api, run(api, [THREE, node("Node", kind, version, parameters, 2), DONE]))
    assert found["status"] == "error"
    assert found["data"]["resultData"]["error"]["message"].startswith(message)


def test_split_out_makes_an_item_of_each_entry(api: Api) -> None:
    found = seen(api, run(api, [THREE, node("Split", "splitOut", 1, {"fieldToSplitOut": "$json.v"}, 2)]))
    assert output(found) == [{"v": 1}, {"0": 2}, {"v": 3}, {"v": 4}]


def test_split_out_makes_nothing_of_a_field_that_is_missing(api: Api) -> None:
    runs = ran(api, chain("Run", [webhook("b"), node("Split", "splitOut", 1, {"fieldToSplitOut": "x"}, 1), DONE]))
    assert list(runs) == ["Webhook", "Split"]


def test_a_node_can_run_for_the_first_item_only(api: Api) -> None:
    assert output(seen(api, run(api, [THREE, {**DONE, "executeOnce": True}]))) == [{"v": 1}]
