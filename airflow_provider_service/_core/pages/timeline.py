"""The timeline of an execution: a frame that lasts until now, bars for the runs of nodes, and an axis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_service._core.pages.states import State, state_of
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._constraints import ENDED_STATUSES

if TYPE_CHECKING:
    from airflow_provider_service.client._execution_data import Span
    from airflow_provider_service.client.models import Execution

#: The shortest visible bar, in parts of the timeline.
LEAST_BAR = 0.01
#: Maximum number of marks on the axis, besides that at its beginning.
MAX_TICKS = 4
# The frame of an open execution grows in steps of this share of its length, and not with every read.
_GROWTH = 0.02
_LEAST_GROWTH_MS = 1_000.0
# Later states are drawn above earlier ones.
_LAYERS = ("succeeded", "canceled", "unreported", "running", "waiting", "failed")
_OPEN = frozenset({"running", "waiting"})
_STEPS_SECONDS = (60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400)


@dataclass(frozen=True)
class TimeBar:
    """A bar on the timeline, in parts of its length: one run of a node, or several if there are too many."""

    begin: float
    length: float
    state: State


class Tick(NamedTuple):
    """A mark on the axis: its position, in parts of the length, and the number of seconds since the beginning."""

    at: float
    seconds: float


class Frame(NamedTuple):
    """The period of the timeline, in milliseconds.

    :param latest: end of the last run that the service reports.
    :param is_open: whether the execution continues.
    """

    begin: float
    length: float
    latest: float
    is_open: bool

    @property
    def ticks(self) -> Sequence[Tick]:
        """The marks of the axis, at round times."""
        seconds = self.length / 1000
        step = _step(seconds)
        return [Tick(step * at / seconds, step * at) for at in range(int(seconds / step) + 1)]


def frame_of(execution: Execution, spans: Sequence[Span]) -> Frame:
    """Return the period from the beginning of an execution to its end, or until now."""
    starts = [span.began for span in spans if span.began]
    if execution.started_at is not None and execution.started_at.year > 1970:
        starts.append(execution.started_at.timestamp() * 1000)
    begin = min(starts, default=0.0)
    ends = [span.began + span.seconds * 1000 for span in spans]
    latest = max(ends, default=begin)
    has_ended = execution.status in ENDED_STATUSES
    if execution.stopped_at is not None and has_ended:
        ends.append(execution.stopped_at.timestamp() * 1000)
    if starts and not has_ended:
        elapsed = max(0.0, clock().now() * 1000 - begin)
        growth = max(_LEAST_GROWTH_MS, _GROWTH * elapsed)
        growth = 2 ** math.floor(math.log2(growth))  # so that it stays the same for a while
        ends.append(begin + growth * math.floor(elapsed / growth))
    return Frame(begin, max(1.0, max(ends, default=begin) - begin), max(begin, latest), not has_ended)


def bars_of(spans: Sequence[Span], frame: Frame, most: int) -> Iterator[TimeBar]:
    """Yield the bars of a node: a limited number, but at least one for each state. Failed runs are above the others.

    :param spans: the node's runs, in the order in which they began.
    """
    by_state: dict[State, list[tuple[float, float]]] = {}
    for span in spans:
        state = state_of(span.status)
        begin = min(1 - LEAST_BAR, max(0.0, (span.began - frame.begin) / frame.length))
        end = 1.0 if frame.is_open and state in _OPEN else begin + max(0.0, span.seconds * 1000 / frame.length)
        by_state.setdefault(state, []).append((begin, min(1.0, end)))
    for state in sorted(by_state, key=_LAYERS.index):
        for begin, end in _binned(by_state[state], max(1, most // len(by_state))):
            yield TimeBar(begin, max(LEAST_BAR, end - begin), state)


def _binned(runs: list[tuple[float, float]], most: int) -> Iterator[tuple[float, float]]:
    if len(runs) <= most:
        yield from runs
        return
    bins: dict[int, tuple[float, float]] = {}
    for begin, end in runs:
        at = int(begin * most)
        first, last = bins.get(at, (begin, end))
        bins[at] = min(first, begin), max(last, end)
    yield from bins.values()


def _step(seconds: float) -> float:
    """Return the round time between two marks."""
    least = max(0.001, seconds / MAX_TICKS)
    if least > 30:
        return next((step for step in _STEPS_SECONDS if step >= least), 86_400 * math.ceil(least / 86_400))
    unit = math.pow(10, math.floor(math.log10(least)))
    return next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= least)
