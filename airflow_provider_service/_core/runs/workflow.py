"""Run a workflow for a key: resume the execution of an earlier attempt, or start one with the chosen start method."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from airflow_provider_service._core.runs.searching import EarlierRuns
from airflow_provider_service._core.runs.service_retry import RetryStarter, earlier_retry
from airflow_provider_service._core.runs.start_methods.bridge import BridgeStartMethod
from airflow_provider_service._core.runs.start_methods.mcp import McpStartMethod
from airflow_provider_service._core.runs.start_methods.webhook import WebhookStartMethod
from airflow_provider_service.client._execution_data import read_state
from airflow_provider_service.client.errors import ServiceInputError, ServiceRunInDoubtError

if TYPE_CHECKING:
    from airflow_provider_service._core.runs.attempt import Attempt
    from airflow_provider_service._core.runs.idempotent_start import IdempotentStart
    from airflow_provider_service._core.runs.request import RunRequest
    from airflow_provider_service._core.runs.start_methods.start_method import StartMethod
    from airflow_provider_service.client import ServiceClient

#: ``auto`` takes the first that can start the workflow.
START_METHODS: tuple[type[StartMethod], ...] = (WebhookStartMethod, McpStartMethod, BridgeStartMethod)


def resume_or_start(request: RunRequest, start: IdempotentStart) -> str:
    """Resume the execution of an earlier attempt, or start one; return its id.

    :raises ServiceRunInDoubtError: an execution may have been started that cannot be found.
    :raises ServiceInputError: the workflow cannot be run as it stands; nothing was started.
    """
    earlier = None if start.attempt.is_first else _earlier(request, start)
    return earlier or start.launch(_choose(request, start.client).starter(start))


def _earlier(request: RunRequest, start: IdempotentStart) -> str | None:
    """Resume the execution of an earlier attempt, or let the service retry it; None if there is none."""
    attempt = start.attempt
    used = [method for method in _methods(request, start.client) if method.may_have_been_used()]
    runs = EarlierRuns.joined(method.earlier(start) for method in used)
    attempt.follow(runs)
    run = runs.resumable(attempt.key)
    if run is None and attempt.is_counted and _may_miss_one(runs, attempt):
        runs = EarlierRuns.joined([runs, *_started_otherwise(request, start, used)])
        run = runs.resumable(attempt.key)
    if run is not None:
        return start.resume(run.execution.id, "an earlier attempt started")
    if _may_miss_one(runs, attempt):
        doubt = runs.doubt(start.client.base_url, all_are_kept=all(method.keeps_executions() for method in used))
        if doubt is not None:
            raise ServiceRunInDoubtError(f"an earlier attempt may have run {request.label}: {doubt}")
    return _retry_of_failed(start, runs) if request.on_retry == "retry_execution" else None


def _may_miss_one(runs: EarlierRuns, attempt: Attempt) -> bool:
    is_complete = attempt.is_counted and runs.is_complete(attempt.key)
    return attempt.may_have_started_unseen and not is_complete


def _started_otherwise(
    request: RunRequest, start: IdempotentStart, used: Collection[StartMethod]
) -> Iterator[EarlierRuns]:
    """Find executions that earlier attempts have started in a way that ``start`` or the workflow no longer shows.

    They carry the key in a header. Executions that hide it count only for the methods that may have been used.
    """
    names = {method.name for method in used}
    webhook, bridge = WebhookStartMethod(request, start.client), BridgeStartMethod(request, start.client)
    if webhook.name not in names:
        yield EarlierRuns(webhook.earlier(start).found, [])
    if bridge.name not in names and bridge.may_have_been_used():
        yield EarlierRuns(bridge.earlier(start).found, [])


def _retry_of_failed(start: IdempotentStart, runs: EarlierRuns) -> str | None:
    key, saved = start.attempt.key, start.attempt.saved_run()
    is_of_this_order = saved is not None and saved.attempt >= key.first  # clearing the task requests a new execution
    # Of runs that show no key, only what was saved leads to a retry that an earlier attempt requested.
    known = {runs.failed(key), *((saved.retried, saved.execution_id) if saved and is_of_this_order else ())}
    failed_id = max(known - {None}, key=int, default=None)
    if failed_id is None:
        return None
    failed, _ = read_state(start.client, failed_id)
    if failed.status == "canceled":  # the service would cancel its retry as well
        return None
    return earlier_retry(failed, start) or start.launch(RetryStarter(failed, start))


def _choose(request: RunRequest, client: ServiceClient) -> StartMethod:
    """Choose the requested start method or, with ``auto``, the first that can start the workflow.

    :raises ServiceInputError: no method can, for the reasons in the message; nothing was started.
    """
    reasons = []
    general = request.reason_unavailable()
    for method in _methods(request, client) if general is None else ():
        reason = method.reason_unavailable()
        if reason is None:
            return method
        reasons.append(f"{method.name}: {reason}")
    why = general or "; ".join(reasons)
    raise ServiceInputError(f"{request.label} cannot be started. {why}. Nothing was started")


def _methods(request: RunRequest, client: ServiceClient) -> Iterator[StartMethod]:
    return (kind(request, client) for kind in START_METHODS if request.start in ("auto", kind.name))
