"""The idempotent start: one execution for one key, resumed if an earlier attempt has started it, otherwise started.

Operators, the task decorator and the hook all start executions through :meth:`IdempotentStart.run`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from airflow_provider_service._airflow import metrics
from airflow_provider_service._core.runs import searching
from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client._execution_data import read_state
from airflow_provider_service.client.errors import (
    ServiceError,
    ServiceNotFoundError,
    ServiceRunInDoubtError,
    ServiceRunNotKeptError,
    ServiceTaskKilledError,
)

if TYPE_CHECKING:
    from airflow_provider_service._core.runs.attempt import Attempt
    from airflow_provider_service.client import ServiceConfig

log = logging.getLogger(__name__)

# Airflow gives a killed task 5 s, most of which are needed to stop the execution.
KILLED_SEARCH_SECONDS = 1.5


class Starter(Protocol):
    """Starts one execution."""

    #: After an error: whether the call provably started no execution.
    started_nothing: bool
    #: Number of the newest execution before the start; 0 if the search does not use it.
    after: int
    #: The failed execution that it has the service retry; None if it runs the workflow.
    retried: str | None

    def start(self) -> str:
        """Start it and return its id."""

    def find(self, client: ServiceClient) -> str | None:
        """Find the execution that it has started, if the service shows it."""


class IdempotentStart:
    """The start of one attempt, which resumes or starts the single execution of its key.

    :param client: the service.
    :param attempt: the attempt.
    :param timeout: seconds that the task waits for its execution, a day by default. It limits a call only if the
        answer may come as late as the end of the execution.
    :param stopped: set from outside to give the start up.
    :param workflow_id: the workflow to run; None if only ``begin`` knows it.
    """

    def __init__(
        self,
        client: ServiceClient,
        attempt: Attempt,
        *,
        timeout: float,
        stopped: threading.Event,
        workflow_id: str | None = None,
    ) -> None:
        self.client, self.attempt, self.timeout, self.stopped = client, attempt, timeout, stopped
        self._workflow_id = workflow_id
        #: The execution, as soon as its id is known.
        self.execution_id: str | None = None
        self._starter: Starter | None = None

    def run(self, begin: Callable[[IdempotentStart], tuple[str, str]]) -> tuple[str, str]:
        """Resume or start the execution of the key, and save it for later attempts; return its id and its workflow's.

        :param begin: resumes an execution or starts one, and returns both ids; not called if this attempt resumes the
            execution that an earlier one has saved.
        :raises ServiceRunInDoubtError: an execution may have been started that cannot be found.
        :raises ServiceTaskKilledError: the task was killed.
        """
        try:
            self.execution_id, workflow_id = self._saved() or begin(self)
        except ServiceRunInDoubtError as error:
            if not isinstance(error, ServiceRunNotKeptError):
                metrics.count(metrics.RUNS_IN_DOUBT)
            raise
        is_killed = self.stopped.is_set()
        if not (is_killed and self.attempt.is_given_up):  # else this would replace what a later attempt has saved
            self.attempt.save(self.execution_id, workflow_id)
        if is_killed:
            raise ServiceTaskKilledError(f"the task was killed while it started execution {self.execution_id}")
        return self.execution_id, workflow_id

    def _saved(self) -> tuple[str, str] | None:
        """Return the saved execution of an earlier attempt, if this one may resume it: its id and its workflow's."""
        saved = self.attempt.saved_run()
        if saved is None or saved.execution_id is None:
            return None
        key, conflict = self.attempt.key, None
        try:
            found, _ = read_state(self.client, saved.execution_id, saved.workflow_id)
        except ServiceNotFoundError:
            found = None
        if found is not None and found.workflow_id not in (None, saved.workflow_id):
            conflict = (
                f"cannot be resumed: at {self.client.base_url}, execution {found.id} is one of workflow "
                f"'{found.workflow_id}', so the connection leads to another server than before"
            )
        elif found is not None and not key.may_resume(saved.attempt, found.status):
            return None
        elif self._workflow_id and self._workflow_id != saved.workflow_id:
            conflict = f"is not resumed: the task now runs workflow '{self._workflow_id}'"
        if saved.attempt < key.first and (found is None or conflict):
            return None
        if conflict:
            execution = f"execution {saved.execution_id} of workflow '{saved.workflow_id}'"
            raise ServiceRunInDoubtError(f"{execution}, which an earlier attempt started, {conflict}")
        if found is None:
            # It may have succeeded: the wait decides what that means.
            log.warning("Execution %s, which an earlier attempt started, cannot be found", saved.execution_id)
        else:
            self.resume(saved.execution_id, "an earlier attempt started")
        return saved.execution_id, saved.workflow_id

    def resume(self, execution_id: str, what_it_is: str) -> str:
        """Log and count that this attempt resumes an execution; return its id.

        :param what_it_is: the end of a sentence for the log.
        """
        log.info("Resuming execution %s, which %s", execution_id, what_it_is)
        metrics.count(metrics.RUNS_RESUMED)
        return execution_id

    def launch(self, starter: Starter) -> str:
        """Start an execution, after saving for the next attempt that it may have been started; return its id.

        This replaces what an earlier attempt has saved, so first find out what a call of that attempt has started.
        """
        self.attempt.save_call(starter.after, starter.retried)
        self._starter = starter
        try:
            execution_id = starter.start()
        except Exception:
            if starter.started_nothing:
                self.attempt.discard_call()
            raise
        metrics.count(metrics.RUNS_STARTED)
        return execution_id

    def just_started(self, config: ServiceConfig) -> str | None:
        """Search, in the little time left, for the execution that was being started when the attempt was killed.

        :param config: the server.
        """
        starter = self._starter
        if starter is None:
            return None
        with ServiceClient(config.one_try(connect_timeout=1.0, timeout=KILLED_SEARCH_SECONDS)) as client:
            try:
                found = searching.search_for(lambda: starter.find(client), KILLED_SEARCH_SECONDS, threading.Event())
                if found is None:
                    log.warning("An execution that was being started was not found: if its call arrives, it will run")
                return found
            except ServiceError as error:
                log.error("The search for an execution that was being started failed; it may be running: %s", error)
                return None
