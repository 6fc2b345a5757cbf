"""Draw a workflow as its editor shows it: nodes and sticky notes where the service stores them, in the editor's pixels.

The definition may have any shape. Nodes without a place stand in a row below the others.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

from airflow_provider_service.client._values import dict_or_empty, list_or_empty

#: Maximum number of nodes, of connections and of sticky notes in a drawing; a larger workflow is shown in part.
MAX_NODES, MAX_LINES, MAX_NOTES = 300, 1_000, 60
#: Maximum length of the label of an output.
MAX_LABEL_CHARS = 20
#: Number of the colours that the editor offers for sticky notes; the first is the usual one.
NOTE_COLOURS = 7
NOTE = "n8n-nodes-base.stickyNote"
# The editor's sizes: of a node, of one that is attached to another, of one to which others are attached, the distance
# between the ends of connections on a side of a node, and the size of a note.
_NODE, _SUB_NODE, _WIDE, _PITCH, _NOTE = 96.0, 80.0, 256.0, 32.0, (240.0, 160.0)
# How far a connection that leads back goes beside and below its node, and its corners.
_BESIDE, _BELOW, _RADIUS, _BACKWARDS = 40.0, 130.0, 16.0, 20.0
# The name below a node: its width and height, and its width below an attached one.
_NAME_WIDTH, _NAME_HEIGHT, _SUB_NAME_WIDTH = 192.0, 54.0, 128.0
_MARGIN, _STEP, _FURTHEST, _MAX_PORTS = 64.0, 208.0, 1e6, 30
_LEAST_TRIES, _USUAL_TRIES, _MOST_TRIES = 2, 3, 5
_OUTPUTS = {"if": ("true", "false"), "filter": ("kept", "discarded"), "splitInBatches": ("done", "loop")}
# Marks of headings and emphasis in Markdown.
_MARKS = re.compile(r"^[ \t]*#+[ \t]+|\*\*", re.MULTILINE)
_MAX_TEXT_CHARS = 2_000

Point = tuple[float, float]
#: Left, top, width and height.
Rectangle = tuple[float, float, float, float]


@dataclass(frozen=True)
class Box:
    """A node; ``words`` is where its name stands."""

    node: str
    kind: str
    model: str | None
    is_disabled: bool
    tries: int
    area: Rectangle
    words: Rectangle
    outline: str

    @property
    def is_wide(self) -> bool:
        """Whether its name stands in it, since what is attached to it stands below."""
        return self.words[1] < self.area[1] + self.area[3]

    @property
    def sign(self) -> Point:
        """The middle of the sign of its state."""
        x, y, width, height = self.area
        return x + min(width, _NODE) / 2, y + height / 2


@dataclass(frozen=True)
class Line:
    """A connection between two nodes; ``label`` stands at its beginning."""

    source: str
    output: int
    path: str
    is_main: bool
    label: str
    begin: Point


@dataclass(frozen=True)
class Note:
    """A sticky note."""

    text: str
    colour: int
    area: Rectangle


@dataclass(frozen=True)
class Drawing:
    """``left_out`` counts the nodes that are too many, and ``same_names`` names those that are drawn only once."""

    boxes: Sequence[Box]
    lines: Sequence[Line]
    notes: Sequence[Note]
    width: float
    height: float
    left_out: int
    has_more_lines: bool
    same_names: Sequence[str]

    def renamed(self, call: Callable[[str], str], name: Callable[[str], str], text: Callable[[str], str]) -> Drawing:
        """Return the drawing with other names for its nodes, other names of all else, and other texts of its notes."""
        boxes = [
            replace(box, node=call(box.node), kind=name(box.kind), model=box.model and name(box.model))
            for box in self.boxes
        ]
        lines = [replace(line, source=call(line.source), label=name(line.label)) for line in self.lines]
        notes = [replace(note, text=text(note.text)) for note in self.notes]
        return replace(self, boxes=boxes, lines=lines, notes=notes, same_names=list(map(name, self.same_names)))


class _Ends(NamedTuple):
    """The ends of a connection: an output of a node, and an input of another."""

    source: str
    target: str
    kind: str
    output: int
    outputs: int
    input: int

    @property
    def is_main(self) -> bool:
        """Whether items pass along it; the others attach a tool or a model, for example."""
        return self.kind == "main"


def draw(workflow: Mapping[str, Any] | None) -> Drawing | None:
    """Draw a definition of the service; None if it shows no nodes."""
    definition = workflow or {}
    of_editor = [node for node in list_or_empty(definition.get("nodes")) if isinstance(node, dict)]
    names = Counter(node["name"] for node in of_editor if _is_drawn(node))
    if not names:
        return None
    drawn = set(islice(names, MAX_NODES))
    nodes = {node["name"]: node for node in of_editor if _is_drawn(node) and node["name"] in drawn}
    all_ends = _ends(definition.get("connections"))
    ends = [end for end in islice(all_ends, MAX_LINES) if end.source in nodes and end.target in nodes]
    canvas = _Canvas(nodes, ends, _notes(of_editor))
    return Drawing(
        boxes=sorted(canvas.boxes.values(), key=lambda box: box.area),
        lines=canvas.lines,
        notes=canvas.notes,
        width=canvas.width + _MARGIN,
        height=canvas.height + _MARGIN / 2,
        left_out=len(names) - len(nodes),
        has_more_lines=next(all_ends, None) is not None,
        same_names=[name for name, number in names.items() if number > 1],
    )


def _is_drawn(node: Mapping[str, Any]) -> bool:
    return isinstance(node.get("name"), str) and node.get("type") != NOTE


class _Canvas:
    """What is drawn, with its upper left corner at the margin."""

    def __init__(self, nodes: Mapping[str, Mapping[str, Any]], ends: Sequence[_Ends], notes: Sequence[Note]) -> None:
        self._nodes = nodes
        self._outputs = {end.source: min(_MAX_PORTS, end.outputs) for end in ends if end.is_main}
        self._attached = {end.source for end in ends if not end.is_main}
        self._inputs: dict[str, int] = {}
        self._kinds: dict[str, list[str]] = {}
        places = _places(nodes)
        for end in sorted(ends, key=lambda end: places[end.source]):
            if end.is_main:
                self._inputs[end.target] = max(self._inputs.get(end.target, 1), end.input + 1)
            elif end.kind not in self._kinds.setdefault(end.target, []):
                self._kinds[end.target].append(end.kind)
        self._labelled: set[tuple[str, int]] = set()
        corners = [*places.values(), *(note.area[:2] for note in notes)]
        left, top = min(x for x, _ in corners) - _MARGIN, min(y for _, y in corners) - _MARGIN / 2
        self.boxes = {name: self._box(name, x - left, y - top) for name, (x, y) in places.items()}
        self.notes = [replace(note, area=(note.area[0] - left, note.area[1] - top, *note.area[2:])) for note in notes]
        areas = [area for box in self.boxes.values() for area in (box.area, box.words)]
        areas += [note.area for note in self.notes]
        self.width = max(x + width for x, _, width, _ in areas)
        self.height = max(y + height for _, y, _, height in areas)
        self.lines = [self._line(end) for end in ends]

    def _box(self, name: str, x: float, y: float) -> Box:
        node = self._nodes[name]
        kind = str(node.get("type") or "").rpartition(".")[2]
        kinds, is_attached = self._kinds.get(name, ()), name in self._attached
        ports = max(self._inputs.get(name, 1), self._outputs.get(name, 1))
        height = _SUB_NODE if is_attached else _NODE + _PITCH * max(0, ports - 2)
        width = max(_WIDE, 2 * _PITCH * len(kinds)) if kinds else height if is_attached else _NODE
        name_width = _SUB_NAME_WIDTH if is_attached else _NAME_WIDTH
        words = (x + (width - name_width) / 2, y + height + 4, name_width, _NAME_HEIGHT)
        if kinds:  # beside the sign, since the attached nodes are below
            words = (x + _NODE - 12, y + (height - _NAME_HEIGHT) / 2, width - _NODE + 4, _NAME_HEIGHT)
        is_trigger = kind.lower().endswith("trigger") or kind == "webhook"
        return Box(
            node=name,
            kind=kind,
            model=_model(node),
            is_disabled=node.get("disabled") is True,
            tries=_tries(node),
            area=(x, y, width, height),
            words=words,
            outline=_outline(x, y, width, height, *((40, 40) if is_attached else (36, 8) if is_trigger else (8, 8))),
        )

    def _line(self, end: _Ends) -> Line:
        source, target = self.boxes[end.source].area, self.boxes[end.target].area
        if not end.is_main:
            kinds = self._kinds[end.target]
            begin = source[0] + source[2] / 2, source[1]
            goal = _port(target[0], target[2], kinds.index(end.kind), len(kinds)), target[1] + target[3]
            bend = _bend(begin[1] - goal[1])
            middle = (begin[0], begin[1] - bend), (goal[0], goal[1] + bend)
            return Line(end.source, end.output, _curve(begin, *middle, goal), False, "", begin)
        outputs, inputs = self._outputs[end.source], self._inputs[end.target]
        begin = source[0] + source[2], _port(source[1], source[3], end.output, outputs)
        goal = target[0], _port(target[1], target[3], end.input, inputs)
        if begin[0] - _BACKWARDS > goal[0]:
            path = _path_back(begin, goal)
            self.width, self.height = max(self.width, begin[0] + _BESIDE), max(self.height, begin[1] + _BELOW)
        else:
            bend = _bend(goal[0] - begin[0])
            path = _curve(begin, (begin[0] + bend, begin[1]), (goal[0] - bend, goal[1]), goal)
        is_labelled = (end.source, end.output) in self._labelled
        self._labelled.add((end.source, end.output))
        label = "" if is_labelled else _label(self._nodes[end.source], end)
        return Line(end.source, end.output, path, True, label, begin)


def _places(nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, Point]:
    """Return the place of each node; those without one, or all if they have the same, stand in a row."""
    places = {name: place for name, node in nodes.items() if (place := _place(node)) is not None}
    if len(places) > 1 and len(set(places.values())) == 1:
        places = {}
    left = min((x for x, _ in places.values()), default=0.0)
    below = max((y + 2 * _NODE for _, y in places.values()), default=0.0)
    row = (name for name in nodes if name not in places)
    return {**places, **{name: (left + _STEP * at, below) for at, name in enumerate(row)}}


def _place(node: Mapping[str, Any]) -> Point | None:
    position = node.get("position")
    x, y = map(_number, position) if isinstance(position, (list, tuple)) and len(position) == 2 else (None, None)
    return None if x is None or y is None else (x, y)


def _number(value: Any) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return float(value) if abs(value) <= _FURTHEST else None  # excludes infinity and NaN


def _notes(nodes: Sequence[Mapping[str, Any]]) -> list[Note]:
    """Read the sticky notes that have a place, the largest first, so that it is behind the others."""
    notes = []
    for node in islice((node for node in nodes if node.get("type") == NOTE), MAX_NOTES):
        given, place = dict_or_empty(node.get("parameters")), _place(node)
        text, colour = given.get("content"), given.get("color")
        width, height = (
            size if (size := _number(given.get(name))) and size > 0 else usual
            for name, usual in zip(("width", "height"), _NOTE, strict=True)
        )
        if place is None:
            continue
        lines = _MARKS.sub("", text[:_MAX_TEXT_CHARS]).splitlines() if isinstance(text, str) else []
        notes.append(
            Note(
                text="\n".join(filter(None, map(str.strip, lines))),
                colour=colour if type(colour) is int and 1 <= colour <= NOTE_COLOURS else 1,
                area=(*place, width, height),
            )
        )
    return sorted(notes, key=lambda note: -note.area[2] * note.area[3])


def _ends(connections: Any) -> Iterator[_Ends]:
    """Yield the connections of a definition, as far as it has the usual shape."""
    for source, kinds in dict_or_empty(connections).items():
        for kind, outputs in dict_or_empty(kinds).items():
            outputs = list_or_empty(outputs)
            for at, targets in enumerate(outputs):
                for target in list_or_empty(targets):
                    given = dict_or_empty(target)
                    number = min(_MAX_PORTS - 1, max(0, int(_number(given.get("index")) or 0)))
                    yield _Ends(source, str(given.get("node")), kind, at, len(outputs), number)


def _port(begin: float, length: float, at: int, number: int) -> float:
    """Return where on a side of a node a connection begins or ends."""
    return begin + length * (min(at, number - 1) + 1) / (number + 1)


def _outline(x: float, y: float, width: float, height: float, left: int, right: int) -> str:
    """Return the outline of a node, with the radii of its corners."""
    return (
        f"M{x + left:.0f} {y:.0f}h{width - left - right:.0f}a{right} {right} 0 0 1 {right} {right}"
        f"v{height - 2 * right:.0f}a{right} {right} 0 0 1 {-right} {right}h{left + right - width:.0f}"
        f"a{left} {left} 0 0 1 {-left} {-left}v{2 * left - height:.0f}a{left} {left} 0 0 1 {left} {-left}z"
    )


def _bend(distance: float) -> float:
    """Return how far a curve goes straight on at its ends, as the editor's library bends it."""
    return distance / 2 if distance >= 0 else 6.25 * math.sqrt(-distance)


