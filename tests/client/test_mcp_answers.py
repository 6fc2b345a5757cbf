"""The MCP endpoint: what each of its answers means."""

from __future__ import annotations

import codecs
from typing import Any

import pytest
import requests
import requests_mock

from airflow_provider_service.client import errors
from airflow_provider_service.client._http.exchange import Answer
from airflow_provider_service.client._http.start_answers import is_answer
from airflow_provider_service.client._values import one_line
from airflow_provider_service.client.models import StartedExecution

from .clients import Client
from .mcp_calls import (
    MCP_KEY,
    MISSES_THE_MODE,
    NOT_PUBLISHED,
    URL,
    event,
    output,
    protocol_error,
    raised,
    refusal,
    refused_arguments,
    start,
)
from .tiny_server import TinyServer

UNAVAILABLE = "Workflow is not available in MCP. Enable MCP access from the workflow card."
TRIGGERS = (
    'Trigger node "Form" was not found. Available triggers: none.',
    'Trigger node "A\nB" was not found. Available triggers: none.',
    'Trigger node "Form" is disabled. Enable it or choose another trigger: none.',
    'Trigger node "Form" cannot be used in production mode. Use a webhook, form, chat, or schedule trigger.',
    'Trigger node "Form" is not supported for MCP execution. Available triggers: Schedule.',
    "This workflow has multiple triggers. Provide triggerNodeName to specify which one to execute.",
    "This workflow has no trigger that can be executed in production mode. Supported triggers: Schedule Trigger.",
    "Provide triggerNodeName when passing inputs. Available triggers: Form.",
    "Provide triggerNodeName and inputs to execute this workflow. Available triggers: Form.",
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Workflow not found or you don't have permission to access it.", errors.ServiceNotFoundError),
        (UNAVAILABLE, errors.ServiceMcpRefusedError),
        ("Workflow 'w' is archived and cannot be accessed.", errors.ServiceMcpRefusedError),
        (NOT_PUBLISHED, errors.ServiceNotPublishedError),
        ('Trigger node "Form" does not accept inputs. Omit inputs.', errors.ServiceInvalidRequestError),
        ('Trigger node "Form" requires inputs matching { formData }.', errors.ServiceInvalidRequestError),
        *((text, errors.ServiceMcpRefusedError) for text in TRIGGERS),
    ],
)
def test_a_refusal_started_nothing(
    mcp: Client, server: requests_mock.Mocker, text: str, kind: type[errors.ServiceApiError]
) -> None:
    server.post(URL, **output(executionId=None, status="error", error=text))

    error = raised(mcp)

    assert type(error) is kind
    assert error.not_processed
    assert one_line(text) in str(error)


@pytest.mark.parametrize(
    "words",
    [
        "getaddrinfo ENOTFOUND redis",  # the queue could not be reached once the execution had been stored
        "",
        "The workflow said: Workflow not found",
    ],
)
def test_a_failure_with_another_message_may_have_started_an_execution(
    mcp: Client, server: requests_mock.Mocker, words: str
) -> None:
    server.post(URL, **output(executionId=None, status="error", error=words))

    error = raised(mcp)

    assert type(error) is errors.ServiceServerError
    assert not error.not_processed


def test_an_answer_that_names_an_execution_is_a_start_whatever_its_status(
    mcp: Client, server: requests_mock.Mocker
) -> None:
    server.post(URL, **output(executionId="7", status="error", error=NOT_PUBLISHED))

    assert start(mcp) == StartedExecution("7", "error")


@pytest.mark.parametrize(
    ("shape", "kind", "not_processed"),
    [
        (refused_arguments(f"{MISSES_THE_MODE}"), errors.ServiceInvalidRequestError, True),
        (
            refused_arguments("MCP error -32602: Input validation error: Invalid discriminator value. Expected 'chat'"),
            errors.ServiceNotOfferedError,
            True,
        ),
        (refused_arguments("Tool execute_workflow not found"), errors.ServiceNotOfferedError, True),
        (protocol_error(-32602, "Tool execute_workflow not found"), errors.ServiceNotOfferedError, True),
        (protocol_error(-32601, "Method not found"), errors.ServiceNotOfferedError, True),
        (protocol_error(-32602, "Invalid tools/call request"), errors.ServiceInvalidRequestError, True),
        (
            protocol_error(-32602, "Output validation error: It lacks x"),
            errors.ServiceServerError,
            False,
        ),
        (
            protocol_error(-32602, "MCP error -32602: Output validation error: Invalid structured content"),
            errors.ServiceServerError,
            False,
        ),
        (
            refused_arguments("Tool execute_workflow has an output schema but no structured content was provided"),
            errors.ServiceServerError,
            False,
        ),
        (protocol_error(-32603, "Internal server error"), errors.ServiceServerError, False),
        ({"text": ""}, errors.ServiceUnexpectedResponseError, False),
        ({"text": "event: message\ndata: {"}, errors.ServiceUnexpectedResponseError, False),
        (event({"jsonrpc": "2.0", "id": 2, "result": {}}), errors.ServiceUnexpectedResponseError, False),
        (event({"jsonrpc": "2.0", "id": 1, "result": []}), errors.ServiceServerError, False),
        (output(executionId=7, status="started"), errors.ServiceServerError, False),
    ],
)
def test_the_answers_of_the_protocol(
    mcp: Client,
    server: requests_mock.Mocker,
    shape: dict[str, Any],
    kind: type[errors.ServiceApiError],
    not_processed: bool,
) -> None:
    server.post(URL, **shape)

    error = raised(mcp)

    assert (type(error), error.not_processed) == (kind, not_processed)


