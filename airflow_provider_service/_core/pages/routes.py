"""Route the connections of a workflow along the channels between its nodes, never behind a node."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from airflow_provider_service._core.pages.grid import Cell, Channels

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
    """A part of a route.

    :param channel: number of the channel that it uses.
    :param track: identifies the connections that share a track: those from one output, or to one node.
    """

    channel: int
    track: Track


class Route(NamedTuple):
    """The route of a connection: a single step, or three, along channels in alternating directions.

    If items pass along the connection, the first and the last step are in vertical channels.
    """

    first: Step
    others: tuple[Step, Step] | None = None


def route_of(ends: Ends, cells: Mapping[str, Cell], taken: Collection[Cell]) -> Route:
    """Find the route of a connection.

    :param cells: cells of the nodes.
    :param taken: all cells that hold a node.
    """
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
