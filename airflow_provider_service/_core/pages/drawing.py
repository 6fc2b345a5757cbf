"""Lay out the drawing of a workflow: its nodes and connections, in the order in which the editor places them.

Nodes stand in a grid, one to a cell. Between columns and rows are channels without nodes, in which connections run, so
that none passes behind a node. The definition, from which nodes and sticky notes are read, may have any shape.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from typing import Any, NamedTuple

from airflow_provider_service.client._values import dict_or_empty, list_or_empty

#: Nodes that are closer to each other in the editor, in pixels, share a column or a row.
COLUMN_SPAN, ROW_SPAN = 100.0, 80.0
#: Distance between two tracks of a channel.
TRACK = 10.0
#: Maximum number of tracks in a channel; further lines share the last one.
MAX_TRACKS = 40


class Cell(NamedTuple):
    """A cell of the grid."""

    column: int
    row: int


def cells_of(places: Sequence[tuple[float, float]]) -> list[Cell]:
    """Return the cell of each place. Places that are too close to each other get cells one below the other."""
    columns, rows = _bands([x for x, _ in places], COLUMN_SPAN), _bands([y for _, y in places], ROW_SPAN)
    held: dict[tuple[int, int], int] = {}
    found: dict[int, tuple[int, tuple[int, int]]] = {}
    for at in sorted(range(len(places)), key=lambda at: (places[at][1], places[at][0])):
        x, y = places[at]
        place = columns[x], rows[y]
        rank = held[place] = held.get(place, -1) + 1
        found[at] = columns[x], (rows[y], rank)
    numbers = {row: number for number, row in enumerate(sorted({row for _, row in found.values()}))}
    return [Cell(found[at][0], numbers[found[at][1]]) for at in range(len(places))]


def _bands(values: Sequence[float], span: float) -> dict[float, int]:
    """Number the values, with one number for those within a span, and divide them at the widest gaps."""
    bands, todo = [], [sorted(set(values))]
    while todo:
        some = todo.pop()
        if some[-1] - some[0] < span:
            bands.append(some)
            continue
        cut = 1 + max(range(len(some) - 1), key=lambda at: some[at + 1] - some[at])
        todo += [some[:cut], some[cut:]]
    return {value: number for number, band in enumerate(sorted(bands)) for value in band}


class Channels:
    """The channels in one direction, each with as many tracks as its lines need to stay apart."""

    def __init__(self, number: int) -> None:
        self._wanted: list[dict[Hashable, tuple[float, float]]] = [{} for _ in range(number)]
        self._begins: list[dict[Hashable, float]] = [{} for _ in range(number)]
        self._before: list[dict[Hashable, set[Hashable]]] = [{} for _ in range(number)]
        self._tracks: list[dict[Hashable, int]] = [{} for _ in range(number)]

    def want(self, channel: int, line: Hashable, begin: float, end: float) -> None:
        """Request a track from one position to another; equal lines share a track."""
        along = [begin, end, *self._wanted[channel].get(line, ())]
        self._begins[channel].setdefault(line, begin)
        self._wanted[channel][line] = min(along), max(along)

    def put_before(self, channel: int, first: Hashable, second: Hashable) -> None:
        """Request an earlier track for one line than for another, unless other requests contradict it."""
        if first != second:
            self._before[channel].setdefault(second, set()).add(first)

    def assign(self) -> None:
        """Assign a track to each line."""
        for channel, (wanted, before, tracks) in enumerate(zip(self._wanted, self._before, self._tracks, strict=True)):
            held: list[list[tuple[float, float]]] = []
            for line in _in_order(self._with_few_crossings(channel), before):
                if line not in wanted:  # it runs straight and needs no track
                    continue
                begin, end = wanted[line]
                track = max((tracks[other] + 1 for other in before.get(line, ()) if other in tracks), default=0)
                while track < len(held) and any(first <= end and begin <= last for first, last in held[track]):
                    track += 1
                tracks[line] = track = min(track, MAX_TRACKS - 1)
                held.extend([] for _ in range(track + 1 - len(held)))
                held[track].append(wanted[line])

    def _with_few_crossings(self, channel: int) -> list[Hashable]:
        """Sort the lines of a channel: of those that go up, the upper first; of those that go down, the lower first."""

        def order(line: Hashable) -> tuple[bool, float]:
            begin = self._begins[channel][line]
            goes_down = begin == self._wanted[channel][line][0]
            return goes_down, -begin if goes_down else begin

        return sorted(self._wanted[channel], key=order)

    def is_used(self, channel: int) -> bool:
        """Whether any line uses a channel."""
        return bool(self._tracks[channel])

    def width(self, channel: int) -> float:
        """Return the width of a channel's tracks."""
        return TRACK * max(self._tracks[channel].values(), default=0)

    def offset(self, channel: int, line: Hashable) -> float:
        """Return the position of a line's track in a channel."""
        return TRACK * self._tracks[channel][line]


def _in_order(lines: Sequence[Hashable], before: Mapping[Hashable, set[Hashable]]) -> Iterator[Hashable]:
    """Yield the lines, each after those that must come before it, unless the requests form a cycle."""
    begun: set[Hashable] = set()
    for one in lines:
        path = [] if one in begun else [one]
        while path:
            line = path[-1]
            begun.add(line)
            earlier = next((other for other in before.get(line, ()) if other not in begun), None)
            if earlier is not None:
                path.append(earlier)
                continue
            path.pop()
            yield line


