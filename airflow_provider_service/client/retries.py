"""Let the service retry an execution exactly once, without waiting for the retry to end.

The service answers a retry only when the new execution has ended, and starts another one at every call. So the call
is made once, and the new execution is looked for meanwhile: it names the one that it retries.
"""

from __future__ import annotations

import threading
from datetime import datetime
from typing import TYPE_CHECKING

from airflow_provider_service.client import errors, starting
from airflow_provider_service.client.runs import began_before, list_back
from airflow_provider_service.client.starting import ServiceRunNotFoundError, ServiceRunNotStartedError

if TYPE_CHECKING:
    from airflow_provider_service.client._client import ServiceClient
    from airflow_provider_service.client.models.executions import Execution
    from airflow_provider_service.client.runs import RunKey


def find_earlier_retry(
    client: ServiceClient, original: Execution, key: RunKey, since: datetime | None, stopped: threading.Event
) -> Execution | None:
    """Find the newest retry of an execution that began since a moment and that an attempt goes on with.

    Looks long enough for a call that was on its way when its attempt was killed.
    """
    is_older = began_before(since)

    def going_on() -> Execution | None:
        retries = find_retries(client, original)
        return next((one for one in retries if key.adopts(key.attempt - 1, one.status) and not is_older(one)), None)

    return starting.search_for(going_on, starting.SETTLING_SECONDS, stopped)


def find_retries(client: ServiceClient, original: Execution) -> list[Execution]:
    """Find the executions that retry another one, newest first."""
    listed = list_back(client, original.workflow_id or "", lambda one: int(one.id) <= int(original.id))
    return sorted((one for one in listed if one.retry_of == original.id), key=lambda one: int(one.id), reverse=True)


class RetryStarter:
    """Starts one retry of an execution.

    ``started_nothing`` says, after an error, that there provably is none.

    :param client: the service.
    :param original: the execution to retry.
    :param load_workflow: run the current workflow instead of the one that was saved with the execution.
    :param timeout: seconds to keep the call open.
    :param stopped: set from outside to give up early.
    """

    def __init__(
        self,
        client: ServiceClient,
        original: Execution,
        *,
        load_workflow: bool | None,
        timeout: float,
        stopped: threading.Event,
    ) -> None:
        self._client = client
        self._original = original
        self._load_workflow = load_workflow
        self._timeout = timeout
        self._stopped = stopped
        self.started_nothing = False
        self._known = frozenset(one.id for one in find_retries(client, original))

    def start(self) -> str:
        """Start the retry and return the id of the new execution. Never calls twice.

        :raises ServiceConflictError: the execution is queued, succeeded, or its data was not kept.
        :raises ServiceRunNotStartedError: the call got no answer and nothing was started.
        :raises ServiceRunNotFoundError: the call got no answer, and what it may have started can not be found.
        :raises InterruptedError: given up early.
        """
        try:
            answer, found = starting.answer_or_found(self._send, self._search, self._stopped)
        except errors.ServiceApiError as error:
            if error.not_processed:
                self.started_nothing = True
                raise
            found = starting.search_for(self._search, starting.SETTLING_SECONDS, self._stopped)
            if found is None:
                raise self._lost(error) from error
            return found
        return answer.id if answer is not None else str(found)

    def find(self, client: ServiceClient) -> str | None:
        """The execution that this attempt has started, if it can be seen."""
        retries = find_retries(client, self._original)
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
        return ServiceRunNotFoundError(
            f"{error}; a retry of execution {self._original.id} may have been started, which its workflow does not keep"
        )


def keeps_executions(client: ServiceClient, execution: Execution) -> bool:
    """Whether the workflow of an execution keeps its executions; no when that can not be read."""
    try:
        return client.workflows.get(execution.workflow_id or "").keeps_executions
    except (errors.ServiceApiError, errors.ServiceInputError):
        return False
