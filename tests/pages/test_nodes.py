"""What the page says of nodes of every kind: sub-nodes of agents, disabled ones, and those that start executions."""

from __future__ import annotations

import re
from typing import Any

import pytest

from airflow_provider_service._core.pages import rendering
from airflow_provider_service._core.pages.execution_view import MAX_SUB_EXECUTIONS, ExecutionView, view_of
from airflow_provider_service._core.pages.reading import ExecutionReading
from airflow_provider_service.client.models import Execution

from . import workflows
from .workflows import execution, node, run


def view(data: dict) -> ExecutionView:
    return view_of(Execution.model_validate(data))


def html(shown: ExecutionView) -> str:
    return rendering.drawn(ExecutionReading("https://service.example.com", shown)).html


def words(text: str) -> str:
    """The text of a page without its elements."""
    return " ".join(re.sub("<[^>]*>", " ", text).split())


def test_the_sub_nodes_of_an_agent_put_out_items_and_use_tokens():
    shown = view(workflows.agent())

    model = shown.node("OpenAI model")
    assert (model.items, model.tokens, model.model) == (2, 2_468, "gpt-4o-mini")
    assert [shown.node(name).items for name in ("Memory of the talk", "Look up an order", "Calculator")] == [2, 1, None]
    assert "lmChatOpenAi · gpt-4o-mini · 2,468 tokens" in words(html(shown))


@pytest.mark.parametrize("model", ["={{ $json.secret }}", {"value": "=x"}, {"value": 3}, ["x"], ""])
def test_a_model_that_an_expression_chooses_is_not_shown(model):
    shown = view(execution([node("A", parameters={"model": model})], {}, {"A": [run(0)]}))

    assert shown.node("A").model is None


@pytest.mark.parametrize("use", [None, "x", {"totalTokens": "x"}, {"totalTokens": 10**400}, {"totalTokens": True}])
def test_tokens_of_any_shape_do_no_harm(use):
    outputs = {"ai_languageModel": [[{"json": {"tokenUsage": use}}, None], "x", None], "ai_tool": 3}

    assert view(execution([node("A")], {}, {"A": [{**run(0), "data": outputs}]})).node("A").tokens == 0


def test_a_node_that_is_disabled_says_so_although_items_passed_it():
    shown = view(workflows.branches())

    old = shown.node("Old report")
    assert (old.state, old.items) == ("disabled", 1_260)
    assert html(shown).count('class="bar disabled"') == 1
    assert shown.opens_at is None


@pytest.mark.parametrize(
    ("given", "tries"),
    [
        ({"retryOnFail": True}, 3),
        ({"retryOnFail": True, "maxTries": 4}, 4),
        ({"retryOnFail": True, "maxTries": 1}, 2),
        ({"retryOnFail": True, "maxTries": 99}, 5),
        ({"retryOnFail": True, "maxTries": "x"}, 3),
        ({"retryOnFail": True, "maxTries": float("nan")}, 3),
        ({"retryOnFail": False, "maxTries": 4}, 1),
        ({"retryOnFail": "x"}, 1),
        ({"maxTries": 4}, 1),
    ],
)
def test_a_node_says_how_often_the_service_tries_it(given, tries):
    shown = view(execution([node("A", **given)], {}, {"A": [run(0, 2_100, "error")]}, "error"))

    page = html(shown)
    assert shown.node("A").tries == tries
    assert page.count(f"failed, up to {tries} tries") == 2 * page.count("↻") == 2 * (tries > 1)  # title and label
    assert (f"noOp · up to {tries} tries" in words(page)) is (tries > 1)  # in the table


def test_executions_that_a_node_has_started_are_links():
    assert 'href="https://service.example.com/workflow/sub1/executions/812"' in html(view(workflows.agent()))


def of_sub(*executions: str) -> dict[str, Any]:
    """The output of a node whose items name executions."""
    subs = ({"executionId": one, "workflowId": "s"} for one in executions)
    return {"main": [[{"json": {}, "metadata": {"subExecution": one}} for one in subs], [{"json": {}}, None]]}


def test_executions_that_a_node_has_started_for_each_item_are_links():
    runs = {"A": [run(0, data=of_sub("5", "5", "6", "7"), metadata={"subExecutionsCount": 3})]}

    page = html(view(execution([node("A")], {}, runs)))

    for one in "567":
        assert page.count(f'href="https://service.example.com/workflow/s/executions/{one}"') == 1


def test_only_the_node_that_has_started_executions_leads_to_them():
    """Items name the executions from which they come wherever they pass."""
    own = {"subExecution": {"executionId": "4", "workflowId": "s"}, "subExecutionsCount": 1}
    runs = {
        "For each item": [run(0, data=of_sub("5"), metadata={"subExecutionsCount": 1})],
        "Passes": [run(100, data=of_sub("5"))],
        "Of a child that starts others": [run(200, data=of_sub("6"), metadata=own)],
    }

    shown = view(execution(map(node, runs), {}, runs))

    assert [[one.execution_id for one in shown.node(name).sub_executions] for name in runs] == [["5"], [], ["4"]]


@pytest.mark.parametrize("found", [None, 3, {"executionId": "1"}, {"executionId": ["1"], "workflowId": "w"}])
def test_what_names_no_execution_is_no_link(found):
    runs = {"A": [run(0, metadata={"subExecution": found})]}

    assert "started" not in words(html(view(execution([node("A")], {}, runs))))


def test_hostile_ids_of_executions_lead_nowhere_else():
    found = ({"executionId": f'../../{at}"><script>', "workflowId": "javascript:alert(1)"} for at in range(100))
    runs = {"A": [run(0, metadata={"subExecution": one}) for one in found]}

    shown = view(execution([node("A")], {}, runs))

    assert len(shown.node("A").sub_executions) == MAX_SUB_EXECUTIONS
    assert set(re.findall('href="([^#][^"]*)"', html(shown))) == {"https://service.example.com/home/workflows"}
    assert "<script" not in html(shown)


def test_a_running_execution_that_reports_nothing_shows_no_table_of_what_is_not_known():
    whole = workflows.chain(42)
    shown = view({**whole, "status": "running", "stoppedAt": None, "data": {"resultData": {"runData": {}}}})

    assert 'id="drawing"' in html(shown)
    assert 'id="nodes"' not in html(shown)
    assert "Save execution progress" in " ".join(shown.notes)


def test_a_branch_says_how_many_items_took_it():
    text = words(html(view(workflows.branches())))

    for label in ("North · 3", "East · 0", "South · 1,250", "West · 7", "true · 3", "false · 2"):
        assert label in text


def test_a_loop_says_how_many_of_its_runs_succeeded():
    text = html(view(workflows.loop()))

    assert words(text).count("499 of 500 succeeded") == 2  # in the drawing and in the table
    assert "Loop over orders 1 s · 501 runs" in words(text)


def test_a_node_keeps_its_name_in_the_page_while_the_execution_goes_on():
    early, late = view(workflows.running(13, 3)), view(workflows.running(13, 7))

    assert {one.name: one.anchor for one in early.nodes} == {one.name: one.anchor for one in late.nodes}


@pytest.mark.parametrize("size", [3, 13, 40, 150, 300])
def test_a_workflow_of_any_size_opens_at_the_node_that_failed(size):
    failing = size * 2 // 3
    shown = view(workflows.chain(size, failing))

    text = html(shown)
    assert shown.opens_at.name == f"Step {failing + 1}: prepare orders"
    assert f'id="box-{shown.opens_at.anchor}" href="#row-{shown.opens_at.anchor}" tabindex="0"' in text
    assert len(text) < 2_000 * size + 3_000
