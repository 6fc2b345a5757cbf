"""Runs beyond the concurrency limit: how they are seen while they queue, and what follows when one leaves the queue.

A separate service, with room for one run at a time, goes through it once; the tests check what was seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from airflow_provider_service._core.runs.attempt import RunKey
from airflow_provider_service._core.runs.searching import RUN_KEY_HEADER
from airflow_provider_service.client.models import DeletedExecution, Execution

from .expecting import status_and_message, unique
from .target import Target
from .test_run_data import search
from .workbench import Workbench, done, wait, webhook


class Seen(NamedTuple):
    """What was seen of a queue behind an active run."""

    first: Execution
    first_found: list[str]
    listed: list[str]
    retry: tuple[int, str]
    call_held_open: bool
    stopped: tuple[Execution, Execution] | None
    deleted: tuple[Execution, DeletedExecution]
    first_afterwards: Execution
    ahead_afterwards: Execution


@pytest.fixture(scope="module")
def seen(shared_target: Target) -> Iterator[Seen]:
    with ThreadPoolExecutor(3) as calls, shared_target.own(concurrency_limit=1) as service:
        yield go_through_it(service, Workbench(service), calls)


def go_through_it(service: Target, bench: Workbench, calls: ThreadPoolExecutor) -> Seen:
    executions = service.client.executions
    flow = bench.publish(webhook(unique()), wait(60), done())
    ahead = bench.reaches(bench.start(flow), "running")

    key = RunKey(unique("key"), 1)
    first, held = bench.queue(flow, calls, {RUN_KEY_HEADER: key.header})
    found = search(service, flow.id, key)
    retry = status_and_message(service.raw("POST", f"/executions/{first.id}/retry"))
    listed = [one.id for one in executions.list(workflow_id=flow.id)]
    call_held_open = not held.done()

    to_delete, _ = bench.queue(flow, calls)
    stopped = None
    if service.offers("stop_execution"):
        to_stop, _ = bench.queue(flow, calls)
        answer = executions.stop(to_stop.id)
        stopped = (Execution(id=to_stop.id, **answer.model_dump()), executions.get(to_stop.id))
    return Seen(
        first=first,
        first_found=[run.execution.id for run in found.found] if found else [],
        listed=listed,
        retry=retry,
        call_held_open=call_held_open,
        stopped=stopped,
        deleted=(to_delete, executions.delete(to_delete.id)),
        first_afterwards=bench.reaches(first.id, "running"),
        ahead_afterwards=executions.get(ahead.id),
    )


@pytest.mark.covers("get_execution", "list_executions")
def test_a_run_beyond_the_limit_is_new(seen: Seen, service: Target) -> None:
    assert (seen.first.status, seen.first.started_at, seen.first.stopped_at) == ("new", None, None)
    assert seen.first.wait_till is None
    assert seen.first.id in seen.listed
    assert seen.first_found == [seen.first.id]
    assert seen.call_held_open is not service.differs("call beyond the limit")


@pytest.mark.covers("retry_execution")
def test_it_is_not_retried(seen: Seen) -> None:
    assert seen.retry == (409, "Execution is queued to run (not yet started) so it cannot be retried")


@pytest.mark.covers("stop_execution")
def test_one_that_is_stopped_never_started(seen: Seen) -> None:
    assert seen.stopped is not None
    answer, read = seen.stopped
    assert (answer.status, read.status) == ("canceled", "canceled")
    assert answer.started_at is not None
    assert answer.started_at.year == 1970
    assert read.started_at is None


@pytest.mark.covers("delete_execution")
def test_it_can_be_deleted(seen: Seen) -> None:
    queued, answer = seen.deleted
    assert (queued.status, answer.id) == ("new", int(queued.id))


@pytest.mark.covers("get_execution")
def test_when_one_leaves_the_first_starts_beyond_the_limit(seen: Seen) -> None:
    assert (seen.first_afterwards.status, seen.ahead_afterwards.status) == ("running", "running")
