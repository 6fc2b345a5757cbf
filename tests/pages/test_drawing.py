"""A workflow is drawn as its editor places it, whatever its definition holds."""

from __future__ import annotations

import random
import re
from itertools import pairwise
from typing import Any

import pytest

from airflow_provider_service._core.pages.drawing import MAX_NODES, Drawing, draw
from airflow_provider_service._core.pages.execution_view import view_of
from airflow_provider_service.client.models import Execution

from . import workflows
from .workflows import node, note, to

Rectangle = tuple[float, float, float, float]


def scattered(seed: int, size: int = 40) -> dict[str, Any]:
    """Nodes and sticky notes anywhere, connected with each other at random, with loops and sub-nodes."""
    chance = random.Random(seed)
    names = [str(at) for at in range(size)]
    nodes = [node(name, chance.randrange(-600, 1800), chance.randrange(-300, 700)) for name in names]
    connections = {
        name: {
            "main": [to(*chance.sample(names, chance.randrange(3))) for _ in range(chance.randrange(6))],
            "ai_tool": [to(chance.choice(names))] if chance.random() < 0.3 else [],
        }
        for name in names
    }
    notes = [
        note("word " * chance.randrange(60), chance.randrange(-600, 1800), chance.randrange(-300, 700), 400, 300)
        for _ in range(5)
    ]
    return {"nodes": [*nodes, *notes], "connections": connections}


SHAPES = {
    "noted": workflows.noted()["workflowData"],
    "branches": workflows.branches()["workflowData"],
    "agent": workflows.agent()["workflowData"],
    "loop": workflows.loop(3)["workflowData"],
    **{f"rows {size}": workflows.chain(size, row=12)["workflowData"] for size in (3, 13, 40, 150, 300)},
    **{f"scattered {seed}": scattered(seed) for seed in range(20)},
}
every_shape = pytest.mark.parametrize("definition", SHAPES.values(), ids=SHAPES.keys())


def boxes_of(drawing: Drawing) -> dict[str, Rectangle]:
    return {box.node: box.area for box in drawing.boxes}


def drawn(*nodes: dict[str, Any], **connections: dict[str, Any]) -> Drawing:
    return draw({"nodes": list(nodes), "connections": connections})


def ends(path: str) -> list[tuple[float, float]]:
    """The points at which a connection begins and ends."""
    numbers = [float(number) for number in re.findall(r"-?\d+", path)]
    if "H" not in path:
        return [(numbers[0], numbers[1]), (numbers[-2], numbers[-1])]
    return [(numbers[0], numbers[1]), (numbers[-1], numbers[-2])]  # the last step is only along x


@every_shape
def test_nodes_and_notes_are_as_far_from_each_other_as_in_the_editor(definition):
    drawing = draw(definition)
    places = {one["name"]: one["position"] for one in definition["nodes"] if "stickyNote" not in one["type"]}
    notes = sorted(one["position"] for one in definition["nodes"] if "stickyNote" in one["type"])

    offsets = {
        (x - places[name][0], y - places[name][1]) for name, (x, y, _, _) in boxes_of(drawing).items() if name in places
    }
    assert len(offsets) == 1
    [(left, top)] = offsets
    assert sorted([x - left, y - top] for x, y, _, _ in (note.area for note in drawing.notes)) == notes


@every_shape
def test_nothing_lies_outside_of_the_drawing(definition):
    drawing = draw(definition)
    areas = [area for box in drawing.boxes for area in (box.area, box.words)] + [note.area for note in drawing.notes]
    points = [point for line in drawing.lines for point in ends(line.path)]
    points += [(x, y) for x, y, _, _ in areas] + [(x + width, y + height) for x, y, width, height in areas]

    assert all(0 <= x <= drawing.width and 0 <= y <= drawing.height for x, y in points)


