"""A power cut: what happens to runs in each status, and what callers see until the service is back.

A separate service, with room for one run at a time, goes through it once; the tests check what was seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest
import requests

from airflow_provider_service.client._execution_data import failure_of
from airflow_provider_service.client.errors import (
    ServiceStartingError,
    ServiceUnavailableError,
    ServiceUnreachableError,
)
from airflow_provider_service.client.models import Execution
from tests.polling import wait_until

from .expecting import status_and_message, unique
from .target import OwnTarget, Target
from .workbench import LONG_WAIT, Workbench, answering, done, wait, webhook

BOOT_SECONDS = 90.0


class Seen(NamedTuple):
    """What was seen of a service that was killed and came back."""

    empty_stop: tuple[int, str]
    empty_retry: tuple[int, str]
    running: Execution
    asleep: Execution
    queued: Execution
    while_down: str
    booting: list[str]
    crashed: Execution
    queued_afterwards: Execution
    asleep_afterwards: Execution


@pytest.fixture(scope="module")
def seen(shared_target: Target) -> Iterator[Seen]:
    with shared_target.own(concurrency_limit=1) as service, ThreadPoolExecutor(1) as calls:
        yield go_through_it(service, Workbench(service), calls)


def go_through_it(service: OwnTarget, bench: Workbench, calls: ThreadPoolExecutor) -> Seen:
    executions = service.client.executions
    empty = {name: status_and_message(service.raw("POST", f"/executions/99/{name}")) for name in ("stop", "retry")}

    sleeping = bench.publish(*answering(unique()), wait(LONG_WAIT * 10), done())
    asleep = bench.reaches(bench.start(sleeping), "waiting")
    flow = bench.publish(webhook(unique()), wait(60), done())
    quick = bench.publish(webhook(unique()))
    running = bench.reaches(bench.start(flow), "running")

    queued, _ = bench.queue(quick, calls)

    service.kill()
    while_down = outcome(service)
    service.restart()
    booting = watch_it_boot(service)
    is_left = service.differs("queued run after a restart")
    return Seen(
        empty_stop=empty["stop"],
        empty_retry=empty["retry"],
        running=running,
        asleep=asleep,
        queued=queued,
        while_down=while_down,
        booting=booting,
        crashed=bench.finished(running.id),
        queued_afterwards=executions.get(queued.id) if is_left else bench.finished(queued.id),
        asleep_afterwards=executions.get(asleep.id),
    )


def outcome(service: Target) -> str:
    """How a read of the API ends now; on a busy machine, the database may be the last to be ready."""
    try:
        list(service.client.tags.list(limit=1))
    except (ServiceStartingError, ServiceUnavailableError, ServiceUnreachableError) as error:
        return type(error).__name__
    return "answered"


def watch_it_boot(service: OwnTarget) -> list[str]:
    """What readers see, each thing once, until they are answered; readiness and a webhook beside the API."""
    seen: list[str] = []

    def ready() -> bool:
        now = outcome(service)
        notes = [now]
        if now == "ServiceStartingError":
            notes += [f"readiness {probe(service, 'GET', '/healthz/readiness')}"]
            notes += [f"health {probe(service, 'GET', '/healthz')}", f"webhook {probe(service, 'POST', '/webhook/x')}"]
            service.let_boot()
        seen.extend(note for note in notes if note not in seen)
        return now == "answered" and probe(service, "GET", "/healthz/readiness").startswith("200")

    wait_until(ready, seconds=BOOT_SECONDS, what="the service to be back")
    return seen


def probe(service: Target, method: str, path: str) -> str:
    try:
        answer = service.outside(method, path)
    except requests.RequestException as error:
        return type(error).__name__
    return f"{answer.status_code} {answer.headers['Content-Type'].partition(';')[0]}"


@pytest.mark.covers("stop_execution", "retry_execution")
def test_without_a_workflow_unknown_executions_are_just_not_found(seen: Seen) -> None:
    assert seen.empty_stop == seen.empty_retry == (404, "Not Found")


def test_readers_see_failures_until_it_is_back(seen: Seen, service: Target) -> None:
    # The simulator still accepts connections then, and closes them without an answer.
    assert seen.while_down in ("ServiceUnreachableError", "ServiceConnectionLostError")
    assert seen.booting[-1] == "answered"
    assert "ServiceStartingError" in seen.booting
    told = "200" if service.differs("readiness") else "503"
    assert f"readiness {told} application/json" in seen.booting
    assert "health 200 application/json" in seen.booting
    assert "webhook 404 text/html" in seen.booting


@pytest.mark.covers("get_execution")
def test_a_running_execution_has_crashed(seen: Seen) -> None:
    assert seen.running.status == "running"
    assert (seen.crashed.id, seen.crashed.status, seen.crashed.finished) == (seen.running.id, "crashed", False)
    assert seen.crashed.stopped_at is not None
    assert failure_of(seen.crashed).message is not None


@pytest.mark.covers("get_execution")
def test_a_queued_run_is_started_again(seen: Seen, service: Target) -> None:
    assert seen.queued.status == "new"
    status = "new" if service.differs("queued run after a restart") else "success"
    assert (seen.queued_afterwards.id, seen.queued_afterwards.status) == (seen.queued.id, status)


@pytest.mark.covers("get_execution")
def test_a_waiting_execution_survives(seen: Seen) -> None:
    assert seen.asleep_afterwards.status == "waiting"
    assert seen.asleep_afterwards.wait_till == seen.asleep.wait_till
