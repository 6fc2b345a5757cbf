"""Attempts between which something has changed: a clock, the server, the workflow or the retries of the task."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, TaskDeferred

from airflow_provider_service.client._clock import using
from airflow_provider_service.operators.executions import ServiceRetryExecutionOperator
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing._service import first_event, revived
from tests.set_clock import SetClock

from .conftest import MakeRun, connect
from .cutting import cut_off
from .task_run import StateStore
from .workflows import (
    DONE,
    SCHEDULE,
    calls,
    held,
    put,
    statuses,
    wait,
    webhook,
)


@pytest.mark.parametrize("start", ["webhook", "mcp", "retry"])
@pytest.mark.parametrize("hours", [-1, 1])
def test_the_clock_of_the_worker_may_be_wrong(
    monkeypatch: pytest.MonkeyPatch, task_run: MakeRun, simulator: ServiceSimulator, start: str, hours: int
) -> None:
    connect(monkeypatch, simulator, extra={"mcp_api_key": simulator.mcp_api_key})
    workflow_id = put(simulator, webhook() if start == "webhook" else SCHEDULE, wait(60), DONE, availableInMCP=True)
    if start == "retry":
        original = simulator.start_execution(workflow_id, status="error")
        run = task_run(ServiceRetryExecutionOperator, execution_id=original, wait_for_completion=False)
    else:
        run = task_run(workflow_id=workflow_id, wait_for_completion=False)
    cut_off(run)
    started = str(held(simulator, workflow_id)[-1].id)
    worker = SetClock(flows=True)
    worker.advance(hours * 3600)
    with using(worker):
        if start == "mcp":  # the call carries no key
            with pytest.raises(AirflowFailException, match=f"executions {started} do not show what started them"):
                run.attempt(2)
        else:
            assert run.attempt(2)["execution_id"] == started


@pytest.fixture
def other() -> Iterator[ServiceSimulator]:
    """Another server, whose execution 1 is one of another workflow and is running."""
    with ServiceSimulator() as simulator:
        simulator.start_execution(put(simulator, webhook(), DONE, name="Of others"))
        yield simulator


@pytest.mark.parametrize("status", ["success", "running", "error"])
def test_the_execution_of_another_server_is_not_resumed(
    task_run: MakeRun,
    simulator: ServiceSimulator,
    tmp_path: Path,
    other: ServiceSimulator,
    monkeypatch: pytest.MonkeyPatch,
    status: str,
) -> None:
    workflow_id = put(simulator, webhook(), wait(30), DONE)
    run = task_run(workflow_id=workflow_id, store=StateStore(tmp_path / "state.json"))
    run.attempt(1, wait_for_completion=False)
    if status != "running":
        other.finish_execution("1", status)
    connect(monkeypatch, other)

    with pytest.raises(
        AirflowFailException, match=f"^execution 1 of workflow '{workflow_id}', .* leads to another server than before"
    ):
        run.attempt(2)
    assert calls(other) == 0


def test_the_execution_of_the_workflow_that_the_task_ran_before_is_not_resumed_until_it_is_cleared(
    task_run: MakeRun, simulator: ServiceSimulator, tmp_path: Path
) -> None:
    before, now = (put(simulator, webhook(path), DONE, name=path) for path in ("before", "now"))
    run = task_run(workflow_id=before, store=StateStore(tmp_path / "state.json"), wait_for_completion=False)
    run.attempt(1)

    with pytest.raises(
        AirflowFailException, match=f"'{before}', .* is not resumed: the task now runs workflow '{now}'"
    ):
        run.attempt(2, workflow_id=now)
    run.clear(2)
    assert run.attempt(3, workflow_id=now)["workflow_id"] == now


@pytest.mark.parametrize("status", ["success", "running"])
@pytest.mark.parametrize("when", ["before the event", "after the event"])
def test_an_overdue_wait_neither_judges_nor_stops_the_execution_of_another_server(
    task_run: MakeRun,
    simulator: ServiceSimulator,
    other: ServiceSimulator,
    monkeypatch: pytest.MonkeyPatch,
    status: str,
    when: str,
) -> None:
    run = task_run(workflow_id=put(simulator, webhook(), wait(30), DONE), deferrable=True, timeout=3.0)
    with pytest.raises(TaskDeferred) as deferred:
        run.attempt(1)
    if status != "running":
        other.finish_execution("1", status)
    if when == "before the event":
        connect(monkeypatch, other)
    event = asyncio.run(first_event(revived(deferred.value.trigger)))
    connect(monkeypatch, other)

    with pytest.raises(AirflowFailException, match="leads to another server than before"):
        run.resume(1, deferred.value, event)
    assert not [one for one in other.requests if one.method != "GET"]


@pytest.mark.parametrize("retries", [2, 3])
def test_lowered_retries_do_not_start_a_new_run(
    task_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None, retries: int
) -> None:
    workflow_id = put(simulator, webhook(), wait(0.5), DONE)
    run = task_run(workflow_id=workflow_id, store=store)
    run.retries = run.max_tries = 4
    cut_off(run)
    run.retries = retries
    assert run.whole_attempt(2)["execution_id"] == "1"
    assert (statuses(simulator, workflow_id), calls(simulator)) == (["success"], 1)
