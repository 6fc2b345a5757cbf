"""The MCP endpoint: what a start sends, what is repeated, and what stays secret."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
import requests
import requests_mock

from airflow_provider_service.client import errors
from airflow_provider_service.client.models import StartedExecution

from .clients import KEY, Client, make_config
from .mcp_calls import (
    FORM,
    MCP_KEY,
    MISSES_THE_MODE,
    NOT_PUBLISHED,
    STARTED,
    URL,
    output,
    raised,
    refusal,
    refused_arguments,
    start,
)
from .tiny_server import TinyServer, answer

PROBE = {"workflowId": "", "inputs": {}}

# what is sent


def test_a_start_sends_the_endpoints_own_key(mcp: Client, server: requests_mock.Mocker) -> None:
    server.post(URL, **STARTED)

    assert start(mcp) == StartedExecution("7", "started")

    (request,) = server.request_history
    assert request.headers["Authorization"] == f"Bearer {MCP_KEY}"
    assert request.headers["Accept"] == "application/json, text/event-stream"
    assert request.headers["Content-Type"] == "application/json"
    assert KEY not in str(request.headers)
    arguments = {"workflowId": "w", "executionMode": "production", "triggerNodeName": "Form", "inputs": FORM}
    assert request.json() == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "execute_workflow", "arguments": arguments},
    }


def test_a_start_without_inputs_first_recognises_the_kind_of_the_endpoint(
    mcp: Client, server: requests_mock.Mocker
) -> None:
    server.post(URL, [refused_arguments(MISSES_THE_MODE), STARTED])

    mcp.mcp.execute_workflow("w", mode="manual")
    mcp.mcp.execute_workflow("w", trigger_node="Schedule")

    sent = [request.json()["params"]["arguments"] for request in server.request_history]
    assert sent == [
        PROBE,
        {"workflowId": "w", "executionMode": "manual"},
        {"workflowId": "w", "executionMode": "production", "triggerNodeName": "Schedule"},
    ]


OLDER_INPUTS = (
    "Input validation error: Invalid arguments for tool execute_workflow: inputs: Invalid discriminator value"
)


@pytest.mark.parametrize(
    "answer",
    [
        output(success=False, executionId=None, error="Workflow not found"),
        refused_arguments(f"{OLDER_INPUTS}. Expected 'chat' | 'form' | 'webhook'"),
        refused_arguments(f"{OLDER_INPUTS}. Expected 'chat' | 'form' | 'webhook', executionMode: Required"),
    ],
    ids=["any inputs", "2.20", "2.30"],
)
def test_an_older_endpoint_is_recognised_before_anything_runs(
    mcp: Client, server: requests_mock.Mocker, answer: dict[str, Any]
) -> None:
    server.post(URL, **answer)

    with pytest.raises(errors.ServiceNotOfferedError, match="is an older one") as caught:
        mcp.mcp.execute_workflow("w", mode="manual")

    assert caught.value.final
    assert [request.json()["params"]["arguments"] for request in server.request_history] == [PROBE]


def test_a_lost_answer_about_the_kind_started_nothing(mcp: Client, server: requests_mock.Mocker) -> None:
    server.post(URL, exc=requests.ReadTimeout)

    with pytest.raises(
        errors.ServiceRunNotStartedError, match=r"did not arrive within .*; nothing was started"
    ) as caught:
        mcp.mcp.execute_workflow("w")

    assert (caught.value.not_processed, caught.value.final) == (True, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"workflow_id": " "}, "workflow_id must not be empty; nothing was sent"),
        ({"workflow_id": 7}, "workflow_id must not be empty; nothing was sent"),
        ({"mode": "draft"}, "mode must be one of production, manual, not 'draft'; nothing was sent"),
        ({"inputs": {"formData": {"a": float("nan")}}}, "cannot be written as JSON: .*; nothing was sent"),
        ({"timeout": 0}, "timeout must be a number of seconds above 0, not 0; nothing was sent"),
    ],
)
def test_wrong_arguments_are_refused(
    mcp: Client, server: requests_mock.Mocker, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(errors.ServiceInputError, match=message):
        mcp.mcp.execute_workflow(**{"workflow_id": "w", "inputs": FORM, **arguments})
    assert server.request_history == []


def test_inputs_above_the_servers_limit_are_refused(server: requests_mock.Mocker) -> None:
    client = Client(mcp_api_key=MCP_KEY, max_payload_mib=0.001)

    with pytest.raises(errors.ServiceInputError, match=r"accepts 0.001 MiB .*; nothing was sent"):
        start(client, inputs={"formData": {"a": "x" * 2000}})
    assert server.request_history == []


def test_the_error_for_a_missing_key_says_how_to_create_one(client: Client, server: requests_mock.Mocker) -> None:
    with pytest.raises(errors.ServiceConfigError, match=r"'mcp_api_key' is missing: .* Instance-level MCP; nothing"):
        start(client)
    assert server.request_history == []


# repeating, limits and secrets


def test_only_a_call_that_started_nothing_is_repeated(server: requests_mock.Mocker) -> None:
    client = Client(mcp_api_key=MCP_KEY)
    not_yet = output(executionId=None, status="error", error=NOT_PUBLISHED)
    limited = refusal(429, {"message": "Too many requests"}, **{"Retry-After": "3"})
    server.post(URL, [{"exc": requests.ConnectTimeout}, limited, not_yet, STARTED])

    assert start(client).execution_id == "7"
    assert len(client.pauses) == 3
    assert client.pauses[1] >= 3


@pytest.mark.parametrize(
    "answered", [{"exc": requests.ReadTimeout}, {"status_code": 502}, {"status_code": 504}, {"status_code": 500}]
)
def test_a_call_that_may_have_started_something_is_not_repeated(
    server: requests_mock.Mocker, answered: dict[str, Any]
) -> None:
    server.post(URL, **answered)

    assert not raised(Client(mcp_api_key=MCP_KEY)).not_processed
    assert server.call_count == 1


def test_the_caller_can_stop_further_tries(server: requests_mock.Mocker) -> None:
    stopped = threading.Event()
    stopped.set()
    server.post(URL, **output(executionId=None, status="error", error=NOT_PUBLISHED))

    assert isinstance(raised(Client(mcp_api_key=MCP_KEY), stopped=stopped), errors.ServiceNotPublishedError)
    assert server.call_count == 1


@pytest.mark.parametrize(("own", "seconds"), [(None, 7), (3, 3)])
def test_the_timeout_is_that_of_the_call_or_of_the_connection(
    server: requests_mock.Mocker, own: float | None, seconds: float
) -> None:
    server.post(URL, **STARTED)

    start(Client(timeout=7, mcp_api_key=MCP_KEY), timeout=own)

    assert server.last_request.timeout[1] == seconds


def test_a_stream_that_does_not_end_is_given_up() -> None:
    """The limits of time and size are those of every call."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    settings = {"mcp_api_key": MCP_KEY, "retry_deadline": 0, "max_answer_mib": 1}
    with TinyServer([head, b": wait\n\n", 30.0]) as tiny:
        assert isinstance(raised(Client(base_url=tiny.address, timeout=0.3, **settings)), errors.ServiceTimeoutError)
    with TinyServer([head, *[b": more\n\n" * 20_000] * 10]) as tiny:
        failed = raised(Client(base_url=tiny.address, **settings))
    assert isinstance(failed, errors.ServiceAnswerTooLargeError)
    assert not failed.not_processed


