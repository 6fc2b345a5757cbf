"""Sticky notes are drawn where they lie in the editor, behind all else, whatever they hold."""

from __future__ import annotations

import re

import pytest

from airflow_provider_service._core.pages import rendering
from airflow_provider_service._core.pages.drawing import MAX_NOTES, Drawing, draw
from airflow_provider_service._core.pages.execution_view import MAX_MESSAGE_CHARS, view_of
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


def test_a_note_has_its_size_and_the_usual_one_without():
    drawing = drawn(
        node("A", 0, 0), note("Sized", -600, 0, 560, 240), {**note("Usual", 0, 300), "parameters": {"content": "x"}}
    )

    assert [one.area[2:] for one in drawing.notes] == [(560, 240), (240, 160)]


def test_the_smaller_of_two_notes_is_in_front():
    drawing = drawn(node("A", 0, 0), note("Small", -20, -20, 200, 200), note("Large", -200, -200, 900, 900))

    assert [one.text for one in drawing.notes] == ["Large", "Small"]


def test_notes_are_drawn_behind_everything():
    page = html(workflows.noted())

    kinds = re.findall(r'class="(sticky-text|sticky|line|label|node)\b', page)
    order = [kind for at, kind in enumerate(kinds) if kind != "label" and kind not in kinds[:at]]
    assert order == ["sticky", "sticky-text", "line", "node"]
    assert kinds[: kinds.index("line")] == ["sticky", "sticky-text"] * 7


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
    assert len(text) == MAX_MESSAGE_CHARS


@pytest.mark.parametrize(
    ("color", "colour"),
    [(1, 1), (7, 7), (0, 1), (8, 1), (3.0, 1), (True, 1), ("#ff0000", 1), ("2", 1), (None, 1), ([], 1)],
)
def test_a_note_has_one_of_the_colours_of_the_page(color, colour):
    [one] = drawn(node("A"), note("x", 0, 0, color=color)).notes

    assert one.colour == colour
    assert f".sticky-{colour} " in rendering.asset("pages.css").decode()


@pytest.mark.parametrize("content", [None, 3, [], {}, "", "  \n ", "## "])
def test_a_note_without_a_text_is_a_coloured_area(content):
    [one] = drawn(node("A"), note(content, 0, 0)).notes

    assert one.text == ""


@pytest.mark.parametrize("size", [None, "x", float("nan"), float("inf"), 1e300, -5, 0, True, [1]])
@pytest.mark.parametrize("place", [0, None, "x", float("nan"), 1e300])
def test_notes_of_any_size_and_place_do_no_harm(size, place):
    drawing = drawn(node("A", 5, 5), note("x", place, 0, size, size))

    assert len(drawing.notes) == (place == 0)
    assert drawing.width < 2_000


@pytest.mark.parametrize("parameters", [None, "x", [], 3])
def test_notes_of_any_shape_do_no_harm(parameters):
    kind = note("x", 0, 0)["type"]

    [one] = drawn(node("A"), {**note("x", 0, 0), "parameters": parameters}, {"type": kind}).notes

    assert (one.text, one.colour) == ("", 1)


def test_of_many_notes_only_some_are_drawn():
    assert len(drawn(node("A"), *(note("x", 300 * at, 0) for at in range(1_000))).notes) == MAX_NOTES
