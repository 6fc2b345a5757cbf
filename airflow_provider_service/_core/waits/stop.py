"""Stop an execution whose task is over."""

from __future__ import annotations

import logging
import math
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from airflow_provider_service.client import errors
from airflow_provider_service.client._constraints import ENDED_STATUSES
from airflow_provider_service.client._execution_data import read_state

if TYPE_CHECKING:
    from airflow_provider_service._core.waits.outcome import Outcome
    from airflow_provider_service._core.waits.watch import Wait
    from airflow_provider_service.client import ServiceClient, ServiceConfig

log = logging.getLogger(__name__)

# Airflow kills a task 5 s after it has signalled the task to end.
STOP_TIMEOUT_SECONDS = 3.0

#: Why the service answers 404 to the stop of an execution that it shows.
NOT_ALLOWED = "the service does not stop it, because the user of the key may read its workflow, but not execute it"

#: What became of an execution that was to be stopped, in the words of messages.
Fate = Literal["was stopped", "had ended", "could NOT be stopped"]


def in_a_hurry(config: ServiceConfig) -> ServiceConfig:
    """Copy the settings for a single try that ends before Airflow kills the task."""
    return config.one_try(connect_timeout=1.5, timeout=STOP_TIMEOUT_SECONDS)


def stop_execution(config: ServiceConfig, execution_id: str, *, workflow_id: str | None = None) -> Fate:
    """Stop an execution, and return what became of it.

    :param config: the server, with the limits of time for each request.
    :param workflow_id: its workflow, if the server may be another one than before. Then the execution is read first.
    """
    try:
        return try_to_stop(config, execution_id, workflow_id=workflow_id)
    except errors.ServiceApiError as error:
        log_failure(execution_id, error)
        return "could NOT be stopped"


def try_to_stop(config: ServiceConfig, execution_id: str, *, workflow_id: str | None = None) -> Fate:
    """The same as :func:`stop_execution`, but raise the error of a request that failed."""
    from airflow_provider_service.client import ServiceClient

    with ServiceClient(config) as client:
        return _stop(client, execution_id, workflow_id)


def log_failure(execution_id: str, error: Exception) -> None:
    """Log that an execution could not be stopped."""
    log.error("Execution %s could not be stopped and may still be running: %s", execution_id, error)


def _stop(client: ServiceClient, execution_id: str, workflow_id: str | None) -> Fate:
    try:
        if workflow_id is not None:
            found = read_state(client, execution_id, workflow_id)[0].workflow_id
            if found not in (None, workflow_id):
                what = f"workflow '{workflow_id}' is not stopped: at {client.base_url}, it is one of '{found}'"
                log.error("Execution %s of %s", execution_id, what)
                return "could NOT be stopped"
        client.executions.stop(execution_id)
    except (errors.ServiceConflictError, errors.ServiceNotFoundError) as error:
        if isinstance(error, errors.ServiceNotFoundError) and _is_active(client, execution_id):
            log.error("Execution %s has not ended: %s", execution_id, NOT_ALLOWED)
            return "could NOT be stopped"
        log.info("Execution %s had ended before it was stopped: %s", execution_id, error)
        return "had ended"
    log.info("Execution %s was stopped", execution_id)
    return "was stopped"


def _is_active(client: ServiceClient, execution_id: str) -> bool:
    try:
        return read_state(client, execution_id)[0].status not in ENDED_STATUSES
    except errors.ServiceNotFoundError:
        return False


def stop_overdue(client: ServiceClient, outcome: Outcome, wait: Wait) -> Outcome:
    """Stop an execution that apparently did not end in time. If it has ended in the meantime, that outcome counts.

    :param outcome: how the wait ended.
    :param wait: the wait.
    :returns: the outcome that counts.
    """
    from airflow_provider_service._core.waits.watch import Watch, where_it_waits
    from airflow_provider_service.client import ServiceClient

    if outcome.verdict != "timed_out" and not outcome.is_overdue:
        return outcome
    config = client.transport.config
    if outcome.verdict == "timed_out":
        outcome = where_it_waits(in_a_hurry(config), outcome)
    fate = stop_execution(in_a_hurry(config), outcome.execution_id, workflow_id=wait.expected_workflow_id)
    # If the service does not answer, retries would take a minute.
    is_reachable = fate != "could NOT be stopped" and not outcome.is_overdue
    with nullcontext(client) if is_reachable else ServiceClient(config.one_try()) as reader:
        ended = Watch(replace(wait, deadline=math.inf)).read(reader, is_last=True)
    if ended is not None and ended.status != "canceled":
        return ended
    if ended is not None or fate == "was stopped":
        outcome = Watch(wait).timed_out() if outcome.is_overdue else outcome
        if ended is not None:
            outcome = outcome._replace(started_at=ended.started_at, stopped_at=ended.stopped_at)
        return outcome._replace(message=f"{outcome.message}; it was stopped")
    if fate == "had ended":
        return outcome._replace(message=f"{outcome.message}; it has ended by now, but how could not be read")
    doubt = "" if outcome.is_overdue else " and may still be running"
    return outcome._replace(message=f"{outcome.message}; it {fate}{doubt}")
