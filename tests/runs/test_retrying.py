"""Retries of executions: one a task run, waited for like a run, and stops that wait for the end."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, TaskDeferred

from airflow_provider_service.client import errors
from airflow_provider_service.client.errors import ServiceExecutionFailedError, ServiceRunNotStartedError
from airflow_provider_service.operators.executions import ServiceRetryExecutionOperator, ServiceStopExecutionOperator
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing._service import as_stored, first_event, revived

from .conftest import MakeRun, connect
from .cutting import cut_off, end_each
from .task_run import StateStore
from .workflows import DONE, FAIL, WITH_ID, held, put, statuses, wait, webhook


@pytest.fixture
def retry_run(make_run: MakeRun) -> MakeRun:
    """Makes a task run that retries an execution, for a wait in the worker and one in the triggerer."""
    return partial(make_run, ServiceRetryExecutionOperator)


def failed(simulator: ServiceSimulator, *nodes: dict[str, Any], **settings: Any) -> tuple[str, str]:
    """A workflow with an execution that failed; their ids."""
    workflow_id = put(simulator, webhook(), *nodes, DONE, **settings)
    return workflow_id, simulator.start_execution(workflow_id, status="error")


def retries(simulator: ServiceSimulator, execution_id: str) -> int:
    """How often the service was asked for a retry."""
    return sum(request.path.endswith(f"/executions/{execution_id}/retry") for request in simulator.requests)


def test_a_retry_that_succeeds(retry_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id, original = failed(simulator, wait(0.3))
    run = retry_run(execution_id=int(original))
    done = run.whole_attempt(1)
    assert (done["status"], done["execution_id"], done["workflow_id"]) == ("success", "2", workflow_id)
    assert run.pushed["_link_ServiceExecutionLink"] == done["url"]
    assert done["retry_of"] == original
    assert held(simulator, workflow_id)[1].retry_of == int(original)


def test_a_retry_that_fails(retry_run: MakeRun, simulator: ServiceSimulator) -> None:
    _, original = failed(simulator, FAIL)
    with pytest.raises(ServiceExecutionFailedError, match=r"ended with status 'error' at node 'Fail': It failed"):
        retry_run(execution_id=original).whole_attempt(1)


def test_a_deferred_task_does_not_wait_for_the_answer(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id, original = failed(simulator, wait(60))
    run = task_run(ServiceRetryExecutionOperator, execution_id=original, deferrable=True)
    with pytest.raises(TaskDeferred):
        run.attempt(1)
    assert retries(simulator, original) == 1
    assert statuses(simulator, workflow_id) == ["error", "running"]
    simulator.clock.advance(61)
    assert run.whole_attempt(2)["execution_id"] == "2"
    assert statuses(simulator, workflow_id) == ["error", "success"]


def test_a_retry_that_takes_too_long_is_stopped(retry_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id, original = failed(simulator, wait(30))
    with pytest.raises(ServiceExecutionFailedError, match=r"execution 2 had not ended 20 s .*; it was stopped"):
        retry_run(execution_id=original, timeout=20, poll_interval=5).whole_attempt(1)
    assert statuses(simulator, workflow_id) == ["error", "canceled"]


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    "fault",
    [{"kind": "drop"}, {"kind": "truncate"}, {"kind": "status", "status": 502}],
    ids=lambda fault: str(fault["kind"]),
)
def test_a_lost_answer_never_starts_a_second_retry(
    retry_run: MakeRun, simulator: ServiceSimulator, fault: dict[str, Any], after: bool
) -> None:
    workflow_id, original = failed(simulator)
    run = retry_run(execution_id=original)
    simulator.inject(**fault, path="/retry$", after_processing=after)
    if after:
        assert run.whole_attempt(1)["execution_id"] == "2"
    else:
        with pytest.raises(ServiceRunNotStartedError, match="no retry of execution 1 was started"):
            run.whole_attempt(1)
        assert retries(simulator, original) == 1
        assert run.whole_attempt(2)["execution_id"] == "2"
    assert statuses(simulator, workflow_id) == ["error", "success"]


def test_a_lost_answer_of_a_retry_that_is_not_kept(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    _, original = failed(simulator, saveDataSuccessExecution="none")
    simulator.inject("drop", path="/retry$", after_processing=True)
    run = task_run(ServiceRetryExecutionOperator, execution_id=original)
    with pytest.raises(AirflowFailException, match="may have been started, which its workflow does not keep"):
        run.attempt(1)
    with pytest.raises(AirflowFailException, match="an earlier attempt may have retried execution 1"):
        run.attempt(2)
    assert retries(simulator, original) == 1


def test_without_a_scope_to_read_the_workflow_a_lost_answer_is_final(
    monkeypatch: pytest.MonkeyPatch, task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    _, original = failed(simulator)
    scopes = ["execution:read", "execution:list", "execution:retry"]
    connect(monkeypatch, simulator, password=simulator.create_key(scopes))
    simulator.inject("drop", path="/retry$")
    with pytest.raises(AirflowFailException, match="may have been started"):
        task_run(ServiceRetryExecutionOperator, execution_id=original).attempt(1)


def test_an_attempt_resumes_the_retry_of_a_dead_one(
    retry_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None
) -> None:
    workflow_id, original = failed(simulator, wait(1.5))
    run = retry_run(execution_id=original, store=store)
    cut_off(run)
    assert run.whole_attempt(2)["execution_id"] == "2"
    assert (statuses(simulator, workflow_id), retries(simulator, original)) == (["error", "success"], 1)


def test_an_attempt_resumes_a_kept_retry(
    task_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None
) -> None:
    _, original = failed(simulator, wait(3))
    run = task_run(ServiceRetryExecutionOperator, execution_id=original, store=store, deferrable=True)
    with pytest.raises(TaskDeferred):
        run.attempt(1)
    assert run.whole_attempt(2)["execution_id"] == "2"


def test_a_kept_retry_does_not_need_the_original(
    task_run: MakeRun, simulator: ServiceSimulator, tmp_path: Path
) -> None:
    _, original = failed(simulator, wait(3))
    store = StateStore(tmp_path / "state.json")
    run = task_run(ServiceRetryExecutionOperator, execution_id=original, store=store, deferrable=True)
    with pytest.raises(TaskDeferred):
        run.attempt(1)
    simulator.forget_execution(original)
    assert run.whole_attempt(2)["execution_id"] == "2"


def test_a_cleared_task_asks_for_another_retry(
    task_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None
) -> None:
    workflow_id, original = failed(simulator)
    run = task_run(ServiceRetryExecutionOperator, execution_id=original, store=store)
    assert run.attempt(1)["execution_id"] == "2"
    run.max_tries = 1 + run.retries
    assert run.attempt(2)["execution_id"] == "3"
    assert statuses(simulator, workflow_id) == ["error", "success", "success"]


@pytest.mark.slow
@pytest.mark.parametrize("learns_the_id", [True, False], ids=["known", "unknown"])
def test_a_later_attempt_of_a_cleared_task_resumes_no_retry_from_before(
    task_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None, learns_the_id: bool
) -> None:
    workflow_id, original = failed(simulator, wait(1))
    run = task_run(ServiceRetryExecutionOperator, execution_id=original, store=store)
    assert run.attempt(1)["execution_id"] == "2"
    run.max_tries = 1 + run.retries
    if learns_the_id:
        end_each(run, simulator)
        with pytest.raises(ServiceExecutionFailedError):
            run.attempt(2)
        run.on_push = None
    else:
        cut_off(run, 2)
        simulator.finish_execution("3", "error")
    assert run.attempt(3)["execution_id"] == "4"
    assert run.attempt(4)["execution_id"] == "4"
    assert statuses(simulator, workflow_id) == ["error", "success", "error", "success"]


def test_a_retry_that_failed_is_followed_by_another(
    retry_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None
) -> None:
    workflow_id, original = failed(simulator, FAIL)
    run = retry_run(execution_id=original, store=store)
    for attempt in (1, 2):
        with pytest.raises(ServiceExecutionFailedError):
            run.whole_attempt(attempt)
    assert [one.retry_of for one in held(simulator, workflow_id)] == [None, 1, 1]


def test_a_workflow_that_cannot_be_read_at_present_fails_the_attempt_only(
    task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    workflow_id, original = failed(simulator)
    run = task_run(ServiceRetryExecutionOperator, execution_id=original)
    simulator.inject("status", status=500, path=f"/workflows/{workflow_id}$")
    with pytest.raises(errors.ServiceServerError):
        run.attempt(2)
    assert run.attempt(3)["execution_id"] == "2"


def test_a_retry_of_another_task_run_is_ignored(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id, original = failed(simulator)
    assert task_run(ServiceRetryExecutionOperator, execution_id=original).attempt(1)["execution_id"] == "2"
    # A first attempt asks for one of its own.
    assert task_run(ServiceRetryExecutionOperator, execution_id=original).attempt(1)["execution_id"] == "3"
    assert statuses(simulator, workflow_id) == ["error", "success", "success"]


def test_the_current_workflow_instead_of_the_saved_one(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id, original = failed(simulator, FAIL)
    workflow = simulator.state.workflows.get(workflow_id)
    nodes = [webhook(), DONE]
    links = {"Webhook": {"main": [[{"node": "Done", "type": "main", "index": 0}]]}}
    body = {"nodes": nodes, "connections": links}
    simulator.in_loop(lambda: simulator.state.workflows.update(workflow, body))
    run = task_run(ServiceRetryExecutionOperator, execution_id=original, load_workflow=True)
    assert run.attempt(1)["status"] == "success"


@pytest.mark.parametrize(
    ("status", "message"), [("success", "succeeded, so it cannot be retried"), ("new", "queued to run")]
)
def test_what_the_service_does_not_retry(
    task_run: MakeRun, simulator: ServiceSimulator, status: str, message: str
) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    execution_id = simulator.start_execution(workflow_id, status=status)
    with pytest.raises(errors.ServiceConflictError, match=message):
        task_run(ServiceRetryExecutionOperator, execution_id=execution_id).attempt(1)
    with pytest.raises(errors.ServiceNotFoundError):
        task_run(ServiceRetryExecutionOperator, execution_id=99).attempt(1)


@pytest.mark.parametrize("status", ["running", "waiting"])
def test_an_execution_that_has_not_ended_gets_no_retry_beside_it(
    task_run: MakeRun, simulator: ServiceSimulator, status: str
) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    execution_id = simulator.start_execution(workflow_id, status=status)
    run = task_run(ServiceRetryExecutionOperator, execution_id=execution_id)
    with pytest.raises(AirflowFailException, match=f"has not ended, its status is '{status}'; no retry was started"):
        run.attempt(1)
    assert (retries(simulator, execution_id), statuses(simulator, workflow_id)) == (0, [status])


# ---------------------------------------------------------------- stops


def test_a_stop_waits_for_the_end(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(options={"responseData": WITH_ID}), wait(30), DONE)
    execution_id = task_run(workflow_id=workflow_id, wait_for_completion=False).attempt(1)["execution_id"]
    # The service says that it is over, and lets it run on for a while.
    simulator.inject("status", status=409, path="/stop$", times=4)
    stop = {"execution_id": execution_id, "poll_interval": 0.05}
    early = task_run(ServiceStopExecutionOperator, **stop, wait_for_completion=False).attempt(1)
    assert (early["status"], early["stopped"]) == ("running", False)
    for deferrable in (False, True):
        late = task_run(ServiceStopExecutionOperator, **{**stop, "timeout": 0.1}, deferrable=deferrable)
        with pytest.raises(
            AirflowFailException, match=r"had not ended 0\.1 s after the wait began, even though the service does not"
        ):
            late.whole_attempt(1)
        assert "had not ended" in late.pushed["service_failure"]
    simulator.finish_execution(execution_id)
    assert task_run(ServiceStopExecutionOperator, **{**stop, "timeout": 5}).attempt(1)["status"] == "success"


@pytest.mark.parametrize("deferrable", [False, True])
def test_a_stop_waits_where_it_is_asked_to(task_run: MakeRun, simulator: ServiceSimulator, deferrable: bool) -> None:
    workflow_id = put(simulator, webhook(), wait(2), DONE)
    execution_id = task_run(workflow_id=workflow_id, wait_for_completion=False).attempt(1)["execution_id"]
    # The service says that it is over, and lets it run on for a while.
    simulator.inject("status", status=409, path="/stop$", times=None)
    stop = task_run(ServiceStopExecutionOperator, execution_id=execution_id, deferrable=deferrable)
    if deferrable:
        with pytest.raises(TaskDeferred) as deferred:
            stop.attempt(1)
        assert not as_stored(deferred.value.trigger)[1]["cancel_on_kill"]
    done = stop.whole_attempt(1)
    page = f"{simulator.base_url}/workflow/{workflow_id}/executions/{execution_id}"
    assert done == {"execution_id": execution_id, "status": "success", "stopped": False, "url": page}


@pytest.mark.parametrize(("status", "error"), [(401, errors.ServiceWaitError), (403, AirflowFailException)])
def test_a_stop_that_cannot_see_the_end_is_tried_again_unless_that_is_final(
    task_run: MakeRun, simulator: ServiceSimulator, status: int, error: type[Exception]
) -> None:
    workflow_id = put(simulator, webhook(), wait(30), DONE)
    execution_id = task_run(workflow_id=workflow_id, wait_for_completion=False).attempt(1)["execution_id"]
    simulator.inject("status", status=409, path="/stop$")
    stop = task_run(ServiceStopExecutionOperator, execution_id=execution_id, deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        stop.attempt(1)
    simulator.inject("status", status=status, times=None)
    event = asyncio.run(first_event(revived(deferred.value.trigger)))
    with pytest.raises(error, match=f"execution {execution_id} could not be observed"):
        stop.resume(1, deferred.value, event)


def test_an_execution_that_vanishes_after_the_stop_counts_as_stopped(
    task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(), wait(30), DONE)
    execution_id = task_run(workflow_id=workflow_id, wait_for_completion=False).attempt(1)["execution_id"]
    simulator.inject("status", status=404, path=f"/executions/{execution_id}$")
    stop = task_run(ServiceStopExecutionOperator, execution_id=execution_id, if_missing="ignore")
    assert stop.attempt(1) == {"execution_id": execution_id, "status": None, "stopped": True, "url": None}
