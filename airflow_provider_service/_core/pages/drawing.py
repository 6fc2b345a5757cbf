"""Lay out the drawing of a workflow: its nodes and connections, in the order in which the editor places them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from airflow_provider_service._core.pages.editor import (
    NOTE,
    Place,
    StickyNote,
    coordinate,
    place_of,
    sticky_notes,
)
from airflow_provider_service._core.pages.grid import Cell, Channels, begins, cells_of
from airflow_provider_service._core.pages.routes import Ends, Point, Route, Step, path_through, route_of, want_tracks
from airflow_provider_service.client._values import dict_or_empty, list_or_empty

BOX_WIDTH, BOX_HEIGHT = 184.0, 60.0
#: Maximum number of nodes and of connections in a drawing; a larger workflow is shown in part.
MAX_NODES, MAX_LINES = 300, 1_000
#: Maximum length of the label of an output.
MAX_LABEL_CHARS = 20
_MARGIN = 16.0
# Room in a channel besides its tracks: for the beginning of a connection, and for its arrow.
_BEFORE, _AFTER = 16.0, 26.0
_BETWEEN_ROWS = 18.0
# Distance between two outputs of a node, each with its label above it, and the room for the number of items.
_OUTPUT_PITCH, _CHAR_WIDTH, _COUNT_WIDTH, _LABEL_GAP = 24.0, 7.0, 64.0, 8.0
_MAX_PORTS = 30
_LEAST_TRIES, _USUAL_TRIES, _MOST_TRIES = 2, 3, 5
# The text of a sticky note, of which a distant view shows one larger line; and the room inside the edge of a note.
_LINE_HEIGHT, _LINE_CHARS, _LEAST_TEXT_LINES, _MAX_TEXT_LINES, _NOTE_PADDING = 16.0, 22, 2, 6, 8.0
_OUTPUTS = {"if": ("true", "false"), "filter": ("kept", "discarded"), "splitInBatches": ("done", "loop")}


#: Left, top, width and height.
Rectangle = tuple[float, float, float, float]


@dataclass(frozen=True)
class Box:
    """A node, with its upper left corner.

    :param model: the language model in its settings, if there is one.
    :param tries: maximum number of tries until it succeeds.
    """

    node: str
    kind: str
    model: str | None
    is_disabled: bool
    tries: int
    x: float
    y: float
    height: float


@dataclass(frozen=True)
class Line:
    """A connection between two nodes.

    :param path: path in the SVG.
    :param is_main: whether items pass along it; the others attach a tool or a model, for example.
    :param label: name of the output if the source has several; only the first connection of an output has it.
    :param label_x: where the label begins.
    :param label_y: where the connection below the label is.
    :param label_width: width of the room for the label.
    """

    source: str
    output: int
    path: str
    is_main: bool
    label: str = ""
    label_x: float = 0.0
    label_y: float = 0.0
    label_width: float = 0.0


@dataclass(frozen=True)
class Note:
    """A sticky note: an area behind nodes, and a text beside all nodes and connections.

    :param colour: number of one of the editor's colours, from 1.
    """

    text: str
    colour: int
    area: Rectangle
    text_area: Rectangle


@dataclass(frozen=True)
class Drawing:
    """The drawing of a workflow.

    :param boxes: the nodes in reading order, from left to right.
    :param notes: the sticky notes; those behind others come first.
    :param width: width of the drawing, in pixels.
    :param left_out: number of nodes that it does not show.
    :param has_more_lines: whether there are connections that it does not show.
    """

    boxes: Sequence[Box]
    lines: Sequence[Line]
    notes: Sequence[Note]
    width: float
    height: float
    left_out: int
    has_more_lines: bool

    def renamed(self, call: Callable[[str], str], name: Callable[[str], str]) -> Drawing:
        """Return the drawing with other names for its nodes, and with all other texts replaced."""
        boxes = [
            replace(box, node=call(box.node), kind=name(box.kind), model=box.model and name(box.model))
            for box in self.boxes
        ]
        lines = [replace(line, source=call(line.source), label=name(line.label)) for line in self.lines]
        notes = [replace(note, text=name(note.text)) for note in self.notes]
        return replace(self, boxes=boxes, lines=lines, notes=notes)


def draw(workflow: Mapping[str, Any] | None) -> Drawing | None:
    """Draw a definition of the service, which may have any shape; None if it shows no nodes."""
    definition = workflow or {}
    of_editor = list_or_empty(definition.get("nodes"))
    nodes = [one for one in of_editor if _is_drawn(one)]
    if not nodes:
        return None
    by_name = {node["name"]: node for node in nodes[:MAX_NODES]}
    ends = _ends(definition.get("connections"))
    considered = [one for one in islice(ends, MAX_LINES) if one.source in by_name and one.target in by_name]
    places = {name: place_of(node, at) for at, (name, node) in enumerate(by_name.items())}
    layout = _Layout(by_name, places, considered, sticky_notes(of_editor, places))
    boxes = layout.boxes()
    return Drawing(
        boxes=sorted(boxes.values(), key=lambda box: (box.x, box.y)),
        lines=layout.lines(boxes),
        notes=layout.notes(boxes),
        width=layout.width,
        height=layout.height,
        left_out=max(0, len(nodes) - MAX_NODES),
        has_more_lines=next(ends, None) is not None,
    )


def _is_drawn(node: Any) -> bool:
    return isinstance(node, dict) and isinstance(node.get("name"), str) and node.get("type") != NOTE


class _Layout:
    """The layout of all nodes and connections."""

    def __init__(
        self,
        nodes: Mapping[str, dict[str, Any]],
        places: Mapping[str, Place],
        ends: Sequence[Ends],
        notes: Sequence[StickyNote],
    ) -> None:
        self._nodes = nodes
        cells = cells_of([*places.values(), *(note.place for note in notes)])
        self._cells = dict(zip(places, cells, strict=False))
        self._notes = list(zip(notes, cells[len(places) :], strict=True))
        columns, rows = 1 + max(cell.column for cell in cells), 1 + max(cell.row for cell in cells)
        self._outputs = {one.source: min(_MAX_PORTS, one.outputs) for one in ends if one.is_main}
        self._vertical, self._horizontal = Channels(columns + 1), Channels(rows + 1)
        self._routes = [(one, route_of(one, self._cells, set(cells))) for one in ends]
        want_tracks(self._routes, self._cells, self._vertical, self._horizontal)
        self._vertical.assign()
        self._horizontal.assign()
        self._label_widths = self._widths_of_labels(columns + 1)
        heights = [BOX_HEIGHT] * rows
        for name, cell in self._cells.items():
            heights[cell.row] = max(heights[cell.row], self._height(name))
        for note, cell in self._notes:
            heights[cell.row] = max(heights[cell.row], _text_height(note))
        gaps = [self._gap(channel, columns) for channel in range(columns + 1)]
        rooms = [_BETWEEN_ROWS * (0 < channel < rows) + self._room(channel) for channel in range(rows + 1)]
        self._x = begins([BOX_WIDTH] * columns, gaps, _MARGIN)
        self._y = begins(heights, rooms, _MARGIN)
        self._heights = heights
        self._gaps, self._rooms = gaps, rooms

    @property
    def width(self) -> float:
        return self._x[-1] + _MARGIN

    @property
    def height(self) -> float:
        return self._y[-1] + _MARGIN

    def boxes(self) -> dict[str, Box]:
        """Return the nodes by name."""
        return {name: self._box(name) for name in self._nodes}

    def lines(self, boxes: Mapping[str, Box]) -> list[Line]:
        """Return the connections between the boxes."""
        lines, labelled = [], set()
        for ends, route in self._routes:
            line = self._line(ends, route, boxes)
            has_label = ends.is_main and (ends.source, ends.output) not in labelled
            labelled.add((ends.source, ends.output))
            lines.append(self._labelled(line, ends, boxes[ends.source]) if has_label else line)
        return lines

    def notes(self, boxes: Mapping[str, Box]) -> list[Note]:
        """Return the sticky notes behind the boxes; one that would cover further boxes is only as large as its text."""
        return [self._note(note, cell, boxes) for note, cell in self._notes]

    def _note(self, note: StickyNote, cell: Cell, boxes: Mapping[str, Box]) -> Note:
        x, y = self._x[cell.column], self._y[cell.row]
        text_area = (x, y, BOX_WIDTH, _text_height(note))
        rectangles = [text_area, *(_rectangle(boxes[name]) for name in note.covered)]
        area = _around(rectangles)
        if any(_do_touch(area, _rectangle(box)) for name, box in boxes.items() if name not in note.covered):
            area = _around([text_area])
        return Note(note.text, note.colour, area, text_area)

    def _box(self, name: str) -> Box:
        node, cell = self._nodes[name], self._cells[name]
        height = self._height(name)
        return Box(
            node=name,
            kind=str(node.get("type") or "").rpartition(".")[2],
            model=_model(node),
            is_disabled=node.get("disabled") is True,
            tries=_tries(node),
            x=self._x[cell.column],
            y=self._y[cell.row] + (self._heights[cell.row] - height) / 2,
            height=height,
        )

    def _height(self, name: str) -> float:
        return max(BOX_HEIGHT, _OUTPUT_PITCH * (self._outputs.get(name, 1) - 1) + 36)

    def _widths_of_labels(self, channels: int) -> list[float]:
        widths = [0.0] * channels
        for ends, route in self._routes:
            label = _label(self._nodes[ends.source], ends)
            if label:
                width = _CHAR_WIDTH * len(label) + _COUNT_WIDTH + 2 * _LABEL_GAP
                widths[route.first.channel] = max(widths[route.first.channel], width)
        return widths

    def _gap(self, channel: int, last: int) -> float:
        tracks, label = self._vertical.width(channel), self._label_widths[channel]
        if channel in (0, last) and not self._vertical.is_used(channel):
            return label
        return (label or _BEFORE) + tracks + _AFTER

    def _room(self, channel: int) -> float:
        return self._horizontal.width(channel) + (_BETWEEN_ROWS if self._horizontal.is_used(channel) else 0)

    def _along_x(self, step: Step) -> float:
        """Return the position of a track in a vertical channel."""
        begin = self._x[step.channel] - self._gaps[step.channel]
        return begin + (self._label_widths[step.channel] or _BEFORE) + self._vertical.offset(*step)

    def _along_y(self, step: Step) -> float:
        """Return the position of a track in a horizontal channel."""
        margin = (self._rooms[step.channel] - self._horizontal.width(step.channel)) / 2
        return self._y[step.channel] - self._rooms[step.channel] + margin + self._horizontal.offset(*step)

    def _line(self, ends: Ends, route: Route, boxes: Mapping[str, Box]) -> Line:
        source, target = boxes[ends.source], boxes[ends.target]
        if ends.is_main:
            points = self._points(
                route,
                (source.x + BOX_WIDTH, self._port(source, ends)),
                (target.x, target.y + target.height / 2),
            )
        else:
            begin, end = (source.y, source.x + BOX_WIDTH / 2), (target.y + target.height, target.x + BOX_WIDTH / 2)
            # They begin at the node to which they are attached, so that their dashes coincide.
            points = [(x, y) for y, x in reversed(self._points(route, begin, end, is_main=False))]
        return Line(ends.source, ends.output, path_through(points), ends.is_main)

    def _points(self, route: Route, begin: Point, end: Point, *, is_main: bool = True) -> list[Point]:
        """Return the corners of a connection; for an attachment, with the axes exchanged."""
        own, other = (self._along_x, self._along_y) if is_main else (self._along_y, self._along_x)
        if route.others is not None:
            first, middle, last = own(route.first), other(route.others[0]), own(route.others[1])
            return [begin, (first, begin[1]), (first, middle), (last, middle), (last, end[1]), end]
        if begin[1] == end[1]:
            return [begin, end]
        turn = own(route.first)
        return [begin, (turn, begin[1]), (turn, end[1]), end]

    def _labelled(self, line: Line, ends: Ends, box: Box) -> Line:
        label = _label(self._nodes[ends.source], ends)
        if not label:
            return line
        x = box.x + BOX_WIDTH + _LABEL_GAP
        width = self._label_widths[self._cells[ends.source].column + 1] - 2 * _LABEL_GAP
        return replace(line, label=label, label_x=x, label_y=self._port(box, ends), label_width=width)

    def _port(self, box: Box, ends: Ends) -> float:
        """Return the position of an output on the side of its node."""
        number = self._outputs[ends.source]
        output = min(ends.output, number - 1)
        return box.y + box.height / 2 + _OUTPUT_PITCH * (output - (number - 1) / 2)


def _text_height(note: StickyNote) -> float:
    # In bytes, because characters of several bytes are usually wide.
    lines = (math.ceil(len(line.encode(errors="replace")) / _LINE_CHARS) for line in note.text.splitlines())
    return _LINE_HEIGHT * min(_MAX_TEXT_LINES, max(_LEAST_TEXT_LINES, sum(lines)))


def _rectangle(box: Box) -> Rectangle:
    return box.x, box.y, BOX_WIDTH, box.height


def _around(rectangles: Sequence[Rectangle]) -> Rectangle:
    left, top = (min(one[axis] for one in rectangles) - _NOTE_PADDING for axis in (0, 1))
    right, bottom = (max(one[axis] + one[axis + 2] for one in rectangles) + _NOTE_PADDING for axis in (0, 1))
    return left, top, right - left, bottom - top


def _do_touch(one: Rectangle, other: Rectangle) -> bool:
    return all(one[axis] < other[axis] + other[axis + 2] and other[axis] < one[axis] + one[axis + 2] for axis in (0, 1))


def _ends(connections: Any) -> Iterator[Ends]:
    """Yield the connections of a definition, as far as it has the usual shape."""
    for source, kinds in dict_or_empty(connections).items():
        for kind, outputs in dict_or_empty(kinds).items():
            outputs = list_or_empty(outputs)
            for at, targets in enumerate(outputs):
                for target in list_or_empty(targets):
                    name = target.get("node") if isinstance(target, dict) else None
                    yield Ends(source, str(name), kind, at, len(outputs))


def _label(node: Mapping[str, Any], ends: Ends) -> str:
    """Return the label of an output, if the node has several."""
    if not ends.is_main or ends.outputs < 2:
        return ""
    names = _names_of_outputs(node, ends.outputs)
    name = names[ends.output] if ends.output < len(names) else None
    return name[:MAX_LABEL_CHARS] if isinstance(name, str) and name else str(ends.output + 1)


def _names_of_outputs(node: Mapping[str, Any], outputs: int) -> Sequence[Any]:
    kind = str(node.get("type") or "").rpartition(".")[2]
    if node.get("onError") == "continueErrorOutput":
        return [None] * (outputs - 1) + ["error"]
    if kind == "switch":
        rules = dict_or_empty(dict_or_empty(node.get("parameters")).get("rules")).get("values")
        return [dict_or_empty(rule).get("outputKey") for rule in list_or_empty(rules)]
    names = _OUTPUTS.get(kind, ())
    is_old_loop = kind == "splitInBatches" and coordinate(node.get("typeVersion")) in (1, 2)
    return names[::-1] if is_old_loop else names


def _tries(node: Mapping[str, Any]) -> int:
    """Return how often the service tries a node, within its limits."""
    if node.get("retryOnFail") is not True:
        return 1
    return int(min(_MOST_TRIES, max(_LEAST_TRIES, coordinate(node.get("maxTries")) or _USUAL_TRIES)))


def _model(node: Mapping[str, Any]) -> str | None:
    """Return the model of a node, unless an expression chooses it, which can contain data."""
    model = dict_or_empty(node.get("parameters")).get("model")
    value = model.get("value") if isinstance(model, dict) else model
    return value if isinstance(value, str) and value and not value.startswith("=") else None