def test_a_connection_leads_from_the_right_of_a_node_to_the_left_of_the_next():
    drawing = drawn(node("A", 0, 0), node("B", 320, 160), A={"main": [to("B")]})

    boxes, [line] = boxes_of(drawing), drawing.lines
    (x, y, width, height), (next_x, next_y, _, next_height) = boxes["A"], boxes["B"]
    assert ends(line.path) == [(x + width, y + height / 2), (next_x, next_y + next_height / 2)]
    assert "C" in line.path


def test_a_connection_that_leads_back_runs_below_its_node():
    drawing = drawn(node("A", 0, 0), node("B", 320, 0), B={"main": [to("A")]})

    boxes, [line] = boxes_of(drawing), drawing.lines
    (x, y, _, height), (last_x, last_y, last_width, last_height) = boxes["A"], boxes["B"]
    assert ends(line.path) == [(last_x + last_width, last_y + last_height / 2), (x, y + height / 2)]
    below = max(float(y) for y in re.findall(r"Q-?\d+ (-?\d+)", line.path))
    assert last_y + last_height < below < drawing.height


def test_a_node_is_as_high_as_its_outputs_and_inputs_need():
    outputs = {"main": [to(f"To {at}") for at in range(4)]}
    merged = {f"To {at}": {"main": [[{"node": "Merge", "type": "main", "index": at}]]} for at in range(4)}
    nodes = [node("Switch", 0, 240), *(node(f"To {at}", 300, 160 * at) for at in range(4)), node("Merge", 600, 240)]

    drawing = drawn(*nodes, Switch=outputs, **merged)

    assert boxes_of(drawing)["Switch"][3] == boxes_of(drawing)["Merge"][3] == 160
    for side in (0, -1):
        heights = [ends(line.path)[side][1] for line in drawing.lines if (line.source == "Switch") == (side == 0)]
        assert [after - before for before, after in pairwise(heights)] == [32, 32, 32]


def test_what_is_attached_to_an_agent_stands_below_it_in_the_order_of_the_editor():
    tool, model = {"ai_tool": [to("Agent")]}, {"ai_languageModel": [to("Agent")]}
    nodes = [node("Agent", 0, 0), node("Tool", 180, 240), node("Other tool", 300, 240), node("Model", 20, 240)]

    drawing = draw({"nodes": nodes, "connections": {"Tool": tool, "Other tool": tool, "Model": model}})

    boxes = boxes_of(drawing)
    x, y, width, height = boxes["Agent"]
    assert (width, height) == (256, 96)
    assert {boxes[name][2:] for name in ("Tool", "Other tool", "Model")} == {(80, 80)}
    begins, goals = zip(*(ends(line.path) for line in drawing.lines), strict=True)
    assert set(begins) == {(boxes[name][0] + 40, boxes[name][1]) for name in ("Tool", "Other tool", "Model")}
    assert goals[0] == goals[1] == (pytest.approx(x + width * 2 / 3, abs=1), y + height)
    assert goals[2] == (pytest.approx(x + width / 3, abs=1), y + height)


def test_names_of_outputs_are_read_once_however_many_there_are():
    rules = {"rules": {"values": [{"outputKey": str(at)} for at in range(2_000_000)]}}
    nodes = [node("A", 0, 0, "n8n-nodes-base.switch", parameters=rules), node("B", 300, 0)]

    lines = drawn(*nodes, A={"main": [to("B")] * 1_000}).lines

    assert [line.label for line in lines[-2:]] == ["998", "999"]


def test_nodes_of_one_name_are_drawn_once_and_said():
    drawing = drawn(node("A", 0, 0), node("A", 220, 0), node("B", 440, 0))

    assert [box.node for box in drawing.boxes] == ["A", "B"]
    assert drawing.same_names == ["A"]
    assert drawing.left_out == 0
    data = workflows.execution([node("A", 0, 0), node("A", 220, 0)], {}, {})
    [said] = view_of(Execution.model_validate(data)).notes
    assert said == "Of nodes that have the same name, one is drawn: 'A'."


