"""``logs``: show the nodes of an execution."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from airflow_provider_service._cli.connecting import connected
from airflow_provider_service._cli.following import NodeLines, follow, wait_for
from airflow_provider_service._cli.performing import DONE
from airflow_provider_service._cli.run import show_end

if TYPE_CHECKING:
    from airflow_provider_service._cli.screen import Screen
    from airflow_provider_service.client.models import Execution
    from airflow_provider_service.hooks.service import ServiceHook


def perform(screen: Screen, arguments: argparse.Namespace) -> int:
    """Show the nodes that have run; with ``--follow``, continue until the execution has ended."""
    from airflow_provider_service._core.runs.output import read_to_show
    from airflow_provider_service.client._execution_data import read_state

    with connected(screen, arguments.conn_id, arguments.uri) as hook:
        lines = NodeLines(screen)
        if not arguments.follow:
            found, _ = read_state(hook.client, arguments.execution_id)
            return _show(screen, hook, read_to_show(hook.client, arguments.execution_id) or found, lines)
        outcome = follow(hook.client, wait_for(arguments.execution_id, poll_interval=arguments.poll_interval), lines)
        ended = None if outcome.status is None else read_to_show(hook.client, arguments.execution_id)
        return show_end(screen, outcome, {"nodes": ended and _nodes(ended, lines)})


def _show(screen: Screen, hook: ServiceHook, execution: Execution, lines: NodeLines) -> int:
    from airflow_provider_service.client._execution_data import failed_node, failure_of
    from airflow_provider_service.links.service import execution_url

    url = execution_url(hook.config.base_url, execution.workflow_id or "", execution.id)
    screen.line(f"Execution {execution.id}: {execution.status}: {url}", "bold")
    nodes = _nodes(execution, lines)
    failure = failure_of(execution)
    if failure.message:
        ended = "Failed at" if failed_node(execution) else "Ended after"
        where = f"{ended} node '{failure.node}'" if failure.node else "Ended"
        screen.line(f"{where}: {failure.message}", "bold red")
    wire = execution.to_wire()
    screen.result(
        {
            "execution_id": execution.id,
            "status": execution.status,
            "workflow_id": execution.workflow_id,
            "started_at": wire.get("startedAt"),
            "stopped_at": wire.get("stoppedAt"),
            "url": url,
            "nodes": nodes,
            "failure": failure._asdict() if any(failure) else None,
        }
    )
    return DONE


def _nodes(execution: Execution, lines: NodeLines) -> list[dict[str, object]] | None:
    from airflow_provider_service.client._execution_data import nodes_of

    if execution.data is None:
        return None
    nodes = nodes_of(execution)
    lines.show(nodes)
    return [one._asdict() for one in nodes]
