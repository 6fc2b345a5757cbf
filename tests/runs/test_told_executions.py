"""A task leaves when its execution began and ended, and the name of the workflow, for the list of executions."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import TaskDeferred

from airflow_provider_service._airflow.attempts import EXECUTION_KEY
from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.errors import ServiceExecutionFailedError
from airflow_provider_service.operators.executions import ServiceRetryExecutionOperator, ServiceStopExecutionOperator
from airflow_provider_service.simulator import ServiceSimulator

from .conftest import MakeRun
from .task_run import TaskRun
from .workflows import DONE, FAIL, put, wait, webhook


def told(run: TaskRun) -> dict[str, Any]:
    """What the task has told."""
    return dict(run.pushed[EXECUTION_KEY])


def of(client: ServiceClient, execution_id: str, **more: str) -> dict[str, Any]:
    """What the service knows about an execution, as a task tells it."""
    wire = client.executions.get(execution_id).to_wire()
    times = {"started_at": wire["startedAt"], "stopped_at": wire["stoppedAt"]}
    return {"execution_id": execution_id, **times, **more}


@pytest.mark.parametrize("node", [DONE, FAIL], ids=["succeeds", "fails"])
def test_a_run_tells_the_times_of_its_execution_and_the_name_of_its_workflow(
    make_run: MakeRun, simulator: ServiceSimulator, client: ServiceClient, node: dict[str, Any]
) -> None:
    run = make_run(workflow_id=put(simulator, webhook(), wait(0.3), node, name="Orders"))
    with suppress(ServiceExecutionFailedError):
        run.whole_attempt(1)
    assert told(run) == of(client, "1", workflow_name="Orders")


def test_a_run_that_is_stopped_at_its_timeout_tells_how_long_it_really_ran(
    make_run: MakeRun, simulator: ServiceSimulator, client: ServiceClient
) -> None:
    run = make_run(workflow_id=put(simulator, webhook(), wait(600), name="Long"), timeout=5)
    with pytest.raises(ServiceExecutionFailedError, match="it was stopped"):
        run.whole_attempt(1)
    assert told(run) == of(client, "1", workflow_name="Long")


def test_a_run_that_waits_in_the_triggerer_has_told_its_start(
    task_run: MakeRun, simulator: ServiceSimulator, client: ServiceClient
) -> None:
    run = task_run(workflow_id=put(simulator, webhook(), wait(600), name="Long"), deferrable=True)
    with pytest.raises(TaskDeferred):
        run.attempt(1)
    began = client.executions.get("1").started_at
    assert began is not None
    assert told(run) == {"execution_id": "1", "started_at": began.isoformat(), "workflow_name": "Long"}


def test_a_task_that_an_older_version_has_deferred_tells_the_times_without_the_name(
    task_run: MakeRun, simulator: ServiceSimulator, client: ServiceClient
) -> None:
    run = task_run(workflow_id=put(simulator, webhook(), wait(0.3), DONE), deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        run.attempt(1)
    deferred.value.kwargs = None  # as it was stored then
    wire = of_ended(simulator, client)
    run.resume(1, deferred.value, wire)
    assert told(run) == of(client, "1")


def of_ended(simulator: ServiceSimulator, client: ServiceClient) -> dict[str, Any]:
    """The event of a trigger that has seen the execution end."""
    from airflow_provider_service._core.waits.outcome import judge
    from airflow_provider_service.client._clock import clock

    clock().sleep(1)
    outcome = judge(client.executions.get("1"), simulator.base_url)
    assert outcome is not None
    return outcome.to_event()


def test_a_run_without_a_wait_tells_the_name(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    run = task_run(workflow_id=put(simulator, webhook(), wait(600), name="Long"), wait_for_completion=False)
    run.attempt(1)
    assert told(run) == {"execution_id": "1", "workflow_name": "Long"}


def test_a_retry_tells_the_times_of_the_new_execution(
    make_run: MakeRun, simulator: ServiceSimulator, client: ServiceClient
) -> None:
    original = simulator.start_execution(put(simulator, webhook(), wait(0.3), DONE), status="error")
    run = make_run(ServiceRetryExecutionOperator, execution_id=original)
    run.whole_attempt(1)
    assert told(run) == of(client, "2")


def test_a_stop_tells_the_times_of_what_it_has_stopped(
    make_run: MakeRun, simulator: ServiceSimulator, client: ServiceClient
) -> None:
    running = simulator.start_execution(put(simulator, webhook(), wait(600)), status="running")
    run = make_run(ServiceStopExecutionOperator, execution_id=running)
    run.whole_attempt(1)
    known = client.executions.get(running)
    assert known.started_at is not None
    assert known.stopped_at is not None
    times = {"started_at": known.started_at.isoformat(), "stopped_at": known.stopped_at.isoformat()}
    assert told(run) == {"execution_id": running, **times}
