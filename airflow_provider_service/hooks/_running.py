"""What a hook adds to a client for runs: once for each key, as an operator does once for each task run; and output."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from airflow.providers.common.compat.sdk import AirflowException, get_current_context

from airflow_provider_service._core.arguments import (
    FAULT_TOLERANCE_SECONDS,
    ON_VANISHED,
    read_seconds,
    refuse,
    require,
    require_choice,
)
from airflow_provider_service._core.lineage import parent_headers
from airflow_provider_service._core.runs.attempt import Attempt
from airflow_provider_service._core.runs.idempotent_start import IdempotentStart
from airflow_provider_service._core.runs.output import read_whole
from airflow_provider_service._core.waits.outcome import not_kept, result_of, started
from airflow_provider_service._core.waits.stop import stop_overdue
from airflow_provider_service._core.waits.watch import Wait, poll_here
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._constraints import ENDED_STATUSES
from airflow_provider_service.client._execution_data import last_output, nodes_of, output_of
from airflow_provider_service.client.errors import ServiceLookupError, ServiceRunNotKeptError
from airflow_provider_service.client.resources import Executions

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_service._core.arguments import OnVanished
    from airflow_provider_service._core.runs import RunResult
    from airflow_provider_service._core.runs.output import WantedOutput
    from airflow_provider_service._core.runs.request import RunRequest
    from airflow_provider_service.client import ServiceClient


__all__ = ["HookExecutions"]

#: How long a key identifies a run outside of a task.
KEY_LIFETIME = timedelta(days=1)
_MAX_NAMED_NODES = 20
# The keys that calls of tasks in this process have carried: within an attempt, a key stands for one execution.
_called: set[str] = set()


def wait_as(
    service_conn_id: str, timeout: timedelta | float, poll_interval: timedelta | float, on_vanished: OnVanished
) -> Wait:
    require_choice("on_vanished", on_vanished, ON_VANISHED)
    seconds = read_seconds("timeout", timeout)
    return Wait(
        execution_id="",
        service_conn_id=service_conn_id,
        deadline=clock().now() + seconds,
        timeout=seconds,
        poll_interval=read_seconds("poll_interval", poll_interval),
        on_vanished=on_vanished,
        fault_tolerance=FAULT_TOLERANCE_SECONDS,
        expected_workflow_id=None,
    )


def require_key(run_key: str | None, context: Context | None) -> None:
    """Require that a key is text, and that a context comes with a key."""
    if run_key is not None and not (isinstance(run_key, str) and run_key.strip()):
        refuse("run_key", "text that is not empty", run_key)
    require(run_key is not None or context is None, "context has no effect without a run_key")


def run_once(
    client: ServiceClient,
    request: RunRequest,
    wait: Wait,
    *,
    run_key: str | None,
    context: Context | None,
    wait_for_completion: bool,
    wanted: WantedOutput | None,
) -> RunResult:
    if wanted is not None:
        wanted.require_in(request)
    workflow_id = request.workflow.id
    context = context or None
    if context is None:
        with suppress(RuntimeError, AirflowException):  # Airflow 3 and 2, outside of a task
            context = get_current_context()
    if context is not None:
        request = replace(request, parent_headers=parent_headers(context.get("ti")))
    attempt = _attempt_for(run_key, workflow_id, context)
    start = IdempotentStart(client, attempt, timeout=wait.timeout, stopped=threading.Event())
    outcome = None
    try:
        execution_id, _ = start.resume_saved() or start.run_workflow(request)
    except ServiceRunNotKeptError as error:
        if wait.on_vanished != "succeed":
            raise
        outcome = not_kept(error)
    finally:
        if attempt.has_called:
            _called.add(attempt.key.header)
    if not wait_for_completion:
        if outcome is not None:
            return cast("RunResult", outcome.to_xcom(only_ids=True))
        return cast("RunResult", started(client.base_url, workflow_id, execution_id))
    if outcome is None:
        wait = replace(wait, execution_id=execution_id)
        outcome = poll_here(client.transport.config, wait, threading.Event())
        if outcome is None:
            raise AssertionError("nobody gives this wait up")
        outcome = stop_overdue(client, outcome, wait)
    return cast("RunResult", result_of(client, outcome, wanted, request.headers))


def _attempt_for(run_key: str | None, workflow_id: str, context: Context | None) -> Attempt:
    """Return the attempt for a key: in a task, that of its task run; elsewhere, one that Airflow does not count."""
    if run_key is None:
        return Attempt.only()
    if context is None:
        return Attempt.uncounted(workflow_id, run_key, since=clock().utcnow() - KEY_LIFETIME)
    attempt = Attempt.of_task(context, workflow_id, run_key)
    attempt.is_repeated = attempt.key.header in _called
    return attempt


class HookExecutions(Executions):
    """Executions, and the output of their nodes."""

    def __init__(self, client: ServiceClient) -> None:
        super().__init__(client.transport)
        self._client = client

    def output(self, execution_id: int | str, *, node: str | None = None) -> list[Any]:
        """Read the output of a node of an execution, whoever started it: ``GET /executions/{executionId}``.

        The output consists of the items of all outputs of the node in its last run, without files. It may contain
        whatever the workflow was called with, including headers and their secrets. Safe to repeat.
        """
        execution = read_whole(self._client, str(execution_id))
        require(
            execution.status in ENDED_STATUSES,
            f"execution {execution.id} has not ended (status '{execution.status}'), so its output is not complete; "
            "wait for it with ServiceExecutionSensor",
        )
        items = last_output(execution) if node is None else output_of(execution, node)
        if items is None:
            ran = ", ".join(repr(run.node) for run in nodes_of(execution)[:_MAX_NAMED_NODES]) or "none"
            whose = "of its last node" if node is None else f"of node {node!r}"
            raise ServiceLookupError(f"execution {execution.id} shows no output {whose}; its nodes that ran: {ran}")
        return items
