"""The retry of an execution, which is answered when the new one has ended."""

from __future__ import annotations

import threading

import pytest

from airflow_provider_service._core.runs.service_retry import RetrySearch, RetryStarter
from airflow_provider_service.client.errors import ServiceConflictError, ServiceInvalidRequestError, ServiceTimeoutError
from tests.polling import wait_until

from .expecting import refused, unique
from .target import Target
from .workbench import LONG_WAIT, Workbench, answering, done, stop_and_error, wait, webhook


@pytest.mark.covers("retry_execution")
def test_a_failed_retry_is_returned_too(bench: Workbench, service: Target) -> None:
    executions = service.client.executions
    flow = bench.publish(webhook(unique("hook")), stop_and_error())
    original = bench.finished(bench.start(flow))
    retried = executions.retry(original.id)
    assert (retried.status, retried.mode, str(retried.retry_of)) == ("error", "retry", original.id)
    assert retried.id != original.id
    read = executions.get(original.id)
    assert (read.status, read.retry_success_id) == ("error", None)
    assert executions.retry(original.id).id not in (original.id, retried.id)


@pytest.mark.covers("retry_execution")
def test_a_retry_with_the_current_workflow_can_succeed(bench: Workbench, service: Target) -> None:
    executions = service.client.executions
    flow = bench.publish(webhook(unique("hook")), stop_and_error())
    original = bench.finished(bench.start(flow))
    nodes = [(flow.nodes or [])[0], {**done(), "name": "Stop"}]
    service.client.workflows.update(flow.id, flow.name, nodes, flow.connections or {}, {})

    assert executions.retry(original.id, load_workflow=False).status == "error"
    retried = executions.retry(original.id, load_workflow=True)
    assert retried.status == "success"
    read = executions.get(original.id)
    assert (read.status, read.retry_success_id) == ("error", retried.id)


@pytest.mark.covers("retry_execution")
def test_a_success_is_not_retried(bench: Workbench, service: Target) -> None:
    execution_id = bench.finished(bench.start(bench.publish())).id
    error, status = ServiceConflictError, 409
    if service.differs("retry of a success"):
        error, status = ServiceInvalidRequestError, 400  # type: ignore[assignment]
    with refused(error, "The execution succeeded, so it cannot be retried.", status):
        service.client.executions.retry(execution_id)


@pytest.mark.covers("retry_execution")
def test_the_answer_comes_when_the_new_run_has_ended(bench: Workbench, service: Target) -> None:
    executions = service.client.executions
    flow = bench.publish(webhook(unique("hook")), wait(8), stop_and_error())
    running = executions.get(bench.start(flow))
    assert running.status == "running"

    with pytest.raises(ServiceTimeoutError):
        executions.retry(running.id, timeout=0.5)
    # No caller waits for it any more, yet a second one runs next to the first.
    (second,) = wait_until(lambda: list(RetrySearch(running).read(service.client)), what="the retry")
    assert second.status == "running"
    service.pass_time(8)
    for execution_id in (running.id, second.id):
        assert bench.finished(execution_id).status == "error"


@pytest.mark.covers("retry_execution", needs=["stop_execution"])
def test_a_canceled_execution_continues_after_its_wait(bench: Workbench, service: Target) -> None:
    executions = service.client.executions
    original = bench.start(bench.publish(*answering(unique()), wait(LONG_WAIT * 10), done()))
    bench.reaches(original, "waiting")
    executions.stop(original)
    bench.reaches(original, "canceled")
    assert executions.retry(original, timeout=20).status == "success"


@pytest.mark.covers("retry_execution")
def test_a_waiting_execution_is_retried_and_keeps_waiting(bench: Workbench, service: Target) -> None:
    executions = service.client.executions
    original = bench.start(bench.publish(*answering(unique()), wait(LONG_WAIT * 10), done()))
    bench.reaches(original, "waiting")
    assert executions.retry(original, timeout=20).status == "success"
    assert executions.get(original).status == "waiting"


@pytest.mark.covers("retry_execution")
def test_a_retry_whose_answer_is_not_awaited_is_found(bench: Workbench, service: Target) -> None:
    flow = bench.publish(webhook(unique("hook")), wait(4), stop_and_error())
    original_id = bench.start(flow)
    service.pass_time(4)
    bench.finished(original_id)
    original = service.client.executions.get(original_id)
    found = RetryStarter(original, service.client, False, timeout=30, stopped=threading.Event()).start()
    assert service.client.executions.get(found).retry_of == original_id
    service.pass_time(4)
    assert bench.finished(found).status == "error"
