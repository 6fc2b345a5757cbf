"""Runs of workflows that no webhook starts: through the service's MCP endpoint."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client.errors import ServiceExecutionFailedError
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.simulator._engine.engine import Execution

from .conftest import MakeRun, connect
from .cutting import cut_off, end_each
from .task_run import StateStore, TaskRun
from .through_mcp import START, calls, put
from .workflows import CALLED, CHAT, DONE, FORM, MANUAL, SCHEDULE, held, puts_out, started_with, statuses, wait, webhook
from .workflows import put as put_workflow


@pytest.fixture(autouse=True)
def with_key(simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, simulator, extra={"mcp_api_key": simulator.mcp_api_key, "retry_deadline": 30})
    monkeypatch.setenv("AIRFLOW_CONN_HOOK", '{"conn_type": "http", "password": "p"}')


def started(simulator: ServiceSimulator, workflow_id: str) -> dict[str, Any]:
    """What the only execution of a workflow was started with."""
    [execution] = held(simulator, workflow_id)
    return started_with(execution)


def test_a_schedule(make_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, SCHEDULE, wait(0.2), puts_out('{"n": 1}'), name="Nightly sync")
    done = make_run(workflow_name="Nightly sync", return_output="last_node").whole_attempt(1)
    [execution] = held(simulator, workflow_id)
    assert (done["execution_id"], done["status"], done["output"]) == (str(execution.id), "success", [{"n": 1}])
    assert (execution.mode, calls(simulator)) == ("trigger", 1)


def test_the_retry_of_a_run_without_a_key_is_resumed(
    task_run: MakeRun, simulator: ServiceSimulator, tmp_path: Path
) -> None:
    workflow_id = put(simulator, SCHEDULE, wait(30), DONE)
    run = task_run(workflow_id=workflow_id, store=StateStore(tmp_path / "state.json"), on_retry="retry_execution")
    end_each(run, simulator)
    with pytest.raises(ServiceExecutionFailedError):
        run.attempt(1)
    cut_off(run, 2)
    end_each(run, simulator, "success")
    assert run.attempt(3)["execution_id"] == "2"
    assert (statuses(simulator, workflow_id), calls(simulator)) == (["error", "success"], 1)


@pytest.mark.parametrize(
    ("trigger", "payload", "arrived"),
    [
        (FORM, {"approved": True}, {"approved": True, "formMode": "mcp"}),
        (FORM, None, {"formMode": "mcp"}),
        (CHAT, "Hello", {"chatInput": "Hello", "action": "sendMessage"}),
        (webhook(), {"n": 1}, {"body": {"n": 1}, "query": {}}),
        (webhook(httpMethod="GET"), {"n": 1, "day": "today"}, {"body": {}, "query": {"n": "1", "day": "today"}}),
        (webhook("orders/:id"), None, {"body": {}}),
    ],
)
def test_every_other_trigger(
    task_run: MakeRun, simulator: ServiceSimulator, trigger: dict[str, Any], payload: Any, arrived: dict[str, Any]
) -> None:
    workflow_id = put(simulator, trigger, DONE)
    assert task_run(workflow_id=workflow_id, payload=payload, start="mcp").attempt(1)["status"] == "success"
    item = started(simulator, workflow_id)
    assert {name: item[name] for name in arrived} == arrived


def test_the_draft(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, SCHEDULE, puts_out('{"is": "published"}'))
    workflow = simulator.state.workflows.get(workflow_id)
    draft = [SCHEDULE, {**puts_out('{"is": "draft"}'), "name": "Output"}]
    simulator.in_loop(lambda: simulator.state.workflows.update(workflow, {"nodes": draft}))
    run = partial(task_run, workflow_id=workflow_id, return_output="last_node")
    assert run(mode="manual").attempt(1)["output"] == [{"is": "draft"}]
    assert run(map_index=2).attempt(1)["output"] == [{"is": "published"}]
    assert [one.mode for one in held(simulator, workflow_id)] == ["manual", "trigger"]


def test_a_manual_trigger_without_activation(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, MANUAL, DONE, active=False)
    assert task_run(workflow_id=workflow_id, mode="manual").attempt(1)["status"] == "success"
    assert not simulator.state.workflows.get(workflow_id).active


def test_a_schedule_that_was_not_active(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, SCHEDULE, DONE, active=False)
    assert task_run(workflow_id=workflow_id, activate=True).attempt(1)["status"] == "success"
    assert simulator.state.workflows.get(workflow_id).active


def test_a_webhook_is_preferred(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    assert task_run(workflow_id=workflow_id).attempt(1)["status"] == "success"
    assert calls(simulator) == 0


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("trigger", "arguments", "message"),
    [
        (SCHEDULE, {"payload": {}}, "a schedule trigger takes no payload, but one was given"),
        (CHAT, {"payload": {"text": "Hi"}}, r"a chat takes text as payload, not \{'text': 'Hi'\}"),
        (FORM, {"payload": ["x"]}, r"through MCP, a form takes a mapping as its payload, not \['x'\]"),
        (MANUAL, {}, "mcp: it has no chat or form or schedule or webhook trigger; its triggers: 'Button'"),
        (SCHEDULE, {"start": "webhook"}, r"it has no webhook trigger; its triggers: 'Clock' \(schedule\)"),
        (SCHEDULE, {"trigger_node": "X"}, "trigger named 'X'"),
        (SCHEDULE, {"webhook_headers": {"X-A": "b"}}, "mcp: only the call of a webhook takes webhook_headers"),
        (webhook(), {"webhook_conn_id": "hook", "start": "mcp"}, "only the call of a webhook takes webhook_conn_id"),
    ],
)
def test_nothing_is_started(
    task_run: MakeRun, simulator: ServiceSimulator, trigger: dict[str, Any], arguments: dict[str, Any], message: str
) -> None:
    workflow_id = put(simulator, trigger, DONE, active=False)
    with pytest.raises(AirflowFailException, match=f"{message}.*[Nn]othing was started"):
        task_run(workflow_id=workflow_id, **arguments).attempt(1)
    assert (calls(simulator), held(simulator, workflow_id)) == (0, [])


def test_headers_that_hold_nothing_are_not_refused(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    assert task_run(workflow_id=put(simulator, SCHEDULE, DONE), webhook_headers={}).attempt(1)["status"] == "success"


def test_one_of_several_triggers(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, SCHEDULE, FORM, DONE)
    with pytest.raises(AirflowFailException, match="has several triggers; choose one by trigger_node: 'Clock', 'Form'"):
        task_run(workflow_id=workflow_id).attempt(1)
    task_run(workflow_id=workflow_id, trigger_node="Form", payload={"a": 1}).attempt(1)
    assert started(simulator, workflow_id)["a"] == 1


def test_a_connection_without_a_key(
    task_run: MakeRun, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, simulator)
    workflow_id = put(simulator, SCHEDULE, DONE)
    with pytest.raises(AirflowFailException, match="mcp: the connection has no mcp_api_key; switch on MCP in"):
        task_run(workflow_id=workflow_id).attempt(1)


def test_a_workflow_that_is_not_available(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put_workflow(simulator, SCHEDULE, DONE)
    before = simulator.state.workflows.get(workflow_id).live_version
    with pytest.raises(
        AirflowFailException, match="not available in MCP; switch that on in its settings, or set enable"
    ):
        task_run(workflow_id=workflow_id).attempt(1)
    assert task_run(workflow_id=workflow_id, enable_mcp=True).attempt(1)["status"] == "success"
    workflow = simulator.state.workflows.get(workflow_id)
    assert workflow.settings["availableInMCP"] is True
    assert workflow.live_version == before


def test_a_draft_that_was_saved_meanwhile_is_kept(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put_workflow(simulator, SCHEDULE, DONE)
    workflow = simulator.state.workflows.get(workflow_id)
    draft = [SCHEDULE, {**DONE, "notes": "Saved"}]

    def proxy(inner: Any) -> Any:
        async def changed(scope: Any, receive: Any, send: Any) -> None:
            if scope["path"] == "/mcp-server/http" and not workflow.settings.get("availableInMCP"):
                simulator.state.workflows.update(workflow, {"nodes": draft})
            await inner(scope, receive, send)

        return changed

    simulator.wrap(proxy)
    assert task_run(workflow_id=workflow_id, enable_mcp=True).attempt(1)["status"] == "success"
    assert workflow.settings["availableInMCP"] is True
    assert workflow.nodes[1]["notes"] == "Saved"


def test_an_endpoint_that_starts_nothing_leaves_the_workflow_as_it_is(
    task_run: MakeRun, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, simulator, extra={"mcp_api_key": "wrong", "retry_deadline": 0})
    workflow_id = put_workflow(simulator, FORM, DONE)
    with pytest.raises(Exception, match="the MCP key was refused"):
        task_run(workflow_id=workflow_id, enable_mcp=True).attempt(1)
    assert "availableInMCP" not in simulator.state.workflows.get(workflow_id).settings


def test_the_key_of_a_form_is_not_returned(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, FORM, DONE)
    [item] = task_run(workflow_id=workflow_id, payload={"a": 1}, return_output="last_node").attempt(1)["output"]
    assert (item["a"], item["airflow_run_key"]) == (1, "***")


# ---------------------------------------------------------------- answers that are lost


@pytest.mark.parametrize("fault", [{"kind": "drop"}, {"kind": "status", "status": 502}, {"kind": "truncate"}])
@pytest.mark.parametrize("trigger", [FORM, webhook()], ids=["form", "webhook"])
def test_an_answer_that_is_lost(
    make_run: MakeRun, simulator: ServiceSimulator, trigger: dict[str, Any], fault: dict[str, Any]
) -> None:
    workflow_id = put(simulator, trigger, wait(0.1), DONE)
    simulator.inject(**fault, **START, after_processing=True)
    done = make_run(workflow_id=workflow_id, payload={"n": 1}, start="mcp").whole_attempt(1)
    [execution] = held(simulator, workflow_id)
    assert (done["execution_id"], done["status"], calls(simulator)) == (str(execution.id), "success", 1)


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("fault", [{"kind": "drop"}, {"kind": "status", "status": 502}])
@pytest.mark.parametrize("trigger", [FORM, SCHEDULE], ids=["form", "schedule"])
def test_a_call_that_is_lost(
    make_run: MakeRun, simulator: ServiceSimulator, trigger: dict[str, Any], fault: dict[str, Any]
) -> None:
    workflow_id = put(simulator, trigger, DONE)
    simulator.start_execution(workflow_id, status="success", age=5)
    simulator.inject(**fault, **START)
    assert make_run(workflow_id=workflow_id).whole_attempt(1)["status"] == "success"
    assert (statuses(simulator, workflow_id), calls(simulator)) == (["success", "success"], 2)
    # The newest execution is looked up before the call. A single search after it would prove nothing.
    lists = [one for one in simulator.requests if "status=running" in one.query and workflow_id in one.query]
    assert len(lists) >= 1 + 2


def test_a_schedule_whose_answer_is_lost(make_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, SCHEDULE, DONE)
    simulator.inject("drop", **START, after_processing=True)
    run = make_run(workflow_id=workflow_id)
    with pytest.raises(AirflowFailException, match="may have run the workflow: executions 1 do not show") as failure:
        run.whole_attempt(1)
    assert f"{simulator.base_url}/workflow/{workflow_id}/executions/1" in str(failure.value)
    assert (statuses(simulator, workflow_id), calls(simulator)) == (["success"], 1)


# ---------------------------------------------------------------- later attempts


@pytest.fixture
def noted(simulator: ServiceSimulator, tmp_path: Path) -> StateStore:
    return StateStore(tmp_path / "state.json")


def killed_in_its_call(run: TaskRun, simulator: ServiceSimulator, *, after_processing: bool) -> None:
    """The first attempt of a run, as if its worker had died while its call was open."""
    assert run.store is not None
    before = run.store.path.exists()
    simulator.inject("drop", **START, times=None, after_processing=after_processing)
    seen: list[str] = []

    class SavedRun(StateStore):
        def delete(self, key: str) -> None:
            seen.append(key)

    run.store = SavedRun(run.store.path)
    with pytest.raises(Exception, match=r".+"):
        run.attempt(1)
    simulator.clear_faults()
    assert (before, json.loads(run.store.path.read_text()) != {}) == (False, True)


def test_a_schedule_that_may_have_been_started(
    make_run: MakeRun, simulator: ServiceSimulator, noted: StateStore
) -> None:
    workflow_id = put(simulator, SCHEDULE, DONE)
    run = make_run(workflow_id=workflow_id, store=noted)
    killed_in_its_call(run, simulator, after_processing=True)
    with pytest.raises(AirflowFailException, match=r"an earlier attempt may have run .*: executions 1 do not show"):
        run.whole_attempt(2)
    assert statuses(simulator, workflow_id) == ["success"]


def test_a_schedule_that_was_not_started(make_run: MakeRun, simulator: ServiceSimulator, noted: StateStore) -> None:
    workflow_id = put(simulator, SCHEDULE, DONE)
    run = make_run(workflow_id=workflow_id, store=noted)
    killed_in_its_call(run, simulator, after_processing=False)
    simulator.start_execution(workflow_id, status="success")  # the schedule itself
    assert run.whole_attempt(2)["status"] == "success"
    assert len(held(simulator, workflow_id)) == 2


def test_a_schedule_whose_execution_is_known(make_run: MakeRun, simulator: ServiceSimulator, noted: StateStore) -> None:
    workflow_id = put(simulator, SCHEDULE, wait(0.3), DONE)
    run = make_run(workflow_id=workflow_id, store=noted)
    first = make_run(workflow_id=workflow_id, store=noted, wait_for_completion=False).attempt(1)
    assert run.whole_attempt(2)["execution_id"] == first["execution_id"]
    assert calls(simulator) == 1


def test_a_form_is_found_by_its_key(make_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, FORM, wait(0.3), DONE)
    run = make_run(workflow_id=workflow_id, payload={"a": 1})
    first = run.attempt(1, wait_for_completion=False)
    second = run.whole_attempt(2)
    assert (second["execution_id"], calls(simulator)) == (first["execution_id"], 1)


def test_the_executions_of_the_schedule_itself_are_no_reason_to_doubt(
    make_run: MakeRun, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, SCHEDULE, DONE)
    simulator.start_execution(workflow_id, status="success")
    assert make_run(workflow_id=workflow_id).whole_attempt(2)["status"] == "success"
    executions: list[Execution] = held(simulator, workflow_id)
    assert len(executions) == 2


def test_without_airflows_state_a_retry_does_not_run_a_schedule_twice(
    make_run: MakeRun, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, SCHEDULE, DONE)
    assert make_run(workflow_id=workflow_id).whole_attempt(1)["status"] == "success"
    with pytest.raises(AirflowFailException, match="do not show what started them"):
        make_run(workflow_id=workflow_id).whole_attempt(2)
    assert len(held(simulator, workflow_id)) == 1


# ---------------------------------------------------------------- ways that are gone by the next attempt


def test_a_later_attempt_finds_what_went_through_mcp_when_only_the_bridge_is_left(
    task_run: MakeRun, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow_id = put(simulator, FORM, {**CALLED, "name": "Called"}, wait(600), DONE)
    run = task_run(workflow_id=workflow_id, wait_for_completion=False)
    first = run.attempt(1)
    connect(monkeypatch, simulator, extra={"retry_deadline": 30})
    assert run.attempt(2)["execution_id"] == first["execution_id"]
    assert len(held(simulator, workflow_id)) == 1


def test_a_schedule_that_went_through_mcp_is_in_doubt_when_only_the_bridge_is_left(
    task_run: MakeRun, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow_id = put(simulator, SCHEDULE, MANUAL, DONE)
    run = task_run(workflow_id=workflow_id, wait_for_completion=False)
    run.attempt(1)
    connect(monkeypatch, simulator, extra={"retry_deadline": 30})
    with pytest.raises(AirflowFailException, match="executions 1 do not show what started them"):
        run.attempt(2)
    assert len(held(simulator, workflow_id)) == 1


def test_a_draft_whose_executions_are_not_saved_is_not_run_twice(
    task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, FORM, DONE, saveManualExecutions=False)
    simulator.inject("drop", **START, after_processing=True)
    with pytest.raises(AirflowFailException, match=r"does not keep all its executions|cannot be found"):
        task_run(workflow_id=workflow_id, mode="manual").attempt(1)
    assert calls(simulator) == 1


def test_auto_passes_over_a_webhook_that_cannot_be_called(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook("={{ 1 }}"), DONE, active=False)
    run = task_run(workflow_id=workflow_id, payload={"n": 1}, activate=True)
    assert run.attempt(1)["status"] == "success"
    assert calls(simulator) >= 1  # it has only just been activated
