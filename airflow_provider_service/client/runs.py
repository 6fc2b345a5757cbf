"""Start a workflow on its webhook exactly once, and learn which execution that made.

A call carries a run key in a header, which the service keeps with the execution. Whoever does not know whether a call
arrived, or who called before, looks for executions that carry the key.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_service.client import errors
from airflow_provider_service.client.run_data import starting_items
from airflow_provider_service.client.starting import (
    SETTLING_SECONDS,
    ServiceRunNotFoundError,
    ServiceRunNotStartedError,
    answer_or_found,
    search_for,
)
from airflow_provider_service.client.webhooks import WebhookAnswer, WebhookTrigger

if TYPE_CHECKING:
    from airflow_provider_service.client._client import ServiceClient
    from airflow_provider_service.client.models.executions import Execution, ExecutionStatus

log = logging.getLogger(__name__)

RUN_KEY_HEADER = "X-Airflow-Run-Key"
SEARCH_AT_MOST = 500
# An answered call has its execution; it only has to become visible.
VISIBLE_WITHIN_SECONDS = 30.0
MAX_CALLS = 3
FAILED_STATUSES = frozenset({"error", "canceled", "crashed"})


class RunKey(NamedTuple):
    """What marks the calls of one task run.

    :param key: the same for all attempts that must not start a second run.
    :param attempt: grows with every attempt of the task.
    """

    key: str
    attempt: int

    @property
    def header(self) -> str:
        """Value of the header that carries the key."""
        return f"{self.key}.{self.attempt}"


class FoundRun(NamedTuple):
    """An execution that carries a run key, and the attempt that made it."""

    execution: Execution
    attempt: int


@dataclass(frozen=True)
class RunCall:
    """A call of a webhook.

    :param workflow_id: workflow of the webhook.
    :param trigger: the webhook.
    :param key: marks the call.
    :param payload: JSON body, or query parameters where the method has no body.
    :param headers: further headers, such as the webhook's own authentication.
    :param since: no earlier attempt began before this moment; bounds the search.
    :param timeout: seconds to keep the call open.
    :param is_kept: whether the workflow keeps its executions, so that a search can find them.
    """

    workflow_id: str
    trigger: WebhookTrigger
    key: RunKey
    payload: Any
    headers: Mapping[str, str]
    since: datetime | None
    timeout: float
    is_kept: bool = True


def find_runs(client: ServiceClient, workflow_id: str, key: str, since: datetime | None) -> list[FoundRun]:
    """Find the executions of a workflow that carry a run key, newest first."""
    found = []
    for execution in list_since(client, workflow_id, since, include_data=True):
        attempt = _attempt_of(execution, key)
        if attempt is not None:
            found.append(FoundRun(execution, attempt))
    return sorted(found, key=lambda run: int(run.execution.id), reverse=True)


def list_since(
    client: ServiceClient, workflow_id: str, since: datetime | None, *, include_data: bool = False
) -> Iterator[Execution]:
    """List the executions of a workflow that began since a moment, or have not begun; each once.

    Two lists are read, since those that run now are only in a list of their own.
    """
    seen: set[str] = set()
    statuses: tuple[ExecutionStatus | None, ...] = (None, "running")
    for status in statuses:
        listed = client.executions.list(
            workflow_id=workflow_id, status=status, include_data=include_data or None, limit=SEARCH_AT_MOST
        )
        for execution in listed:
            if since and execution.started_at and execution.started_at < since:
                break
            if execution.id not in seen:
                seen.add(execution.id)
                yield execution


def adoptable(runs: Sequence[FoundRun], attempt: int) -> FoundRun | None:
    """The execution that an attempt goes on with: its own, or an earlier attempt's that has not failed.

    :param runs: executions of the task run, newest first.
    """
    return next((run for run in runs if run.attempt == attempt or run.execution.status not in FAILED_STATUSES), None)


def _attempt_of(execution: Execution, key: str) -> int | None:
    for item in starting_items(execution):
        headers = item.get("headers")
        value = headers.get(RUN_KEY_HEADER.lower()) if isinstance(headers, dict) else None
        if isinstance(value, str):
            found, _, attempt = value.rpartition(".")
            if found == key and attempt.isdecimal():
                return int(attempt)
    return None


class RunStarter:
    """Calls a webhook until it is known which execution the call made.

    :param client: the service.
    :param call: what to call.
    :param stopped: set from outside to give up early.
    """

    def __init__(self, client: ServiceClient, call: RunCall, stopped: threading.Event) -> None:
        self._client = client
        self._call = call
        self._stopped = stopped

    def start(self) -> str:
        """Start the run and return its execution id. Repeats the call only when no execution of it exists.

        :raises ServiceRunNotStartedError: nothing was started.
        :raises ServiceRunNotFoundError: something may have been started that can not be found.
        :raises ServiceApiError: the webhook refused the call; nothing was started.
        """
        for number in range(1, MAX_CALLS + 1):
            try:
                answer, found = answer_or_found(self._send, self._search, self._stopped)
            except errors.ServiceApiError as error:
                if error.not_processed:
                    raise
                found = search_for(self._search, SETTLING_SECONDS, self._stopped)
                if found is None and not self._call.is_kept:
                    raise ServiceRunNotFoundError(f"{error}; the workflow keeps no executions to look for") from error
                answer = None
                log.warning("Call %d of the webhook was not answered: %s", number, error)
            if answer is not None:
                return self._known_from(answer)
            if found is not None:
                return found
        raise ServiceRunNotStartedError(
            f"{MAX_CALLS} calls of webhook {self._call.trigger.path!r} made no execution; nothing was started"
        )

    def _send(self) -> WebhookAnswer:
        call = self._call
        return self._client.transport.call_webhook(
            call.trigger.method,
            call.trigger.path,
            headers={**call.headers, RUN_KEY_HEADER: call.key.header},
            payload=call.payload,
            timeout=call.timeout,
        )

    def _known_from(self, answer: WebhookAnswer) -> str:
        named = answer.body.get("executionId") if isinstance(answer.body, dict) else None
        if isinstance(named, (str, int)) and str(named).isdecimal() and self._is_ours(str(named)):
            return str(named)
        found = search_for(self._search, VISIBLE_WITHIN_SECONDS, self._stopped)
        if found is None:
            raise ServiceRunNotFoundError(
                f"the webhook {self._call.trigger.path!r} answered {answer.status}, but no execution of workflow "
                f"{self._call.workflow_id} carries its run key: it may have ended without being saved, or its data is "
                "redacted. Let the workflow save its executions, or answer with its execution id"
            )
        return found

    def _is_ours(self, execution_id: str) -> bool:
        try:
            return self._client.executions.get(execution_id).workflow_id == self._call.workflow_id
        except errors.ServiceNotFoundError:
            # It ended and was not kept; the workflow's own word is the best there is.
            return True

    def _search(self) -> str | None:
        call = self._call
        runs = find_runs(self._client, call.workflow_id, call.key.key, call.since)
        return next((run.execution.id for run in runs if run.attempt == call.key.attempt), None)
