"""Clear errors when a workflow cannot be run, with nothing started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._airflow.attempts import REASON_KEY
from airflow_provider_service.client import errors
from airflow_provider_service.client.errors import (
    ServiceWebhookNotLiveError,
    ServiceWebhookRefusedError,
)
from airflow_provider_service.client.models import WebhookTrigger
from airflow_provider_service.client.resources._webhooks import checked_payload
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.simulator._samples import node

from .conftest import MakeRun, connect
from .task_run import StateStore
from .workflows import (
    CALLED,
    CHAT,
    DONE,
    FORM,
    SCHEDULE,
    answers_as,
    calls,
    held,
    put,
    set_live,
    started_with,
    wait,
    webhook,
)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            [node("Clock", "scheduleTrigger", 1, {}, 0)],
            r"no webhook trigger; its triggers: 'Clock' \(schedule\)",
        ),
        ([{**webhook(), "disabled": True}, node("Clock", "scheduleTrigger", 1, {}, 0)], "has no webhook trigger"),
        ([webhook("a", name="A"), webhook("b", name="B")], "has several webhooks; choose one by its node: 'A', 'B'"),
        ([webhook("orders/:id")], "path_parameters lacks 'id'; webhook 'Webhook' has the path '.*/orders/:id'"),
        ([webhook("={{ $json.path }}")], "which is not fixed"),
        (
            [{**webhook(), "parameters": ["path"]}],
            "webhook 'Webhook' of workflow .* has parameters that are not an object",
        ),
        ([webhook(httpMethod="POST (?")], r"takes 'POST \(\?', which is not an HTTP method"),
        ([webhook(httpMethod=[{"a": 1}])], "which is not an HTTP method"),
        ([webhook(httpMethod=None)], "takes 'NONE', which is not an HTTP method"),
    ],
)
def test_webhooks_that_cannot_be_called(
    task_run: MakeRun, simulator: ServiceSimulator, nodes: list[dict[str, Any]], message: str
) -> None:
    workflow_id = put(simulator, *nodes, active=False)
    with pytest.raises(AirflowFailException, match=f"{message}.*[Nn]othing was started"):
        task_run(workflow_id=workflow_id, activate=True).attempt(1)
    assert calls(simulator) == 0
    assert not simulator.state.workflows.get(workflow_id).active


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            [node("On error", "errorTrigger", 1, {}, 0), DONE],
            r"cannot be started. it starts only on events or timers of the service, at .On error. \(.*errorTrigger\)",
        ),
        (
            [node("Feed", "rssFeedReadTrigger", 1, {}, 0), node("Mail", "emailReadImap", 2, {}, 0)],
            r"at 'Feed' \(n8n-nodes-base.rssFeedReadTrigger\), 'Mail' \(n8n-nodes-base.emailReadImap\)",
        ),
        (
            [node("Hourly", "cron", 1, {}, 0), node("Often", "interval", 1, {}, 0)],
            r"at 'Hourly' \(n8n-nodes-base.cron\), 'Often' \(n8n-nodes-base.interval\)",
        ),
        ([{**webhook(), "disabled": True}, DONE], "its triggers are disabled: 'Webhook'"),
        ([DONE], "it has no trigger"),
    ],
)
@pytest.mark.parametrize("start", ["auto", "mcp"])
def test_a_workflow_that_nothing_outside_can_start_is_named_once_with_a_way_out(
    task_run: MakeRun, simulator: ServiceSimulator, nodes: list[dict[str, Any]], message: str, start: str
) -> None:
    workflow_id = put(simulator, *nodes, active=False)
    end = (
        r". Add a webhook, or the trigger 'When Executed by Another Workflow', and connect it to the same node. Nothing"
    )
    with pytest.raises(AirflowFailException, match=message + end) as caught:
        task_run(workflow_id=workflow_id, start=start).attempt(1)
    assert "its triggers: " not in str(caught.value)
    assert calls(simulator) == 0


def test_triggers_of_events_are_listed_too(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    feed = node("Feed", "rssFeedReadTrigger", 1, {}, 0)
    workflow_id = put(simulator, feed, node("Clock", "scheduleTrigger", 1, {}, 0), active=False)
    triggers = r"its triggers: 'Clock' \(schedule\), 'Feed' \(n8n-nodes-base.rssFeedReadTrigger\)"
    with pytest.raises(AirflowFailException, match=triggers):
        task_run(workflow_id=workflow_id).attempt(1)


def test_one_of_several_webhooks(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook("a", name="A"), webhook("b", name="B"))
    assert task_run(workflow_id=workflow_id, trigger_node="B").attempt(1)["status"] == "success"
    assert started_with(held(simulator, workflow_id)[0])["webhookUrl"].endswith("/webhook/b")
    with pytest.raises(AirflowFailException, match=r"no webhook trigger named 'C'; its triggers: 'A' \(webhook\), 'B'"):
        task_run(workflow_id=workflow_id, trigger_node="C", map_index=2).attempt(1)


def test_the_webhook_of_the_live_version_counts_and_not_that_of_the_draft(
    task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook("live"), DONE)
    workflow = simulator.state.workflows.get(workflow_id)
    simulator.in_loop(lambda: simulator.state.workflows.update(workflow, {"nodes": [webhook("draft")]}))
    assert simulator.state.workflows.get(workflow_id).nodes[0]["parameters"]["path"] == "draft"
    assert task_run(workflow_id=workflow_id).attempt(1)["status"] == "success"


def test_a_webhook_whose_path_is_its_own_id(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, {**webhook(""), "webhookId": "own-id"}, DONE)
    assert task_run(workflow_id=workflow_id).attempt(1)["status"] == "success"
    assert simulator.requests[1].path == "/webhook/own-id"


#: What every start method says of a workflow that is not active.
INACTIVE = (
    r"workflow \w+ \(Workflow\) is not active; nothing was started. Activate it in n8n, by "
    r"ServiceActivateWorkflowOperator, or by activate=True, which publishes its draft"
)


def changes(simulator: ServiceSimulator) -> list[str]:
    """The requests that changed something or called a webhook."""
    return [f"{one.method} {one.path}" for one in simulator.requests if one.method != "GET"]


def test_workflows_that_are_not_active(make_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), DONE, active=False)
    run = make_run(workflow_id=workflow_id)
    with pytest.raises(AirflowFailException, match=INACTIVE):
        run.attempt(1)
    reason = run.pushed.pop(REASON_KEY)
    assert "is not active" in reason
    assert run.pushed == {"_link_ServiceWorkflowLink": f"{simulator.base_url}/workflow/{workflow_id}"}
    workflow = simulator.state.workflows.get(workflow_id)
    simulator.in_loop(lambda: simulator.state.workflows.archive(workflow))
    for activate in (False, True):
        with pytest.raises(AirflowFailException, match="is archived; nothing was started"):
            make_run(workflow_id=workflow_id, activate=activate).attempt(1)
    assert changes(simulator) == []


@pytest.mark.parametrize(
    ("trigger", "arguments"),
    [
        (webhook(), {"start": "webhook"}),
        (webhook(), {"start": "mcp", "enable_mcp": True}),
        (FORM, {"enable_mcp": True}),
        (SCHEDULE, {"enable_mcp": True}),
        (CHAT, {"enable_mcp": True, "payload": "Hello"}),
        (CALLED, {}),
    ],
    ids=["webhook", "webhook through MCP", "form", "schedule", "chat", "bridge"],
)
def test_no_start_method_changes_anything_for_a_workflow_that_is_not_active(
    task_run: MakeRun,
    simulator: ServiceSimulator,
    monkeypatch: pytest.MonkeyPatch,
    trigger: dict[str, Any],
    arguments: dict[str, Any],
) -> None:
    connect(monkeypatch, simulator, extra={"mcp_api_key": simulator.mcp_api_key})
    workflow_id = put(simulator, trigger, DONE, active=False)
    with pytest.raises(AirflowFailException, match=INACTIVE):
        task_run(workflow_id=workflow_id, **arguments).attempt(1)
    assert changes(simulator) == []


def test_every_mapped_task_leaves_a_workflow_off_that_somebody_has_switched_off(
    make_run: MakeRun, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    assert make_run(workflow_id=workflow_id, map_index=0).whole_attempt(1)["status"] == "success"
    workflow = simulator.state.workflows.get(workflow_id)
    simulator.in_loop(lambda: simulator.state.workflows.unpublish(workflow))
    for index in (1, 2):
        with pytest.raises(AirflowFailException, match=INACTIVE):
            make_run(workflow_id=workflow_id, map_index=index).attempt(1)
    assert not workflow.active


def test_an_execution_is_resumed_although_its_workflow_was_switched_off_meanwhile(
    task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(), wait(60), DONE)
    run = task_run(workflow_id=workflow_id, wait_for_completion=False)
    first = run.attempt(1)
    workflow = simulator.state.workflows.get(workflow_id)
    simulator.in_loop(lambda: simulator.state.workflows.unpublish(workflow))
    assert run.attempt(2)["execution_id"] == first["execution_id"]
    assert (calls(simulator), workflow.active) == (1, False)


def test_the_draft_is_published_only_if_the_task_says_so(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook("live"), DONE)
    workflow = simulator.state.workflows.get(workflow_id)
    simulator.in_loop(lambda: simulator.state.workflows.update(workflow, {"nodes": [webhook("draft")]}))
    simulator.in_loop(lambda: simulator.state.workflows.unpublish(workflow))
    run = task_run(workflow_id=workflow_id)
    with pytest.raises(AirflowFailException, match=INACTIVE):
        run.attempt(1)
    assert workflow.active_version is None
    assert run.attempt(2, activate=True)["status"] == "success"
    assert started_with(held(simulator, workflow_id)[0])["webhookUrl"].endswith("/webhook/draft")


def test_a_webhook_that_never_goes_live(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    set_live(simulator, workflow_id, False)
    with pytest.raises(ServiceWebhookNotLiveError, match=r"POST /webhook/w: the webhook is not live \(HTTP 404\)"):
        task_run(workflow_id=workflow_id).attempt(1)
    assert calls(simulator) > 1


def test_a_service_that_is_still_starting(
    task_run: MakeRun, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, simulator, extra={"retry_deadline": 30})
    workflow_id = put(simulator, webhook(), DONE)
    run = task_run(workflow_id=workflow_id)
    simulator.restart(boot_seconds=0.3)
    assert run.attempt(1)["status"] == "success"
    assert len(held(simulator, workflow_id)) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"workflow_id": "{{ 'w' }}", "workflow_name": "n"}, "give either workflow_id or workflow_name"),
        ({"workflow_id": "{{ '' }}"}, "workflow_id is empty"),
    ],
)
def test_arguments_without_meaning(
    task_run: MakeRun, simulator: ServiceSimulator, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(AirflowFailException, match=message):
        task_run(**arguments).attempt(1)
    assert not simulator.requests


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"on_retry": "never"}, "on_retry must be one of new, retry_execution, not 'never'"),
        (
            {"return_output": "all"},
            'return_output must be one of none, last_node, or {"node": "name of the node"}, not \'all\'',
        ),
        ({"activate": "no"}, "activate must be True or False, not 'no'"),
        ({"deferrable": 1}, "deferrable must be True or False, not 1"),
        ({"on_vanished": "skip"}, "on_vanished must be one of fail, succeed, not 'skip'"),
        ({"timeout": 0}, "timeout must be a timedelta or a number of seconds above 0, .*not 0"),
        ({"poll_interval": 0}, "poll_interval must be a timedelta or a number of seconds above 0, .*not 0"),
    ],
)
def test_the_dag_file_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.ServiceInputError, match=message):
        ServiceRunWorkflowOperator(task_id="run", workflow_id="w", **arguments)


def test_unknown_workflows(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    with pytest.raises(errors.ServiceNotFoundError):
        task_run(workflow_id="nope").attempt(1)
    with pytest.raises(AirflowFailException, match="there is no workflow named 'nope'"):
        task_run(workflow_name="nope").attempt(1)


# ---------------------------------------------------------------- GET


def test_the_payload_of_a_get_is_its_query(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(httpMethod="GET"), DONE)
    payload = {"day": "2026-01-01 & later", "dry": True, "n": 1, "none": None}
    assert task_run(workflow_id=workflow_id, payload=payload).attempt(1)["status"] == "success"
    [execution] = held(simulator, workflow_id)
    item = started_with(execution)
    assert (item["query"], item["body"]) == ({"day": "2026-01-01 & later", "dry": "true", "n": "1"}, {})
    assert task_run(workflow_id=workflow_id, map_index=2).attempt(1)["status"] == "success"
    several: list[Any] = [[1], "text", {"a": {}}, {"a": [1]}]
    for bad in several:
        with pytest.raises(AirflowFailException, match="takes GET, so payload must be a mapping of plain values"):
            task_run(workflow_id=workflow_id, payload=bad, map_index=3).attempt(1)


def test_one_of_several_methods(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(httpMethod=["PUT", "GET"], multipleMethods=True), DONE)
    assert task_run(workflow_id=workflow_id, payload=[1, 2]).attempt(1)["status"] == "success"
    assert [request.method for request in simulator.requests if "/webhook/" in request.path] == ["PUT"]


def test_any_json_is_a_payload() -> None:
    post = WebhookTrigger("W", "POST", "w", "none")
    assert [checked_payload(post, one) for one in (None, [1], "x", 0)] == [{}, [1], "x", 0]


def test_a_workflow_whose_webhook_is_taken(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    holder, other = put(simulator, webhook(), DONE, name="holder"), put(simulator, webhook(), DONE, active=False)
    with pytest.raises(
        AirflowFailException, match=rf"holds a webhook of workflow {other}: POST .* by 'holder' \({holder}\)"
    ):
        task_run(workflow_id=other, activate=True).attempt(1)
    assert (calls(simulator), held(simulator, other)) == (0, [])


@pytest.mark.slow
def test_a_body_that_is_too_large(
    monkeypatch: pytest.MonkeyPatch, task_run: MakeRun, simulator: ServiceSimulator, tmp_path: Path
) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    run = task_run(workflow_id=workflow_id, payload="x" * (16 * 2**20 - 1), store=StateStore(tmp_path / "state.json"))
    message = (
        r"the payload has 16,777,217 bytes, but the server accepts 16 MiB .*N8N_PAYLOAD_SIZE_MAX.*nothing was sent"
    )
    with pytest.raises(AirflowFailException, match=message):
        run.attempt(1)
    assert (calls(simulator), held(simulator, workflow_id)) == (0, [])
    # Another attempt knows that nothing was called.
    assert run.store is not None
    assert run.store.get("service_execution") is None
    connect(monkeypatch, simulator, extra={"max_payload_mib": 0.001})
    with pytest.raises(AirflowFailException, match=r"has 1,049 bytes, but the server accepts 0\.001 MiB"):
        task_run(workflow_id=workflow_id, payload="x" * 1047, map_index=1).attempt(1)
    assert run.attempt(2, payload="x" * 1046)["status"] == "success"
    assert calls(simulator) == 1


@pytest.mark.slow
def test_a_limit_that_the_server_keeps_by_itself(
    monkeypatch: pytest.MonkeyPatch, task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    connect(monkeypatch, simulator, extra={"max_payload_mib": 32})
    workflow_id = put(simulator, webhook(), DONE)
    with pytest.raises(AirflowFailException, match="answered 500, but no execution"):
        task_run(workflow_id=workflow_id, payload="x" * (16 * 2**20)).attempt(1)


def test_the_wrong_method(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    # It was changed since the workflow was read.
    answers_as(simulator, workflow_id, webhook(httpMethod="PUT"))
    with pytest.raises(ServiceWebhookRefusedError, match=r"the webhook does not take POST .*a PUT request"):
        task_run(workflow_id=workflow_id).attempt(1)
    assert (calls(simulator), held(simulator, workflow_id)) == (1, [])
