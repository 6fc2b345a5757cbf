"""Start a workflow on its webhook exactly once, and learn which execution that made.

A call carries a run key in a header, which the service keeps with the execution. Whoever does not know whether a call
arrived, or who called before, looks for executions that carry the key.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_service.client import errors, starting
from airflow_provider_service.client.run_data import starting_items
from airflow_provider_service.client.starting import ServiceRunNotFoundError, ServiceRunNotStartedError
from airflow_provider_service.client.statuses import ENDED_STATUSES, FAILED_STATUSES
from airflow_provider_service.client.webhooks import WebhookAnswer, WebhookTrigger, is_refusal

if TYPE_CHECKING:
    from airflow_provider_service.client._client import ServiceClient
    from airflow_provider_service.client.models.executions import Execution
    from airflow_provider_service.client.statuses import ExecutionStatus

log = logging.getLogger(__name__)

RUN_KEY_HEADER = "X-Airflow-Run-Key"
MAX_CALLS = 3
MAX_PAUSE_SECONDS = 60.0
MAX_SHOWN_IDS = 5
# Clocks of Airflow and the service may differ by so much.
CLOCK_SKEW = timedelta(minutes=10)


class RunKey(NamedTuple):
    """What marks the calls of one task run.

    :param key: the same for all attempts of the task run.
    :param attempt: grows with every attempt.
    :param first: the first attempt since another run was asked for, such as by clearing the task.
    """

    key: str
    attempt: int
    first: int = 1

    @property
    def header(self) -> str:
        """Value of the header that carries the key."""
        return f"{self.key}.{self.attempt}"

    def adopts(self, made_by: int, status: str) -> bool:
        """Whether this attempt goes on with an execution that an attempt has made, instead of starting one."""
        if made_by < self.first:
            return status not in ENDED_STATUSES
        return made_by == self.attempt or status not in FAILED_STATUSES


class FoundRun(NamedTuple):
    """An execution that carries a run key, and the attempt that made it."""

    execution: Execution
    attempt: int


class EarlierRuns(NamedTuple):
    """What a search for the executions of a task run has found.

    :param found: those that carry its key, newest first.
    :param unreadable: ids of others that may carry it: they have not failed, and their data is hidden.
    """

    found: list[FoundRun]
    unreadable: list[str]

    def has_attempt(self, attempt: int) -> bool:
        """Whether an execution of an attempt, or of a later one, was found."""
        return any(run.attempt >= attempt for run in self.found)

    def adoptable(self, key: RunKey) -> FoundRun | None:
        """The newest one that an attempt goes on with."""
        return next((run for run in self.found if key.adopts(run.attempt, run.execution.status)), None)

    def failed(self, key: RunKey) -> str | None:
        """The newest one, by id, since another run was asked for, when there is none to go on with."""
        return next((run.execution.id for run in self.found if run.attempt >= key.first), None)

    def doubt(self, *, all_are_kept: bool) -> str | None:
        """Why there may be one that was not found; None when there can be none.

        :param all_are_kept: whether the workflow keeps its executions.
        """
        if self.unreadable:
            ids = ", ".join(self.unreadable[:MAX_SHOWN_IDS])
            return f"executions {ids} do not show what started them, one may be its own"
        return None if all_are_kept else "the workflow does not keep all its executions"


@dataclass(frozen=True)
class RunCall:
    """A call of a webhook.

    :param workflow_id: workflow of the webhook.
    :param trigger: the webhook.
    :param key: marks the call.
    :param payload: JSON body, or query parameters where the method has no body.
    :param headers: further headers, such as the webhook's own authentication.
    :param timeout: seconds to keep the call open.
    :param is_kept: whether the workflow keeps its executions, so that a search can find them.
    """

    workflow_id: str
    trigger: WebhookTrigger
    key: RunKey
    payload: Any
    headers: Mapping[str, str]
    timeout: float
    is_kept: bool = True


def find_earlier_runs(
    client: ServiceClient, workflow_id: str, key: RunKey, since: datetime | None, stopped: threading.Event
) -> EarlierRuns:
    """Find the executions that the attempts of a task run have made.

    Looks again after a while unless the attempt before has one: it may have been killed with its call on the way.

    :param since: no attempt began before this moment.
    :param stopped: set from outside to give up.
    :raises InterruptedError: given up.
    """
    runs = _runs(client, workflow_id, key, since)
    if runs.has_attempt(key.attempt - 1):
        return runs
    if stopped.wait(starting.SETTLING_SECONDS):
        raise InterruptedError("the task was killed while it looked for executions of earlier attempts")
    return _runs(client, workflow_id, key, since)


def list_back(
    client: ServiceClient, workflow_id: str, is_older: Callable[[Execution], bool], *, include_data: bool = False
) -> Iterator[Execution]:
    """List the executions of a workflow back to the first that is older than wanted; each once.

    Two lists are read, newest first, since those that run now are only in a list of their own. One that begins or
    ends between the two can be in neither: look twice before taking it that there is none.
    """
    seen: set[str] = set()
    statuses: tuple[ExecutionStatus | None, ...] = ("running", None)
    for status in statuses:
        for execution in client.executions.list(
            workflow_id=workflow_id, status=status, include_data=include_data or None
        ):
            if is_older(execution):
                break
            if execution.id not in seen:
                seen.add(execution.id)
                yield execution


def began_before(since: datetime | None) -> Callable[[Execution], bool]:
    """Whether an execution, and so all that were made before it, began before a moment; never without one."""

    def is_older(execution: Execution) -> bool:
        return since is not None and execution.started_at is not None and execution.started_at < since

    return is_older


def _runs(client: ServiceClient, workflow_id: str, key: RunKey, since: datetime | None) -> EarlierRuns:
    found, unreadable = [], []
    for execution in _list_with_data(client, workflow_id, since):
        attempt = _attempt_of(execution, key)
        if attempt is not None:
            found.append(FoundRun(execution, attempt))
        elif execution.status not in FAILED_STATUSES and not _is_readable(execution):
            unreadable.append(execution.id)
    return EarlierRuns(sorted(found, key=lambda run: int(run.execution.id), reverse=True), unreadable)


def _list_with_data(client: ServiceClient, workflow_id: str, since: datetime | None) -> Iterator[Execution]:
    for execution in list_back(client, workflow_id, began_before(since), include_data=True):
        if execution.data_too_large_to_display:
            yield client.executions.get(execution.id, include_data=True, ignore_data_size_limit=True)
        else:
            yield execution


def _attempt_of(execution: Execution, key: RunKey) -> int | None:
    for item in starting_items(execution):
        headers = item.get("headers")
        value = headers.get(RUN_KEY_HEADER.lower()) if isinstance(headers, dict) else None
        if isinstance(value, str):
            found, _, attempt = value.rpartition(".")
            if found == key.key and attempt.isdecimal():
                return int(attempt)
    return None


def _is_readable(execution: Execution) -> bool:
    """Whether the execution shows what started it; one that no webhook started could not be ours."""
    return execution.mode != "webhook" or any(isinstance(one.get("headers"), dict) for one in starting_items(execution))


class RunStarter:
    """Calls a webhook until it is known which execution the call made.

    ``started_nothing`` says, after an error, that there provably is none.

    :param client: the service.
    :param call: what to call.
    :param stopped: set from outside to give up early.
    """

    def __init__(self, client: ServiceClient, call: RunCall, stopped: threading.Event) -> None:
        self._client = client
        self._call = call
        self._stopped = stopped
        self._since = datetime.now(timezone.utc) - CLOCK_SKEW
        self.started_nothing = False

    def start(self) -> str:
        """Start the run and return its execution id. Repeats the call only when no execution of it exists.

        :raises ServiceRunNotStartedError: nothing was started.
        :raises ServiceRunNotFoundError: something may have been started that can not be found.
        :raises ServiceApiError: the call was refused, nothing was started; or a search failed.
        :raises InterruptedError: given up early.
        """
        for number in range(1, MAX_CALLS + 1):
            try:
                answer, found = starting.answer_or_found(self._send, self._search, self._stopped)
            except errors.ServiceApiError as error:
                found = self._found_in_spite_of(error)
                if found is None:
                    log.warning("Call %d of the webhook started nothing: %s", number, error)
                    self._stopped.wait(min(error.retry_after or 0.0, MAX_PAUSE_SECONDS))
            else:
                if answer is not None:
                    return self._known_from(answer)
            if found is not None:
                return found
        self.started_nothing = True
        raise ServiceRunNotStartedError(
            f"{MAX_CALLS} calls of webhook {self._call.trigger.path!r} made no execution; nothing was started"
        )

    def find(self, client: ServiceClient) -> str | None:
        """The execution that this attempt has started, if it can be seen."""
        call = self._call
        found = _list_with_data(client, call.workflow_id, self._since)
        return next((one.id for one in found if _attempt_of(one, call.key) == call.key.attempt), None)

    def _search(self) -> str | None:
        return self.find(self._client)

    def _send(self) -> WebhookAnswer:
        call = self._call
        return self._client.transport.call_webhook(
            call.trigger.method,
            call.trigger.path,
            headers={**call.headers, RUN_KEY_HEADER: call.key.header},
            payload=call.payload,
            timeout=call.timeout,
            stopped=self._stopped,
        )

    def _found_in_spite_of(self, error: errors.ServiceApiError) -> str | None:
        """Look for the execution of a call that failed; None when there is none, and the call may be repeated."""
        if is_refusal(error):
            self.started_nothing = True
            raise error
        found = starting.search_for(self._search, starting.SETTLING_SECONDS, self._stopped)
        if found is not None:
            return found
        if error.not_processed:
            self.started_nothing = True
            raise error
        call = self._call
        doubt = _runs(self._client, call.workflow_id, call.key, self._since).doubt(all_are_kept=call.is_kept)
        if doubt is not None:
            raise ServiceRunNotFoundError(f"{error}; it may have run the workflow: {doubt}") from error
        if isinstance(error, errors.ServiceTimeoutError):
            # All the time that the task has is over.
            self.started_nothing = True
            raise ServiceRunNotStartedError(f"{error}; nothing was started") from error
        return None

    def _known_from(self, answer: WebhookAnswer) -> str:
        named = answer.body.get("executionId") if isinstance(answer.body, dict) else None
        claim = self._judge(str(named)) if _is_id(named) else _Claim.FALSE
        if claim is _Claim.PROVEN:
            return str(named)
        try:
            found = starting.search_for(self._search, claim.patience, self._stopped)
        except errors.ServiceApiError as error:
            if claim is _Claim.FALSE:
                raise
            log.warning("Execution %s, which the webhook named, was not checked: %s", named, error)
            return str(named)
        if found is not None:
            return found
        if claim is not _Claim.FALSE:
            return str(named)
        raise ServiceRunNotFoundError(
            f"the webhook {self._call.trigger.path!r} answered {answer.status}, but no execution of workflow "
            f"{self._call.workflow_id} carries its run key: it may have ended without being saved, or its data is "
            "redacted. Let the workflow save its executions, or answer with its execution id"
        )

    def _judge(self, execution_id: str) -> _Claim:
        """Judge an answer that names an execution: a workflow may pass on an id that it was given."""
        try:
            execution = self._client.executions.get(execution_id, include_data=True)
        except errors.ServiceNotFoundError:
            return _Claim.DOUBTFUL if self._call.is_kept else _Claim.LIKELY
        except errors.ServiceApiError as error:
            log.warning("Execution %s, which the webhook named, can not be read: %s", execution_id, error)
            return _Claim.LIKELY
        if execution.workflow_id == self._call.workflow_id:
            if _attempt_of(execution, self._call.key) == self._call.key.attempt:
                return _Claim.PROVEN
            if not _is_readable(execution):
                return _Claim.LIKELY
        return _Claim.FALSE


class _Claim(Enum):
    """Whether an execution that an answer names is the one that the call made."""

    PROVEN = "it carries the run key"
    LIKELY = "it can not be read, its data is hidden, or it was not kept"
    DOUBTFUL = "it is not there, although its workflow keeps its executions"
    FALSE = "it is another, or the answer names none"

    @property
    def patience(self) -> float:
        """Seconds to look for one that carries the key."""
        waits = {_Claim.DOUBTFUL: starting.SETTLING_SECONDS, _Claim.FALSE: starting.VISIBLE_WITHIN_SECONDS}
        return waits.get(self, 0.0)


def _is_id(value: object) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool) and str(value).isdecimal()
