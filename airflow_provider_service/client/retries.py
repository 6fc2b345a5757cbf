"""Let the service retry an execution exactly once, without waiting for the retry to end.

The service answers a retry only when the new execution has ended, and starts another one at every call. So the call
is made once, and the new execution is looked for meanwhile: it names the one that it retries.
"""

from __future__ import annotations

import threading
from datetime import datetime
from typing import TYPE_CHECKING

from airflow_provider_service.client import errors
from airflow_provider_service.client.runs import FAILED_STATUSES, list_since
from airflow_provider_service.client.starting import (
    SETTLING_SECONDS,
    ServiceRunNotFoundError,
    answer_or_found,
    search_for,
)

if TYPE_CHECKING:
    from airflow_provider_service.client._client import ServiceClient
    from airflow_provider_service.client.models.executions import Execution


def find_retries(client: ServiceClient, original: Execution, since: datetime | None) -> list[Execution]:
    """Find the executions that retry another one, newest first."""
    workflow_id = original.workflow_id or ""
    found = [one for one in list_since(client, workflow_id, since) if one.retry_of == original.id]
    return sorted(found, key=lambda one: int(one.id), reverse=True)


def going_on(retries: list[Execution]) -> Execution | None:
    """The newest retry that has not failed."""
    return next((one for one in retries if one.status not in FAILED_STATUSES), None)


class RetryStarter:
    """Starts one retry of an execution.

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
        self._known: frozenset[str] = frozenset()

    def start(self) -> str:
        """Start the retry and return the id of the new execution. Never calls twice.

        :raises ServiceConflictError: the execution is queued, succeeded, or its data was not kept.
        :raises ServiceRunNotFoundError: the call got no answer and no new execution can be found.
        """
        self._known = frozenset(one.id for one in find_retries(self._client, self._original, None))
        try:
            answer, found = answer_or_found(self._send, self._search, self._stopped)
        except errors.ServiceApiError as error:
            if error.not_processed:
                raise
            answer, found = None, search_for(self._search, SETTLING_SECONDS, self._stopped)
            if found is None:
                raise ServiceRunNotFoundError(
                    f"{error}; no retry of execution {self._original.id} can be found, and it was not asked for again"
                ) from error
        return found or (answer.id if answer else "")

    def _send(self) -> Execution:
        return self._client.executions.retry(
            self._original.id, load_workflow=self._load_workflow, timeout=self._timeout
        )

    def _search(self) -> str | None:
        retries = find_retries(self._client, self._original, None)
        return next((one.id for one in retries if one.id not in self._known), None)
