"""A workflow is drawn as its editor places it, whatever its definition holds."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from airflow_provider_service._core.pages.drawing import BOX_HEIGHT, BOX_WIDTH, MAX_NODES, draw


def node(name: str, x: Any, y: Any, kind: str = "n8n-nodes-base.noOp", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "position": [x, y], **more}


def to(*names: str) -> list[dict[str, Any]]:
    return [{"node": name, "type": "main", "index": 0} for name in names]


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


def test_a_large_workflow_is_drawn_in_part_and_smaller():
    drawing = draw({"nodes": [node(str(at), 220 * at, 0) for at in range(MAX_NODES + 5)], "connections": {}})

    assert len(drawing.boxes) == MAX_NODES
    assert drawing.left_out == 5
    assert drawing.scale == 0.75
