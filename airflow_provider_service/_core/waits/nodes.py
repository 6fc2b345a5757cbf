"""What a wait shows of the nodes of its execution: while a worker waits, and when the execution has ended."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.runs.nodes import log_nodes, read_small
from airflow_provider_service._core.waits.outcome import settle
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._execution_data import NodeRun, nodes_of
from airflow_provider_service.client.errors import ServiceAnswerTooLargeError, ServiceError

if TYPE_CHECKING:
    from airflow_provider_service._core.runs.output import WantedOutput
    from airflow_provider_service._core.runs.request import MakeHeaders
    from airflow_provider_service._core.waits.outcome import Outcome
    from airflow_provider_service.client import ServiceClient, ServiceConfig

log = logging.getLogger(__name__)

#: Shows the nodes of an execution.
Show = Callable[[Sequence[NodeRun]], None]

# Reading data costs the server more than a poll, so there is little of it: the pause doubles while nothing changes.
LEAST_PAUSE_SECONDS = 30.0
LONGEST_PAUSE_SECONDS = 300.0
#: Executions with more data are left alone until they end.
MAX_WATCHED_MIB = 1


class NodeLog:
    """Logs the nodes of an execution that a worker waits for, each time that they have changed.

    The service shows them while the execution sleeps, or if its workflow saves its progress.

    :param config: the server.
    :param show: shows the nodes instead of the log.
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


def result_of(
    client: ServiceClient, outcome: Outcome, wanted: WantedOutput | None, headers: MakeHeaders
) -> dict[str, Any]:
    """End a task whose wait is over: as the outcome says, after what the nodes did was read and logged.

    :param wanted: the output that is wanted if the execution has succeeded.
    :param headers: makes the headers of the call, whose values are hidden in the output.
    :returns: what the task returns when the execution succeeded: the outcome, what the nodes did, and the output.
    """
    end = end_of(client, outcome, wanted, headers)
    return {**settle(outcome, retry_helps=True), **end}


def end_of(
    client: ServiceClient,
    outcome: Outcome,
    wanted: WantedOutput | None,
    headers: MakeHeaders,
    *,
    show: Show = log_nodes,
) -> dict[str, Any]:
    """Read what the nodes did and put out of an execution whose wait is over, and show the nodes.

    :param wanted: the output that is wanted if the execution has succeeded.
    :param headers: makes the headers of the call, whose values are hidden in the output.
    :param show: shows the nodes instead of the log.
    """
    from airflow_provider_service._core.runs.output import nothing_of, read_end

    if outcome.status is None and outcome.verdict != "timed_out":
        return nothing_of(wanted)
    return read_end(client, outcome.execution_id, wanted if outcome.status == "success" else None, headers, show=show)
