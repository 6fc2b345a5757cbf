"""``run``: start a workflow, and wait for its execution; ``logs``: show an execution. Both show its nodes."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_service._cli.deploying import check_arguments
from airflow_provider_service._cli.performing import DONE, FAILED, connected
from airflow_provider_service._cli.screen import UsageError, require_text
from airflow_provider_service._core.arguments import FAULT_TOLERANCE_SECONDS, LEAST_POLL_SECONDS
from airflow_provider_service._core.references import PROJECT, WORKFLOW
from airflow_provider_service._core.runs.output import NodeLog, WantedOutput, read_to_show
from airflow_provider_service._core.text_table import cut
from airflow_provider_service._core.waits.watch import Wait, poll_here
from airflow_provider_service.client._clock import clock

if TYPE_CHECKING:
    from airflow_provider_service._cli.screen import Screen
    from airflow_provider_service._core.arguments import ReturnOutput
    from airflow_provider_service._core.waits.outcome import Outcome
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client._execution_data import NodeRun
    from airflow_provider_service.client.models import Execution
    from airflow_provider_service.hooks.service import ServiceHook


#: The longest pause between two reads of the nodes, which cost the service more than a poll.
_LONGEST_NODE_PAUSE_SECONDS = 30.0
_NAME_CHARS = 40
_STYLES = {"success": "green", "error": "red", "crashed": "red", "canceled": "yellow"}


def perform_run(screen: Screen, arguments: argparse.Namespace) -> int:
    check_arguments(arguments, WORKFLOW, PROJECT)
    payload = _payload(arguments.payload)
    wanted = _wanted(arguments)
    with connected(screen, arguments.conn_id, arguments.uri) as hook:
        started = hook.run_workflow(
            workflow_id=arguments.workflow_id,
            workflow_name=arguments.workflow_name,
            project_id=arguments.project_id,
            project_name=arguments.project_name,
            payload=payload,
            run_key=arguments.run_key,
            trigger_node=arguments.trigger_node,
            webhook_conn_id=arguments.webhook_conn_id,
            activate=arguments.activate,
            start=arguments.start,
            mode=arguments.mode,
            enable_mcp=arguments.enable_mcp,
            wait_for_completion=False,
            return_output=_return_output(arguments.output),
            output_path=arguments.output_path,
        )
        try:
            screen.line(f"Execution {started['execution_id']} was started: {started['url']}")
            if arguments.no_wait:
                screen.result(started)
                return DONE
            return _wait(screen, arguments, hook, str(started["execution_id"]), wanted)
        except KeyboardInterrupt:
            screen.note(f"The execution keeps running; to follow it: logs {started['execution_id']} --follow", None)
            raise


def _wanted(arguments: argparse.Namespace) -> WantedOutput | None:
    for name in ("run_key", "trigger_node", "webhook_conn_id", "output", "output_path"):
        require_text(name, getattr(arguments, name))
    if arguments.output_path is not None and arguments.output is None:
        raise UsageError("--output-path has no effect without --output; nothing was started")
    return WantedOutput.of(_return_output(arguments.output), None, arguments.output_path)


def _wait(
    screen: Screen, arguments: argparse.Namespace, hook: ServiceHook, execution_id: str, wanted: WantedOutput | None
) -> int:
    from airflow_provider_service._airflow.connection import WebhookHeaders
    from airflow_provider_service._core.waits.outcome import end_of
    from airflow_provider_service._core.waits.stop import stop_overdue

    lines = NodeLines(screen)
    wait = _wait_for(execution_id, poll_interval=arguments.poll_interval, timeout=arguments.timeout)
    outcome = stop_overdue(hook.client, _follow(hook.client, wait, lines), wait)
    webhook = None if arguments.webhook_conn_id is None else hook.get_connection(arguments.webhook_conn_id)
    end = end_of(hook.client, outcome, wanted, WebhookHeaders(webhook, None), show=lines.show)
    if end.get("output") is not None:
        screen.line(json.dumps(end["output"], indent=2, ensure_ascii=False))
    return _show_end(screen, outcome, end)


def _show_end(screen: Screen, outcome: Outcome, values: dict[str, Any]) -> int:
    has_succeeded = outcome.verdict == "succeeded"
    message = outcome.message[:1].upper() + outcome.message[1:]
    if has_succeeded:
        screen.line(message, "bold green")
    else:
        screen.note(message, "bold red")
    screen.result({**outcome.to_xcom(), **values, "failure": None if has_succeeded else outcome.message})
    return DONE if has_succeeded else FAILED


def _return_output(node: str | None) -> ReturnOutput:
    return "none" if node is None else "last_node" if node == "-" else {"node": node}


def _payload(text: str | None) -> Any:
    if text is None:
        return None
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text(encoding="utf-8")
        return json.loads(text, parse_constant=_refuse_constant)
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"--payload cannot be read as JSON: {error}; nothing was started") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a value of JSON")


def _wait_for(execution_id: str, *, poll_interval: float, timeout: float = inf) -> Wait:
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


def _follow(client: ServiceClient, wait: Wait, lines: NodeLines) -> Outcome:
    config = client.transport.config
    pauses = (wait.poll_interval, max(wait.poll_interval, _LONGEST_NODE_PAUSE_SECONDS))
    nodes = NodeLog(config, wait.execution_id, show=lines.show, pauses=pauses)
    outcome = poll_here(config, wait, threading.Event(), nodes=nodes)
    if outcome is None:
        raise AssertionError("nobody gives this wait up")
    return outcome


def perform_logs(screen: Screen, arguments: argparse.Namespace) -> int:
    from airflow_provider_service.client._execution_data import read_state

    with connected(screen, arguments.conn_id, arguments.uri) as hook:
        lines = NodeLines(screen)
        if not arguments.follow:
            found, _ = read_state(hook.client, arguments.execution_id)
            return _show(screen, hook, read_to_show(hook.client, arguments.execution_id) or found, lines)
        outcome = _follow(hook.client, _wait_for(arguments.execution_id, poll_interval=arguments.poll_interval), lines)
        ended = None if outcome.status is None else read_to_show(hook.client, arguments.execution_id)
        return _show_end(screen, outcome, {"nodes": ended and _nodes(ended, lines)})


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
    return [node._asdict() for node in nodes]


class NodeLines:
    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._shown: dict[str, NodeRun] = {}

    def show(self, nodes: Sequence[NodeRun]) -> None:
        for node in nodes:
            if self._shown.get(node.node) != node:
                self._shown[node.node] = node
                name, message = cut(node.node, _NAME_CHARS), f"  {node.message}" if node.message else ""
                line = f"{node.status or '-':8}  {node.seconds:9.3f} s  {node.items:7} items  {name}{message}"
                self._screen.line(" ".join(line.splitlines()), _STYLES.get(node.status or ""))
