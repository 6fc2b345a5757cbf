"""The interface of every start method.

Start an execution by a call, exactly once, and find out which execution the call started.

A call carries a run key, which the service keeps with the execution. An attempt that does not know whether its
call arrived, or whether an earlier attempt made one, searches for executions that carry the key.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from airflow_provider_service._core.runs import searching
from airflow_provider_service._core.runs.searching import search_again
from airflow_provider_service.client import errors
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client.errors import ServiceRunInDoubtError, ServiceRunNotStartedError

if TYPE_CHECKING:
    from airflow_provider_service._core.runs.idempotent_start import IdempotentStart, Starter
    from airflow_provider_service._core.runs.request import RunRequest
    from airflow_provider_service._core.runs.searching import EarlierRuns, IsAnswered, Search
    from airflow_provider_service.client import ServiceClient


class StartMethod(Protocol):
    """A start method, for one request."""

    #: The value of ``start`` that chooses it.
    name: ClassVar[str]

    def __init__(self, request: RunRequest, client: ServiceClient) -> None: ...

    def reason_unavailable(self) -> str | None:
        """Say why this method cannot start the workflow, and what would change that; None if it can."""

    def may_have_been_used(self) -> bool:
        """Whether an earlier attempt may have used this method, even if it is no longer available."""

    def keeps_executions(self) -> bool:
        """Whether the service keeps the executions that this method starts: then what is not found does not exist."""

    def earlier(self, start: IdempotentStart) -> EarlierRuns:
        """Find the executions that earlier attempts have started with this method; starts nothing."""

    def starter(self, start: IdempotentStart) -> Starter:
        """Check all that can be checked, and make the workflow ready; starts nothing.

        :raises ServiceInputError: the workflow cannot be started as requested.
        """


log = logging.getLogger(__name__)

MAX_CALLS = 3
MAX_PAUSE_SECONDS = 60.0


class CallStarter(ABC):
    """Makes a call until it is known which execution the call started.

    ``started_nothing`` says, after an error, that there is provably no execution.

    :param start: the start for which the call is made; the call carries its key.
    :param called: name of what is called, for messages.
    :param search: finds its execution.
    :param is_kept: whether the workflow keeps its executions, so that a search can find them.
    """

    #: Whether the call is answered when the run begins, and not only when it ends.
    answers_at_once: bool = False
    retried: str | None = None

    def __init__(self, start: IdempotentStart, called: str, search: Search, *, is_kept: bool) -> None:
        self._client, self._key = start.client, start.attempt.key
        self._timeout, self._stopped = start.timeout, start.stopped
        self._called, self._search, self._is_kept = called, search, is_kept
        self.started_nothing = False
        self.after = 0
        self._seen: str | None = None

    def start(self) -> str:
        """Start the run and return its execution id. Repeats the call only if the previous one started nothing.

        :raises ServiceRunNotStartedError: nothing was started.
        :raises ServiceRunNotKeptError: the call was confirmed, but its execution was not kept.
        :raises ServiceRunInDoubtError: an execution may have been started that cannot be found.
        :raises ServiceInputError: the call cannot be made; nothing was started.
        :raises ServiceApiError: the call was refused, and nothing was started; or a search failed.
        :raises ServiceTaskKilledError: the task was killed.
        """
        lost = 0
        while lost < MAX_CALLS:
            try:
                answer, found = searching.answer_or_found(
                    self.send, self.look_meanwhile, self._stopped, at_once=self.answers_at_once
                )
            except errors.ServiceApiError as error:
                found = self._found_in_spite_of(error)
                if found is None:
                    lost += 1
                    log.warning("Call %d of %s started nothing: %s", lost, self._called, error)
                    clock().wait(self._stopped, min(error.retry_after or 0.0, MAX_PAUSE_SECONDS))
            except errors.ServiceError as error:
                self.started_nothing = error.not_processed
                raise
            else:
                found = found or self.started_by(answer)
            if found is not None:
                return found
        self.started_nothing = True
        raise ServiceRunNotStartedError(
            f"{MAX_CALLS} calls of {self._called} created no execution; nothing was started"
        )

    def find(self, client: ServiceClient) -> str | None:
        """Find the execution that this attempt has started, if the service shows it."""
        return self._search.made_by(client, self._key.tag)

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

    def look_meanwhile(self, is_answered: IsAnswered) -> str | None:
        """Search for the execution while the call is still open."""
        self._seen = self._seen or self._search.made_by(self._client, self._key.tag, is_answered)
        return self._seen

    def _look(self) -> str | None:
        return self.find(self._client)

    def _found_in_spite_of(self, error: errors.ServiceApiError) -> str | None:
        """Search for the execution of a failed call; None if there is none and the call may be repeated."""
        if self.is_refusal(error):
            # A workflow that answers itself may pass on the refusal of another webhook.
            may_be_passed_on = error.status is not None and not self.answers_at_once
            found = self.look_meanwhile(searching.never) if may_be_passed_on else None
            if found is not None:
                return found
            self.started_nothing = True
            raise error
        found = searching.search_for(self._look, searching.SETTLING_SECONDS, self._stopped)
        if found is not None:
            return found
        if error.not_processed:
            self.started_nothing = True
            raise error
        runs = self._search_exhaustively()
        found = runs.own(self._key)
        if found is not None:
            return found
        doubt = runs.doubt(self._client.base_url, all_are_kept=self._is_kept)
        if doubt is not None:
            raise ServiceRunInDoubtError(f"{error}; it may have run the workflow: {doubt}") from error
        if error.ends_wait:  # the next call would fail in the same way
            self.started_nothing = True
            raise error
        if isinstance(error, errors.ServiceTimeoutError):
            # The task has no time left.
            self.started_nothing = True
            raise ServiceRunNotStartedError(f"{error}; nothing was started") from error
        return None

    def _search_exhaustively(self) -> EarlierRuns:
        """Search exhaustively before concluding that there is no execution."""
        look = partial(self.search_as_next, exhaustive=self._is_kept)
        return search_again(look, look())

    def search_as_next(self, *, exhaustive: bool = False) -> EarlierRuns:
        """Search as the next attempt would: not only as far as an execution of the previous attempt.

        This attempt's own execution can wait for a worker, and is then found only after all that the service lists.
        """
        return self._search.earlier(
            self._client, self._key._replace(attempt=self._key.attempt + 1), exhaustive=exhaustive
        )
