"""Read from a definition, which may have any shape, where the editor places nodes and sticky notes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from airflow_provider_service._core.pages.grid import ROW_SPAN
from airflow_provider_service.client._values import dict_or_empty

#: Maximum number of sticky notes in a drawing.
MAX_NOTES = 60
#: Number of the colours that the editor offers for sticky notes; the first is the usual one.
NOTE_COLOURS = 7
NOTE = "n8n-nodes-base.stickyNote"
#: Distance between nodes without a position.
_STEP = 368.0
_FURTHEST, _MAX_TEXT_CHARS = 1e6, 2_000
_NODE_SIZE, _NOTE_WIDTH, _NOTE_HEIGHT = 96.0, 240.0, 160.0
# Marks of headings and emphasis in Markdown, and empty lines.
_MARKS, _BREAKS = re.compile(r"^[ \t]*#+[ \t]+|\*\*", re.MULTILINE), re.compile(r"\s*\n\s*")

Place = tuple[float, float]


@dataclass(frozen=True)
class StickyNote:
    """A sticky note of a workflow.

    :param text: its text, without the marks of headings and emphasis, and without empty lines.
    :param colour: number of one of the :data:`NOTE_COLOURS` colours, from 1.
    :param covered: the nodes in front of it.
    :param place: position of its text, above the nodes.
    """

    text: str
    colour: int
    covered: Sequence[str]
    place: Place


def sticky_notes(nodes: Sequence[Any], places: Mapping[str, Place]) -> list[StickyNote]:
    """Read the sticky notes that have a text, the largest first, so that it is behind the others.

    :param nodes: nodes of the definition.
    :param places: positions of the nodes that are drawn.
    """
    found = (one for one in nodes if isinstance(one, dict) and one.get("type") == NOTE)
    sized = [_sized_note(one, places) for one in islice(found, MAX_NOTES)]
    return [note for _, note in sorted(sized, key=lambda one: -one[0]) if note.text]


def place_of(node: Mapping[str, Any], at: int) -> Place:
    """Return the position of a node in the editor; nodes without one stand in a row."""
    return _place(node) or (_STEP * at, 0.0)


def coordinate(value: Any) -> float | None:
    """Return a number if it can be a coordinate."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return float(value) if abs(value) <= _FURTHEST else None  # excludes infinity and NaN


def _sized_note(node: Mapping[str, Any], places: Mapping[str, Place]) -> tuple[float, StickyNote]:
    """Return a note, and the size of its area in the editor."""
    given = dict_or_empty(node.get("parameters"))
    text, colour = given.get("content"), given.get("color")
    width, height = coordinate(given.get("width")) or _NOTE_WIDTH, coordinate(given.get("height")) or _NOTE_HEIGHT
    left, top = _place(node) or (0.0, 0.0)
    half = _NODE_SIZE / 2
    covered = [
        name for name, (x, y) in places.items() if left <= x + half <= left + width and top <= y + half <= top + height
    ]
    if covered:
        left = min(places[name][0] for name in covered)
        top = min(top, min(places[name][1] for name in covered) - ROW_SPAN)
    note = StickyNote(
        text=_BREAKS.sub("\n", _MARKS.sub("", text[:_MAX_TEXT_CHARS])).strip() if isinstance(text, str) else "",
        colour=colour if type(colour) is int and 1 <= colour <= NOTE_COLOURS else 1,
        covered=covered,
        place=(left, top),
    )
    return width * height, note


def _place(node: Mapping[str, Any]) -> Place | None:
    position = node.get("position")
    x, y = map(coordinate, position) if isinstance(position, (list, tuple)) and len(position) == 2 else (None, None)
    return None if x is None or y is None else (x, y)
