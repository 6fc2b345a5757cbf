"""Runs that the hook makes: one execution for a key, whoever dies and whatever is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client.errors import ServiceExecutionFailedError, ServiceWebhookRefusedError
from airflow_provider_service.hooks import _running
from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.simulator import ServiceSimulator

from .conftest import MakeRun
from .cutting import CutOffError, CutOffStore
from .hook_task import HookTask
from .task_run import StateStore
from .workflows import DONE, FAIL, calls, held, put, respond, statuses, unchecked, wait, webhook

RunWorkflow = Callable[..., dict[str, Any]]
UNKEPT: dict[str, Any] = {"saveDataSuccessExecution": "none"}


@pytest.fixture
def hook_run(task_run: MakeRun) -> MakeRun:
    """``hook_run(**arguments)`` makes a task run that calls the hook."""
    return partial(task_run, HookTask)


@pytest.fixture
def run_workflow(simulator: ServiceSimulator) -> Iterator[RunWorkflow]:
    """The hook's method, called outside of any task."""
    with ServiceHook() as hook:
        yield partial(hook.run_workflow, poll_interval=0.05, timeout=20)


# ---------------------------------------------------------------- within a task


@pytest.mark.parametrize("mode", ["onReceived", "lastNode"])
@pytest.mark.parametrize("seconds", [0, 1.5])
def test_an_attempt_resumes_what_a_dead_one_started(
    hook_run: MakeRun, simulator: ServiceSimulator, tmp_path: Path, mode: str, seconds: float
) -> None:
    workflow_id = put(simulator, webhook(mode=mode), wait(seconds), DONE)
    run = hook_run(workflow_id=workflow_id, store=CutOffStore(tmp_path / "state.json"))
    with pytest.raises(CutOffError):
        run.attempt(1)
    run.store = StateStore(tmp_path / "state.json")
    assert run.attempt(2)["execution_id"] == str(held(simulator, workflow_id)[0].id)
    assert (statuses(simulator, workflow_id), calls(simulator)) == (["success"], 1)


def test_an_attempt_resumes_what_the_one_before_did_not_wait_for(
    hook_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None
) -> None:
    workflow_id = put(simulator, webhook(), wait(0.3), DONE)
    run = hook_run(workflow_id=workflow_id, store=store)
    started = run.attempt(1, wait_for_completion=False)
    assert run.attempt(2)["execution_id"] == started["execution_id"]
    assert calls(simulator) == 1


@pytest.mark.usefixtures("answers_come_first")
def test_an_attempt_resumes_what_could_not_be_observed(
    hook_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None
) -> None:
    workflow_id = put(simulator, webhook(), wait(0.6), DONE)
    run = hook_run(workflow_id=workflow_id, store=store)
    simulator.inject("status", status=401, path="/executions/1$", times=None)
    with pytest.raises(Exception, match="401"):
        run.attempt(1)
    simulator.clear_faults()
    assert run.attempt(2)["execution_id"] == "1"
    assert calls(simulator) == 1


def test_a_run_that_failed_is_followed_by_a_new_one(
    hook_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None
) -> None:
    workflow_id = put(simulator, webhook(), FAIL)
    run = hook_run(workflow_id=workflow_id, store=store)
    for number in (1, 2):
        with pytest.raises(ServiceExecutionFailedError, match=rf"execution {number} ended .* at node 'Fail'"):
            run.attempt(number)
    assert statuses(simulator, workflow_id) == ["error", "error"]


def test_a_cleared_task_starts_a_new_run(
    hook_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None
) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    run = hook_run(workflow_id=workflow_id, store=store)
    ids = [run.attempt(1)["execution_id"], run.attempt(2)["execution_id"]]
    run.max_tries = 2 + run.retries
    ids += [run.attempt(3)["execution_id"], run.attempt(4)["execution_id"]]
    assert ids == ["1", "1", "2", "2"]


def test_keys_and_workflows_of_a_task_are_distinguished(
    hook_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None
) -> None:
    first, second = (put(simulator, webhook(path), DONE) for path in ("a", "b"))
    run = hook_run(store=store)
    asked = [{"workflow_id": first}, {"workflow_id": first, "run_key": "other"}, {"workflow_id": second}]
    assert [run.attempt(1, **one)["execution_id"] for one in asked] == ["1", "2", "3"]
    simulator.clear_requests()
    assert [run.attempt(2, **one)["execution_id"] for one in asked] == ["1", "2", "3"]
    assert calls(simulator) == 0
    # Airflow keeps each of them, so that none is searched for.
    searched = any(request.path.endswith("/executions") for request in simulator.requests)
    assert searched is (store is None)


@pytest.mark.parametrize("node", [DONE, FAIL])
def test_a_key_that_is_used_again_in_an_attempt_is_the_same_run(
    hook_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None, node: dict[str, Any]
) -> None:
    workflow_id = put(simulator, webhook(), node)
    run = hook_run(workflow_id=workflow_id, store=store)
    for _ in range(2):
        if node is DONE:
            assert run.attempt(1)["execution_id"] == "1"
        else:
            with pytest.raises(ServiceExecutionFailedError, match="execution 1 "):
                run.attempt(1)
    assert calls(simulator) == 1


