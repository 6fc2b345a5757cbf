"""Let the service retry an execution exactly once, without waiting for the retry to end.

The service answers a retry only when the new execution has ended, and starts another one with every call. So the call
is made once, and meanwhile a search looks for the new execution, which names the one that it retries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from math import inf
from typing import TYPE_CHECKING

from airflow_provider_service._core.runs import searching
from airflow_provider_service._core.runs.searching import QueuedExecutions, began_before, list_back
from airflow_provider_service.client import errors
from airflow_provider_service.client._constraints import ENDED_STATUSES
from airflow_provider_service.client.errors import ServiceInputError, ServiceRunInDoubtError, ServiceRunNotStartedError

if TYPE_CHECKING:
    from airflow_provider_service._core.runs.attempt import Attempt
    from airflow_provider_service._core.runs.idempotent_start import IdempotentStart
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client.models import Execution


def resume_or_retry(original: Execution, start: IdempotentStart, *, load_workflow: bool | None = None) -> str:
    """Resume the retry that an earlier attempt requested, or ask the service for one; return its id.

    :param load_workflow: run the current workflow instead of the one that was saved with the execution.
    :raises ServiceRunInDoubtError: an earlier attempt may have requested a retry that cannot be found.
    :raises ServiceInputError: the execution is still running or waiting; no retry was requested.
    """
    if not start.attempt.is_first:
        found = earlier_retry(original, start)
        if found is not None:
            return found
        if start.attempt.may_have_started_unseen and not keeps_executions(start.client, original):
            raise ServiceRunInDoubtError(
                f"an earlier attempt may have retried execution {original.id}, whose workflow does not keep all its "
                "executions"
            )
    if original.status in ("running", "waiting"):
        # The service would accept it: a running one would run twice at once, and of a waiting one the rest of the wait,
        # such as an approval, would be skipped.
        raise ServiceInputError(
            f"execution {original.id} cannot be retried yet: it has not ended, its status is {original.status!r}",
            not_done="no retry was started",
        )
    return start.launch(RetryStarter(original, start, load_workflow=load_workflow))


def earlier_retry(original: Execution, start: IdempotentStart) -> str | None:
    """Resume the newest retry that an earlier attempt requested, unless that has failed; return its id.

    The retry began after the first attempt, or is still active from before the task or the DAG run was cleared. The
    search lasts long enough for a call that was on its way when its attempt was killed.
    """
    client, key = start.client, start.attempt.key
    is_older = began_before(client, start.attempt.since, by_another_clock=start.attempt.is_counted)
    retries = RetrySearch(original)

    def resumable(one: Execution, before_clear: float) -> bool:
        if is_older(one):
            return key.was_cleared and one.status not in ENDED_STATUSES
        return key.may_resume(key.first - 1 if one.number <= before_clear else key.attempt - 1, one.status)

    def search(*, exhaustive: bool = False) -> Execution | None:
        newest_first = sorted(retries.read(client, exhaustive=exhaustive), key=lambda one: -one.number)
        before_clear = _newest_before_clear(start.attempt, newest_first)
        return next((one for one in newest_first if resumable(one, before_clear)), None)

    found = searching.search_for(search, searching.SETTLING_SECONDS, start.stopped)
    found = found or search(exhaustive=True)
    return None if found is None else start.resume(found.id, f"retries {original.id}")


def _newest_before_clear(attempt: Attempt, newest_first: Sequence[Execution]) -> float:
    """Return the number up to which retries may have been requested before the task was cleared; 0 if it was not."""
    if attempt.key.first == 1:
        return 0
    if not attempt.may_have_started_unseen:
        return inf
    saved = attempt.saved_run()
    if saved is not None:
        return saved.after
    # Without a saved state, only the newest is certainly not followed by one that has failed since.
    return newest_first[0].number - 1 if newest_first else 0


class RetrySearch:
    """Searches for the retries of an execution.

    :param original: the execution.
    """

    def __init__(self, original: Execution) -> None:
        self._original = original
        self._workflow_id = original.workflow_id or ""
        self._queued = QueuedExecutions(self._workflow_id, after=original.number)

    def read(self, client: ServiceClient, *, exhaustive: bool = False) -> Iterator[Execution]:
        """Read these executions: those in the lists first, then those that wait for a worker.

        :param exhaustive: search longer for executions that wait for a worker, before concluding that there is none.
        """
        listed = list_back(client, self._workflow_id, lambda one: one.number <= self._original.number)
        queued = self._queued.read(client, exhaustive=exhaustive)
        return (one for one in chain(listed, queued) if str(one.retry_of) == self._original.id)


class RetryStarter:
    """Starts one retry of an execution.

    ``started_nothing`` says, after an error, that there is provably no retry.

    :param original: the execution to retry.
    :param start: the start for which it is retried.
    :param load_workflow: run the current workflow instead of the one that was saved with the execution.
    """

    def __init__(self, original: Execution, start: IdempotentStart, *, load_workflow: bool | None = None) -> None:
        self._client, self._timeout, self._stopped = start.client, start.timeout, start.stopped
        self._original, self._load_workflow = original, load_workflow
        self.retried: str | None = original.id
        self.started_nothing = False
        self._retries = RetrySearch(original)
        known = list(self._retries.read(self._client))
        self.after = max((one.number for one in known), default=0)
        self._known = frozenset(one.id for one in known)

    def start(self) -> str:
        """Start the retry and return the id of the new execution. Never calls twice.

        :raises ServiceConflictError: the execution is queued, succeeded, or its data was not kept.
        :raises ServiceRunNotStartedError: the call got no answer and nothing was started.
        :raises ServiceRunInDoubtError: the call got no answer, and a retry that it may have started cannot be found.
        :raises ServiceTaskKilledError: the task was killed.
        """
        try:
            answer, found = searching.answer_or_found(self._send, lambda _: self._search(), self._stopped)
        except errors.ServiceApiError as error:
            if error.not_processed:
                self.started_nothing = True
                raise
            found = searching.search_for(self._search, searching.SETTLING_SECONDS, self._stopped)
            found = found or self.find(self._client, exhaustive=True)
            if found is None:
                raise self._lost(error) from error
            return found
        except errors.ServiceError as error:
            self.started_nothing = error.not_processed
            raise
        return answer.id if answer is not None else str(found)

    def find(self, client: ServiceClient, *, exhaustive: bool = False) -> str | None:
        """Find the execution that this attempt has started, if the service shows it."""
        retries = self._retries.read(client, exhaustive=exhaustive)
        return next((one.id for one in retries if one.id not in self._known), None)

    def _search(self) -> str | None:
        return self.find(self._client)

    def _send(self) -> Execution:
        return self._client.executions.retry(
            self._original.id, load_workflow=self._load_workflow, timeout=self._timeout
        )

    def _lost(self, error: errors.ServiceApiError) -> Exception:
        self.started_nothing = keeps_executions(self._client, self._original)
        if self.started_nothing:
            return ServiceRunNotStartedError(f"{error}; no retry of execution {self._original.id} was started")
        return ServiceRunInDoubtError(
            f"{error}; a retry of execution {self._original.id} may have been started, which its workflow does not keep"
        )


def keeps_executions(client: ServiceClient, execution: Execution) -> bool:
    """Whether the workflow of an execution keeps its executions; False if it no longer exists, or can never be read.

    :raises ServiceApiError: the workflow cannot be read at present.
    """
    try:
        return client.workflows.get(execution.workflow_id or "").keeps_executions
    except errors.ServiceNotFoundError:
        return False
    except errors.ServiceError as error:
        if error.final:
            return False
        raise