def begins(sizes: Sequence[float], gaps: Sequence[float], margin: float) -> list[float]:
    """Return where each column or row begins; the first gap is before the first one."""
    steps = [margin + gaps[0], *(size + gap for size, gap in zip(sizes, gaps[1:], strict=True))]
    return list(accumulate(steps))


_RADIUS = 8.0
Point = tuple[float, float]


class Ends(NamedTuple):
    """The ends of a connection: one of a node's outputs, and another node."""

    source: str
    target: str
    kind: str
    output: int
    outputs: int

    @property
    def is_main(self) -> bool:
        """Whether items pass along it; the others attach a tool or a model, for example."""
        return self.kind == "main"


Track = tuple[str, str, int]


class Step(NamedTuple):
    """A part of a route."""

    channel: int
    track: Track


class Route(NamedTuple):
    """The route of a connection: a single step, or three, along channels in alternating directions.

    If items pass along the connection, the first and the last step are in vertical channels.
    """

    first: Step
    others: tuple[Step, Step] | None = None


def route_of(ends: Ends, cells: Mapping[str, Cell], taken: Collection[Cell]) -> Route:
    """Find the route of a connection."""
    source, target = cells[ends.source], cells[ends.target]
    if not ends.is_main:
        track = ("attached to", ends.target, 0)
        first = Step(source.row, track)
        last = Step(target.row + 1, track)
        return Route(first, None if first == last else (Step(target.column, track), last))
    track = ("from", ends.source, ends.output)
    first = Step(source.column + 1, track)
    if first.channel <= target.column:
        between = (Cell(column, target.row) for column in range(first.channel, target.column))
        if not any(cell in taken for cell in between):
            return Route(first)
        is_above = target.row <= source.row
    else:  # backwards: below the node, unless the target is above it
        is_above = target.row < source.row
    middle = Step(source.row if is_above else source.row + 1, track)
    return Route(first, (middle, Step(target.column, ("to", ends.target, 0))))


def want_tracks(
    routes: Sequence[tuple[Ends, Route]], cells: Mapping[str, Cell], vertical: Channels, horizontal: Channels
) -> None:
    """Request the tracks of all routes.

    Positions along a channel are counted in columns or rows: a whole number is the middle of one, and 0.5 less is the
    channel before it.
    """
    leaving: dict[Cell, set[Track]] = {}
    for ends, route in routes:
        source, target = cells[ends.source], cells[ends.target]
        own, other = (vertical, horizontal) if ends.is_main else (horizontal, vertical)
        begin = source.row + _port(ends) if ends.is_main else source.column
        end = target.row if ends.is_main else target.column
        if ends.is_main:
            leaving.setdefault(source, set()).add(route.first.track)
        if route.others is not None:
            middle, last = route.others
            own.want(*route.first, begin, middle.channel - 0.5)
            other.want(*middle, route.first.channel - 0.5, last.channel - 0.5)
            own.want(*last, middle.channel - 0.5, end)
        elif begin != end:
            own.want(*route.first, begin, end)
    for ends, route in routes:
        if ends.is_main:
            # Outgoing connections turn before incoming ones of the same row, or both would look like one line.
            channel, track = route.others[1] if route.others else route.first
            for other_track in leaving.get(Cell(channel - 1, cells[ends.target].row), ()):
                vertical.put_before(channel, other_track, track)


def _port(ends: Ends) -> float:
    """Return the offset of an output from the middle of its node's side, in parts of a row."""
    return 0.0 if ends.outputs < 2 else 0.4 * ((ends.output + 1) / (ends.outputs + 1) - 0.5)


def path_through(points: Sequence[Point]) -> str:
    """Return the SVG path through some points, with round corners."""
    corners = list(_corners(points))
    steps = [f"M{_text(corners[0])}"]
    for at in range(1, len(corners) - 1):
        before, corner, after = corners[at - 1 : at + 2]
        steps.append(f"L{_text(_towards(corner, before))}Q{_text(corner)} {_text(_towards(corner, after))}")
    return "".join([*steps, f"L{_text(corners[-1])}"])


def _corners(points: Sequence[Point]) -> Iterator[Point]:
    """Yield the points at which the route begins, turns and ends."""
    kept: list[Point] = []
    for point in points:
        if kept and kept[-1] == point:
            continue
        if len(kept) > 1 and any(kept[-2][axis] == kept[-1][axis] == point[axis] for axis in (0, 1)):
            kept.pop()
        kept.append(point)
    yield from kept if len(kept) > 1 else (points[0], points[-1])


def _towards(corner: Point, other: Point) -> Point:
    distance = abs(other[0] - corner[0]) + abs(other[1] - corner[1])
    part = min(_RADIUS, distance / 2) / distance
    return corner[0] + (other[0] - corner[0]) * part, corner[1] + (other[1] - corner[1]) * part


def _text(point: Point) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"


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
    """A sticky note of a workflow."""

    text: str
    colour: int
    covered: Sequence[str]
    place: Place


def sticky_notes(nodes: Sequence[Any], places: Mapping[str, Place]) -> list[StickyNote]:
    """Read the sticky notes that have a text, the largest first, so that it is behind the others."""
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
    """A node, with its upper left corner."""

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
    """A connection between two nodes."""

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
    """A sticky note: an area behind nodes, and a text beside all nodes and connections."""

    text: str
    colour: int
    area: Rectangle
    text_area: Rectangle


@dataclass(frozen=True)
class Drawing:
    """The drawing of a workflow."""

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
