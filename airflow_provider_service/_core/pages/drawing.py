"""Where the nodes and connections of a workflow are drawn: as its editor places them, in the units of an SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

BOX_WIDTH, BOX_HEIGHT = 168.0, 58.0
#: Nodes in a drawing, and connections; a larger workflow is shown in part.
MAX_NODES, MAX_LINES = 300, 1_000
_MARGIN = 24.0
# The room that two boxes in a row need from middle to middle.
_PITCH = BOX_WIDTH + 32
_MAX_STRETCH = 4.0
_FURTHEST = 1e6
#: The drawing is made smaller to be no wider than this, as long as it can be read.
_WIDEST, _SMALLEST_SCALE = 960.0, 0.75
_NOTE = "n8n-nodes-base.stickyNote"
_IF_OUTPUTS = ("true", "false")


@dataclass(frozen=True)
class Box:
    """A node, with its upper left corner."""

    node: str
    kind: str
    is_disabled: bool
    x: float
    y: float


@dataclass(frozen=True)
class Line:
    """A connection between two nodes.

    :param path: of the SVG.
    :param is_main: whether items pass along it; the others attach a tool or a model, for example.
    :param label: of the output where the source has several.
    :param label_x: where the label begins.
    :param label_y: its baseline.
    """

    path: str
    is_main: bool
    label: str
    label_x: float
    label_y: float


@dataclass(frozen=True)
class Drawing:
    """A workflow as it is drawn.

    :param width: of the drawing, in its own units.
    :param scale: how large a unit is shown, in pixels.
    :param left_out: number of nodes that it does not show.
    :param has_more_lines: whether there are connections that it does not show.
    """

    boxes: Sequence[Box]
    lines: Sequence[Line]
    width: float
    height: float
    scale: float
    left_out: int
    has_more_lines: bool


class _Ends(NamedTuple):
    """What a connection connects: an output of a node, of so many, with another node."""

    source: str
    target: str
    kind: str
    output: int
    outputs: int


def draw(workflow: Mapping[str, Any] | None) -> Drawing | None:
    """Draw a definition of the service, which may have any shape; None if it shows no nodes."""
    nodes = [one for one in _list((workflow or {}).get("nodes")) if _is_drawn(one)]
    if not nodes:
        return None
    # In this order they are reached by the keyboard.
    boxes = sorted(_boxes(nodes[:MAX_NODES]), key=lambda box: (box.x, box.y))
    width = max(box.x for box in boxes) + BOX_WIDTH + _MARGIN
    height = max(box.y for box in boxes) + BOX_HEIGHT + _MARGIN
    ends = _ends((workflow or {}).get("connections"))
    considered = list(islice(ends, MAX_LINES))
    return Drawing(
        boxes=boxes,
        lines=list(_lines(boxes, considered)),
        width=width,
        height=height,
        scale=min(1.0, max(_SMALLEST_SCALE, _WIDEST / width)),
        left_out=max(0, len(nodes) - MAX_NODES),
        has_more_lines=next(ends, None) is not None,
    )


def _is_drawn(node: Any) -> bool:
    return isinstance(node, dict) and isinstance(node.get("name"), str) and node.get("type") != _NOTE


def _boxes(nodes: list[dict[str, Any]]) -> list[Box]:
    places = [_place(node.get("position"), at) for at, node in enumerate(nodes)]
    stretch = _stretch(places)
    left, top = min(x for x, _ in places), min(y for _, y in places)
    return [
        Box(
            node=node["name"],
            kind=str(node.get("type") or "").rpartition(".")[2],
            is_disabled=node.get("disabled") is True,
            x=_MARGIN + (x - left) * stretch,
            y=_MARGIN + y - top,
        )
        for node, (x, y) in zip(nodes, places, strict=True)
    ]


def _place(position: Any, at: int) -> tuple[float, float]:
    """The place that the editor gives a node; without one, nodes stand in a row."""
    x, y = map(_coordinate, position) if isinstance(position, (list, tuple)) and len(position) == 2 else (None, None)
    return (_PITCH * at, 0.0) if x is None or y is None else (x, y)


def _coordinate(value: Any) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return float(value) if abs(value) <= _FURTHEST else None  # neither is what is infinite or no number


def _stretch(places: list[tuple[float, float]]) -> float:
    """How far to pull nodes apart so that the boxes, which hold more than those of the editor, do not overlap."""
    nearest = _PITCH
    for at, (x, y) in enumerate(places):
        for other_x, other_y in places[at + 1 :]:
            gap = abs(other_x - x)
            if abs(other_y - y) < BOX_HEIGHT and gap >= 1:
                nearest = min(nearest, gap)
    return min(_MAX_STRETCH, _PITCH / nearest)


def _ends(connections: Any) -> Iterator[_Ends]:
    """What is connected, as far as the definition says so in the usual shape."""
    for source, kinds in (connections if isinstance(connections, dict) else {}).items():
        for kind, outputs in (kinds if isinstance(kinds, dict) else {}).items():
            outputs = _list(outputs)
            for at, targets in enumerate(outputs):
                for target in _list(targets):
                    name = target.get("node") if isinstance(target, dict) else None
                    yield _Ends(source, str(name), kind, at, len(outputs))


def _lines(boxes: list[Box], several: list[_Ends]) -> Iterator[Line]:
    by_name = {box.node: box for box in boxes}
    for one in several:
        begin, end = by_name.get(one.source), by_name.get(one.target)
        if begin and end:
            yield _main(begin, end, one.output, one.outputs) if one.kind == "main" else _attached(begin, end)


def _main(begin: Box, end: Box, output: int, outputs: int) -> Line:
    x1, y1 = begin.x + BOX_WIDTH, begin.y + BOX_HEIGHT * (output + 1) / (outputs + 1)
    x2, y2 = end.x, end.y + BOX_HEIGHT / 2
    if x2 > x1:
        bend, low = max(16.0, (x2 - x1) / 2), 0.0
    else:  # back, below the boxes
        bend, low = 70.0, BOX_HEIGHT * 1.6
    path = f"M{x1:.1f} {y1:.1f}C{x1 + bend:.1f} {y1 + low:.1f} {x2 - bend:.1f} {y2 + low:.1f} {x2:.1f} {y2:.1f}"
    return Line(path, True, _label(begin, output, outputs), x1 + 5, y1 - 4 if output == 0 else y1 + 11)


def _attached(begin: Box, end: Box) -> Line:
    x1, y1 = begin.x + BOX_WIDTH / 2, begin.y
    x2, y2 = end.x + BOX_WIDTH / 2, end.y + BOX_HEIGHT
    return Line(f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}", False, "", x1, y1)


def _label(box: Box, output: int, outputs: int) -> str:
    if outputs < 2:
        return ""
    return _IF_OUTPUTS[output] if box.kind == "if" and outputs == 2 else str(output + 1)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