def _curve(*points: Point) -> str:
    begin, *others = (f"{x:.0f} {y:.0f}" for x, y in points)
    return f"M{begin}C{' '.join(others)}"


def _path_back(begin: Point, end: Point) -> str:
    """Return the path of a connection that leads back: below its node, and from the left into the other."""
    (x, y), (goal_x, goal_y) = begin, end
    below, right, left = y + _BELOW, x + _BESIDE, goal_x - _BESIDE
    turn = max(-_RADIUS, min(_RADIUS, (goal_y - below) / 2))
    return (
        f"M{x:.0f} {y:.0f}H{right - _RADIUS:.0f}Q{right:.0f} {y:.0f} {right:.0f} {y + _RADIUS:.0f}"
        f"V{below - _RADIUS:.0f}Q{right:.0f} {below:.0f} {right - _RADIUS:.0f} {below:.0f}"
        f"H{left + _RADIUS:.0f}Q{left:.0f} {below:.0f} {left:.0f} {below + turn:.0f}"
        f"V{goal_y - turn:.0f}Q{left:.0f} {goal_y:.0f} {left + _RADIUS:.0f} {goal_y:.0f}H{goal_x:.0f}"
    )


def _label(node: Mapping[str, Any], end: _Ends) -> str:
    """Return the label of an output, if the node has several."""
    if not end.is_main or end.outputs < 2:
        return ""
    name = _name_of_output(node, end)
    return name[:MAX_LABEL_CHARS] if isinstance(name, str) and name else str(end.output + 1)


