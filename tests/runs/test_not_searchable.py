"""The outcome of a run whose execution is not kept, hides its data or cannot be listed."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.runs import searching
from airflow_provider_service._core.runs.searching import MAX_MISSING
from airflow_provider_service.client.models import Workflow
from airflow_provider_service.simulator import ServiceSimulator

from .conftest import MakeRun
from .cutting import end_each
from .workflows import DONE, FAIL, WITH_ID, calls, put, puts_out, respond, statuses, wait, webhook


def test_executions_that_are_not_kept(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    unkept: dict[str, Any] = {"saveDataSuccessExecution": "none", "saveDataErrorExecution": "none"}
    silent = put(simulator, webhook(mode="lastNode"), DONE, **unkept)
    with pytest.raises(AirflowFailException, match=r"it has ended without being saved.*clear the task"):
        task_run(workflow_id=silent).attempt(1)
    named = put(simulator, webhook("named", options={"responseData": WITH_ID}), wait(30), DONE, **unkept)
    run = task_run(workflow_id=named)
    end_each(run, simulator, "success")
    with pytest.raises(AirflowFailException, match=r"cannot be found: .*does not save"):
        run.attempt(1)
    run = task_run(workflow_id=named, on_vanished="succeed", return_output="last_node", map_index=2)
    end_each(run, simulator, "success")
    done = run.attempt(1)
    assert (done["status"], done["output"]) == (None, None)
    gone_at_once = put(simulator, webhook("gone", mode="lastNode"), puts_out(WITH_ID), **unkept)
    done = task_run(workflow_id=gone_at_once, on_vanished="succeed", map_index=3).attempt(1)
    assert done["execution_id"].isdecimal()
    assert calls(simulator) == 4


UNKEPT_ANSWERS = {
    "at once": [webhook(), DONE],
    "at once, with nothing": [webhook(options={"noResponseBody": True}), DONE],
    "at once, with another's id": [webhook(options={"responseData": '={{ {"executionId": "999"} }}'}), DONE],
    "at the end": [webhook(mode="lastNode"), DONE],
    "by a node": [webhook(mode="responseNode"), respond(202), DONE],
}


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize("nodes", UNKEPT_ANSWERS.values(), ids=UNKEPT_ANSWERS)
def test_an_execution_that_was_not_kept_ends_as_on_vanished_says(
    make_run: MakeRun, simulator: ServiceSimulator, nodes: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever searched for so long would make far more requests than are allowed below.
    monkeypatch.setattr(searching, "VISIBLE_WITHIN_SECONDS", 30.0)
    workflow_id = put(simulator, *nodes, saveDataSuccessExecution="none")
    run = make_run(workflow_id=workflow_id, on_vanished="succeed", return_output="last_node")
    simulator.clear_requests()
    done = run.whole_attempt(1)
    # One that is answered at once may still be seen.
    assert done["execution_id"] in (None, "1", "999")
    assert {name: value for name, value in done.items() if name != "execution_id"} == {
        "status": None,
        "workflow_id": None if done["execution_id"] else workflow_id,
        "started_at": None,
        "stopped_at": None,
        "url": None,
        **dict.fromkeys(("nodes", "node_count", "output", "output_items", "output_path")),
    }
    assert ("_link_ServiceExecutionLink" in run.pushed) == ("execution_id" in run.pushed) == bool(done["execution_id"])
    assert run.pushed["_link_ServiceWorkflowLink"].endswith(f"/workflow/{workflow_id}")
    # The workflow, the call, and lists and ids that could wait for a worker: six times in the second of an answer that
    # is quick, and more often if it is late. A search of 30 seconds does so more than thirty times.
    assert len(simulator.requests) <= 2 + (2 + 2 + MAX_MISSING) * 15
    with pytest.raises(AirflowFailException, match=r"ended without being saved|cannot be found"):
        make_run(workflow_id=workflow_id, map_index=2).whole_attempt(1)
    assert calls(simulator) == 2


@pytest.mark.usefixtures("answers_come_first")
def test_an_execution_that_was_not_kept_is_searched_for_only_once_if_the_answer_names_it(
    task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(mode="lastNode"), puts_out(WITH_ID), saveDataSuccessExecution="none")
    assert task_run(workflow_id=workflow_id, on_vanished="succeed").attempt(1)["execution_id"] == "1"
    running = [one for one in simulator.requests if one.path.endswith("/executions") and "status=running" in one.query]
    assert len(running) == 2  # of the workflow, and of all, for what waits for a worker


def test_without_a_wait_an_execution_that_was_not_kept_has_no_address(
    task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(), DONE, saveDataSuccessExecution="none")
    simulator.inject("latency", seconds=0.2, path="^/webhook/", after_processing=True)  # it has ended by then
    run = task_run(workflow_id=workflow_id, on_vanished="succeed", wait_for_completion=False)
    assert run.attempt(1) == {"execution_id": None, "workflow_id": workflow_id, "url": None}


def test_a_run_that_failed_and_was_not_kept_is_not_a_success(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(mode="lastNode"), FAIL, saveDataErrorExecution="none")
    with pytest.raises(AirflowFailException, match=r"answered 500, but no execution .* may have ended without"):
        task_run(workflow_id=workflow_id, on_vanished="succeed").attempt(1)


@pytest.mark.slow
@pytest.mark.parametrize(("last", "execution_id"), [(DONE, None), (puts_out(WITH_ID), "1")], ids=["no id", "id"])
def test_a_server_that_keeps_no_executions_by_default(
    monkeypatch: pytest.MonkeyPatch,
    task_run: MakeRun,
    simulator: ServiceSimulator,
    last: dict[str, Any],
    execution_id: str | None,
) -> None:
    workflow_id = put(simulator, webhook(mode="lastNode"), last, saveDataSuccessExecution="none")
    # What the workflow itself says, the API shows; the server's default it does not.
    monkeypatch.setattr(Workflow, "keeps_executions", True)
    assert task_run(workflow_id=workflow_id, on_vanished="succeed").attempt(1)["execution_id"] == execution_id


def test_a_call_whose_execution_is_not_kept_is_not_repeated_after_a_lost_answer(
    task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(mode="lastNode"), DONE, saveDataSuccessExecution="none")
    simulator.inject("drop", path="^/webhook/", after_processing=True)
    with pytest.raises(AirflowFailException, match="may have run the workflow: the workflow does not keep all"):
        task_run(workflow_id=workflow_id).attempt(1)
    assert calls(simulator) == 1


def test_a_call_whose_execution_is_not_kept_is_not_repeated_after_a_redirect(
    task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    redirect = respond(307, respondWith="text", headers={"Location": "https://shop.example/thanks"})
    nodes = [webhook(mode="responseNode"), redirect, DONE]
    workflow_id = put(simulator, *nodes, saveDataSuccessExecution="none")
    with pytest.raises(AirflowFailException, match=r"redirected to https://shop\.example/thanks.*may have run"):
        task_run(workflow_id=workflow_id).attempt(1)
    assert calls(simulator) == 1


@pytest.mark.slow
def test_redacted_data(redacting: None, task_run: MakeRun, simulator: ServiceSimulator) -> None:
    named = put(simulator, webhook(options={"responseData": WITH_ID}), DONE)
    assert task_run(workflow_id=named).attempt(1)["status"] == "success"
    unnamed = put(simulator, webhook("unnamed"), DONE)
    with pytest.raises(AirflowFailException, match="executions 2 hide their data, or it is redacted"):
        task_run(workflow_id=unnamed, map_index=2, on_vanished="succeed").attempt(1)
    assert calls(simulator) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "nodes",
    [[webhook(), DONE], [webhook(mode="lastNode"), wait(0.2), DONE], [webhook(mode="responseNode"), respond(), DONE]],
    ids=["at once", "at the end", "by a node"],
)
@pytest.mark.parametrize("fault", [{"kind": "drop"}, {"kind": "status", "status": 504}], ids=["drop", "504"])
def test_a_lost_answer_where_the_data_is_hidden_is_not_called_again(
    redacting: None, task_run: MakeRun, simulator: ServiceSimulator, fault: dict[str, Any], nodes: list[dict[str, Any]]
) -> None:
    workflow_id = put(simulator, *nodes)
    simulator.inject(**fault, path="^/webhook/", after_processing=True)
    with pytest.raises(AirflowFailException, match=r"executions 1 do not show what started them.*clear the task"):
        task_run(workflow_id=workflow_id).attempt(1)
    assert (statuses(simulator, workflow_id), calls(simulator)) == (["success"], 1)


@pytest.mark.slow
def test_a_call_without_an_answer_in_time_where_the_data_is_hidden_is_not_repeated(
    redacting: None, task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(mode="lastNode"), wait(30), DONE)
    with pytest.raises(AirflowFailException, match="do not show what started them"):
        task_run(workflow_id=workflow_id, timeout=2.0).attempt(1)
    assert calls(simulator) == 1


@pytest.mark.usefixtures("answers_come_first")
@pytest.mark.parametrize("lists", [True, False], ids=["lists", "no lists"])
def test_an_id_in_the_answer_counts_although_it_cannot_be_checked(
    task_run: MakeRun, simulator: ServiceSimulator, lists: bool
) -> None:
    workflow_id = put(simulator, webhook(options={"responseData": WITH_ID}), wait(30), DONE)
    simulator.inject("status", status=403, path="/executions/1$", times=None)
    if not lists:
        simulator.inject("status", status=403, path="/executions$", times=None)
    run = task_run(workflow_id=workflow_id)
    with pytest.raises(AirflowFailException, match="execution 1 could not be observed and may still be running"):
        run.attempt(1)
    assert run.pushed["execution_id"] == "1"