PAGE = {"text": "<html><body><pre>Cannot POST /mcp-server/http</pre>", "headers": {"Content-Type": "text/html"}}


@pytest.mark.parametrize(
    ("answered", "kind", "not_processed"),
    [
        (refusal(401, {"message": "Unauthorized"}), errors.ServiceUnauthorizedError, True),
        (refusal(404, {"message": "MCP access is disabled"}), errors.ServiceNotOfferedError, True),
        (refusal(403, {"message": "MCP access is disabled"}), errors.ServiceNotOfferedError, True),
        (refusal(403, {"message": "Forbidden"}), errors.ServiceForbiddenError, True),
        ({"status_code": 404, **PAGE}, errors.ServiceStartingError, True),
        (refusal(406, {"error": {"code": -32000}}), errors.ServiceInvalidRequestError, True),
        ({"status_code": 413, **PAGE}, errors.ServicePayloadTooLargeError, True),
        (refusal(429, {"message": "Too many requests"}), errors.ServiceRateLimitedError, True),
        (refusal(500, {"error": {"code": -32603}}), errors.ServiceServerError, False),
        ({"status_code": 502, **PAGE}, errors.ServiceUnavailableError, False),
        ({"status_code": 503, **PAGE}, errors.ServiceUnavailableError, False),
        ({"status_code": 503, "headers": {"Retry-After": "3"}}, errors.ServiceUnavailableError, True),
        ({"status_code": 504, **PAGE}, errors.ServiceUnavailableError, False),
        ({"status_code": 302, "headers": {"Location": "/login"}}, errors.ServiceRedirectError, True),
        ({"exc": requests.ConnectTimeout}, errors.ServiceUnreachableError, True),
        ({"exc": requests.ReadTimeout}, errors.ServiceTimeoutError, False),
        ({"exc": requests.ConnectionError(ConnectionResetError())}, errors.ServiceConnectionLostError, False),
    ],
)
def test_each_status_and_each_missing_answer(
    mcp: Client,
    server: requests_mock.Mocker,
    answered: dict[str, Any],
    kind: type[errors.ServiceApiError],
    not_processed: bool,
) -> None:
    server.post(URL, **answered)

    error = raised(mcp)

    assert (type(error), error.not_processed) == (kind, not_processed)


def test_an_answer_without_a_stream_is_read(mcp: Client, server: requests_mock.Mocker) -> None:
    server.post(URL, json={"jsonrpc": "2.0", "id": 1, "result": {"structuredContent": {"executionId": "8"}}})

    assert start(mcp).execution_id == "8"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_event_is_found_among_others(mcp: Client, server: requests_mock.Mocker, end: str) -> None:
    first, second = '{"jsonrpc": "2.0", "id": 1,', '"result": {"structuredContent": {"executionId": "9"}}}'
    lines = [": comment", "", 'data: {"jsonrpc": "2.0", "method": "notifications/progress"}', ""]
    lines += ["id: 4", f"data:{first}", f"data: {second}", "", ""]
    server.post(URL, text=end.join(lines), headers={"Content-Type": "text/event-stream; charset=utf-8"})

    assert start(mcp).execution_id == "9"


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
OURS = (
    '\ufeffdata: {"jsonrpc": "2.0", "id": 1, "result": {"structuredContent": {"executionId": "10é"}}}\r\n\r\n'.encode()
)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@pytest.mark.parametrize("size", [1, 7, len(OURS)])
def test_an_answer_is_complete_although_its_stream_stays_open(size: int) -> None:
    pieces = [OURS[begin : begin + size] for begin in range(0, len(OURS), size)]
    with TinyServer(lambda _: [STREAM, *map(chunk, pieces), 60.0]) as tiny:
        client = Client(base_url=tiny.address, mcp_api_key=MCP_KEY, timeout=20)

        assert start(client).execution_id == "10é"
        client.transport.close()


PROGRESS = b'data: {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}\n\n'


def test_the_answer_is_found_after_long_progress(mcp: Client, server: requests_mock.Mocker) -> None:
    content = PROGRESS * 20_000 + OURS.removeprefix(codecs.BOM_UTF8)
    server.post(URL, content=content, headers={"Content-Type": "text/event-stream"})

    assert start(mcp).execution_id == "10é"


def test_an_event_without_an_id_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []
    parse = Answer.json

    def noted(answer: Answer) -> Any:
        parsed.append(answer.content)
        return parse(answer)

    monkeypatch.setattr(Answer, "json", noted)
    others = [b'{"jsonrpc": "2.0", "method": "notifications/progress"}', b"", b"1", b"{"]
    ours = b'{"jsonrpc": "2.0", "id": 1, "result": {}}'

    assert [one for one in [*others, ours] if is_answer(one)] == [ours]
    assert parsed == [ours]


def test_a_stream_of_countless_events_is_not_read_to_its_end() -> None:
    events = chunk(b"data: 1\n\n" * 100_001)
    with TinyServer(lambda _: [STREAM, events, 60.0]) as tiny:
        error = raised(Client(base_url=tiny.address, mcp_api_key=MCP_KEY, timeout=20))

    assert (type(error), error.not_processed) == (errors.ServiceUnexpectedResponseError, False)
