"""The common part of the commands that wait for an execution: a line for each node as it ends."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

from airflow_provider_service._airflow.task_arguments import FAULT_TOLERANCE_SECONDS, LEAST_POLL_SECONDS
from airflow_provider_service._core.runs.output import NodeLog
from airflow_provider_service._core.text_table import cut
from airflow_provider_service._core.waits.watch import Wait, poll_here
from airflow_provider_service.client._clock import clock

if TYPE_CHECKING:
    from airflow_provider_service._cli.screen import Screen
    from airflow_provider_service._core.waits.outcome import Outcome
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client._execution_data import NodeRun

#: The longest pause between two reads of the nodes, which cost the service more than a poll.
LONGEST_PAUSE_SECONDS = 30.0
_NAME_CHARS = 40
_STYLES = {"success": "green", "error": "red", "crashed": "red", "canceled": "yellow"}


class NodeLines:
    """Shows each node in a line, as soon as it has run and whenever it has changed."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._shown: dict[str, NodeRun] = {}

    def show(self, nodes: Sequence[NodeRun]) -> None:
        """Show the nodes that are new or have changed."""
        for one in nodes:
            if self._shown.get(one.node) != one:
                self._shown[one.node] = one
                name, message = cut(one.node, _NAME_CHARS), f"  {one.message}" if one.message else ""
                line = f"{one.status or '-':8}  {one.seconds:9.3f} s  {one.items:7} items  {name}{message}"
                self._screen.line(" ".join(line.splitlines()), _STYLES.get(one.status or ""))


def wait_for(execution_id: str, *, poll_interval: float, timeout: float = inf) -> Wait:
    """Return a wait that begins now.

    :param poll_interval: seconds between two polls.
    :param timeout: seconds after which the wait is over.
    """
    return Wait(
        execution_id=execution_id,
        service_conn_id="",
        deadline=clock().now() + timeout,
        timeout=timeout,
        poll_interval=max(poll_interval, LEAST_POLL_SECONDS),
        on_vanished="fail",
        fault_tolerance=FAULT_TOLERANCE_SECONDS,
        expected_workflow_id=None,
    )


def follow(client: ServiceClient, wait: Wait, lines: NodeLines) -> Outcome:
    """Wait until an execution has ended or the wait is over, and show its nodes as they end."""
    config = client.transport.config
    pauses = (wait.poll_interval, max(wait.poll_interval, LONGEST_PAUSE_SECONDS))
    nodes = NodeLog(config, wait.execution_id, show=lines.show, pauses=pauses)
    outcome = poll_here(config, wait, threading.Event(), nodes=nodes)
    if outcome is None:
        raise AssertionError("nobody gives this wait up")
    return outcome
