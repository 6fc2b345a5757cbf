"""A grid for the nodes of a workflow, in the order in which the editor places them, with one node per cell.

Between columns and rows are channels without nodes, in which connections are drawn.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

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
    """The channels in one direction, each with as many tracks as its lines need to stay apart.

    :param number: number of channels.
    """

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
