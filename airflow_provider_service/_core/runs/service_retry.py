"""Let the service retry an execution exactly once, without waiting for the retry to end.

The service answers a retry only when the new execution has ended, and starts another one with every call. So the call
is made once, and meanwhile a search looks for the new execution, which names the one that it retries.
:class:`~airflow_provider_service._core.runs.idempotent_start.IdempotentStart` calls these in turn: find the retry of an
earlier attempt, refuse what cannot be retried, start one.
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

if TYPE_CHECKING:
    import threading

    from airflow_provider_service._core.runs.attempt import Attempt
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client.models import Execution


def find_retry(original: Execution, client: ServiceClient, attempt: Attempt, stopped: threading.Event) -> str | None:
    """Find the newest retry that an earlier attempt requested, unless that has failed.

    It began after the first attempt, or is still active from before the task or the DAG run was cleared. The search
    lasts long enough for a call that was on its way when its attempt was killed.
    """
    key = attempt.key
    is_older = began_before(client, attempt.since, by_another_clock=attempt.is_counted)
    retries = RetrySearch(original)

    def may_resume(retry: Execution, before_clear: float) -> bool:
        if is_older(retry):
            return key.was_cleared and retry.status not in ENDED_STATUSES
        return key.may_resume(key.first - 1 if retry.number <= before_clear else key.attempt - 1, retry.status)

    def search(*, exhaustive: bool = False) -> str | None:
        newest_first = sorted(retries.read(client, exhaustive=exhaustive), key=lambda retry: -retry.number)
        before_clear = _newest_before_clear(attempt, newest_first)
        return next((retry.id for retry in newest_first if may_resume(retry, before_clear)), None)

    retry_id = searching.search_for(search, searching.SETTLING_SECONDS, stopped)
    return retry_id or search(exhaustive=True)


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


def refuse_retry(original: Execution, client: ServiceClient, attempt: Attempt) -> None:
    if not attempt.is_first and attempt.may_have_started_unseen and not _are_kept(client, original):
        raise errors.ServiceRunInDoubtError(
            f"an earlier attempt may have retried execution {original.id}, whose workflow does not keep all its "
            "executions"
        )
    if original.status in ("running", "waiting"):
        # The service would accept it: a running one would run twice at once, and of a waiting one the rest of the wait,
        # such as an approval, would be skipped.
        raise errors.ServiceInputError(
            f"execution {original.id} cannot be retried yet: it has not ended, its status is {original.status!r}",
            not_done="no retry was started",
        )


class RetrySearch:
    def __init__(self, original: Execution) -> None:
        self._original = original
        self._workflow_id = original.workflow_id or ""
        self._queued = QueuedExecutions(self._workflow_id, after=original.number)

    def read(self, client: ServiceClient, *, exhaustive: bool = False) -> Iterator[Execution]:
        listed = list_back(client, self._workflow_id, lambda execution: execution.number <= self._original.number)
        queued = self._queued.read(client, exhaustive=exhaustive)
        return (execution for execution in chain(listed, queued) if str(execution.retry_of) == self._original.id)


class RetryStarter:
    def __init__(
        self,
        original: Execution,
        client: ServiceClient,
        load_workflow: bool | None,
        *,
        timeout: float,
        stopped: threading.Event,
    ) -> None:
        self._client, self._timeout, self._stopped = client, timeout, stopped
        self._original, self._load_workflow = original, load_workflow
        self.retried = original.id
        #: After an error: whether there is provably no retry.
        self.started_nothing = False
        self._retries = RetrySearch(original)
        earlier = list(self._retries.read(self._client))
        #: Number of the newest retry before this one; 0 if there is none.
        self.after = max((retry.number for retry in earlier), default=0)
        self._earlier = frozenset(retry.id for retry in earlier)

    def start(self) -> str:
        """Start the retry and return the id of the new execution. Never calls twice."""
        try:
            answer, retry_id = searching.answer_or_found(
                lambda: self._client.executions.retry(
                    self._original.id, load_workflow=self._load_workflow, timeout=self._timeout
                ),
                lambda _: self._search(),
                self._stopped,
            )
        except errors.ServiceApiError as error:
            if error.not_processed:
                self.started_nothing = True
                raise
            retry_id = searching.search_for(self._search, searching.SETTLING_SECONDS, self._stopped)
            retry_id = retry_id or self.find(self._client, exhaustive=True)
            if retry_id is None:
                raise self._lost(error) from error
            return retry_id
        except errors.ServiceError as error:
            self.started_nothing = error.not_processed
            raise
        return answer.id if answer is not None else str(retry_id)

    def find(self, client: ServiceClient, *, exhaustive: bool = False) -> str | None:
        retries = self._retries.read(client, exhaustive=exhaustive)
        return next((retry.id for retry in retries if retry.id not in self._earlier), None)

    def _search(self) -> str | None:
        return self.find(self._client)

    def _lost(self, error: errors.ServiceApiError) -> Exception:
        self.started_nothing = _are_kept(self._client, self._original)
        if self.started_nothing:
            return errors.ServiceRunNotStartedError(f"{error}; no retry of execution {self._original.id} was started")
        return errors.ServiceRunInDoubtError(
            f"{error}; a retry of execution {self._original.id} may have been started, which its workflow does not keep"
        )


def _are_kept(client: ServiceClient, execution: Execution) -> bool:
    """Whether the workflow of an execution keeps its executions; False if it no longer exists, or can never be read."""
    try:
        return client.workflows.get(execution.workflow_id or "").keeps_executions
    except errors.ServiceNotFoundError:
        return False
    except errors.ServiceError as error:
        if error.final:
            return False
        raise
