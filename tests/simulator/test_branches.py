"""If, Filter, Switch and Merge: each item takes the output that the service would choose, or the run fails by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_service.simulator._engine.expressions import holds
from airflow_provider_service.simulator._samples import chain, node, webhook

from .api_client import Api

Parameters = dict[str, Any]
STRICT = {"caseSensitive": True, "leftValue": "", "typeValidation": "strict", "version": 2}
LOOSE = {**STRICT, "caseSensitive": False, "typeValidation": "loose"}
BODY = {"n": 5, "s": "Abc", "list": [1], "none": None}


def condition(left: str, kind: str, operation: str, right: Any = "") -> Parameters:
    return {
        "id": "1",
        "leftValue": f"={{{{ $json.body.{left} }}}}",
        "rightValue": right,
        "operator": {"type": kind, "operation": operation},
    }


def conditions(*each: Parameters, combinator: str = "and", options: Parameters = STRICT) -> Parameters:
    return {"options": options, "conditions": list(each), "combinator": combinator}


def branching(kind: str, version: float, parameters: Parameters, outputs: int = 3) -> Parameters:
    """The body of a create, for a workflow with a node after each output of a branching one."""
    body = chain("Branches", [webhook("b"), node("Branch", kind, version, parameters, 1)])
    ends = [f"Out {number}" for number in range(outputs)]
    body["nodes"] += [node(name, "noOp", 1, {}, 2) for name in ends]
    body["connections"]["Branch"] = {"main": [[{"node": name, "type": "main", "index": 0}] for name in ends]}
    return body


@pytest.fixture
def run(api: Api) -> Callable[[Parameters], Parameters]:
    """``run(workflow)`` runs a workflow, and returns its execution."""

    def run(body: Parameters) -> Parameters:
        api.post(f"/workflows/{api.post('/workflows', body).json()['id']}/publish")
        api.simulator.clock.advance(1)
        api.hook("b", BODY)
        api.simulator.clock.advance(1)
        found: Parameters = api.get("/executions/1?includeData=true").json()
        return found

    return run


def outputs_of(execution: Parameters) -> list[str]:
    assert execution["status"] == "success", message_of(execution)
    return [name for name in execution["data"]["resultData"]["runData"] if name.startswith("Out ")]


def message_of(execution: Parameters) -> str:
    message: str = execution["data"]["resultData"]["error"]["message"]
    return message


@pytest.mark.parametrize(
    ("kind", "operation", "right", "options", "true", "false"),
    [
        ("number", "equals", 5, STRICT, 5.0, 6),
        ("number", "notEquals", 5, STRICT, 6, 5),
        ("number", "gt", 5, STRICT, 6, 5),
        ("number", "gte", 5, STRICT, 5, 4),
        ("number", "lt", 5, STRICT, 4, 5),
        ("number", "lte", 5, STRICT, 5, 6),
        ("number", "gt", "5", LOOSE, "6", 5),
        ("string", "equals", "Abc", STRICT, "Abc", "abc"),
        ("string", "equals", "Abc", LOOSE, "aBC", "ab"),
        ("string", "equals", "5", LOOSE, 5, None),
        ("string", "notEquals", "Abc", STRICT, "abc", "Abc"),
        ("string", "contains", "b", STRICT, "abc", "B"),
        ("string", "notContains", "b", STRICT, None, "abc"),
        ("string", "startsWith", "a", STRICT, "ab", "ba"),
        ("string", "notStartsWith", "a", STRICT, "ba", "ab"),
        ("string", "endsWith", "a", STRICT, "ba", "ab"),
        ("string", "notEndsWith", "a", STRICT, "ab", "ba"),
        ("string", "empty", "", STRICT, None, "a"),
        ("string", "notEmpty", "", STRICT, "a", ""),
        ("number", "empty", "", STRICT, None, 0),
        ("boolean", "true", "", STRICT, True, None),
        ("boolean", "false", "", STRICT, None, True),
        ("boolean", "true", "", LOOSE, "True", "false"),
        ("boolean", "equals", True, STRICT, True, False),
        ("array", "contains", "Two", STRICT, [1, "Two"], ["two", 2]),
        ("array", "contains", "two", LOOSE, [1, "TWO"], [2]),
        ("array", "notContains", 1, STRICT, [True, None], [1]),
        ("array", "lengthGt", 1, STRICT, [1, 2], [1]),
        ("array", "lengthEquals", 0, STRICT, None, [1]),
        ("array", "notEmpty", "", STRICT, [0], []),
        ("object", "empty", "", STRICT, {}, {"k": 1}),
        ("string", "exists", "", STRICT, "", None),
        ("dateTime", "notExists", "", STRICT, None, "2026-01-01"),
    ],
)
def test_a_condition(kind: str, operation: str, right: Any, options: Parameters, true: Any, false: Any) -> None:
    one = {"rightValue": right, "operator": {"type": kind, "operation": operation}}
    assert holds(conditions({**one, "leftValue": true}, options=options))
    assert not holds(conditions({**one, "leftValue": false}, options=options))


@pytest.mark.parametrize(
    ("combinator", "expected"),
    [("and", "Out 1"), ("or", "Out 0")],
)
def test_conditions_are_combined(run: Callable[[Parameters], Parameters], combinator: str, expected: str) -> None:
    both = condition("n", "number", "gt", 9), condition("n", "number", "lt", 9)
    execution = run(branching("if", 2.2, {"conditions": conditions(*both, combinator=combinator)}))
    assert outputs_of(execution) == [expected]


def rule(number: int) -> Parameters:
    return {"conditions": conditions(condition("n", "number", "gte", number))}


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"rules": {"values": [rule(6), rule(5), rule(4)]}}, ["Out 1"]),
        (
            {"rules": {"values": [rule(6), rule(5), rule(4)]}, "options": {"allMatchingOutputs": True}},
            ["Out 1", "Out 2"],
        ),
        ({"rules": {"values": [rule(6), rule(7)]}}, []),
        ({"rules": {"values": [rule(6), rule(7)]}, "options": {"fallbackOutput": "extra"}}, ["Out 2"]),
        ({"rules": {"values": [rule(6), rule(7)]}, "options": {"fallbackOutput": 1}}, ["Out 1"]),
        ({"mode": "expression", "numberOutputs": 3, "output": "={{ $json.body.list[0] }}"}, ["Out 1"]),
    ],
)
def test_a_switch_chooses_among_its_outputs(
    run: Callable[[Parameters], Parameters], parameters: Parameters, expected: list[str]
) -> None:
    assert outputs_of(run(branching("switch", 3.2, parameters))) == expected


@pytest.mark.parametrize(("least", "is_kept"), [(5, True), (6, False)])
def test_a_filter_keeps_what_fulfils_its_conditions(
    run: Callable[[Parameters], Parameters], least: int, is_kept: bool
) -> None:
    assert ("Out 0" in outputs_of(run(branching("filter", 2.2, rule(least))))) == is_kept


@pytest.mark.parametrize(
    ("kind", "version", "parameters", "message"),
    [
        ("if", 1, {}, "version 1 of n8n-nodes-base.if is not simulated, only 2 and newer ones"),
        ("switch", 2, {}, "version 2 of n8n-nodes-base.switch is not simulated, only 3 and newer ones"),
        ("if", 2.2, condition("s", "string", "regex", "A"), "operator string:regex of conditions is not simulated"),
        ("if", 2.2, condition("s", "dateTime", "after", "x"), "operator dateTime:after of conditions is not simulated"),
        ("if", 2.2, condition("none", "number", "lt", 5), "a comparison with nothing is not simulated"),
        (
            "if",
            2.2,
            condition("s", "number", "gt", 5),
            "Wrong type: 'Abc' is a string but was expecting a number [condition 0, item 0]",
        ),
        ("switch", 3.2, {"mode": "expression", "output": 7}, "there is no output 7 among 4"),
        ("merge", 3, {"mode": "combine"}, "mode 'combine' of n8n-nodes-base.merge is not simulated, only 'append'"),
    ],
)
def test_what_is_not_evaluated_fails_by_name(
    run: Callable[[Parameters], Parameters], kind: str, version: float, parameters: Parameters, message: str
) -> None:
    if "operator" in parameters:
        parameters = {"conditions": conditions(parameters)}
    execution = run(branching(kind, version, parameters))
    assert (execution["status"], message_of(execution)) == ("error", message)


MERGES_NOTHING = "The simulator does not merge several branches"
MERGES_ONLY_V1 = "The simulator merges branches only with the execution order v1"


@pytest.mark.parametrize(
    ("least", "order", "message"),
    [(5, "v1", None), (6, "v1", None), (None, "v1", MERGES_NOTHING), (5, "v0", MERGES_ONLY_V1)],
)
def test_branches_meet_only_if_one_of_them_has_items(
    run: Callable[[Parameters], Parameters], least: int | None, order: str, message: str | None
) -> None:
    kind, parameters = ("noOp", {}) if least is None else ("if", rule(least))
    body = {**branching(kind, 2.2, parameters, outputs=2), "settings": {"executionOrder": order}}
    if least is None:
        body["connections"]["Branch"]["main"] = [
            [each for main in body["connections"]["Branch"]["main"] for each in main]
        ]
    body["nodes"].append(node("Merge", "merge", 3, {}, 3))
    for number in (0, 1):
        body["connections"][f"Out {number}"] = {"main": [[{"node": "Merge", "type": "main", "index": number}]]}
    execution = run(body)
    assert execution["status"] == ("error" if message else "success")
    assert message is None or message_of(execution) == message


def test_what_follows_a_merge_runs_after_all_other_branches(run: Callable[[Parameters], Parameters]) -> None:
    body = {**branching("if", 2.2, rule(5), outputs=2), "settings": {"executionOrder": "v1"}}
    body["nodes"] += [node("Merge", "merge", 3, {}, 3), {**node("Other", "noOp", 1, {}, 3), "position": [0, 900]}]
    for number in (0, 1):
        body["connections"][f"Out {number}"] = {"main": [[{"node": "Merge", "type": "main", "index": number}]]}
    body["connections"]["Webhook"]["main"][0].append({"node": "Other", "type": "main", "index": 0})
    ran = run(body)["data"]["resultData"]["runData"]
    assert list(ran) == ["Webhook", "Branch", "Out 0", "Other", "Merge"]


def test_a_filter_that_keeps_nothing_can_go_on_with_an_empty_item(run: Callable[[Parameters], Parameters]) -> None:
    body = branching("filter", 2.2, rule(6), outputs=1)
    body["nodes"][1]["alwaysOutputData"] = True
    execution = run(body)
    assert outputs_of(execution) == ["Out 0"]
    after = execution["data"]["resultData"]["runData"]["Out 0"][0]
    assert [item["json"] for item in after["data"]["main"][0]] == [{}]
