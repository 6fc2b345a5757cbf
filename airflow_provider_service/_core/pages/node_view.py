"""A page's view of the nodes of an execution: the status, results and times of each, without the data of items."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.pages.states import State, state_of
from airflow_provider_service._core.pages.timeline import Frame, TimeBar, bars_of
from airflow_provider_service._core.text_table import cut
from airflow_provider_service.client._constraints import ENDED_STATUSES
from airflow_provider_service.client._execution_data import (
    Failure,
    NodeRun,
    Span,
    SubExecution,
    current_node,
    first_with,
    items_by_output,
    nodes_of,
    sub_executions_of,
    telling_nodes,
    tokens_of,
)
from airflow_provider_service.client._http.redaction import masked

if TYPE_CHECKING:
    from airflow_provider_service._core.pages.drawing import Drawing
    from airflow_provider_service.client.models import Execution

MAX_MESSAGE_CHARS, MAX_NAME_CHARS = 1_000, 200
#: Maximum numbers of nodes in the table, of runs of one node in the timeline, and of runs of all nodes in it.
MAX_ROWS, MAX_BARS, MAX_ALL_BARS = 300, 60, 3_000
#: Maximum number of links to the executions that a node has started.
MAX_SUB_EXECUTIONS = 20

OutputOf = Callable[[str], "str | None"]


@dataclass(frozen=True)
class NodeView:
    """A node of the workflow.

    :param anchor: its name in the page's address, which does not change during the execution.
    :param tries: maximum number of tries until it succeeds.
    :param runs: number of its runs, of which ``failed_runs`` failed.
    :param began: seconds from the beginning of the execution; None if it has not run.
    :param items: number of its output items; ``items_by_output`` has the number of each main output.
    :param tokens: number of tokens that a language model has used; 0 if the data does not show it.
    :param output: its first output items, as JSON; None unless data may be shown.
    """

    anchor: str
    name: str
    kind: str
    state: State
    model: str | None = None
    tries: int = 1
    runs: int = 0
    failed_runs: int = 0
    began: float | None = None
    seconds: float | None = None
    items: int | None = None
    items_by_output: Sequence[int] = ()
    tokens: int = 0
    message: str | None = None
    bars: Sequence[TimeBar] = ()
    sub_executions: Sequence[SubExecution] = ()
    output: str | None = None


class Texts:
    """The texts of the service as a page shows them.

    :param secrets: secrets to mask in every text.
    """

    def __init__(self, secrets: Collection[str]) -> None:
        self._secrets = secrets
        self._taken: set[str] = set()
        #: Unique labels of nodes, even if their names differ only in the truncated part.
        self.call = cache(self._call)

    def name(self, text: str) -> str:
        """Return a name, which may be truncated."""
        return cut(self._hidden(text), MAX_NAME_CHARS)

    def message(self, text: str | None) -> str | None:
        """Return a message, which may be truncated."""
        return text and cut(self._hidden(text), MAX_MESSAGE_CHARS)

    def _hidden(self, text: str) -> str:
        return masked(text, *self._secrets)

    def _call(self, name: str) -> str:
        whole, called = self._hidden(name), self.name(name)
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

    :param drawing: the drawing, with the names that the page uses.
    :param failure: the failure, with the name that the page uses.
    :param spans: the runs of all nodes, in the order in which they began.
    :param output_of: selects the output of a node to show; None for nothing.
    """
    boxes = {box.node: box for box in (drawing.boxes if drawing else ())}
    by_node: dict[str, list[Span]] = {}
    for span in spans:
        by_node.setdefault(texts.call(span.node), []).append(span)
    ran = {texts.call(one.node): one for one in nodes_of(execution)}
    names = first_with(list({**ran, **boxes}), MAX_ROWS, set(map(texts.call, telling_nodes(execution))))
    current = current_node(execution)
    state = partial(_state, execution, failure, None if current is None else texts.call(current))
    most_bars = min(MAX_BARS, MAX_ALL_BARS // max(1, len(ran)))
    shown = []
    for name in names:
        box, run, own = boxes.get(name), ran.get(name), by_node.get(name, [])
        now = state(name, run, own, is_disabled=box is not None and box.is_disabled)
        if now in ("running", "waiting"):
            own = _until_now(own, now, frame, name)
        shown.append(
            NodeView(
                anchor=hashlib.sha256(name.encode(errors="replace")).hexdigest()[:12],
                name=name,
                kind=box.kind if box else "",
                model=box.model if box else None,
                tries=box.tries if box else 1,
                state=now,
                began=max(0.0, (own[0].began - frame.begin) / 1000) if own else None,
                bars=list(bars_of(own, frame, most_bars)),
                **({} if run is None else _figures(execution, run, by_node.get(name, []), texts)),
                output=output_of(run.node) if output_of and run is not None else None,
            )
        )
    return shown


def _figures(execution: Execution, run: NodeRun, spans: Sequence[Span], texts: Texts) -> dict[str, Any]:
    return {
        "runs": len(spans),
        "failed_runs": sum(state_of(span.status) == "failed" for span in spans),
        "seconds": run.seconds,
        "items": run.items,
        "items_by_output": items_by_output(execution, run.node),
        "tokens": tokens_of(execution, run.node),
        "message": texts.message(run.message),
        "sub_executions": list(islice(sub_executions_of(execution, run.node), MAX_SUB_EXECUTIONS)),
    }


def _until_now(spans: list[Span], state: State, frame: Frame, name: str) -> list[Span]:
    """Return the runs of a node whose last run continues: the service may not report that run before it ends."""
    if spans and state_of(spans[-1].status) == state:
        return spans
    return [*spans, Span(name, frame.latest, 0.0, state)]


def _state(
    execution: Execution,
    failure: Failure | None,
    current: str | None,
    name: str,
    run: NodeRun | None,
    spans: Sequence[Span],
    *,
    is_disabled: bool,
) -> State:
    if is_disabled:  # the service reports success if items have passed through it
        return "disabled"
    if name == current:
        return state_of(execution.status)
    if run is not None:
        state = state_of(run.status)
        has_failed = state == "succeeded" and any(state_of(span.status) == "failed" for span in spans)
        return "failed in part" if has_failed else state
    if failure is not None and failure.node == name and execution.status == "error":
        return "failed"
    return "not run" if execution.status in (*ENDED_STATUSES, "waiting") else "unreported"