def test_a_refused_call_leaves_no_doubt_in_its_attempt(
    hook_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None
) -> None:
    workflow_id = put(simulator, unchecked(), FAIL, **UNKEPT)
    run = hook_run(workflow_id=workflow_id, store=store)
    for _ in range(2):
        with pytest.raises(ServiceWebhookRefusedError):
            run.attempt(1)


@pytest.mark.usefixtures("answers_come_first")
def test_without_executions_to_search_an_attempt_refuses_to_double(
    hook_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None
) -> None:
    workflow_id = put(simulator, webhook(mode="lastNode"), DONE, **UNKEPT)
    run = hook_run(workflow_id=workflow_id, store=store)
    for number, message in ((1, "it has ended without being saved"), (1, "not keep all"), (2, "not keep all")):
        with pytest.raises(AirflowFailException, match=message):
            run.attempt(number)
    assert calls(simulator) == 1


# ---------------------------------------------------------------- outside of any task


def test_a_key_stands_for_one_execution(run_workflow: RunWorkflow, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), wait(0.3), DONE)
    started = run_workflow(workflow_id=workflow_id, run_key="a", wait_for_completion=False)
    assert started.keys() == {"execution_id", "workflow_id", "url"}
    for _ in range(2):
        assert run_workflow(workflow_id=workflow_id, run_key="a")["execution_id"] == started["execution_id"]
    assert run_workflow(workflow_id=workflow_id, run_key="b")["execution_id"] == "2"
    assert (statuses(simulator, workflow_id), calls(simulator)) == (["success", "success"], 2)


def test_a_failed_execution_of_a_key_is_followed_by_another(
    run_workflow: RunWorkflow, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(), wait(30), DONE)
    for number in ("1", "2"):
        started = run_workflow(workflow_id=workflow_id, run_key="a", wait_for_completion=False)
        assert started["execution_id"] == number
        simulator.finish_execution(number, "error")
    run_workflow(workflow_id=workflow_id, run_key="a", wait_for_completion=False)
    simulator.finish_execution("3", "success")
    assert run_workflow(workflow_id=workflow_id, run_key="a")["execution_id"] == "3"


@pytest.mark.usefixtures("answers_come_first")
def test_a_key_counts_for_its_lifetime(
    monkeypatch: pytest.MonkeyPatch, run_workflow: RunWorkflow, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    run_workflow(workflow_id=workflow_id, run_key="a")
    monkeypatch.setattr(_running, "KEY_LIFETIME", -_running.KEY_LIFETIME)
    assert run_workflow(workflow_id=workflow_id, run_key="a")["execution_id"] == "2"


def test_deployments_of_airflow_do_not_share_keys(
    monkeypatch: pytest.MonkeyPatch, run_workflow: RunWorkflow, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    for number, name in enumerate(("one", "other", "one"), 1):
        monkeypatch.setenv("AIRFLOW__SERVICE__DEPLOYMENT", name)
        assert run_workflow(workflow_id=workflow_id, run_key="a")["execution_id"] == str(min(number, 4 - number))


def test_a_workflow_that_does_not_keep_its_executions_has_no_keys(
    run_workflow: RunWorkflow, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(), DONE, **UNKEPT)
    with pytest.raises(AirflowFailException, match=r"may have run .*: the workflow does not keep all"):
        run_workflow(workflow_id=workflow_id, run_key="a")
    assert calls(simulator) == 0


def test_without_a_key_every_call_is_a_run(run_workflow: RunWorkflow, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    assert [run_workflow(workflow_id=workflow_id)["execution_id"] for _ in range(2)] == ["1", "2"]


# ---------------------------------------------------------------- lost answers


@pytest.mark.parametrize("run_key", [None, "a"])
@pytest.mark.parametrize("fault", [{"kind": "drop"}, {"kind": "status", "status": 504}], ids=["drop", "504"])
@pytest.mark.parametrize(
    "nodes",
    [[webhook(), DONE], [webhook(mode="lastNode"), wait(0.2), DONE], [webhook(mode="responseNode"), respond(), DONE]],
    ids=["at once", "at the end", "by a node"],
)
def test_a_call_whose_answer_is_lost_is_not_repeated(
    run_workflow: RunWorkflow,
    simulator: ServiceSimulator,
    nodes: list[dict[str, Any]],
    fault: dict[str, Any],
    run_key: str | None,
) -> None:
    workflow_id = put(simulator, *nodes)
    simulator.inject(**fault, path="^/webhook/", after_processing=True)
    assert run_workflow(workflow_id=workflow_id, run_key=run_key)["execution_id"] == "1"
    assert (statuses(simulator, workflow_id), calls(simulator)) == (["success"], 1)


@pytest.mark.parametrize("run_key", [None, "a"])
def test_a_lost_answer_where_the_data_is_hidden_is_in_doubt_for_good(
    redacting: None, run_workflow: RunWorkflow, simulator: ServiceSimulator, run_key: str | None
) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    simulator.inject("drop", path="^/webhook/", after_processing=True)
    for _ in range(1 if run_key is None else 2):
        with pytest.raises(AirflowFailException, match="executions 1 do not show what started them"):
            run_workflow(workflow_id=workflow_id, run_key=run_key)
    assert (statuses(simulator, workflow_id), calls(simulator)) == (["success"], 1)