def _name_of_output(node: Mapping[str, Any], end: _Ends) -> Any:
    kind = str(node.get("type") or "").rpartition(".")[2]
    if node.get("onError") == "continueErrorOutput":
        return "error" if end.output == end.outputs - 1 else None
    names: Sequence[Any] = _OUTPUTS.get(kind, ())
    if kind == "switch":
        names = list_or_empty(dict_or_empty(dict_or_empty(node.get("parameters")).get("rules")).get("values"))
    elif kind == "splitInBatches" and _number(node.get("typeVersion")) in (1, 2):
        names = names[::-1]
    name = names[end.output] if end.output < len(names) else None
    return dict_or_empty(name).get("outputKey") if kind == "switch" else name


def _tries(node: Mapping[str, Any]) -> int:
    """Return how often the service tries a node, within its limits."""
    if node.get("retryOnFail") is not True:
        return 1
    return int(min(_MOST_TRIES, max(_LEAST_TRIES, _number(node.get("maxTries")) or _USUAL_TRIES)))


def _model(node: Mapping[str, Any]) -> str | None:
    """Return the model of a node, unless an expression chooses it, which can contain data."""
    model = dict_or_empty(node.get("parameters")).get("model")
    value = model.get("value") if isinstance(model, dict) else model
    return value if isinstance(value, str) and value and not value.startswith("=") else None
