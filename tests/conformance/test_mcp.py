"""The MCP endpoint: which triggers it starts, and what their executions hold."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from airflow_provider_service.client import ServiceClient, errors
from airflow_provider_service.client.models import Execution, Workflow
from tests.polling import wait_until

from .mcp_workflows import (
    CHAT,
    MakeAvailable,
    any_schedule,
    chat,
    form,
    hook,
    manual,
    mcp_client,
    pinned,
    schedule,
    starting_items,
    sub_workflow,
)
from .target import Target
from .workbench import Workbench, done, stop_and_error, wait

# ---------------------------------------------------------------- what it starts

HEADERS = {"X-Mark": "a", "lower": "b"}
SENT = {"headers": HEADERS, "query": {"q": "1"}, "body": {"n": [1, {"deep": None}]}}


@pytest.mark.parametrize(
    ("trigger", "inputs", "mode", "expected"),
    [
        (schedule, None, "trigger", any_schedule),
        (hook, {"webhookData": {**SENT, "method": "POST"}}, "webhook", lambda item: item == SENT),
        (
            lambda: hook(httpMethod="GET"),
            {"webhookData": {"query": {"q": "1"}}},
            "webhook",
            lambda item: item == {"headers": {}, "query": {"q": "1"}, "body": {}},
        ),
        (hook, {"webhookData": {}}, "webhook", lambda item: item == {"headers": {}, "query": {}, "body": {}}),
        (
            form,
            {"formData": {"name": "Ann", "no field": {"of": ["it"]}}},
            "trigger",
            lambda item: (
                item.pop("submittedAt") and item == {"formMode": "mcp", "name": "Ann", "no field": {"of": ["it"]}}
            ),
        ),
        (
            form,
            {"formData": {"submittedAt": "now", "formMode": "mine"}},
            "trigger",
            lambda item: item == {"submittedAt": "now", "formMode": "mine"},
        ),
        (
            chat,
            CHAT,
            "chat",
            lambda item: (
                item.pop("sessionId").startswith("mcp-session-")
                and item == {"action": "sendMessage", "chatInput": "hello"}
            ),
        ),
    ],
    ids=["schedule", "webhook", "get", "empty webhook", "form", "form's own fields", "chat"],
)
@pytest.mark.parametrize("draft", [False, True], ids=["production", "manual"])
def test_a_trigger_passes_on_what_was_sent(
    mcp: ServiceClient,
    make: MakeAvailable,
    bench: Workbench,
    trigger: Callable[[], dict[str, Any]],
    inputs: Any,
    mode: str,
    expected: Callable[[Any], bool],
    draft: bool,
) -> None:
    begin = trigger()
    flow = make(begin, done(), active=not draft)
    started = mcp.mcp.execute_workflow(
        flow.id, trigger_node=begin["name"], inputs=inputs, mode="manual" if draft else "production"
    )
    assert started.status == "started"

    execution = bench.finished(started.execution_id)
    assert (execution.status, execution.mode) == ("success", "manual" if draft else mode)
    assert starting_items(execution, begin["name"]) == pinned(execution)[begin["name"]]
    assert expected(starting_items(execution, begin["name"]))


def test_a_manual_trigger_begins_a_draft(mcp: ServiceClient, make: MakeAvailable, bench: Workbench) -> None:
    flow = make(manual(), done(), active=False)
    execution = bench.finished(mcp.mcp.execute_workflow(flow.id, mode="manual").execution_id)
    assert (execution.status, execution.mode, pinned(execution)) == ("success", "manual", {"Manual": {}})


def test_it_answers_before_the_workflow_ends(
    mcp: ServiceClient, make: MakeAvailable, bench: Workbench, service: Target
) -> None:
    flow = make(schedule(), wait(30), done())
    started = mcp.mcp.execute_workflow(flow.id)

    running = bench.reaches(started.execution_id, "running")
    seen = service.client.executions.get(running.id, include_data=True)
    assert seen.stopped_at is None
    assert any_schedule(pinned(seen)["Schedule"])  # seen while it runs, which tells it from a run of the schedule
    assert [one.id for one in service.client.executions.list(workflow_id=flow.id, status="running")] == [running.id]


@pytest.mark.usefixtures("mcp")
def test_a_run_of_the_schedule_itself_has_nothing_pinned(make: MakeAvailable, service: Target) -> None:
    flow = make(schedule(field="seconds", secondsInterval=1), wait(30), done())
    service.start_by_schedule(flow.id)

    def listed() -> list[Execution]:
        return list(service.client.executions.list(workflow_id=flow.id, status="running", include_data=True))

    for execution in wait_until(listed, what="a run of the schedule"):
        assert execution.mode == "trigger"
        assert "pinData" not in execution.data["resultData"]  # type: ignore[index]


def test_an_execution_that_fails_has_started(mcp: ServiceClient, make: MakeAvailable, bench: Workbench) -> None:
    flow = make(schedule(), stop_and_error())
    assert bench.finished(mcp.mcp.execute_workflow(flow.id).execution_id).status == "error"


def test_production_runs_what_is_published_and_manual_the_draft(
    mcp: ServiceClient, make: MakeAvailable, bench: Workbench, service: Target
) -> None:
    flow = make(schedule(), done())
    mcp.mcp.execute_workflow(flow.id)
    drafted = service.client.workflows.update(
        flow.id, flow.name, [schedule(), stop_and_error()], {}, {}, publish_if_active=False
    )

    by_mode = {mode: mcp.mcp.execute_workflow(flow.id, mode=mode) for mode in ("production", "manual")}

    ended = {mode: bench.finished(started.execution_id) for mode, started in by_mode.items()}
    nodes = {
        mode: [one["name"] for one in execution.workflow_data["nodes"]]  # type: ignore[index]
        for mode, execution in ended.items()
    }
    assert nodes == {"production": ["Schedule", "Done"], "manual": ["Schedule", "Stop"]}
    # Both name the version of the draft.
    assert {execution.workflow_version_id for execution in ended.values()} == {drafted.version_id}


def test_pinned_data_of_the_workflow_counts_in_a_draft(
    mcp: ServiceClient, make: MakeAvailable, bench: Workbench, service: Target
) -> None:
    """A run of the draft takes the output that was pinned to a node in the editor, and does not run the node."""
    flow = make(schedule(), stop_and_error())
    service.client.workflows.update(
        flow.id, flow.name, flow.nodes or [], flow.connections or {}, {}, pin_data={"Stop": [{"json": {"pinned": 1}}]}
    )

    by_mode = {mode: mcp.mcp.execute_workflow(flow.id, mode=mode) for mode in ("production", "manual")}

    ended = {mode: bench.finished(started.execution_id) for mode, started in by_mode.items()}
    assert {mode: one.status for mode, one in ended.items()} == {"production": "error", "manual": "success"}
    assert pinned(ended["manual"])["Stop"] == {"pinned": 1}
    assert list(pinned(ended["production"])) == ["Schedule"]


def test_without_a_name_the_only_trigger_is_taken(mcp: ServiceClient, make: MakeAvailable, bench: Workbench) -> None:
    with_manual = make(schedule(), manual(), sub_workflow(), done())
    disabled = make(schedule(), {**form(), "disabled": True}, done())
    for flow in (with_manual, disabled):
        execution = bench.finished(mcp.mcp.execute_workflow(flow.id).execution_id)
        assert list(pinned(execution)) == ["Schedule"]


@pytest.mark.covers("update_workflow")
def test_the_api_makes_a_workflow_available_at_once(mcp: ServiceClient, make: MakeAvailable, service: Target) -> None:
    flow = make(schedule(), done(), availableInMCP=False)

    def set_to(available: bool) -> Workflow:
        settings = {"availableInMCP": available}
        return service.client.workflows.update(
            flow.id, flow.name, flow.nodes or [], flow.connections or {}, settings, publish_if_active=False
        )

    for _ in range(2):
        with pytest.raises(errors.ServiceMcpRefusedError, match="Workflow is not available in MCP"):
            mcp.mcp.execute_workflow(flow.id)
        made = set_to(True)
        assert (made.settings or {})["availableInMCP"] is True
        assert made.version_id == flow.version_id
        assert mcp.mcp.execute_workflow(flow.id).execution_id
        assert (set_to(False).settings or {})["availableInMCP"] is False


# ---------------------------------------------------------------- executions that are not kept


def gone(service: Target, execution_id: str) -> bool:
    try:
        service.client.executions.get(execution_id)
    except errors.ServiceNotFoundError:
        return True
    return False


@pytest.mark.parametrize(
    ("mode", "settings"),
    [("production", {"saveDataSuccessExecution": "none"}), ("manual", {"saveManualExecutions": False})],
)
def test_an_execution_that_is_not_saved_vanishes(
    mcp: ServiceClient, make: MakeAvailable, service: Target, mode: Any, settings: dict[str, Any]
) -> None:
    started = mcp.mcp.execute_workflow(make(schedule(), done(), **settings).id, mode=mode)
    wait_until(lambda: gone(service, started.execution_id), what="the execution to vanish")


def test_a_manual_one_is_saved_whatever_the_setting_for_successes(
    mcp: ServiceClient, make: MakeAvailable, bench: Workbench
) -> None:
    flow = make(schedule(), done(), saveDataSuccessExecution="none")
    assert bench.finished(mcp.mcp.execute_workflow(flow.id, mode="manual").execution_id).status == "success"


# ---------------------------------------------------------------- its turn


def test_a_limit_of_executions_delays_the_answer(shared_target: Target) -> None:
    """While a call waits for its turn, its execution is there, and shows what started it."""
    with (
        shared_target.own(concurrency_limit=1) as service,
        mcp_client(service) as client,
        ThreadPoolExecutor(1) as calls,
    ):
        bench = Workbench(service)
        flow = MakeAvailable(bench, service)(schedule(), wait(5), done())
        first = client.mcp.execute_workflow(flow.id).execution_id
        second = calls.submit(client.mcp.execute_workflow, flow.id)

        def queued() -> list[Execution]:
            return list(service.client.executions.list(workflow_id=flow.id, status="new", include_data=True))

        (waits,) = wait_until(queued, what="the second execution")
        assert any_schedule(pinned(waits)["Schedule"])
        assert not second.done()
        draft = client.mcp.execute_workflow(flow.id, mode="manual").execution_id
        assert bench.finished(draft).status == "success"  # those of drafts are not limited
        assert second.result(60).execution_id == waits.id
        assert service.client.executions.get(first).status == "success"
