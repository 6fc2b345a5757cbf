"""Start a workflow on its webhook exactly once, and learn which execution that made.

A call carries a run key in a header, which the service keeps with the execution. An attempt that does not know
whether a call arrived, or who called before, looks for executions that carry the key.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from airflow_provider_service.client import errors
from airflow_provider_service.client.errors import (
    ServiceRunNotFoundError,
    ServiceRunNotSeenError,
    ServiceRunNotStartedError,
)
from airflow_provider_service.client.http.webhook_answers import is_refusal
from airflow_provider_service.client.models.webhooks import WebhookAnswer, WebhookTrigger
from airflow_provider_service.runs import call_and_search
from airflow_provider_service.runs.search import (
    CLOCK_SKEW,
    MAX_SHOWN_IDS,
    RUN_KEY_HEADER,
    EarlierRuns,
    RunKey,
    RunSearch,
    origin_of,
)

if TYPE_CHECKING:
    from airflow_provider_service.client._client import ServiceClient

log = logging.getLogger(__name__)

MAX_CALLS = 3
MAX_PAUSE_SECONDS = 60.0
_ID = re.compile(r"[0-9]{1,18}")


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
        self._runs = RunSearch(call.workflow_id, datetime.now(timezone.utc) - CLOCK_SKEW)
        self.started_nothing = False

    def start(self) -> str:
        """Start the run and return its execution id. Repeats the call only when no execution of it exists.

        :raises ServiceRunNotStartedError: nothing was started.
        :raises ServiceRunNotSeenError: the webhook confirmed a start that left no execution.
        :raises ServiceRunNotFoundError: something may have been started that cannot be found.
        :raises ServiceInputError: the call cannot be made, nothing was started.
        :raises ServiceApiError: the call was refused, nothing was started; or a search failed.
        :raises ServiceTaskKilledError: given up early.
        """
        for number in range(1, MAX_CALLS + 1):
            try:
                answer, found = call_and_search.answer_or_found(self._send, self._search, self._stopped)
            except errors.ServiceApiError as error:
                found = self._found_in_spite_of(error)
                if found is None:
                    log.warning("Call %d of the webhook started nothing: %s", number, error)
                    self._stopped.wait(min(error.retry_after or 0.0, MAX_PAUSE_SECONDS))
            except errors.ServiceError as error:
                self.started_nothing = error.not_processed
                raise
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
        return self._runs.made_by(client, self._call.key.mark)

    def _search(self) -> str | None:
        return self.find(self._client)

    def _send(self) -> WebhookAnswer:
        call = self._call
        return self._client.webhooks.call(
            call.trigger,
            call.payload,
            headers={**call.headers, RUN_KEY_HEADER: call.key.header},
            timeout=call.timeout,
            stopped=self._stopped,
        )

    def _found_in_spite_of(self, error: errors.ServiceApiError) -> str | None:
        """Look for the execution of a call that failed; None when there is none, and the call may be repeated."""
        if is_refusal(error):
            self.started_nothing = True
            raise error
        found = call_and_search.search_for(self._search, call_and_search.SETTLING_SECONDS, self._stopped)
        if found is not None:
            return found
        if error.not_processed:
            self.started_nothing = True
            raise error
        runs = self._look_far()
        found = runs.own(self._call.key)
        if found is not None:
            return found
        doubt = runs.doubt(all_are_kept=self._call.is_kept)
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
            found = call_and_search.search_for(self._search, self._patience(claim), self._stopped)
        except errors.ServiceApiError as error:
            if claim is _Claim.FALSE:
                raise
            log.warning("Execution %s, which the webhook named, was not checked: %s", named, error)
            return str(named)
        if found is not None:
            return found
        if claim is not _Claim.FALSE:
            return str(named)
        runs = self._look_far()
        found = runs.own(self._call.key)
        if found is not None:
            return found
        raise self._unseen(answer, runs.unreadable)

    def _look_far(self) -> EarlierRuns:
        """Look once more before it counts that no execution was found."""
        return self._runs.earlier(self._client, self._call.key, far=self._call.is_kept)

    def _judge(self, execution_id: str) -> _Claim:
        """Judge an answer that names an execution: a workflow may pass on an id that it was given."""
        try:
            execution = self._client.executions.get(execution_id, include_data=True)
        except errors.ServiceNotFoundError:
            return _Claim.DOUBTFUL if self._call.is_kept else _Claim.LIKELY
        except errors.ServiceApiError as error:
            log.warning("Execution %s, which the webhook named, cannot be read: %s", execution_id, error)
            return _Claim.LIKELY
        if execution.workflow_id == self._call.workflow_id:
            origin = origin_of(execution)
            if origin.mark == self._call.key.mark:
                return _Claim.PROVEN
            if not origin.is_shown:
                return _Claim.LIKELY
        return _Claim.FALSE

    def _patience(self, claim: _Claim) -> float:
        """Seconds to look for an execution that carries the key."""
        if claim is _Claim.LIKELY:
            return 0.0
        if claim is _Claim.DOUBTFUL:
            return call_and_search.SETTLING_SECONDS
        return call_and_search.VISIBLE_WITHIN_SECONDS if self._call.is_kept else call_and_search.UNKEPT_SECONDS

    def _unseen(self, answer: WebhookAnswer, hidden: list[str]) -> ServiceRunNotFoundError:
        call = self._call
        about = f"the webhook {call.trigger.path!r} answered {answer.status}, but no execution of workflow "
        about += f"{call.workflow_id} carries its run key"
        if hidden:
            ids = ", ".join(hidden[:MAX_SHOWN_IDS])
            return ServiceRunNotFoundError(
                f"{about}, and executions {ids} hide their data, or it is redacted. Let the workflow answer with its "
                "execution id"
            )
        hint = "Let the workflow save its executions, or answer with its execution id"
        if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            return ServiceRunNotFoundError(f"{about}: it may have ended without being saved. {hint}")
        return ServiceRunNotSeenError(
            f"{about}: it has ended without being saved. {hint}", workflow_id=call.workflow_id
        )


class _Claim(Enum):
    """Whether an execution that an answer names is the one that the call made."""

    PROVEN = "it carries the run key"
    LIKELY = "it cannot be read, its data is hidden, or it was not kept"
    DOUBTFUL = "it does not exist, although its workflow keeps its executions"
    FALSE = "it is another, or the answer names none"


def _is_id(value: object) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool) and bool(_ID.fullmatch(str(value)))
