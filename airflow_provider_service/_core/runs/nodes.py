"""Show what the nodes of an execution did: as a table in the log, even during a wait, and briefly in a result."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.text_table import cut, text_table
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._execution_data import NodeRun, nodes_of
from airflow_provider_service.client._values import one_line
from airflow_provider_service.client.errors import ServiceAnswerTooLargeError, ServiceError

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceConfig
    from airflow_provider_service.client.models import Execution

log = logging.getLogger(__name__)

#: Nodes in a table or a result, in the order in which they began.
MAX_NODES = 50
MAX_MESSAGE_CHARS = 200
# Reading data costs the server more than a poll does, so it is rare: the pause doubles while nothing changes.
LEAST_PAUSE_SECONDS = 30.0
LONGEST_PAUSE_SECONDS = 300.0
#: Executions with more data are not read before they end.
MAX_WATCHED_MIB = 1

#: Shows the nodes of an execution.
Show = Callable[[Sequence[NodeRun]], None]

_COLUMNS = ("node", "status", "seconds", "items", "message")


def node_table(nodes: Sequence[NodeRun]) -> Iterator[str]:
    """The nodes as the lines of a table."""
    rows = [
        (
            cut(one_line(one.node)),
            one.status or "-",
            f"{one.seconds:.3f}",
            str(one.items),
            cut(one_line(one.message or ""), MAX_MESSAGE_CHARS),
        )
        for one in nodes[:MAX_NODES]
    ]
    yield from text_table(_COLUMNS, rows)
    if len(nodes) > MAX_NODES:
        yield f"and {len(nodes) - MAX_NODES} more nodes"


def log_nodes(nodes: Sequence[NodeRun]) -> None:
    """Write the table to the log of the task, unless it has no rows."""
    for line in node_table(nodes) if nodes else ():
        log.info("%s", line)


def read_small(config: ServiceConfig, execution_id: str, max_mib: int) -> Execution:
    """Read an execution with its data in a single try, unless the data is large.

    :raises ServiceAnswerTooLargeError: the data is larger than ``max_mib``.
    """
    from airflow_provider_service.client import ServiceClient

    limit = min(max_mib, config.max_answer_mib)
    with ServiceClient(config.one_try(max_answer_mib=limit)) as client:
        return client.executions.get(execution_id, include_data=True)


def nodes_in_short(nodes: Sequence[NodeRun] | None) -> dict[str, Any]:
    """Return the first 50 nodes, without their data, and the number of all nodes, as a task returns them.

    :param nodes: None if they could not be read.
    """
    if not nodes:
        return {"nodes": None, "node_count": None}
    shown = [
        {"node": one.node, "status": one.status, "seconds": one.seconds, "items": one.items}
        for one in nodes[:MAX_NODES]
    ]
    return {"nodes": shown, "node_count": len(nodes)}


class NodeLog:
    """Logs the nodes of an execution that a worker waits for, whenever they have changed.

    The service shows them while the execution sleeps, or if its workflow saves its progress.

    :param config: the server.
    :param show: shows the nodes; by default, they are logged.
    :param pauses: the shortest and the longest pause between two reads, in seconds.
    """

    def __init__(
        self,
        config: ServiceConfig,
        execution_id: str,
        *,
        show: Show = log_nodes,
        pauses: tuple[float, float] = (LEAST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS),
    ) -> None:
        self._config, self._execution_id = config, execution_id
        self._show, (self._least_pause, self._longest_pause) = show, pauses
        self._pause = self._least_pause
        self._next = clock().monotonic() + self._pause
        self._shown: list[NodeRun] = []

    def poll(self) -> None:
        """Read the nodes if it is time, and log them if they have changed; a failure does not affect the wait."""
        if clock().monotonic() < self._next:
            return
        nodes = self._read()
        has_changed = bool(nodes) and nodes != self._shown
        self._pause = self._least_pause if has_changed else min(2 * self._pause, self._longest_pause)
        self._next = max(self._next, clock().monotonic() + self._pause)
        if has_changed:
            self._shown = nodes
            self._show(nodes)

    def _read(self) -> list[NodeRun]:
        try:
            return nodes_of(read_small(self._config, self._execution_id, MAX_WATCHED_MIB))
        except ServiceAnswerTooLargeError:
            self._next = float("inf")
        except ServiceError as error:
            log.debug("The nodes of execution %s cannot be shown: %s", self._execution_id, error)
        return []
