"""Attempts whose predecessor's execution failed, which the service then retries itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_service._core.runs.attempt import Attempt
from airflow_provider_service.client.errors import ServiceExecutionFailedError
from airflow_provider_service.simulator import ServiceSimulator

from .conftest import MakeRun
from .cutting import cut_off, end_each
from .task_run import StateStore
from .workflows import DONE, WITH_ID, calls, held, put, statuses, wait, webhook


@pytest.mark.slow(one_in=4)
def test_the_service_retries_what_failed(
    make_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None
) -> None:
    workflow_id = put(simulator, webhook(), wait(30), DONE)
    run = make_run(workflow_id=workflow_id, store=store, on_retry="retry_execution")
    end_each(run, simulator)
    for number in (1, 2):
        with pytest.raises(ServiceExecutionFailedError):
            run.whole_attempt(number)
    end_each(run, simulator, "success")
    assert run.whole_attempt(3)["execution_id"] == "3"
    # The latest retry is resumed, not the first.
    assert [one.retry_of for one in held(simulator, workflow_id)] == [None, 1, 2]
    assert calls(simulator) == 1


@pytest.mark.parametrize("status", ["success", "error"])
def test_a_cleared_task_retries_nothing_from_before(
    task_run: MakeRun, simulator: ServiceSimulator, tmp_path: Path, status: str
) -> None:
    workflow_id = put(simulator, webhook(options={"responseData": WITH_ID}), DONE)
    before = simulator.start_execution(workflow_id, status=status)
    run = task_run(workflow_id=workflow_id, store=StateStore(tmp_path / "state.json"), on_retry="retry_execution")
    Attempt.of_task(run.prepare(1)).save(before, workflow_id)
    run.clear(tried=1)
    assert run.attempt(2)["status"] == "success"
    assert held(simulator, workflow_id)[-1].retry_of is None


def test_a_canceled_execution_is_run_again(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), wait(30), DONE)
    run = task_run(workflow_id=workflow_id, on_retry="retry_execution")
    end_each(run, simulator, "canceled")
    with pytest.raises(ServiceExecutionFailedError):
        run.attempt(1)
    end_each(run, simulator, "success")
    assert run.attempt(2)["execution_id"] == "2"
    assert held(simulator, workflow_id)[1].retry_of is None


@pytest.mark.slow(one_in=4)
def test_an_attempt_resumes_the_retry_of_a_dead_one(
    make_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None
) -> None:
    workflow_id = put(simulator, webhook(), wait(30), DONE)
    run = make_run(workflow_id=workflow_id, store=store, on_retry="retry_execution", timeout=20)
    end_each(run, simulator)
    with pytest.raises(ServiceExecutionFailedError):
        run.whole_attempt(1)
    cut_off(run, 2)
    end_each(run, simulator, "success")
    assert run.whole_attempt(3)["execution_id"] == "2"
    assert statuses(simulator, workflow_id) == ["error", "success"]


def test_a_running_retry_that_does_not_show_its_key_is_known_by_what_it_retries(
    task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(), wait(0.5), DONE)
    run = task_run(workflow_id=workflow_id, on_retry="retry_execution")
    end_each(run, simulator)
    with pytest.raises(ServiceExecutionFailedError):
        run.attempt(1)
    run.on_push = None
    simulator.start_execution(workflow_id, seconds=0.5)
    held(simulator, workflow_id)[-1].retry_of = 1
    held(simulator, workflow_id)[-1].mode = "retry"
    assert run.attempt(3)["execution_id"] == "2"
    assert statuses(simulator, workflow_id) == ["error", "success"]
