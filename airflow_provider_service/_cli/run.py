"""``run``: start a workflow, wait for its execution, and show its nodes as they end."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_service._airflow.references import PROJECT, WORKFLOW
from airflow_provider_service._cli.connecting import connected
from airflow_provider_service._cli.deploying import check_arguments
from airflow_provider_service._cli.performing import DONE, FAILED
from airflow_provider_service._cli.screen import UsageError, require_text

if TYPE_CHECKING:
    from airflow_provider_service._airflow.task_arguments import ReturnOutput
    from airflow_provider_service._cli.screen import Screen
    from airflow_provider_service._core.runs.output import WantedOutput
    from airflow_provider_service._core.waits.outcome import Outcome
    from airflow_provider_service.hooks.service import ServiceHook


def perform(screen: Screen, arguments: argparse.Namespace) -> int:
    """Start the workflow, and wait for it."""
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
    from airflow_provider_service._core.runs.output import WantedOutput

    for name in ("run_key", "trigger_node", "webhook_conn_id", "output", "output_path"):
        require_text(name, getattr(arguments, name))
    if arguments.output_path is not None and arguments.output is None:
        raise UsageError("--output-path has no effect without --output; nothing was started")
    return WantedOutput.of(_return_output(arguments.output), None, arguments.output_path)


def _wait(
    screen: Screen, arguments: argparse.Namespace, hook: ServiceHook, execution_id: str, wanted: WantedOutput | None
) -> int:
    from airflow_provider_service._airflow.connection import WebhookHeaders
    from airflow_provider_service._cli.following import NodeLines, follow, wait_for
    from airflow_provider_service._core.waits.outcome import end_of
    from airflow_provider_service._core.waits.stop import stop_overdue

    lines = NodeLines(screen)
    wait = wait_for(execution_id, poll_interval=arguments.poll_interval, timeout=arguments.timeout)
    outcome = stop_overdue(hook.client, follow(hook.client, wait, lines), wait)
    webhook = None if arguments.webhook_conn_id is None else hook.get_connection(arguments.webhook_conn_id)
    end = end_of(hook.client, outcome, wanted, WebhookHeaders(webhook, None), show=lines.show)
    if end.get("output") is not None:
        screen.line(json.dumps(end["output"], indent=2, ensure_ascii=False))
    return show_end(screen, outcome, end)


def show_end(screen: Screen, outcome: Outcome, more: dict[str, Any]) -> int:
    """Show how an execution ended, and return the exit status.

    :param more: further values for the JSON result.
    """
    has_succeeded = outcome.verdict == "succeeded"
    message = outcome.message[:1].upper() + outcome.message[1:]
    if has_succeeded:
        screen.line(message, "bold green")
    else:
        screen.note(message, "bold red")
    screen.result({**outcome.to_xcom(), **more, "failure": None if has_succeeded else outcome.message})
    return DONE if has_succeeded else FAILED


def _return_output(node: str | None) -> ReturnOutput:
    return "none" if node is None else "last_node" if node == "-" else {"node": node}


def _payload(text: str | None) -> Any:
    """Read the payload from an option, from the file that it names, or from the standard input."""
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