def echo(status: str, *headers: str) -> Callable[[Any], bytes]:
    """An answer that repeats the key that it got."""

    def repeat(received: Any) -> bytes:
        key = received.headers["authorization"]
        return answer(json.dumps({"message": key}).encode(), *(f"{line}{key}" for line in headers), status=status)

    return repeat


@pytest.mark.parametrize("step", [echo("401 No"), echo("500 No"), echo("302 Found", "Location: /login/")])
def test_errors_do_not_repeat_the_key(step: Callable[[Any], bytes]) -> None:
    with TinyServer(step) as tiny:
        error = raised(Client(base_url=tiny.address, mcp_api_key=MCP_KEY, retry_deadline=0))
    assert MCP_KEY not in str(error)
    assert MCP_KEY not in repr(vars(error))


def test_messages_of_failures_do_not_repeat_the_key(mcp: Client, server: requests_mock.Mocker) -> None:
    server.post(URL, **output(executionId=None, status="error", error=f"bad {MCP_KEY}"))

    assert "bad ***" in str(raised(mcp))


def test_settings_do_not_show_the_key() -> None:
    config = make_config(mcp_api_key=MCP_KEY)

    assert MCP_KEY not in f"{config!r} {config.model_dump()}"
    assert config.keys == (KEY, MCP_KEY)
    assert make_config().keys == (KEY,)
