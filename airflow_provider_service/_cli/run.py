"""``run``: start a workflow, and wait for its execution; ``executions``: list, show, stop and retry them."""

from __future__ import annotations

import argparse
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain, takewhile
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from airflow_provider_service._airflow.connection import WebhookHeaders
from airflow_provider_service._cli.deploying import check_arguments
from airflow_provider_service._cli.performing import DONE, FAILED, connected
from airflow_provider_service._cli.screen import UsageError, given_once, require_text
from airflow_provider_service._core.arguments import LEAST_POLL_SECONDS, MAX_SECONDS
from airflow_provider_service._core.references import PROJECT, WORKFLOW
from airflow_provider_service._core.runs.output import NodeLog, WantedOutput, read_to_show
from airflow_provider_service._core.text_table import cut, text_table
from airflow_provider_service._core.waits.watch import Wait, poll_here
from airflow_provider_service.client import errors
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._constraints import ENDED_STATUSES, FAILED_STATUSES
from airflow_provider_service.client._execution_data import Failure, failed_node, failure_of, nodes_of, read_state
from airflow_provider_service.client._lookup import get_workflow
from airflow_provider_service.client._values import dict_or_empty, one_line
from airflow_provider_service.hooks._running import wait_as
from airflow_provider_service.links.service import execution_url

if TYPE_CHECKING:
    from airflow_provider_service._cli.screen import Screen
    from airflow_provider_service._core.arguments import ReturnOutput
    from airflow_provider_service._core.waits.outcome import Outcome
    from airflow_provider_service.client._execution_data import NodeRun
    from airflow_provider_service.client.models import Execution, Workflow
    from airflow_provider_service.hooks.service import ServiceHook


#: The longest pause between two reads of the nodes, which cost the service more than a poll.
_LONGEST_NODE_PAUSE_SECONDS = 30.0
_NAME_CHARS = 40
_STYLES = {"success": "green", "error": "red", "crashed": "red", "canceled": "yellow"}
#: The options of ``run`` that are arguments of the hook.
_SAME_IN_HOOK = (
    *(*WORKFLOW.fields, *PROJECT.fields, "trigger_node", "webhook_conn_id", "run_key"),
    *("activate", "start", "mode", "enable_mcp", "output_path"),
)


def perform_run(screen: Screen, arguments: argparse.Namespace) -> int:
    arguments.workflow_name = given_once("the name of the workflow", arguments.name, arguments.workflow_name)
    check_arguments(arguments, WORKFLOW, PROJECT)
    payload = _payload(arguments.payload)
    wanted = _wanted(screen, arguments)
    with connected(screen, arguments.conn_id, arguments.uri) as hook:
        if arguments.workflow_name is not None and not (arguments.project_id or arguments.project_name):
            arguments.workflow_id, arguments.workflow_name = _workflow(hook, arguments.workflow_name).id, None
        started = hook.run_workflow(
            **{name: getattr(arguments, name) for name in _SAME_IN_HOOK},
            payload=payload,
            wait_for_completion=False,
            return_output=_return_output(arguments.output),
        )
        webhook_conn_id = arguments.webhook_conn_id
        webhook = None if webhook_conn_id is None else hook.get_connection(webhook_conn_id)
        return _wait(screen, arguments, hook, started, wanted, WebhookHeaders(webhook, None))


def perform_retry(screen: Screen, arguments: argparse.Namespace) -> int:
    from airflow_provider_service._core.runs.attempt import Attempt
    from airflow_provider_service._core.runs.idempotent_start import IdempotentStart
    from airflow_provider_service._core.waits.outcome import started

    wanted = _wanted(screen, arguments)
    with connected(screen, arguments.conn_id, arguments.uri) as hook:
        original = hook.executions.get(arguments.execution_id)
        start = IdempotentStart(hook.client, Attempt.only(), timeout=arguments.timeout, stopped=threading.Event())
        execution_id, workflow_id = start.retry_execution(original, load_workflow=arguments.load_workflow or None)
        retry = started(hook.client.base_url, workflow_id, execution_id)
        return _wait(screen, arguments, hook, retry, wanted, WebhookHeaders(None, None))