def test_nodes_without_a_place_stand_in_a_row():
    for place in (None, [7, 7]):
        drawing = drawn(*({**node(name, 0, 0), "position": place} for name in "ABC"))

        boxes = boxes_of(drawing)
        assert len({y for _, y, _, _ in boxes.values()}) == 1
        assert boxes["A"][0] + boxes["A"][2] < boxes["B"][0] < boxes["C"][0]


def test_nodes_without_a_place_stand_below_the_others():
    drawing = drawn(node("A", 0, 500), {**node("Lost", 0, 0), "position": None}, node("B", 220, 0))

    boxes = boxes_of(drawing)
    assert boxes["Lost"][1] > boxes["A"][1] + boxes["A"][3]
    assert boxes["Lost"][0] == boxes["A"][0]


@pytest.mark.parametrize(
    ("kind", "more", "names"),
    [
        ("if", {}, ["true", "false"]),
        ("splitInBatches", {"typeVersion": 3}, ["done", "loop"]),
        ("splitInBatches", {"typeVersion": 1}, ["loop", "done"]),
        ("httpRequest", {"onError": "continueErrorOutput"}, ["1", "error"]),
        ("switch", {"parameters": {"rules": {"values": [{"outputKey": "x" * 99}, {"outputKey": 3}]}}}, ["x" * 20, "2"]),
        ("switch", {"parameters": "x"}, ["1", "2"]),
        ("noOp", {"typeVersion": "x"}, ["1", "2"]),
    ],
)
def test_outputs_have_their_names(kind, more, names):
    nodes = [node("A", 0, 0, f"n8n-nodes-base.{kind}", **more), node("B", 300, 0), node("C", 300, 200)]

    lines = draw({"nodes": nodes, "connections": {"A": {"main": [to("B"), to("C")]}}}).lines

    assert [line.label for line in lines] == names


def test_outputs_of_a_branch_are_named_and_attached_nodes_carry_no_items():
    drawing = draw(
        {
            "nodes": [
                node("Check", 0, 0, "n8n-nodes-base.if"),
                node("Yes", 300, -100),
                node("No", 300, 100),
                node("Model", 300, 300, "lmChat", disabled=True),
            ],
            "connections": {
                "Check": {"main": [to("Yes"), to("No")]},
                "No": {"main": [to("Check")]},
                "Model": {"ai_languageModel": [to("No")]},
            },
        }
    )

    assert [(line.label, line.is_main) for line in drawing.lines] == [
        ("true", True),
        ("false", True),
        ("", True),
        ("", False),
    ]
    assert [box.is_disabled for box in drawing.boxes] == [False, False, False, True]


@pytest.mark.parametrize(
    "definition",
    [
        None,
        {},
        {"nodes": None},
        {"nodes": "x"},
        {"nodes": [1, {"name": 3}]},
        {"nodes": [node("N", 0, 0, "n8n-nodes-base.stickyNote")]},
    ],
)
def test_what_shows_no_nodes_is_not_drawn(definition):
    assert draw(definition) is None


@pytest.mark.parametrize("place", [None, "x", float("nan"), float("inf"), 1e300, True, [1]])
def test_a_node_without_a_place_is_drawn(place):
    drawing = draw(
        {"nodes": [node("A", place, 0), node("B", 5, place)], "connections": {"A": {"main": [None, to("B"), 7]}}}
    )

    assert len(drawing.boxes) == 2
    assert drawing.width < 10_000


@pytest.mark.parametrize(
    "connections", [None, [], "x", {"A": None}, {"A": {"main": "x"}}, {"A": {"main": [[1, {"node": []}]]}}]
)
def test_connections_of_any_shape_do_no_harm(connections):
    assert draw({"nodes": [node("A", 0, 0)], "connections": connections}).lines == []


def test_a_large_workflow_is_drawn_in_part():
    drawing = draw({"nodes": [node(str(at), 220 * at, 0) for at in range(MAX_NODES + 5)], "connections": {}})

    assert len(drawing.boxes) == MAX_NODES
    assert drawing.left_out == 5
