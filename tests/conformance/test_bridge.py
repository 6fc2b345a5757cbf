"""The bridge, and what the service does with a workflow that another one starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from airflow_provider_service._core.runs.attempt import RunKey
from airflow_provider_service._core.runs.bridge import TAG, BridgeSecret, Installer, credential_of
from airflow_provider_service._core.runs.searching import RUN_KEY_HEADER, starting_call
from airflow_provider_service.client import errors
from airflow_provider_service.client._execution_data import failure_of, last_output
from airflow_provider_service.client.models import Execution, Workflow
from airflow_provider_service.simulator._samples import node
from tests.polling import wait_until

from .expecting import unique
from .target import Target
from .workbench import ENDED, LONG_WAIT, Workbench, done, stop_and_error, wait

ONE_ITEM = ({"a": 1},)
NOT_ACTIVE = "Workflow is not active and cannot be executed."
UNKNOWN = "AAAAAAAAAAAAAAAA"


def sub_workflow_trigger(**parameters: Any) -> dict[str, Any]:
    return node("Called", "executeWorkflowTrigger", 1.1, {"inputSource": "passthrough", **parameters}, 0)


def manual_trigger() -> dict[str, Any]:
    return node("Manual", "manualTrigger", 1, {}, 0)


def schedule_trigger() -> dict[str, Any]:
    return node("Schedule", "scheduleTrigger", 1.2, {"rule": {"interval": [{"field": "months"}]}}, 0)


class Bridge:
    """The installed bridge."""

    def __init__(self, service: Target, bench: Workbench, workflow: Workflow, secret: BridgeSecret) -> None:
        self.service, self.bench, self.workflow, self.secret = service, bench, workflow, secret

    def call(self, workflow_id: Any, items: Any = ONE_ITEM, **headers: str) -> Execution:
        """Start a workflow; the execution of the bridge, ended, with its data."""
        client = self.service.client
        trigger = client.webhooks.find(client.workflows.get(self.workflow.id))
        body = {"workflowId": workflow_id, "items": items if isinstance(items, dict) else list(items)}
        answer = client.webhooks.call(trigger, body, headers={**self.secret.headers(client), **headers})
        execution_id = str(answer.body["executionId"])

        def ended() -> Execution | None:
            execution = client.executions.get(execution_id, include_data=True)
            # The older generation shows an execution as ended a moment before it shows its data.
            shown = (execution.data or {}).get("resultData", {}).get("runData")
            return execution if execution.status in ENDED and shown else None

        return wait_until(ended, what=f"execution {execution_id} of the bridge to end")

    def run(self, workflow: Workflow, items: Any = ONE_ITEM) -> tuple[Execution, Execution]:
        """Start a workflow that was just activated; the executions of the bridge and of that workflow, which ended."""

        def started() -> Execution | None:
            execution = self.call(workflow.id, items)
            return None if failure_of(execution).message == NOT_ACTIVE else execution

        execution = wait_until(started, what="the workflow to be started")
        return execution, self.bench.finished(child_of(execution))


def child_of(execution: Execution) -> str:
    """The id of the execution that the bridge has started."""
    return str(started_by(execution)["subExecution"]["executionId"])


def started_by(execution: Execution) -> dict[str, Any]:
    """What the node that starts workflows shows of that."""
    assert execution.data is not None
    found: dict[str, Any] = execution.data["resultData"]["runData"]["Start"][0].get("metadata") or {}
    return found


@pytest.fixture
def bridge(service: Target, bench: Workbench) -> Iterator[Bridge]:
    client, secret = service.client, BridgeSecret(service.client.transport.config)
    workflow, outcome = Installer(client, secret).install()
    assert outcome == "created"
    wait_until(lambda: bench.is_live(client.workflows.get(workflow.id)), what="the bridge to go live")
    yield Bridge(service, bench, workflow, secret)
    bench.remove(workflow.id)
    credential = credential_of(workflow)
    assert credential is not None
    client.credentials.delete(credential.id)
    client.tags.delete(next(tag.id for tag in client.tags.list() if tag.name == TAG))


@pytest.fixture
def callee(service: Target, bench: Workbench) -> Callable[..., Workflow]:
    """``callee(*nodes, **settings)`` makes a workflow of these nodes, and publishes it where that can be done."""

    def make(*nodes: dict[str, Any], **settings: Any) -> Workflow:
        made = bench.create(*nodes, **settings)
        if any(one["type"].endswith("scheduleTrigger") for one in nodes) or not service.differs(
            "publishing of sub-workflows"
        ):
            service.client.workflows.activate(made.id)
        return made

    return make


def test_the_items_of_a_call_become_those_of_the_workflow(bridge: Bridge, callee: Callable[..., Workflow]) -> None:
    workflow = callee(sub_workflow_trigger(), done())
    items = [{"a": 1, "none": None, "with.dot": {"deep": [1, {"x": "={{ 1 }}"}]}}, {}, {"body": {"items": [1]}}]
    parent, child = bridge.run(workflow, items)
    assert (child.mode, child.status, child.workflow_id) == ("integrated", "success", workflow.id)
    assert last_output(child) == items
    assert started_by(parent) == {
        "subExecution": {"executionId": child.id, "workflowId": workflow.id},
        "subExecutionsCount": 1,
    }
    assert child.data is not None
    by = child.data["parentExecution"]
    assert (by["executionId"], by["workflowId"]) == (parent.id, bridge.workflow.id)


def test_the_execution_of_the_bridge_carries_the_key(bridge: Bridge, callee: Callable[..., Workflow]) -> None:
    key = RunKey(unique("key"), 1)
    workflow = callee(sub_workflow_trigger(), done())
    bridge.run(workflow)
    parent = bridge.call(workflow.id, **{RUN_KEY_HEADER: key.header})
    assert starting_call(parent).carries(key)
    child = bridge.bench.finished(child_of(parent))
    assert key.header not in str(child.data)


def test_declared_fields_are_all_that_arrives(bridge: Bridge, callee: Callable[..., Workflow]) -> None:
    fields = {"values": [{"name": "a", "type": "string"}, {"name": "z", "type": "number"}]}
    workflow = callee(sub_workflow_trigger(inputSource="workflowInputs", workflowInputs=fields), done())
    _, child = bridge.run(workflow, [{"a": 5, "b": 6}])
    assert last_output(child) == [{"a": 5, "z": None}]


@pytest.mark.parametrize("kind", ["manual", "sub-workflow"])
def test_which_of_them_can_be_published(service: Target, bench: Workbench, kind: str) -> None:
    made = bench.create(sub_workflow_trigger() if kind == "sub-workflow" else manual_trigger(), done())
    if kind == "sub-workflow" and not service.differs("publishing of sub-workflows"):
        published = service.client.workflows.activate(made.id)
        assert (published.active, published.trigger_count) == (True, 0)
    else:
        with pytest.raises(errors.ServiceInvalidRequestError, match=r"no (trigger node|node to start the workflow)"):
            service.client.workflows.activate(made.id)


@pytest.mark.parametrize("kind", ["manual", "sub-workflow"])
def test_what_is_not_published(service: Target, bench: Workbench, bridge: Bridge, kind: str) -> None:
    made = bench.create(sub_workflow_trigger() if kind == "sub-workflow" else manual_trigger(), done())
    if service.differs("start of what is not published"):
        assert bridge.run(made)[1].status == "success"
    else:
        parent = bridge.call(made.id)
        assert (parent.status, failure_of(parent)) == ("error", ("Start", NOT_ACTIVE))
        assert started_by(parent) == {}


def test_the_published_version_runs(
    service: Target, bench: Workbench, bridge: Bridge, callee: Callable[..., Workflow]
) -> None:
    workflow = callee(sub_workflow_trigger(), done())
    draft = bench.create(sub_workflow_trigger(), stop_and_error())
    has_drafts = service.offers("update_workflow?publishIfActive")
    options = {"publish_if_active": False} if has_drafts else {}
    service.client.workflows.update(
        workflow.id, workflow.name, draft.nodes or [], draft.connections or {}, {}, **options
    )
    _, child = bridge.run(workflow)
    assert child.status == ("success" if has_drafts else "error")


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ([manual_trigger(), sub_workflow_trigger(), schedule_trigger()], "Called"),
        ([schedule_trigger(), manual_trigger()], "Manual"),
        ([{**sub_workflow_trigger(), "disabled": True}, schedule_trigger()], "Called"),
    ],
    ids=["sub-workflow trigger first", "manual", "disabled"],
)
def test_the_trigger_that_begins(
    bridge: Bridge, callee: Callable[..., Workflow], nodes: list[dict[str, Any]], first: str
) -> None:
    _, child = bridge.run(callee(*nodes))
    assert child.data is not None
    assert next(iter(child.data["resultData"]["runData"])) == first


def test_a_workflow_without_such_a_trigger(service: Target, bridge: Bridge, callee: Callable[..., Workflow]) -> None:
    workflow = callee(schedule_trigger(), done())

    def refused() -> Execution | None:
        execution = bridge.call(workflow.id)
        return None if failure_of(execution).message == NOT_ACTIVE else execution

    parent = wait_until(refused, what="the workflow to be published")
    assert failure_of(parent).message == (
        "Missing node to start execution "
        "(Please make sure the workflow you're calling contains an Execute Workflow Trigger node)"
    )


@pytest.mark.parametrize("workflow_id", [UNKNOWN, "", None, 5, ["x"], {"a": 1}], ids=repr)
def test_a_workflow_that_does_not_exist(service: Target, bridge: Bridge, workflow_id: Any) -> None:
    parent = bridge.call(workflow_id)
    unknown = "Workflow does not exist." if service.differs("start of an unknown workflow") else NOT_ACTIVE
    assert failure_of(parent) == ("Start", unknown)
    assert started_by(parent) == {}


def test_a_workflow_that_fails(bridge: Bridge, callee: Callable[..., Workflow]) -> None:
    parent, child = bridge.run(callee(sub_workflow_trigger(), stop_and_error("Out of stock")))
    assert (parent.status, child.status) == ("success", "error")
    assert failure_of(child) == ("Stop", "Out of stock")


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ({"callerPolicy": "any"}, "success"),
        ({"callerPolicy": "none"}, "error"),
        ({"callerPolicy": "workflowsFromSameOwner"}, "success"),
        ({"callerPolicy": "workflowsFromAList", "callerIds": UNKNOWN}, "error"),
        ({"callerPolicy": "workflowsFromAList", "callerIds": f"{UNKNOWN}, the bridge"}, "success"),
    ],
    ids=["any", "none", "same owner", "list of others", "list with the bridge"],
)
def test_who_may_start_a_workflow(
    bridge: Bridge, callee: Callable[..., Workflow], settings: dict[str, str], status: str
) -> None:
    own = {name: value.replace("the bridge", bridge.workflow.id) for name, value in settings.items()}
    workflow = callee(sub_workflow_trigger(), done(), **own)
    parent, child = bridge.run(workflow)
    assert (parent.status, child.status) == ("success", status)
    if status == "error":
        assert (failure_of(child).message or "").startswith(
            f"The sub-workflow ({workflow.id}) cannot be called by this workflow"
        )
        assert child.data is not None
        assert "parentExecution" not in child.data


def test_a_workflow_that_waits(service: Target, bridge: Bridge, callee: Callable[..., Workflow]) -> None:
    workflow = callee(sub_workflow_trigger(), wait(LONG_WAIT * 10), done())

    def started() -> Execution | None:
        execution = bridge.call(workflow.id)
        return execution if started_by(execution) else None

    parent = wait_until(started, what="the workflow to be started")
    child = bridge.bench.reaches(child_of(parent), "waiting")
    assert parent.status == "success"
    if service.offers("stop_execution"):
        service.client.executions.stop(child.id)
        bridge.bench.reaches(child.id, "canceled")


@pytest.mark.covers("retry_execution")
def test_a_retry_keeps_the_parent(service: Target, bridge: Bridge, callee: Callable[..., Workflow]) -> None:
    parent, child = bridge.run(callee(sub_workflow_trigger(), stop_and_error()))
    retried = service.client.executions.get(service.client.executions.retry(child.id).id, include_data=True)
    assert (retried.mode, retried.status) == ("retry", "error")
    assert retried.data is not None
    assert retried.data["parentExecution"]["executionId"] == parent.id


@pytest.mark.parametrize("kind", ["none", "wrong", "expired"])
def test_calls_without_a_valid_token_run_nothing(service: Target, bridge: Bridge, kind: str) -> None:
    client = service.client
    trigger = client.webhooks.find(client.workflows.get(bridge.workflow.id))
    if kind == "none":
        headers = {}
    elif kind == "wrong":
        config = client.transport.config.model_copy(update={"bridge_secret": SecretStr("of another connection")})
        headers = BridgeSecret(config).headers(client)
    else:
        headers = bridge.secret.headers(client, lifetime=-60.0)
    with pytest.raises(errors.ServiceWebhookRefusedError):
        client.webhooks.call(trigger, {"workflowId": UNKNOWN, "items": [{}]}, headers=headers)
    assert list(client.executions.list(workflow_id=bridge.workflow.id)) == []


def test_an_installed_bridge_is_left_as_it_is(service: Target, bridge: Bridge) -> None:
    before = service.client.workflows.get(bridge.workflow.id)
    again = Installer(service.client, bridge.secret).install()
    assert (again.workflow.id, again.outcome) == (bridge.workflow.id, "unchanged")
    assert service.client.workflows.get(bridge.workflow.id).version_id == before.version_id


def test_a_bridge_that_somebody_changed_is_restored(service: Target, bench: Workbench, bridge: Bridge) -> None:
    client = service.client
    before = client.workflows.get(bridge.workflow.id)
    changed = [one for one in before.nodes or [] if one["name"] != "Items"]
    links = {"Webhook": (before.connections or {})["Webhook"]}
    client.workflows.update(before.id, before.name, changed, links, {})
    assert Installer(client, bridge.secret).install().outcome == "updated"
    after = client.workflows.get(before.id)
    assert [one["name"] for one in after.nodes or []] == [one["name"] for one in before.nodes or []]
    assert Installer(client, bridge.secret).install().outcome == "unchanged"
    assert [tag.name for tag in after.tags or []] == [TAG]