def _wanted(screen: Screen, arguments: argparse.Namespace) -> WantedOutput | None:
    for name in ("run_key", "trigger_node", "webhook_conn_id", "output", "output_path"):
        require_text(name, getattr(arguments, name, None))
    if arguments.output_path is not None and arguments.output is None:
        raise UsageError("--output-path has no effect without --output; nothing was started")
    wanted = WantedOutput.of(_return_output(arguments.output), None, arguments.output_path)
    if wanted is not None:
        screen.keep_output_for_data()
    return wanted if wanted is None or wanted.path else replace(wanted, max_bytes=inf)


def _wait(
    screen: Screen,
    arguments: argparse.Namespace,
    hook: ServiceHook,
    started: Mapping[str, Any],
    wanted: WantedOutput | None,
    headers: WebhookHeaders,
) -> int:
    from airflow_provider_service._core.waits.outcome import end_of
    from airflow_provider_service._core.waits.stop import stop_overdue

    execution_id, lines = started["execution_id"], NodeLines(screen)
    message = f"Execution {execution_id} was started: {started['url']}"
    if arguments.no_wait:
        screen.line(message)
        screen.result(started)
        return DONE
    try:
        screen.note(message, None)
        wait = _wait_for(hook, execution_id, arguments.poll_interval, arguments.timeout)
        outcome = stop_overdue(hook.client, _follow(hook, wait, lines), wait)
        end = end_of(hook.client, outcome, wanted, headers, show=lines.show)
    except KeyboardInterrupt:
        screen.note(f"The execution keeps running; to follow it: executions show {execution_id} --follow", None)
        raise
    if end.get("output") is not None and not screen.as_json:
        screen.data(end["output"])
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
        return from_json(text, allow_inf_nan=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"--payload cannot be read as JSON: {error}; nothing was started") from error


def _wait_for(hook: ServiceHook, execution_id: str, poll_interval: float, timeout: float = MAX_SECONDS) -> Wait:
    poll_interval = max(poll_interval, LEAST_POLL_SECONDS)
    return replace(wait_as(str(hook.resolved_conn_id), timeout, poll_interval, "fail"), execution_id=execution_id)


def _follow(hook: ServiceHook, wait: Wait, lines: NodeLines) -> Outcome:
    pauses = (wait.poll_interval, max(wait.poll_interval, _LONGEST_NODE_PAUSE_SECONDS))
    nodes = NodeLog(hook.config, wait.execution_id, show=lines.show, pauses=pauses)
    outcome = poll_here(hook.config, wait, threading.Event(), nodes=nodes)
    if outcome is None:
        raise AssertionError("nobody gives this wait up")
    return outcome


def _since(text: str) -> datetime:
    if found := re.fullmatch(r"(\d{1,5})([mhd])", text):
        unit = {"m": "minutes", "h": "hours", "d": "days"}[found[2]]
        return clock().utcnow() - timedelta(**{unit: int(found[1])})
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"--since is no date and time, such as 2026-01-31T06:00, or 30m, 12h or 7d: {text!r}"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _began_since(execution: Execution, since: datetime) -> bool:
    return execution.status == "new" or execution.started_at is None or execution.started_at >= since


def perform_list(screen: Screen, arguments: argparse.Namespace) -> int:
    require_text("workflow", arguments.workflow)
    since = None if arguments.since is None else _since(arguments.since)
    with connected(screen, arguments.conn_id, arguments.uri) as hook:
        workflow = None if arguments.workflow is None else _workflow(hook, arguments.workflow)
        options = {"workflow_id": workflow.id if workflow else None, "limit": arguments.limit}
        # Without a status, the service leaves out those that are running.
        lists = [hook.executions.list(status=status, **options) for status in arguments.status or ("running", None)]
        if since is not None:
            lists = [takewhile(lambda execution: _began_since(execution, since), one) for one in lists]
        found = {execution.id: execution for execution in chain(*lists)}
        newest = sorted(found.values(), key=lambda execution: -execution.number)[: arguments.limit]
        names: dict[str | None, str | None] = {None: None}
        for workflow_id in {execution.workflow_id for execution in newest if execution.workflow_id}:
            with suppress(errors.ServiceError):  # it was deleted, or the key may not read it
                names[workflow_id] = (workflow or hook.workflows.get(workflow_id)).name
        facts = [_facts(hook, execution, names.get(execution.workflow_id)) for execution in newest]
    lines = text_table(("id", "status", "workflow", "started (UTC)", "seconds"), [*map(_row, newest, facts)])
    for line, style in zip(lines, ["bold", *(_STYLES.get(execution.status) for execution in newest)], strict=True):
        screen.line(line, style)
    screen.result(facts)
    return DONE


