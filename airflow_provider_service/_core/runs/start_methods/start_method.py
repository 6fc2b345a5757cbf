"""What all start methods share: they find what earlier attempts have started, and start one execution by a call.

The call carries the run key, which the service keeps with the execution. Its answer may be lost, or come only when the
run ends. So a call is repeated only if a search proves that it has started nothing; if that cannot be proven, the run
is in doubt.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_service._core.runs import searching
from airflow_provider_service._core.runs.searching import IsAnswered, search_again
from airflow_provider_service.client import errors
from airflow_provider_service.client._clock import clock

if TYPE_CHECKING:
    import threading

    from airflow_provider_service._core.runs.attempt import Attempt
    from airflow_provider_service._core.runs.request import RunRequest
    from airflow_provider_service._core.runs.searching import EarlierRuns, Search
    from airflow_provider_service.client import ServiceClient

log = logging.getLogger(__name__)

#: Calls of a start method that may fail without having started anything, before the task fails.
MAX_CALLS = 3
#: Longest pause in seconds before another call, whatever the service asks for.
MAX_PAUSE_BEFORE_CALL = 60.0


class StartMethod(ABC):
    """A start method, for one attempt to run a workflow.

    An attempt asks ``reason_unavailable``, calls ``prepare``, and then ``start``. A later one asks
    ``may_have_been_used``, and then ``earlier``.
    """

    #: The value of ``start`` that chooses it.
    name: ClassVar[str]
    retried: ClassVar[None] = None
    #: Whether the call is answered when the run begins, and not only when it ends.
    answers_at_once = True
    # Set by ``prepare``: what is called, for messages; what finds its execution; and whether the service keeps the
    # executions, so that the search can find them.
    called: str
    search: Search
    is_kept: bool

    def __init__(
        self, request: RunRequest, client: ServiceClient, attempt: Attempt, *, timeout: float, stopped: threading.Event
    ) -> None:
        self.request, self.client, self.attempt = request, client, attempt
        self.timeout, self.stopped = timeout, stopped
        #: After an error: whether there is provably no execution.
        self.started_nothing = False
        #: Number of the newest execution before the call; 0 if the search does not use it.
        self.after = 0
        self._found_meanwhile: str | None = None

    @abstractmethod
    def reason_unavailable(self) -> str | None:
        """Say why this method cannot start the workflow, and what would change that; None if it can."""

    @abstractmethod
    def may_have_been_used(self) -> bool:
        """Whether an earlier attempt may have used this method, even if it is no longer available."""

    @abstractmethod
    def keeps_executions(self) -> bool:
        """Whether the service keeps the executions that this method starts: then what is not found does not exist."""

    @abstractmethod
    def earlier(self) -> EarlierRuns:
        """Find the executions that earlier attempts have started with this method; starts nothing."""

    @abstractmethod
    def prepare(self) -> None:
        """Check all that can be checked, and make the workflow ready; starts nothing."""

    @abstractmethod
    def send(self) -> Any:
        """Make the call, once, within the timeout of the start, after which the task has no time left.

        Do not repeat a call that may have arrived: `is_refusal` sees only the last error.
        """

    @abstractmethod
    def started_by(self, answer: Any) -> str | None:
        """Find by its answer the execution that a call has started; None if it started nothing and must be repeated."""

    @abstractmethod
    def is_refusal(self, error: errors.ServiceApiError) -> bool:
        """Whether a failed call certainly ran nothing, and would not if it were repeated."""

    def start(self) -> str:
        """Start the run and return its execution id. Repeats the call only if the previous one started nothing."""
        lost = 0
        while lost < MAX_CALLS:
            try:
                answer, execution_id = searching.answer_or_found(
                    self.send, self.look_meanwhile, self.stopped, at_once=self.answers_at_once
                )
            except errors.ServiceApiError as error:
                execution_id = self._found_in_spite_of(error)
                if execution_id is None:
                    lost += 1
                    log.warning("Call %d of %s started nothing: %s", lost, self.called, error)
                    clock().wait(self.stopped, min(error.retry_after or 0.0, MAX_PAUSE_BEFORE_CALL))
            except errors.ServiceError as error:
                self.started_nothing = error.not_processed
                raise
            else:
                execution_id = execution_id or self.started_by(answer)
            if execution_id is not None:
                return execution_id
        self.started_nothing = True
        raise errors.ServiceRunNotStartedError(
            f"{MAX_CALLS} calls of {self.called} created no execution; nothing was started"
        )

    def find(self, client: ServiceClient) -> str | None:
        return self.search.made_by(client, self.attempt.key)

    def look_meanwhile(self, is_answered: IsAnswered = searching.never) -> str | None:
        if self._found_meanwhile is None:
            self._found_meanwhile = self.search.made_by(self.client, self.attempt.key, is_answered)
        return self._found_meanwhile

    def search_for(self, seconds: float) -> str | None:
        return searching.search_for(lambda: self.find(self.client), seconds, self.stopped)

    def search_as_next(self, *, exhaustive: bool = False) -> EarlierRuns:
        """Search as the next attempt would, beyond the previous one's execution: its own may wait for a worker."""
        key = self.attempt.key
        return self.search.earlier(self.client, key._replace(attempt=key.attempt + 1), exhaustive=exhaustive)

    def search_exhaustively(self) -> EarlierRuns:
        look = partial(self.search_as_next, exhaustive=self.is_kept)
        return search_again(look, look())

    def _found_in_spite_of(self, error: errors.ServiceApiError) -> str | None:
        """Search for the execution of a failed call; None if there is none and the call may be repeated."""
        is_refusal = self.is_refusal(error)
        if is_refusal:
            # A workflow that answers itself may pass on the refusal of another webhook.
            may_be_passed_on = error.status is not None and not self.answers_at_once
            execution_id = self.look_meanwhile() if may_be_passed_on else None
        else:
            execution_id = self.search_for(searching.SETTLING_SECONDS)
        if execution_id is not None:
            return execution_id
        if is_refusal or error.not_processed:
            self.started_nothing = True
            raise error
        runs = self.search_exhaustively()
        execution_id = runs.own(self.attempt.key)
        if execution_id is not None:
            return execution_id
        doubt = runs.doubt(self.client.base_url, all_are_kept=self.is_kept)
        if doubt is not None:
            raise errors.ServiceRunInDoubtError(f"{error}; it may have run the workflow: {doubt}") from error
        if error.ends_wait:  # the next call would fail in the same way
            self.started_nothing = True
            raise error
        if isinstance(error, errors.ServiceTimeoutError):
            # The task has no time left.
            self.started_nothing = True
            raise errors.ServiceRunNotStartedError(f"{error}; nothing was started") from error
        return None
