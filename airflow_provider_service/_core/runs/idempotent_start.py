"""Start exactly one execution for one key: resume what an earlier attempt has started, or start it.

A task can be killed at any moment, and the next attempt must neither start a second execution nor lose the first. So:

1. An attempt that has saved its execution with Airflow is resumed by the next one without a search
   (:meth:`IdempotentStart.resume_saved`).
2. Otherwise, a later attempt searches, by every start method that may have been used, for executions that carry the
   key. It resumes one that has not failed. If one may exist that was not found, the run is in doubt and nothing is
   started: a person decides.
3. Only then is a workflow started (:meth:`IdempotentStart._launch`). Before the call, the attempt saves that it may
   have started an execution; if the call provably started nothing, it restores what was saved before.
4. As soon as the id is known, it is saved, even if the task is being killed, unless a later attempt has saved its own.

Operators, the task decorator and the hook all come this way. A retry by the service differs only in what is searched
for and called (``service_retry.py``).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_provider_service._airflow import metrics
from airflow_provider_service._core.runs import searching
from airflow_provider_service._core.runs.searching import EarlierRuns
from airflow_provider_service._core.runs.service_retry import RetryStarter, find_retry, refuse_retry
from airflow_provider_service._core.runs.start_methods.bridge import BridgeStartMethod
from airflow_provider_service._core.runs.start_methods.mcp import McpStartMethod
from airflow_provider_service._core.runs.start_methods.webhook import WebhookStartMethod
from airflow_provider_service.client import ServiceClient, errors
from airflow_provider_service.client._execution_data import read_state

if TYPE_CHECKING:
    from airflow_provider_service._core.runs.attempt import Attempt
    from airflow_provider_service._core.runs.request import RunRequest
    from airflow_provider_service._core.runs.start_methods.start_method import StartMethod
    from airflow_provider_service.client import ServiceConfig
    from airflow_provider_service.client.models import Execution

log = logging.getLogger(__name__)

#: ``auto`` takes the first that can start the workflow.
START_METHODS: tuple[type[StartMethod], ...] = (WebhookStartMethod, McpStartMethod, BridgeStartMethod)
#: Seconds in which a killed task searches for what it was starting; Airflow gives it 5, most of them for the stop.
KILLED_SEARCH_SECONDS = 1.5


@contextmanager
def _doubts_counted() -> Iterator[None]:
    try:
        yield
    except errors.ServiceRunNotKeptError:
        raise
    except errors.ServiceRunInDoubtError:
        metrics.count(metrics.RUNS_IN_DOUBT)
        raise


class IdempotentStart:
    """The timeout, in seconds, is that of the wait: it limits a call only if its answer may come when the run ends."""

    def __init__(self, client: ServiceClient, attempt: Attempt, *, timeout: float, stopped: threading.Event) -> None:
        self.client, self.attempt, self.timeout, self.stopped = client, attempt, timeout, stopped
        #: The execution, as soon as its id is known.
        self.execution_id: str | None = None
        self._starter: StartMethod | RetryStarter | None = None

    @_doubts_counted()
    def resume_saved(self, workflow_id: str | None = None) -> tuple[str, str] | None:
        """Resume what an earlier attempt has saved, if this one may; return the ids of execution and workflow."""
        saved = self.attempt.saved_run()
        if saved is None or saved.execution_id is None:
            return None
        key, conflict = self.attempt.key, None
        try:
            execution, _ = read_state(self.client, saved.execution_id, saved.workflow_id)
        except errors.ServiceNotFoundError:
            execution = None
        if execution is not None and execution.workflow_id not in (None, saved.workflow_id):
            conflict = (
                f"cannot be resumed: at {self.client.base_url}, execution {execution.id} is one of workflow "
                f"'{execution.workflow_id}', so the connection leads to another server than before"
            )
        elif execution is not None and not key.may_resume(saved.attempt, execution.status):
            return None
        elif workflow_id and workflow_id != saved.workflow_id:
            conflict = f"is not resumed: the task now runs workflow '{workflow_id}'"
        if saved.attempt < key.first and (execution is None or conflict):
            return None
        if conflict:
            what = f"execution {saved.execution_id} of workflow '{saved.workflow_id}'"
            raise errors.ServiceRunInDoubtError(f"{what}, which an earlier attempt started, {conflict}")
        if execution is None:
            # It may have succeeded: the wait decides what that means.
            log.warning("Execution %s, which an earlier attempt started, cannot be found", saved.execution_id)
        else:
            _report_resumed(saved.execution_id, "an earlier attempt started")
        return self._save(saved.execution_id, saved.workflow_id)

    @_doubts_counted()
    def run_workflow(self, request: RunRequest) -> tuple[str, str]:
        methods = [
            kind(request, self.client, self.attempt, timeout=self.timeout, stopped=self.stopped)
            for kind in START_METHODS
        ]
        execution_id = None if self.attempt.is_first else self._resume_run(request, methods)
        if execution_id is None:
            method = _choose(request, methods)
            method.prepare()
            execution_id = self._launch(method)
        return self._save(execution_id, request.workflow.id)

    @_doubts_counted()
    def retry_execution(self, original: Execution, *, load_workflow: bool | None = None) -> tuple[str, str]:
        """``load_workflow`` runs the current workflow instead of the one that was saved with the execution."""
        execution_id = None if self.attempt.is_first else self._resume_retry(original)
        if execution_id is None:
            refuse_retry(original, self.client, self.attempt)
            execution_id = self._retry(original, load_workflow)
        return self._save(execution_id, original.workflow_id or "")

    def _save(self, execution_id: str, workflow_id: str) -> tuple[str, str]:
        self.execution_id = execution_id
        is_killed = self.stopped.is_set()
        if not (is_killed and self.attempt.is_given_up):  # else this would replace what a later attempt has saved
            self.attempt.save(execution_id, workflow_id)
        if is_killed:
            raise errors.ServiceTaskKilledError(f"the task was killed while it started execution {execution_id}")
        return execution_id, workflow_id

    def _resume_run(self, request: RunRequest, methods: Sequence[StartMethod]) -> str | None:
        """Resume the execution of an earlier attempt, or let the service retry it; None if there is none."""
        attempt = self.attempt
        used = [method for method in _requested(request, methods) if method.may_have_been_used()]
        runs = EarlierRuns.joined(method.earlier() for method in used)
        attempt.follow(run.attempt for run in runs.found)
        run = runs.resumable(attempt.key)
        if run is None and attempt.is_counted and self._may_miss_one(runs):
            # It may have been started in a way that ``start`` or the workflow no longer shows. Then it carries the key
            # in a header. Executions that hide theirs count only for the methods that may have been used.
            for method in methods:
                is_webhook, is_bridge = method.name == "webhook", method.name == "bridge"
                if method not in used and (is_webhook or (is_bridge and method.may_have_been_used())):
                    runs = EarlierRuns.joined([runs, EarlierRuns(method.earlier().found, [])])
            run = runs.resumable(attempt.key)
        if run is not None:
            return _report_resumed(run.execution.id, "an earlier attempt started")
        if self._may_miss_one(runs):
            doubt = runs.doubt(self.client.base_url, all_are_kept=all(method.keeps_executions() for method in used))
            if doubt is not None:
                raise errors.ServiceRunInDoubtError(f"an earlier attempt may have run {request.label}: {doubt}")
        return self._retry_failed(runs) if request.on_retry == "retry_execution" else None

    def _may_miss_one(self, runs: EarlierRuns) -> bool:
        is_complete = self.attempt.is_counted and runs.is_complete(self.attempt.key)
        return self.attempt.may_have_started_unseen and not is_complete

    def _retry_failed(self, runs: EarlierRuns) -> str | None:
        """Let the service retry the execution that has failed, or resume such a retry; None if there is no such one."""
        key, saved = self.attempt.key, self.attempt.saved_run()
        candidates = {runs.failed(key)}
        # Clearing the task requests a new execution. Of runs that show no key, only what was saved leads to a retry
        # that an earlier attempt requested.
        if saved is not None and saved.attempt >= key.first:
            candidates |= {saved.retried, saved.execution_id}
        failed_id = max(filter(None, candidates), key=int, default=None)
        if failed_id is None:
            return None
        failed, _ = read_state(self.client, failed_id)
        if failed.status == "canceled":  # the service would cancel its retry as well
            return None
        return self._resume_retry(failed) or self._retry(failed)

    def _resume_retry(self, original: Execution) -> str | None:
        retry_id = find_retry(original, self.client, self.attempt, self.stopped)
        return None if retry_id is None else _report_resumed(retry_id, f"retries {original.id}")

    def _retry(self, original: Execution, load_workflow: bool | None = None) -> str:
        starter = RetryStarter(original, self.client, load_workflow, timeout=self.timeout, stopped=self.stopped)
        return self._launch(starter)

    def _launch(self, starter: StartMethod | RetryStarter) -> str:
        """Replaces what an earlier attempt has saved, so first find out what a call of that attempt has started."""
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
        """Search, in the little time left, for the execution that was being started when the attempt was killed."""
        starter = self._starter
        if starter is None:
            return None
        with ServiceClient(config.one_try(connect_timeout=1.0, timeout=KILLED_SEARCH_SECONDS)) as client:
            try:
                execution_id = searching.search_for(
                    lambda: starter.find(client), KILLED_SEARCH_SECONDS, threading.Event()
                )
            except errors.ServiceError as error:
                log.error("The search for an execution that was being started failed; it may be running: %s", error)
                return None
        if execution_id is None:
            log.warning("An execution that was being started was not found: if its call arrives, it will run")
        return execution_id


def _requested(request: RunRequest, methods: Sequence[StartMethod]) -> list[StartMethod]:
    return [method for method in methods if request.start in ("auto", method.name)]


def _choose(request: RunRequest, methods: Sequence[StartMethod]) -> StartMethod:
    why = request.reason_unavailable()
    if why is None:
        reasons = []
        for method in _requested(request, methods):
            reason = method.reason_unavailable()
            if reason is None:
                return method
            reasons.append(f"{method.name}: {reason}")
        why = "; ".join(reasons)
    raise errors.ServiceInputError(f"{request.label} cannot be started. {why}. Nothing was started")


def _report_resumed(execution_id: str, what_it_is: str) -> str:
    log.info("Resuming execution %s, which %s", execution_id, what_it_is)
    metrics.count(metrics.RUNS_RESUMED)
    return execution_id
