"""Running workflows that no webhook starts, through the real server's MCP endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client import ServiceClient
from tests.conformance.differences import difference
from tests.runs.workflows import CHAT, DONE, FORM, MANUAL, SCHEDULE, puts_out, wait, webhook

from .conftest import MakeRun
from .running import allow_mcp, connect, delete_workflows, execution_ids, path, put
from .servers import Generation, LiveServer

RESULT = '={{ { "got": $json.field || $json.chatInput || "nothing" } }}'


@pytest.fixture(autouse=True)
def client(
    live_server: LiveServer, live_generation: Generation, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ServiceClient]:
    """A client that sees what the server holds; the default connection may start workflows through MCP."""
    if older := difference("MCP endpoint", live_generation.name):
        pytest.skip(f"the MCP endpoint does not start workflows: {older.reason}")
    with connect(monkeypatch, live_server) as client:
        allow_mcp(monkeypatch, live_server)
        yield client
        delete_workflows(client)


@pytest.mark.smoke
@pytest.mark.parametrize("deferrable", [False, True], ids=["in the worker", "deferred"])
@pytest.mark.parametrize(
    ("trigger", "arguments", "mode", "got"),
    [
        (SCHEDULE, {}, "trigger", "nothing"),
        (FORM, {"payload": {"field": "a form's"}}, "trigger", "a form's"),
        (CHAT, {"payload": "Hello"}, "chat", "Hello"),
        (SCHEDULE, {"mode": "manual"}, "manual", "nothing"),
        (MANUAL, {"mode": "manual"}, "manual", "nothing"),
    ],
)
def test_a_run_from_every_trigger(
    client: ServiceClient,
    task_run: MakeRun,
    trigger: dict[str, Any],
    arguments: dict[str, Any],
    mode: str,
    got: str,
    deferrable: bool,
) -> None:
    workflow_id = put(client, trigger, wait(1), puts_out(RESULT))
    run = task_run(
        workflow_id=workflow_id, enable_mcp=True, return_output="last_node", deferrable=deferrable, **arguments
    )
    result = run.whole_attempt(1)

    [execution] = client.executions.list(workflow_id=workflow_id)
    assert (result["execution_id"], result["status"], execution.mode) == (execution.id, "success", mode)
    assert result["output"] == [{"got": got}]


def test_a_webhook_with_a_parameter_in_its_path(client: ServiceClient, task_run: MakeRun) -> None:
    workflow_id = put(client, webhook(f"{path()}/:id"), DONE)
    result = task_run(workflow_id=workflow_id, enable_mcp=True, start="mcp", payload={"n": 1}).whole_attempt(1)

    [execution] = client.executions.list(workflow_id=workflow_id)
    assert (result["execution_id"], result["status"]) == (execution.id, "success")


@pytest.mark.smoke
@pytest.mark.parametrize("trigger", [FORM, webhook(path())], ids=["form", "webhook"])
def test_a_later_attempt_finds_the_run_of_the_first_by_its_key(
    client: ServiceClient, task_run: MakeRun, trigger: dict[str, Any]
) -> None:
    workflow_id = put(client, trigger, wait(4), DONE)
    run = task_run(workflow_id=workflow_id, enable_mcp=True, start="mcp")
    first = run.attempt(1, wait_for_completion=False)

    assert run.attempt(2)["execution_id"] == first["execution_id"]
    assert execution_ids(client, workflow_id) == {first["execution_id"]}


def test_a_schedule_is_not_run_twice_when_it_is_unknown_whether_it_ran(
    client: ServiceClient, task_run: MakeRun
) -> None:
    workflow_id = put(client, SCHEDULE, wait(4), DONE)
    run = task_run(workflow_id=workflow_id, enable_mcp=True)
    first = run.attempt(1, wait_for_completion=False)

    with pytest.raises(AirflowFailException, match=rf"executions {first['execution_id']} do not show what started"):
        run.attempt(2)
    assert execution_ids(client, workflow_id) == {first["execution_id"]}


def test_making_a_workflow_available_changes_neither_draft_nor_what_runs(
    client: ServiceClient, task_run: MakeRun
) -> None:
    workflow_id = put(client, SCHEDULE, puts_out('{"is": "published"}'))
    client.workflows.activate(workflow_id)
    workflow = client.workflows.get(workflow_id)
    draft = [node if node["name"] != "Output" else puts_out('{"is": "draft"}') for node in workflow.nodes or []]
    client.workflows.update(workflow_id, workflow.name, draft, workflow.connections or {}, {}, publish_if_active=False)
    before = client.workflows.get(workflow_id)
    result = task_run(workflow_id=workflow_id, enable_mcp=True, return_output="last_node").whole_attempt(1)

    after = client.workflows.get(workflow_id)
    assert result["output"] == [{"is": "published"}]
    assert (after.active_version_id, after.nodes) == (before.active_version_id, before.nodes)
    assert task_run(workflow_id=workflow_id, mode="manual", return_output="last_node").whole_attempt(1)["output"] == [
        {"is": "draft"}
    ]
