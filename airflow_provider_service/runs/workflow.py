"""Run a workflow for a key: what an attempt resumes, and what it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_service.client.errors import ServiceRunNotFoundError
from airflow_provider_service.runs.search import EarlierRuns
from airflow_provider_service.runs.ways.choice import choose, ways_taken

if TYPE_CHECKING:
    from airflow_provider_service.runs.once import RunOnce
    from airflow_provider_service.runs.request import RunRequest


def resume_or_start(request: RunRequest, once: RunOnce) -> str:
    """Resume the execution of an earlier attempt, or start one; its id.

    :raises ServiceRunNotFoundError: an execution may have been started that cannot be found.
    :raises ServiceInputError: the workflow cannot be run as it stands; nothing was started.
    """
    earlier = None if once.attempt.is_first else _earlier(request, once)
    return earlier or once.start(choose(request, once.client).starter(once))


def _earlier(request: RunRequest, once: RunOnce) -> str | None:
    """The execution that this attempt resumes instead of starting one."""
    attempt, taken = once.attempt, ways_taken(request, once.client)
    runs = EarlierRuns.joined(way.earlier(once) for way in taken)
    attempt.follow(runs)
    run = runs.adoptable(attempt.key)
    if run is not None:
        return once.resume(run.execution.id, "an earlier attempt started")
    if attempt.may_have_started_unseen and not runs.has_attempt(attempt.key.attempt - 1):
        doubt = runs.doubt(once.client.base_url, all_are_kept=all(way.keeps_executions() for way in taken))
        if doubt is not None:
            raise ServiceRunNotFoundError(f"an earlier attempt may have run {request.about}: {doubt}")
    return _retry_of_failed(once, runs) if request.on_retry == "retry_execution" else None


def _retry_of_failed(once: RunOnce, runs: EarlierRuns) -> str | None:
    key, note = once.attempt.key, once.attempt.note()
    is_of_this_order = note is not None and note.attempt >= key.first  # clearing the task orders a new execution
    failed_id = runs.failed(key) or (note.execution_id if note and is_of_this_order else None)
    if failed_id is None:
        return None
    failed = once.client.executions.get(failed_id)
    if failed.status == "canceled":  # the service would cancel its retry as well
        return None
    return once.earlier_retry(failed) or once.retry(failed)
