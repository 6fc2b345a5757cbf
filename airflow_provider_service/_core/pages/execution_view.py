"""What a page shows of an execution: its nodes as they stand, and when each of them ran. No data of its items."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, partial
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_service._core.pages.drawing import MAX_LINES, Drawing, draw
from airflow_provider_service._core.text_table import cut
from airflow_provider_service.client._execution_data import (
    Failure,
    NodeRun,
    Span,
    failure_of,
    first_with,
    names_that_ran,
    nodes_of,
    spans_of,
    telling_nodes,
    with_few_runs,
)
from airflow_provider_service.client._http.redaction import masked
from airflow_provider_service.client.models._statuses import ENDED_STATUSES, FAILED_STATUSES

if TYPE_CHECKING:
    from airflow_provider_service.client.models import Execution

#: How a node, an execution or an attempt stands. Each has its own sign and word, not only its own colour.
State = Literal["succeeded", "failed", "waiting", "running", "canceled", "disabled", "unreported", "not run"]

MAX_MESSAGE_CHARS, MAX_NAME_CHARS = 1_000, 200
#: Nodes in the table, runs of one node in the timeline, and such runs of all nodes.
MAX_ROWS, MAX_BARS, MAX_ALL_BARS = 300, 60, 3_000
#: Runs of all nodes whose times and items are counted.
MAX_RUNS = 20_000
#: The shortest bar that is seen, in parts of the timeline.
LEAST_BAR = 0.01

_STATES: dict[str | None, State] = {
    "success": "succeeded",
    "error": "failed",
    "crashed": "failed",
    "canceled": "canceled",
    "waiting": "waiting",
    "running": "running",
    "new": "running",
}
Hide = Callable[[str], str]
OutputOf = Callable[[str], "str | None"]


@dataclass(frozen=True)
class TimeBar:
    """A run of a node on the timeline, in parts of its length."""

    begin: float
    length: float
    state: State


@dataclass(frozen=True)
class NodeView:
    """A node of the workflow.

    :param anchor: names its row in the page.
    :param began: seconds from the begin of the execution; None if it has not run.
    :param output: the first items that it put out, as JSON; None unless data may be shown.
    """

    anchor: str
    name: str
    kind: str
    state: State
    runs: int = 0
    began: float | None = None
    seconds: float | None = None
    items: int | None = None
    message: str | None = None
    bars: Sequence[TimeBar] = ()
    output: str | None = None


@dataclass(frozen=True)
class ExecutionView:
    """An execution.

    :param nodes: those that have run, in the order in which they began, and then the others.
    :param notes: what the reader must know about what is not shown.
    """

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
    drawing: Drawing | None = None
    notes: Sequence[str] = field(default_factory=list)

    @property
    def has_ended(self) -> bool:
        """Whether nothing about it will change."""
        return self.status in ENDED_STATUSES

    @property
    def seconds(self) -> float | None:
        """How long it took, once it has ended."""
        if self.started_at is None or self.stopped_at is None or not self.has_ended:
            return None
        return max(0.0, (self.stopped_at - self.started_at).total_seconds())

    def node(self, name: str) -> NodeView | None:
        """The node of this name."""
        return next((one for one in self.nodes if one.name == name), None)


def view_of(execution: Execution, *, secrets: Collection[str] = (), output_of: OutputOf | None = None) -> ExecutionView:
    """What to show of an execution that was read with or without its data.

    :param secrets: taken out of every text of the service.
    :param output_of: what to show of a node's output; None for nothing.
    """
    hide: Hide = partial(_hidden, secrets)
    call = _distinct_names(hide)
    drawing = draw(execution.workflow_data)
    known = {*names_that_ran(execution), *(box.node for box in (drawing.boxes if drawing else ()))}
    execution, has_more_runs = with_few_runs(execution, MAX_ROWS, MAX_RUNS)
    if drawing is not None:
        boxes = [replace(box, node=call(box.node), kind=_name(box.kind, hide)) for box in drawing.boxes]
        drawing = replace(drawing, boxes=boxes)
    failure = failure_of(execution) if execution.status in FAILED_STATUSES else None
    if failure is not None:
        failure = Failure(failure.node and call(failure.node), _message(failure.message, hide))
    nodes = _nodes(execution, drawing, failure, hide, call, output_of)
    name = (execution.workflow_data or {}).get("name")
    return ExecutionView(
        execution_id=execution.id,
        status=execution.status,
        state=_STATES.get(execution.status, "unreported"),
        workflow_id=execution.workflow_id,
        workflow_name=_name(name, hide) if isinstance(name, str) else None,
        mode=execution.mode,
        started_at=execution.started_at,
        stopped_at=execution.stopped_at,
        wait_till=execution.wait_till if execution.status == "waiting" else None,
        retry_of=None if execution.retry_of is None else str(execution.retry_of),
        failure=failure,
        nodes=nodes,
        drawing=drawing,
        notes=_notes(execution, drawing, left_out=len(known) - len(nodes), has_more_runs=has_more_runs),
    )


def _nodes(
    execution: Execution,
    drawing: Drawing | None,
    failure: Failure | None,
    hide: Hide,
    call: Hide,
    output_of: OutputOf | None,
) -> list[NodeView]:
    boxes = {box.node: box for box in (drawing.boxes if drawing else ())}
    spans = spans_of(execution)
    begin, length = _frame(execution, spans)
    by_node: dict[str, list[Span]] = {}
    for span in spans:
        by_node.setdefault(call(span.node), []).append(span)
    ran = {call(one.node): one for one in nodes_of(execution)}
    names = first_with(list({**ran, **boxes}), MAX_ROWS, set(map(call, telling_nodes(execution))))
    most_bars = min(MAX_BARS, MAX_ALL_BARS // max(1, len(ran)))
    return [
        NodeView(
            anchor=f"node-{at}",
            name=name,
            kind=boxes[name].kind if name in boxes else "",
            state=_state(
                ran.get(name), name, failure, execution, is_disabled=name in boxes and boxes[name].is_disabled
            ),
            **(_figures(ran[name], by_node.get(name, []), begin, length, hide, most_bars) if name in ran else {}),
            output=output_of(ran[name].node) if output_of and name in ran else None,
        )
        for at, name in enumerate(names)
    ]


def _hidden(secrets: Collection[str], text: str) -> str:
    return masked(text, *secrets)


def _name(text: str, hide: Hide) -> str:
    return cut(hide(text), MAX_NAME_CHARS)


def _distinct_names(hide: Hide) -> Hide:
    """What to call each node: never the same as another one, even where their names differ only after the cut."""
    taken: set[str] = set()

    @cache
    def call(name: str) -> str:
        whole, called = hide(name), _name(name, hide)
        for number in count(2):
            if called not in taken:
                break
            suffix = f" ({number})"
            called = cut(whole, MAX_NAME_CHARS - len(suffix)) + suffix
        taken.add(called)
        return called

    return call


def _message(text: str | None, hide: Hide) -> str | None:
    return text and cut(hide(text), MAX_MESSAGE_CHARS)


def _figures(
    node: NodeRun, spans: list[Span], begin: float, length: float, hide: Hide, most_bars: int
) -> dict[str, Any]:
    bars = [
        TimeBar(
            begin=min(1 - LEAST_BAR, max(0.0, (span.began - begin) / length)),
            length=min(1.0, max(LEAST_BAR, span.seconds * 1000 / length)),
            state=_STATES.get(span.status, "unreported"),
        )
        for span in spans[:most_bars]
    ]
    return {
        "runs": len(spans),
        "began": max(0.0, (spans[0].began - begin) / 1000) if spans else None,
        "seconds": node.seconds,
        "items": node.items,
        "message": _message(node.message, hide),
        "bars": bars,
    }


def _frame(execution: Execution, spans: list[Span]) -> tuple[float, float]:
    """Begin and length of the timeline, in milliseconds."""
    starts = [span.began for span in spans]
    if execution.started_at is not None and execution.started_at.year > 1970:
        starts.append(execution.started_at.timestamp() * 1000)
    begin = min(starts, default=0.0)
    ends = [span.began + span.seconds * 1000 for span in spans]
    if execution.stopped_at is not None and execution.status in ENDED_STATUSES:
        ends.append(execution.stopped_at.timestamp() * 1000)
    return begin, max(1.0, max(ends, default=begin) - begin)


def _state(
    run: NodeRun | None, name: str, failure: Failure | None, execution: Execution, *, is_disabled: bool
) -> State:
    if run is not None:
        return _STATES.get(run.status, "unreported")
    if failure is not None and failure.node == name and execution.status == "error":
        return "failed"
    if is_disabled:
        return "disabled"
    return "not run" if execution.status in (*ENDED_STATUSES, "waiting") else "unreported"


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
        notes.append("The execution's data is too large for the service to show, so its nodes are not known here.")
    elif execution.status == "running" and not nodes_of(execution):
        notes.append(
            "The service does not report the nodes of a running execution unless the workflow's setting "
            "'Save execution progress' is on. They appear when the execution waits or has ended."
        )
    if drawing is not None and drawing.left_out:
        notes.append(f"{drawing.left_out} more nodes are not drawn.")
    if drawing is not None and drawing.has_more_lines:
        notes.append(f"Only the first {MAX_LINES:,} connections are drawn.")
    return notes
