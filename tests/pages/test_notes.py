"""Sticky notes are drawn behind the nodes that they lie behind in the editor, whatever they hold."""

from __future__ import annotations

import re

import pytest

from airflow_provider_service._core.pages import rendering
from airflow_provider_service._core.pages.drawing import BOX_WIDTH, MAX_NOTES, Drawing, draw
from airflow_provider_service._core.pages.execution_view import MAX_NAME_CHARS, view_of
from airflow_provider_service._core.pages.reading import ExecutionReading
from airflow_provider_service.client.models import Execution

from . import workflows
from .conftest import HOSTILE
from .workflows import execution, node, note


def drawn(*nodes: dict) -> Drawing:
    return draw({"nodes": list(nodes), "connections": {}})


def html(data: dict, **more) -> str:
    view = view_of(Execution.model_validate(data), **more)
    return rendering.drawn(ExecutionReading("https://service.example.com", view)).html


def behind(drawing: Drawing, number: int = 0) -> set[str]:
    """The nodes that a note lies behind."""
    x, y, width, height = drawing.notes[number].area
    return {
        box.node
        for box in drawing.boxes
        if x <= box.x and box.x + BOX_WIDTH <= x + width and y <= box.y and box.y + box.height <= y + height
    }


def test_a_note_lies_behind_the_same_nodes_as_in_the_editor():
    nodes = [node(name, 220 * at, 100) for at, name in enumerate("ABCD")]

    drawing = drawn(note("Of two", 80, 0, 560, 240), *nodes)

    assert behind(drawing) == {"B", "C"}
    [one] = drawing.notes
    assert one.text_area[0] == next(box.x for box in drawing.boxes if box.node == "B")
    assert one.text_area[1] + one.text_area[3] < min(box.y for box in drawing.boxes)


def test_a_note_behind_which_another_node_would_be_is_as_large_as_its_text():
    nodes = [node("A", 0, 100), node("B", 0, 300), node("Beside", 50, 200)]

    drawing = drawn(note("Of A and B", -20, 60, 100, 400), *nodes)

    assert behind(drawing) == set()
    [one] = drawing.notes
    assert one.area[3] < one.text_area[3] + 20


def test_a_note_beside_all_nodes_stays_there():
    drawing = drawn(note("Read me", -600, 0), node("A", 0, 0), node("B", 220, 0))

    [one] = drawing.notes
    assert one.area[0] + one.area[2] < min(box.x for box in drawing.boxes)
    assert len({box.y for box in drawing.boxes}) == 1


def test_notes_do_not_bend_what_is_straight_without_them():
    whole = workflows.chain(5)["workflowData"]
    notes = [note("Behind some", 200, -40, 460, 200), note("Behind one", 660, 10, 200, 120)]

    drawing = draw({**whole, "nodes": [*whole["nodes"], *notes]})

    assert all("Q" not in line.path for line in drawing.lines)


def test_the_smaller_of_two_notes_is_in_front():
    drawing = drawn(node("A", 0, 0), note("Small", -20, -20, 200, 200), note("Large", -200, -200, 900, 900))

    assert [one.text for one in drawing.notes] == ["Large", "Small"]


def test_notes_are_drawn_behind_everything_and_their_texts_above_each_other():
    page = html(workflows.noted())

    kinds = re.findall(r'class="(sticky-text|sticky|line|label|node)\b', page)
    order = [kind for at, kind in enumerate(kinds) if kind != "label" and kind not in kinds[:at]]
    assert order == ["sticky", "line", "sticky-text", "node"]
    assert kinds[: kinds.index("line")] == ["sticky"] * 7


def test_the_text_of_a_note_is_plain():
    page = html(execution([node("A"), note(f"## {HOSTILE}\n\n**bold** </div>", -600, 0)], {}, {}))

    [text] = re.findall(r'class="sticky-text".*?<div>(.*?)</div>', page, re.DOTALL)
    assert text.startswith("&lt;img src=x onerror=alert(1)&gt;")
    assert text.endswith("{{ 7*7 }}\nbold &lt;/div&gt;")
    assert "<img" not in page


def test_the_text_of_a_note_is_cut_and_holds_no_secret():
    page = html(execution([node("A"), note(f"Key: the-secret {'x' * 10_000}", 0, 300)], {}, {}), secrets=["the-secret"])

    [text] = re.findall(r'class="sticky-text".*?<div>(.*?)</div>', page, re.DOTALL)
    assert text.startswith("Key: ***")
    assert text.endswith("...")
    assert len(text) == MAX_NAME_CHARS


@pytest.mark.parametrize(
    ("color", "colour"),
    [(1, 1), (7, 7), (0, 1), (8, 1), (3.0, 1), (True, 1), ("#ff0000", 1), ("2", 1), (None, 1), ([], 1)],
)
def test_a_note_has_one_of_the_colours_of_the_page(color, colour):
    [one] = drawn(node("A"), note("x", 0, 0, color=color)).notes

    assert one.colour == colour
    assert f".sticky-{colour} " in rendering.asset("pages.css").decode()


@pytest.mark.parametrize("content", [None, 3, [], {}, "", "  \n ", "## "])
def test_a_note_without_a_text_is_not_drawn(content):
    assert drawn(node("A"), note(content, 0, 0)).notes == []


@pytest.mark.parametrize("size", [None, "x", float("nan"), float("inf"), 1e300, -5, 0, True, [1]])
@pytest.mark.parametrize("place", [0, None, "x", float("nan"), 1e300])
def test_notes_of_any_size_and_place_do_no_harm(size, place):
    drawing = drawn(node("A", 5, 5), note("x", place, 0, size, size))

    assert len(drawing.notes) == 1
    assert drawing.width < 2_000


@pytest.mark.parametrize("parameters", [None, "x", [], 3])
def test_notes_of_any_shape_do_no_harm(parameters):
    assert (
        drawn(node("A"), {**note("x", 0, 0), "parameters": parameters}, {"type": note("x", 0, 0)["type"]}).notes == []
    )


def test_of_many_notes_only_some_are_drawn():
    assert len(drawn(node("A"), *(note("x", 300 * at, 0) for at in range(1_000))).notes) == MAX_NOTES
