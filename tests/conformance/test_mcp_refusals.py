"""The MCP endpoint: which triggers, inputs, workflows, keys and requests it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_service.client import ServiceClient, errors

from .mcp_workflows import (
    CHAT,
    FORM,
    NEVER,
    MakeAvailable,
    chat,
    form,
    hook,
    manual,
    schedule,
    sub_workflow,
)
from .target import Target
from .workbench import done

# ---------------------------------------------------------------- triggers and inputs

Triggers = Callable[[], list[dict[str, Any]]]


def one_form() -> list[dict[str, Any]]:
    return [form()]


def schedule_and_form() -> list[dict[str, Any]]:
    return [schedule(), form()]


_SUPPORTED = "Schedule Trigger, Webhook Trigger, Form Trigger, Chat Trigger"


@pytest.mark.parametrize(
    ("triggers", "options", "words"),
    [
        (
            schedule_and_form,
            {},
            "This workflow has multiple triggers. Provide triggerNodeName to specify which one to execute. "
            "Available triggers: Schedule, Form.",
        ),
        (
            lambda: [schedule(), manual()],
            {"mode": "manual"},
            "This workflow has multiple triggers. Provide triggerNodeName to specify which one to execute. "
            "Available triggers: Schedule, Manual.",
        ),
        (
            one_form,
            {},
            "Provide triggerNodeName and inputs to execute this workflow. Available triggers: Form.",
        ),
        (schedule_and_form, {"inputs": FORM}, "Provide triggerNodeName when passing inputs. Available triggers: Sched"),
        (
            lambda: [sub_workflow()],
            {"mode": "manual"},
            "This workflow has no trigger that can be executed in manual mode. "
            f"Supported triggers: {_SUPPORTED}, Manual Trigger.",
        ),
        (
            one_form,
            {"trigger_node": "Nope"},
            'Trigger node "Nope" was not found. Available triggers: Form.',
        ),
        (
            lambda: [{**schedule(), "disabled": True}, form()],
            {"trigger_node": "Schedule"},
            'Trigger node "Schedule" is disabled. Enable it or choose another trigger: Form.',
        ),
        (
            lambda: [schedule(), manual()],
            {"trigger_node": "Manual"},
            'Trigger node "Manual" cannot be used in production mode. '
            "Use a webhook, form, chat, or schedule trigger, or execute in manual mode.",
        ),
        (
            lambda: [schedule(), sub_workflow()],
            {"trigger_node": "Sub"},
            'Trigger node "Sub" is not supported for MCP execution. Available triggers: Schedule.',
        ),
        (
            lambda: [schedule()],
            {"trigger_node": "Done"},
            'Trigger node "Done" is not supported for MCP execution. Available triggers: Schedule.',
        ),
    ],
)
def test_triggers_that_cannot_be_started(
    mcp: ServiceClient, make: MakeAvailable, service: Target, triggers: Triggers, options: dict[str, Any], words: str
) -> None:
    flow = make(*triggers(), done(), active="mode" not in options)
    with pytest.raises(errors.ServiceMcpRefusedError) as caught:
        mcp.mcp.execute_workflow(flow.id, **options)
    assert (caught.value.server_message or "").startswith(words)
    assert list(service.client.executions.list(workflow_id=flow.id)) == []


_INVALID = "Input validation error: Invalid arguments for tool execute_workflow: inputs"


@pytest.mark.parametrize(
    ("trigger", "inputs", "words"),
    [
        (schedule, FORM, 'Trigger node "Schedule" does not accept inputs. Omit inputs.'),
        (form, None, 'Trigger node "Form" requires inputs matching { formData: { FIELD_NAME: VALUE } }.'),
        (form, CHAT, 'Trigger node "Form" requires inputs matching { formData: { FIELD_NAME: VALUE } }.'),
        (chat, None, 'Trigger node "Chat" requires inputs matching { chatInput: string }.'),
        (hook, FORM, 'Trigger node "Webhook" requires inputs matching { webhookData: { headers?, query?, body? } }.'),
        (chat, {"chatInput": 5}, f"{_INVALID}: Invalid input"),
        (chat, {**CHAT, "sessionId": "s"}, f"{_INVALID}: Unrecognized key(s) in object: 'sessionId'"),
        (form, {}, f"{_INVALID}: Invalid input"),
        (form, {"nope": 1}, f"{_INVALID}: Invalid input"),
        (form, {"formData": []}, f"{_INVALID}: Invalid input"),
        (hook, {"webhookData": {"body": [1]}}, f"{_INVALID}: Invalid input"),
        (hook, {"webhookData": {"query": {"a": 1}}}, f"{_INVALID}: Invalid input"),
        (hook, {"webhookData": {"headers": {"a": None}}}, f"{_INVALID}: Invalid input"),
        (
            hook,
            {"webhookData": {"params": {}}},
            f"{_INVALID}.webhookData: Unrecognized key(s) in object: 'params'",
        ),
    ],
)
def test_inputs_that_the_trigger_does_not_take(
    mcp: ServiceClient, make: MakeAvailable, trigger: Callable[[], dict[str, Any]], inputs: Any, words: str
) -> None:
    begin = trigger()
    flow = make(begin, done())
    with pytest.raises(errors.ServiceInvalidRequestError) as caught:
        mcp.mcp.execute_workflow(flow.id, trigger_node=begin["name"], inputs=inputs)
    assert caught.value.server_message == words


def test_workflows_that_cannot_be_started(mcp: ServiceClient, make: MakeAvailable, service: Target) -> None:
    with pytest.raises(errors.ServiceNotFoundError, match="Workflow not found or you don't have permission"):
        mcp.mcp.execute_workflow(NEVER)
    with pytest.raises(errors.ServiceMcpRefusedError, match="Workflow is not available in MCP"):
        mcp.mcp.execute_workflow(make(schedule(), done(), availableInMCP=False).id)
    archived = make(schedule(), done())
    service.client.workflows.archive(archived.id)
    for mode in ("production", "manual"):
        with pytest.raises(errors.ServiceMcpRefusedError, match=f"'{archived.id}' is archived and cannot be"):
            mcp.mcp.execute_workflow(archived.id, mode=mode)
    with (
        service.client_of(mcp_api_key=service.mcp_api_key) as once,
        pytest.raises(errors.ServiceNotPublishedError, match=r"has no published .active. version to execute"),
    ):
        once.mcp.execute_workflow(make(schedule(), done(), active=False).id)


# ---------------------------------------------------------------- access


@pytest.mark.usefixtures("mcp")
def test_keys_of_the_endpoint(service: Target) -> None:
    for key in ("wrong", service.api_key):
        with (
            service.client_of(mcp_api_key=key) as client,
            pytest.raises(errors.ServiceUnauthorizedError, match=r"the MCP key was refused .HTTP 401.* 'Unauthorized'"),
        ):
            client.mcp.execute_workflow(NEVER)


def test_the_endpoint_can_be_switched_off(mcp: ServiceClient, service: Target) -> None:
    service.switch_mcp(False)
    try:
        with pytest.raises(errors.ServiceNotOfferedError, match="MCP access is disabled") as caught:
            mcp.mcp.execute_workflow(NEVER)
        assert caught.value.status == 404
    finally:
        service.switch_mcp(True)


def test_inputs_above_the_limit(mcp: ServiceClient, make: MakeAvailable, service: Target) -> None:
    flow = make(form(), done())
    too_much = {"formData": {"a": "x" * (17 * 2**20)}}
    with (
        service.client_of(mcp_api_key=service.mcp_api_key, max_payload_mib=20) as client,
        pytest.raises(errors.ServicePayloadTooLargeError),
    ):
        client.mcp.execute_workflow(flow.id, trigger_node="Form", inputs=too_much)
    some = {"formData": {"a": "x" * (2 * 2**20)}}
    assert mcp.mcp.execute_workflow(flow.id, trigger_node="Form", inputs=some).execution_id


LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def ask(service: Target, body: Any, **headers: str) -> tuple[int, Any]:
    """Send a request to the endpoint as it stands; returns the status and the text of the answer."""
    sent = {"Authorization": f"Bearer {service.mcp_api_key}", **ACCEPT, **headers}
    answer = service.outside("POST", "/mcp-server/http", json=body, headers=sent)
    return answer.status_code, answer.text


@pytest.mark.usefixtures("mcp")
def test_the_protocol(service: Target) -> None:
    status, text = ask(service, LIST)
    assert status == 200
    assert text.startswith("event: message\ndata: {")
    assert '"execute_workflow"' in text
    for name, code, words in (
        ("nope", -32602, "Tool nope not found"),
        ("", -32602, "Tool  not found"),
    ):
        status, text = ask(service, {**LIST, "method": "tools/call", "params": {"name": name, "arguments": {}}})
        assert (status, f'"code":{code}' in text.replace('": ', '":'), words in text) == (200, True, True)
    status, text = ask(service, {**LIST, "method": "nope"})
    assert (status, "Method not found" in text) == (200, True)


@pytest.mark.usefixtures("mcp")
def test_requests_that_are_none(service: Target) -> None:
    assert ask(service, LIST, Accept="application/json")[0] == 406
    assert ask(service, {"no": "call"})[0] == 400
    assert ask(service, LIST, Authorization="Basic abc") == (
        401,
        '{"message":"Unauthorized: Invalid authorization header format - Missing Bearer prefix"}',
    )
    without_key = service.outside("POST", "/mcp-server/http", json=LIST, headers=ACCEPT)
    assert without_key.json() == {"message": "Unauthorized: Authorization header not sent"}
    assert without_key.headers["WWW-Authenticate"].startswith('Bearer realm="n8n MCP Server"')
