"""A page's view of an execution, without the data of items: its nodes with their states, results and times.

The timeline is a frame that lasts until now, with bars for the runs of nodes, and an axis. Each state has its own sign
and word, and not only its own colour.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from itertools import count, islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from airflow_provider_service._core.pages.drawing import MAX_LINES, Drawing, draw
from airflow_provider_service._core.text_table import cut, first_of
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._constraints import ENDED_STATUSES, FAILED_STATUSES
from airflow_provider_service.client._execution_data import (
    Failure,
    NodeRun,
    Span,
    SubExecution,
    current_node,
    failure_of,
    first_with,
    items_by_output,
    names_that_ran,
    nodes_of,
    spans_of,
    sub_executions_of,
    telling_nodes,
    tokens_of,
    with_few_runs,
)
from airflow_provider_service.client._http.redaction import masked

if TYPE_CHECKING:
    from airflow_provider_service.client.models import Execution


State = Literal[
    "succeeded", "failed", "failed in part", "waiting", "running", "canceled", "disabled", "unreported", "not run"
]
SIGNS: dict[State, str] = {
    "succeeded": "✓",
    "failed": "✕",
    "failed in part": "!",
    "waiting": "‖",
    "running": "▶",
    "canceled": "■",
    "disabled": "-",
    "unreported": "?",
    "not run": "○",
}
_OF_STATUS: dict[str | None, State] = {
    "success": "succeeded",
    "error": "failed",
    "crashed": "failed",
    "canceled": "canceled",
    "waiting": "waiting",
    "running": "running",
    "new": "running",
}


def state_of(status: str | None) -> State:
    return _OF_STATUS.get(status, "unreported")


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
    """The period of the timeline, in milliseconds."""

    begin: float
    length: float
    latest: float  # the end of the last run that the service reports
    is_open: bool  # whether the execution continues

    @property
    def ticks(self) -> Sequence[Tick]:
        seconds = self.length / 1000
        step = _step(seconds)
        return [Tick(step * number / seconds, step * number) for number in range(int(seconds / step) + 1)]


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
    """Yield the bars of a node: a limited number, but at least one for each state. Failed runs are above the others."""
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
    least = max(0.001, seconds / MAX_TICKS)
    if least > 30:
        return next((step for step in _STEPS_SECONDS if step >= least), 86_400 * math.ceil(least / 86_400))
    unit = math.pow(10, math.floor(math.log10(least)))
    return next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= least)


MAX_MESSAGE_CHARS, MAX_NAME_CHARS = 1_000, 200
#: Maximum numbers of nodes in the table, of runs of one node in the timeline, and of runs of all nodes in it.
MAX_ROWS, MAX_BARS, MAX_ALL_BARS = 300, 60, 3_000
#: Maximum number of links to the executions that a node has started.
MAX_SUB_EXECUTIONS = 20

OutputOf = Callable[[str], "str | None"]


@dataclass(frozen=True)
class NodeView:
    anchor: str  # its name in the page's address, which does not change during the execution
    name: str
    kind: str
    state: State
    model: str | None = None
    tries: int = 1  # at most
    runs: int = 0
    failed_runs: int = 0
    began: float | None = None  # seconds from the beginning of the execution
    seconds: float | None = None
    items: int | None = None
    items_by_output: Sequence[int] = ()
    tokens: int = 0
    message: str | None = None
    bars: Sequence[TimeBar] = ()
    sub_executions: Sequence[SubExecution] = ()
    output: str | None = None  # its first items, as JSON, if data may be shown


class Texts:
    """The texts of the service as a page shows them, with secrets masked."""

    def __init__(self, secrets: Collection[str]) -> None:
        self._secrets = secrets
        self._taken: set[str] = set()
        #: Unique labels of nodes, even if their names differ only in the truncated part.
        self.call = cache(self._call)

    def name(self, text: str) -> str:
        return cut(masked(text, *self._secrets), MAX_NAME_CHARS)

    def message(self, text: str) -> str:
        return cut(masked(text, *self._secrets), MAX_MESSAGE_CHARS)

    def _call(self, name: str) -> str:
        whole, called = masked(name, *self._secrets), self.name(name)
        for number in count(2):
            if called not in self._taken:
                break
            suffix = f" ({number})"
            called = cut(whole, MAX_NAME_CHARS - len(suffix)) + suffix
        self._taken.add(called)
        return called


def nodes_shown(
    execution: Execution,
    drawing: Drawing | None,
    failure: Failure | None,
    spans: Sequence[Span],
    frame: Frame,
    texts: Texts,
    output_of: OutputOf | None,
) -> list[NodeView]:
    """List the nodes that have run, in the order in which they began, and then the others.

    Drawing and failure already have the names that the page uses; the spans of all nodes are ordered by their begin.
    """
    boxes = {box.node: box for box in (drawing.boxes if drawing else ())}
    by_node: dict[str, list[Span]] = {}
    for span in spans:
        by_node.setdefault(texts.call(span.node), []).append(span)
    ran = {texts.call(run.node): run for run in nodes_of(execution)}
    names = first_with(list({**ran, **boxes}), MAX_ROWS, set(map(texts.call, telling_nodes(execution))))
    current = current_node(execution)
    current = None if current is None else texts.call(current)
    most_bars = min(MAX_BARS, MAX_ALL_BARS // max(1, len(ran)))
    shown = []
    for name in names:
        box, run, reported = boxes.get(name), ran.get(name), by_node.get(name, [])
        if box is not None and box.is_disabled:  # the service reports success if items have passed through it
            state: State = "disabled"
        elif name == current:
            state = state_of(execution.status)
        else:
            state = _state(execution, failure, name, run, reported)
        own = reported
        if state in _OPEN and not (own and state_of(own[-1].status) == state):
            # The service may not report a run before it ends.
            own = [*own, Span(name, frame.latest, 0.0, state)]
        shown.append(
            NodeView(
                anchor=hashlib.sha256(name.encode(errors="replace")).hexdigest()[:12],
                name=name,
                kind=box.kind if box else "",
                model=box.model if box else None,
                tries=box.tries if box else 1,
                state=state,
                began=max(0.0, (own[0].began - frame.begin) / 1000) if own else None,
                bars=list(bars_of(own, frame, most_bars)),
                **({} if run is None else _results(execution, run, reported, texts)),
                output=output_of(run.node) if output_of and run is not None else None,
            )
        )
    return shown


def _results(execution: Execution, run: NodeRun, spans: Sequence[Span], texts: Texts) -> dict[str, Any]:
    return {
        "runs": len(spans),
        "failed_runs": sum(state_of(span.status) == "failed" for span in spans),
        "seconds": run.seconds,
        "items": run.items,
        "items_by_output": items_by_output(execution, run.node),
        "tokens": tokens_of(execution, run.node),
        "message": run.message and texts.message(run.message),
        "sub_executions": list(islice(sub_executions_of(execution, run.node), MAX_SUB_EXECUTIONS)),
    }


def _state(
    execution: Execution, failure: Failure | None, name: str, run: NodeRun | None, spans: Sequence[Span]
) -> State:
    if run is not None:
        state = state_of(run.status)
        has_failed = state == "succeeded" and any(state_of(span.status) == "failed" for span in spans)
        return "failed in part" if has_failed else state
    if failure is not None and failure.node == name and execution.status == "error":
        return "failed"
    return "not run" if execution.status in (*ENDED_STATUSES, "waiting") else "unreported"


#: Maximum number of runs of all nodes whose times and items are counted.
MAX_RUNS = 20_000


@dataclass(frozen=True)
class ExecutionView:
    """An execution; its nodes that have run come first, in the order in which they began."""

    execution_id: str
    status: str
    state: State
    workflow_id: str | None = None
    workflow_name: str | None = None
    mode: str | None = None
    started_at: datetime | None = None
    stopped_at: datetime | None = None
    wait_till: datetime | None = None
    retry_of: str | None = None
    failure: Failure | None = None
    nodes: Sequence[NodeView] = ()
    frame: Frame | None = None
    drawing: Drawing | None = None
    notes: Sequence[str] = field(default_factory=list)

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED_STATUSES

    @property
    def seconds(self) -> float | None:
        if self.started_at is None or self.stopped_at is None or not self.has_ended:
            return None
        return max(0.0, (self.stopped_at - self.started_at).total_seconds())

    @property
    def opens_at(self) -> NodeView | None:
        """The node to show first: the one that failed, or else the one that runs or waits."""
        failing = self.node(self.failure.node) if self.failure is not None and self.failure.node else None
        states = ("failed", "failed in part", "running", "waiting")
        return failing or next((node for state in states for node in self.nodes if node.state == state), None)

    @property
    def shows_nodes(self) -> bool:
        return any(node.state != "unreported" for node in self.nodes)

    def node(self, name: str) -> NodeView | None:
        return next((node for node in self.nodes if node.name == name), None)


def view_of(execution: Execution, *, secrets: Collection[str] = (), output_of: OutputOf | None = None) -> ExecutionView:
    texts = Texts(secrets)
    drawing = draw(execution.workflow_data)
    all_names = {*names_that_ran(execution), *(box.node for box in (drawing.boxes if drawing else ()))}
    execution, has_more_runs = with_few_runs(execution, MAX_ROWS, MAX_RUNS)
    if drawing is not None:
        drawing = drawing.renamed(texts.call, texts.name, texts.message)
    failure = failure_of(execution) if execution.status in FAILED_STATUSES else None
    if failure is not None:
        failure = Failure(failure.node and texts.call(failure.node), failure.message and texts.message(failure.message))
    spans = spans_of(execution)
    frame = frame_of(execution, spans)
    nodes = nodes_shown(execution, drawing, failure, spans, frame, texts, output_of)
    name = (execution.workflow_data or {}).get("name")
    return ExecutionView(
        execution_id=execution.id,
        status=execution.status,
        state=state_of(execution.status),
        workflow_id=execution.workflow_id,
        workflow_name=texts.name(name) if isinstance(name, str) else None,
        mode=execution.mode,
        started_at=execution.started_at,
        stopped_at=execution.stopped_at,
        wait_till=execution.wait_till if execution.status == "waiting" else None,
        retry_of=None if execution.retry_of is None else str(execution.retry_of),
        failure=failure,
        nodes=nodes,
        frame=frame,
        drawing=drawing,
        notes=_notes(execution, drawing, left_out=len(all_names) - len(nodes), has_more_runs=has_more_runs),
    )


def _notes(execution: Execution, drawing: Drawing | None, *, left_out: int, has_more_runs: bool) -> list[str]:
    notes = []
    if left_out:
        notes.append(
            f"Nodes left out of the table: {left_out:,}. "
            "The node that failed and the one that ran last are always in it."
        )
    if has_more_runs:
        notes.append(f"The nodes ran so often that the page counts only {MAX_RUNS:,} of their runs.")
    if execution.data_too_large_to_display:
        notes.append("The execution's data is too large for the service to return, so its nodes are unknown.")
    elif execution.status == "running" and not nodes_of(execution):
        notes.append(
            "The service does not report the nodes of a running execution unless the workflow's setting "
            "'Save execution progress' is on. They appear when the execution waits or has ended."
        )
    if drawing is not None and drawing.left_out:
        notes.append(f"{drawing.left_out} more nodes are not drawn.")
    if drawing is not None and drawing.same_names:
        names = first_of(list(map(repr, drawing.same_names)), 3)
        notes.append(f"Of nodes that have the same name, one is drawn: {names}.")
    if drawing is not None and drawing.has_more_lines:
        notes.append(f"Only the first {MAX_LINES:,} connections are drawn.")
    return notes
