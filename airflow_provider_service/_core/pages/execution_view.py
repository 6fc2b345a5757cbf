"""A page's view of an execution: the status of its nodes, and when each node ran, without the data of items."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from airflow_provider_service._core.pages.drawing import MAX_LINES, Drawing, draw
from airflow_provider_service._core.pages.node_view import MAX_ROWS, NodeView, OutputOf, Texts, nodes_shown
from airflow_provider_service._core.pages.states import State, state_of
from airflow_provider_service._core.pages.timeline import Frame, frame_of
from airflow_provider_service.client._constraints import ENDED_STATUSES, FAILED_STATUSES
from airflow_provider_service.client._execution_data import (
    Failure,
    failure_of,
    names_that_ran,
    nodes_of,
    spans_of,
    with_few_runs,
)

if TYPE_CHECKING:
    from airflow_provider_service.client.models import Execution

#: Maximum number of runs of all nodes whose times and items are counted.
MAX_RUNS = 20_000


@dataclass(frozen=True)
class ExecutionView:
    """An execution.

    :param nodes: the nodes that have run, in the order in which they began, and then the others.
    :param frame: the period in which their bars are drawn.
    :param notes: explanations of missing parts, for the reader.
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
    frame: Frame | None = None
    drawing: Drawing | None = None
    notes: Sequence[str] = field(default_factory=list)

    @property
    def has_ended(self) -> bool:
        """Whether the execution has ended, so that nothing about it will change."""
        return self.status in ENDED_STATUSES

    @property
    def seconds(self) -> float | None:
        """Duration of the execution, if it has ended."""
        if self.started_at is None or self.stopped_at is None or not self.has_ended:
            return None
        return max(0.0, (self.stopped_at - self.started_at).total_seconds())

    @property
    def opens_at(self) -> NodeView | None:
        """The node to show first: the one that failed, or else the one that runs or waits."""
        failing = self.node(self.failure.node) if self.failure is not None and self.failure.node else None
        states = ("failed", "failed in part", "running", "waiting")
        found = (one for state in states for one in self.nodes if one.state == state)
        return failing or next(found, None)

    @property
    def shows_nodes(self) -> bool:
        """Whether anything is known about the nodes besides their connections."""
        return any(one.state != "unreported" for one in self.nodes)

    def node(self, name: str) -> NodeView | None:
        """Return the node with this name."""
        return next((one for one in self.nodes if one.name == name), None)


def view_of(execution: Execution, *, secrets: Collection[str] = (), output_of: OutputOf | None = None) -> ExecutionView:
    """Make the view of an execution that was read with or without its data.

    :param secrets: secrets to mask in every text of the service.
    :param output_of: selects the output of a node to show; None for nothing.
    """
    texts = Texts(secrets)
    drawing = draw(execution.workflow_data)
    known = {*names_that_ran(execution), *(box.node for box in (drawing.boxes if drawing else ()))}
    execution, has_more_runs = with_few_runs(execution, MAX_ROWS, MAX_RUNS)
    if drawing is not None:
        drawing = drawing.renamed(texts.call, texts.name)
    failure = failure_of(execution) if execution.status in FAILED_STATUSES else None
    if failure is not None:
        failure = Failure(failure.node and texts.call(failure.node), texts.message(failure.message))
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
        notes=_notes(execution, drawing, left_out=len(known) - len(nodes), has_more_runs=has_more_runs),
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
    if drawing is not None and drawing.has_more_lines:
        notes.append(f"Only the first {MAX_LINES:,} connections are drawn.")
    return notes