def _workflow(hook: ServiceHook, name_or_id: str) -> Workflow:
    try:
        return get_workflow(hook, name_or_id)
    except errors.ServiceLookupError:
        with suppress(errors.ServiceNotFoundError, errors.ServiceInputError):
            return hook.workflows.get(name_or_id)
        raise


def _row(execution: Execution, facts: Mapping[str, Any]) -> list[str]:
    name = cut(one_line(facts["workflow_name"] or execution.workflow_id or "-"), 30)
    began, ended = execution.started_at, execution.stopped_at
    if began is None or began.year == 1970:  # it has not begun
        return [execution.id, execution.status, name, "-", "-"]
    seconds = f"{(ended - began).total_seconds():.1f}" if ended and execution.status in ENDED_STATUSES else "-"
    return [execution.id, execution.status, name, f"{began.astimezone(UTC):%Y-%m-%d %H:%M:%S}", seconds]


def _facts(hook: ServiceHook, execution: Execution, workflow_name: str | None) -> dict[str, Any]:
    wire = execution.to_wire()
    return {
        "execution_id": execution.id,
        "status": execution.status,
        "workflow_id": execution.workflow_id,
        "workflow_name": workflow_name,
        "started_at": wire.get("startedAt"),
        "stopped_at": wire.get("stoppedAt") if execution.status in ENDED_STATUSES else None,
        "url": execution_url(hook.config.base_url, execution.workflow_id or "", execution.id),
    }


def perform_show(screen: Screen, arguments: argparse.Namespace) -> int:
    require_text("output", arguments.output)
    if arguments.output is not None:
        screen.keep_output_for_data()
    execution_id, lines = str(arguments.execution_id), NodeLines(screen)
    with connected(screen, arguments.conn_id, arguments.uri) as hook:
        wait = _wait_for(hook, execution_id, arguments.poll_interval)
        outcome = _follow(hook, wait, lines) if arguments.follow else None
        if arguments.output is not None:
            node = None if arguments.output == "-" else arguments.output
            screen.data(hook.executions.output(execution_id, node=node))
            return DONE if outcome is None or outcome.status == "success" else FAILED
        if outcome is None:
            found, _ = read_state(hook.client, execution_id)
            return _show(screen, hook, read_to_show(hook.client, execution_id) or found, lines)
        ended = None if outcome.status is None else read_to_show(hook.client, execution_id)
        return _show_end(screen, outcome, {"nodes": ended and _nodes(ended, lines)})


perform_logs = perform_show


def _show(screen: Screen, hook: ServiceHook, execution: Execution, lines: NodeLines) -> int:
    facts = _facts(hook, execution, dict_or_empty(execution.workflow_data).get("name"))
    whose = f" of {facts['workflow_name']!r}" if facts["workflow_name"] else ""
    screen.line(f"Execution {execution.id}{whose}: {execution.status}: {facts['url']}", "bold")
    nodes = _nodes(execution, lines)
    failure = failure_of(execution) if execution.status in FAILED_STATUSES else Failure(None, None)
    reason = None
    if failure.message:
        ended = "Failed at" if failed_node(execution) else "Ended after"
        reason = f"{ended} node '{failure.node}': {failure.message}" if failure.node else f"Ended: {failure.message}"
        screen.line(reason, "bold red")
    screen.result({**facts, "nodes": nodes, "failure": reason})
    return DONE


def perform_stop(screen: Screen, arguments: argparse.Namespace) -> int:
    from airflow_provider_service._core.waits.stop import try_to_stop

    execution_id, status = str(arguments.execution_id), None
    with connected(screen, arguments.conn_id, arguments.uri) as hook:
        execution, _ = read_state(hook.client, execution_id)
        fate = "had ended" if execution.status in ENDED_STATUSES else try_to_stop(hook.config, execution_id)
        with suppress(errors.ServiceNotFoundError):  # if its workflow does not save such executions
            status = read_state(hook.client, execution_id)[0].status
        url = _facts(hook, execution, None)["url"]
    screen.line(f"Execution {execution_id} {fate}: {status or 'not saved'}: {url}", "bold")
    screen.result({"execution_id": execution_id, "status": status, "stopped": fate == "was stopped", "url": url})
    return FAILED if fate == "could NOT be stopped" else DONE


def _nodes(execution: Execution, lines: NodeLines) -> list[dict[str, object]] | None:
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
