"""A workflow is drawn as its editor places it, whatever its definition holds."""

from __future__ import annotations

import random
import re
from itertools import combinations, pairwise
from typing import Any

import pytest

from airflow_provider_service._core.pages.drawing import (
    BOX_HEIGHT,
    BOX_WIDTH,
    MAX_NODES,
    MAX_TRACKS,
    TRACK,
    Drawing,
    draw,
)

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


def pieces(path: str) -> list[Rectangle]:
    """The straight pieces of a connection, with its corners as they are before they are rounded."""
    points = [
        tuple(map(float, one.split()))
        for one in re.split("[MLQ]", re.sub(r"L\S+ \S+Q(\S+ \S+) \S+ [^L]+", r"L\1", path))[1:]
    ]
    for (x1, y1), (x2, y2) in pairwise(points):
        assert x1 == x2 or y1 == y2, path
    return [(min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)) for (x1, y1), (x2, y2) in pairwise(points)]


def touch(one: Rectangle, other: Rectangle) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def boxes_of(drawing: Drawing) -> list[Rectangle]:
    return [(box.x, box.y, box.x + BOX_WIDTH, box.y + box.height) for box in drawing.boxes]


def texts_of(drawing: Drawing) -> list[Rectangle]:
    """The texts beside nodes: of outputs and of sticky notes."""
    labels = [
        (line.label_x, line.label_y - 18, line.label_x + line.label_width, line.label_y - 1)
        for line in drawing.lines
        if line.label
    ]
    return [*labels, *(corners(one.text_area) for one in drawing.notes)]


def corners(area: Rectangle) -> Rectangle:
    x, y, width, height = area
    return x, y, x + width, y + height


@every_shape
def test_no_connection_is_drawn_behind_a_node(definition):
    drawing = draw(definition)
    # Half a pixel inside of its border: a connection begins and ends there.
    inner = [(x1 + 0.5, y1 + 0.5, x2 - 0.5, y2 - 0.5) for x1, y1, x2, y2 in boxes_of(drawing)]

    for line in drawing.lines:
        behind = [box for piece in pieces(line.path) for box in inner if crosses(piece, box)]
        assert not behind, line


def crosses(piece: Rectangle, box: Rectangle) -> bool:
    return piece[0] <= box[2] and box[0] <= piece[2] and piece[1] <= box[3] and box[1] <= piece[3]


@every_shape
def test_neither_nodes_nor_texts_touch_each_other(definition):
    drawing = draw(definition)
    things = [*boxes_of(drawing), *texts_of(drawing)]

    assert not [(one, other) for one, other in combinations(things, 2) if touch(one, other)]
    things += [corners(one.area) for one in drawing.notes]
    assert all(x1 >= 0 and x2 <= drawing.width and y1 >= 0 and y2 <= drawing.height for x1, y1, x2, y2 in things)


@every_shape
def test_no_connection_goes_through_a_text(definition):
    drawing = draw(definition)
    texts = texts_of(drawing)

    for line in drawing.lines:
        assert not [text for piece in pieces(line.path) for text in texts if crosses(piece, text)], line


def test_what_leaves_a_node_does_not_seem_to_arrive_beside_it():
    """Two connections that lie on each other would seem to be one."""
    nodes = [node("A", 0, 0), node("B", 0, 400), node("C", 300, 0), node("D", 300, 200)]
    connections = {"A": {"main": [to("D")]}, "B": {"main": [to("C")]}}

    leaving, arriving = draw({"nodes": nodes, "connections": connections}).lines

    begin, end = pieces(leaving.path)[0], pieces(arriving.path)[-1]
    assert begin[1] == end[1]  # in the same row
    assert begin[2] < end[0]


def test_a_channel_has_no_more_tracks_than_anybody_can_follow():
    names = [str(at) for at in range(200)]
    nodes = [node(name, 300 * (at % 2), 200 * (at // 2)) for at, name in enumerate(names)]
    connections = {name: {"main": [to(names[-1 - at])]} for at, name in enumerate(names)}

    drawing = draw({"nodes": nodes, "connections": connections})

    assert drawing.width < 2 * BOX_WIDTH + 3 * TRACK * (MAX_TRACKS + 8)


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


def test_nodes_keep_their_order_and_do_not_overlap():
    drawing = draw({"nodes": [node("C", 320, 260), node("B", 320, 100), node("A", 200, 100)], "connections": {}})

    assert [box.node for box in drawing.boxes] == ["A", "B", "C"]
    boxes = {box.node: box for box in drawing.boxes}
    assert boxes["A"].x < boxes["B"].x == boxes["C"].x
    assert boxes["A"].y == boxes["B"].y < boxes["C"].y
    for one, other in combinations(drawing.boxes, 2):
        assert abs(one.x - other.x) >= BOX_WIDTH or abs(one.y - other.y) >= BOX_HEIGHT
    assert all(
        0 < box.x < drawing.width - BOX_WIDTH and 0 < box.y < drawing.height - BOX_HEIGHT for box in boxes.values()
    )


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


def test_nodes_far_from_each_other_are_drawn_beside_each_other():
    drawing = draw({"nodes": [node("A", 0, 0), node("B", 90_000, -90_000)], "connections": {"A": {"main": [to("B")]}}})

    assert drawing.width < 3 * BOX_WIDTH
    assert drawing.height < 3 * BOX_HEIGHT
