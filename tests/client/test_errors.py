"""The exceptions for error answers: their meaning, and messages that help and do not contain the key."""

from __future__ import annotations

import json
import logging
import pickle
import re
from collections.abc import Iterator
from typing import Any, TypeVar

import pytest
import requests_mock
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_service.client import errors
from airflow_provider_service.client._http import answers
from airflow_provider_service.client._http.answers import SPECIFIED_SCOPES, describe_scope

from .clients import KEY, ROOT, Client

JSON = {"Content-Type": "application/json; charset=utf-8"}
HTML = {"Content-Type": "text/html; charset=utf-8"}
PLAIN = {"Content-Type": "text/plain"}

Error = TypeVar("Error", bound=errors.ServiceError)


@pytest.fixture
def server() -> Iterator[requests_mock.Mocker]:
    with requests_mock.Mocker() as mocker:
        yield mocker


def fail(server: requests_mock.Mocker, status: int, text: str, headers: dict[str, str]) -> errors.ServiceApiError:
    """The exception of a call that gets this answer."""
    server.get(f"{ROOT}/tags/t", status_code=status, text=text, headers=headers)
    with pytest.raises(errors.ServiceApiError) as caught:
        Client(retry_deadline=0).tags.get("t")
    return caught.value


def test_a_page_that_reports_that_the_service_is_starting(server: requests_mock.Mocker) -> None:
    server.get(
        f"{ROOT}/tags/t",
        [
            {"text": "n8n is starting up. Please wait", "headers": HTML},
            {"json": {"id": "t", "name": "x"}, "headers": JSON},
        ],
    )

    assert Client().tags.get("t").name == "x"
    assert isinstance(fail(server, 200, "<p>n8n is starting up</p>", HTML), errors.ServiceStartingError)


# Measured on n8n 1.123 to 2.30 while PostgreSQL restarted, and what its driver says besides.
DATABASE_FAILURES = (
    "connect ECONNREFUSED 127.0.0.1:5432",
    "terminating connection due to administrator command",
    "read ECONNRESET",
    "timeout exceeded when trying to connect",
    "sorry, too many clients already",
    "SQLITE_BUSY: database is locked",
)


def message(text: str) -> str:
    return json.dumps({"message": text})


@pytest.mark.parametrize(
    ("status", "text", "headers", "kind", "says"),
    [
        (400, message("bad"), JSON, errors.ServiceInvalidRequestError, "refused (HTTP 400) - the service says: 'bad'"),
        (401, message("unauthorized"), JSON, errors.ServiceUnauthorizedError, "n8n expects X-N8N-API-KEY"),
        *(
            (status, message(text), JSON, errors.ServiceUnavailableError, text)
            for status in (400, 401)
            for text in DATABASE_FAILURES
        ),
        (400, message("must have required property 'connections'"), JSON, errors.ServiceInvalidRequestError, "refused"),
        (401, DATABASE_FAILURES[0], PLAIN, errors.ServiceUnauthorizedError, "the key was refused"),
        (402, message("pay"), JSON, errors.ServiceInvalidRequestError, "'pay'"),
        (403, message("Forbidden"), JSON, errors.ServiceMissingScopeError, "lacks the scope 'tag:read'"),
        (403, message("Your license does not allow for feat:folders."), JSON, errors.ServiceNotLicensedError, "plan"),
        (403, message("Provisioning is not licensed"), JSON, errors.ServiceNotLicensedError, "plan"),
        (403, message("Evaluations are not available on your plan"), JSON, errors.ServiceNotLicensedError, "plan"),
        (
            403,
            json.dumps({"message": "Your change was saved as a draft.", "reason": "insufficient_api_key_scope"}),
            JSON,
            errors.ServiceMissingScopeError,
            "saved as a draft, but the key lacks the scope 'workflow:activate' to put it live",
        ),
        (403, message("Not yours"), JSON, errors.ServiceForbiddenError, "not allowed for this key (HTTP 403)"),
        (403, "", PLAIN, errors.ServiceForbiddenError, "not allowed for this key (HTTP 403)"),
        (404, message("Not Found"), JSON, errors.ServiceNotFoundError, "not found, or not visible to this key"),
        (404, message("not found"), JSON, errors.ServiceNotOfferedError, "does not offer the operation"),
        (404, "Cannot GET /api/v1/tags/t", HTML, errors.ServiceStartingError, "the service is still starting"),
        (404, "", {}, errors.ServiceStartingError, "Check host, path prefix and api_version"),
        (404, "{broken", JSON, errors.ServiceNotFoundError, "'{broken'"),
        (400, message("There is a conflict with one of the webhooks."), JSON, errors.ServiceConflictError, "webhooks"),
        (405, message("GET method not allowed"), JSON, errors.ServiceNotOfferedError, "GET method not allowed"),
        (409, message("Tag already exists"), JSON, errors.ServiceConflictError, "Tag already exists"),
        (409, '[{"id":"w","conflict":true}]', JSON, errors.ServiceConflictError, '[{"id":"w","conflict":true}]'),
        (409, '{"message":{"deep":1}}', JSON, errors.ServiceConflictError, '{"message":{"deep":1}}'),
        (413, "<html>Payload Too Large</html>", HTML, errors.ServicePayloadTooLargeError, "'Payload Too Large'"),
        (415, message("unsupported media type"), JSON, errors.ServiceInvalidRequestError, "unsupported media"),
        (422, message("odd"), JSON, errors.ServiceInvalidRequestError, "odd"),
        (429, message("slow down"), JSON, errors.ServiceRateLimitedError, "too many requests"),
        (500, "<pre>Internal Server Error</pre>", HTML, errors.ServiceServerError, "The service's log says why"),
        (501, "", PLAIN, errors.ServiceServerError, "the server failed"),
        (502, "<h1>Bad Gateway</h1>", HTML, errors.ServiceUnavailableError, "'Bad Gateway'"),
        (503, "", {}, errors.ServiceUnavailableError, "not available now (HTTP 503)"),
        (504, "", {}, errors.ServiceUnavailableError, "did not answer its proxy in time"),
    ],
)
def test_an_error_answer_becomes_the_exception_of_its_meaning(
    server: requests_mock.Mocker,
    status: int,
    text: str,
    headers: dict[str, str],
    kind: type[errors.ServiceApiError],
    says: str,
) -> None:
    error = fail(server, status, text, headers)

    assert type(error) is kind
    assert error.status == status
    assert str(error).startswith("GET /tags/t: ")
    assert says in str(error)


@pytest.mark.parametrize("method", ["deactivate", "unpublish"])
def test_a_missing_scope_to_deactivate_is_named_as_the_server_and_the_specification_do(
    server: requests_mock.Mocker, method: str
) -> None:
    server.post(f"{ROOT}/workflows/w/{method}", status_code=403, text=message("Forbidden"), headers=JSON)

    with pytest.raises(errors.ServiceMissingScopeError) as caught:
        getattr(Client(retry_deadline=0).workflows, method)("w")

    assert "'workflow:deactivate' (the specification names 'workflow:activate')" in str(caught.value)
    assert f"POST /workflows/w/{method}: the key lacks the scope" in str(caught.value)


def test_scopes_are_described() -> None:
    assert len(SPECIFIED_SCOPES) == 67
    assert describe_scope("tag:read") == "'tag:read'"
    assert describe_scope("workflow:update,workflow:activate") == "'workflow:update' and 'workflow:activate'"
    assert describe_scope("project:manageMembers") == (
        "'project:manageMembers' (the specification names 'project:update')"
    )
    assert "that the specification does not list" in describe_scope("testRun:list")


@pytest.mark.parametrize("headers", [JSON, HTML, PLAIN, {}], ids=str)
@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 409, 413, 429, 500, 503])
def test_a_key_that_the_server_repeats_is_masked(
    server: requests_mock.Mocker, caplog: pytest.LogCaptureFixture, status: int, headers: dict[str, str]
) -> None:
    caplog.set_level(logging.DEBUG)

    text = message(f"{KEY} is bad: {KEY}") if headers is JSON and status != 200 else f"<b>{KEY}</b> is bad: {KEY}"
    error = fail(server, status, text, headers)

    shown = str(error) + repr(error) + repr(error.__dict__) + repr(pickle.loads(pickle.dumps(error)).__dict__)
    assert KEY not in shown + caplog.text
    assert "*** is bad: ***" in re.sub(r"</?b>", "", shown)


@pytest.mark.parametrize("headers", [HTML, PLAIN], ids=str)
def test_no_part_of_a_key_remains_where_a_long_page_is_truncated(headers: dict[str, str]) -> None:
    cut = answers.MESSAGE_BYTES
    for place in range(cut - len(KEY) - 3, cut + 1):
        with requests_mock.Mocker() as server:
            error = fail(server, 500, "x" + " " * (place - 1) + KEY, headers)

        assert error.server_message in ("x", "x *", "x **", "x ***")


def test_a_message_is_one_line_without_control_characters(server: requests_mock.Mocker) -> None:
    error = fail(server, 400, message("one\ntwo\t\x1b[31m\x00three   é"), JSON)

    assert error.server_message == "one two [31m three é"


def test_a_long_message_is_truncated(server: requests_mock.Mocker) -> None:
    assert fail(server, 400, message("x" * 5000), JSON).server_message == "x" * 500


def test_an_error_without_a_message_still_describes_the_failure(server: requests_mock.Mocker) -> None:
    error = fail(server, 409, "", PLAIN)

    assert error.server_message is None
    assert str(error) == "GET /tags/t: the state of the object does not allow it (HTTP 409)"


def test_an_answer_that_is_not_json_shows_what_it_is(server: requests_mock.Mocker) -> None:
    error = fail(server, 200, "<title>Sign in</title>", HTML)
    assert isinstance(error, errors.ServiceUnexpectedResponseError)
    assert "the answer is text/html, not JSON (HTTP 200) - the service says: 'Sign in'" in str(error)

    assert "of an unknown type, not JSON" in str(fail(server, 200, "hm", {}))


def test_a_damaged_answer_shows_how_it_begins(server: requests_mock.Mocker) -> None:
    error = fail(server, 200, '{"id": "t", "na', JSON)
    assert isinstance(error, errors.ServiceUnreadableResponseError)
    assert 'cut off, or changed on its way (HTTP 200) - the service says: \'{"id": "t", "na\'' in str(error)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        (" 7 ", 7.0),
        ("0", 0.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("\xb2", None),
        ("Mon, 01 Jan 99999 00:00:00 GMT", None),
        ("Mon, 99 Jan 2026 00:00:00 GMT", None),
    ],
)
def test_retry_after_is_read_or_ignored(server: requests_mock.Mocker, value: str, seconds: float | None) -> None:
    assert fail(server, 503, "", {"Retry-After": value}).retry_after == seconds


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("120", "(HTTP 429). The service asks to wait 120 s"),
        ("Fri, 31 Dec 2100 23:59:59 GMT", "(HTTP 429). The service asks to wait more than a day"),
        ("9" * 400, "(HTTP 429). The service asks to wait more than a day"),
        ("0", "(HTTP 429)"),
        ("soon", "(HTTP 429)"),
    ],
)
def test_an_error_names_the_pause_that_the_service_asks_for(
    server: requests_mock.Mocker, value: str, said: str
) -> None:
    assert str(fail(server, 429, "", {"Retry-After": value})).endswith(said)


@given(st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=40))
def test_no_retry_after_breaks_the_answer(value: str) -> None:
    with requests_mock.Mocker() as server:
        pause = fail(server, 503, "", {"Retry-After": value}).retry_after

    assert pause is None or pause >= 0


def exceptions_of(kind: type[Error]) -> Iterator[type[Error]]:
    yield kind
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from exceptions_of(child)


def test_an_error_keeps_the_headers_and_the_value_of_its_answer(server: requests_mock.Mocker) -> None:
    text = json.dumps({"message": "no", "meta": [KEY, {"code": 7}]})
    error = fail(server, 409, text, {**JSON, "X-Request-Id": f"r-{KEY}", "Set-Cookie": "session=abc"})

    assert error.headers == {"content-type": JSON["Content-Type"], "x-request-id": "r-***"}
    assert error.body == {"message": "no", "meta": ["***", {"code": 7}]}
    assert error.with_hint("Wait").__dict__ == {**error.__dict__, "hint": "Wait"}


def test_an_error_keeps_only_the_beginning_of_a_long_answer(server: requests_mock.Mocker) -> None:
    error = fail(server, 500, json.dumps({"rows": "x" * answers.KEPT_BYTES}), JSON)

    assert isinstance(error.body, str)
    assert len(error.body) < answers.MESSAGE_BYTES
    assert fail(server, 500, "", JSON).body is None
    assert fail(server, 500, "{broken", JSON).body == "{broken"


@pytest.mark.parametrize("kind", [*exceptions_of(errors.ServiceApiError)], ids=lambda kind: kind.__name__)
def test_an_error_is_pickled_with_all_its_attributes(kind: type[errors.ServiceApiError]) -> None:
    error = kind(
        "it failed",
        method="GET",
        path="/x",
        status=503,
        server_message="no",
        hint="Wait",
        retry_after=2.0,
        headers={"a": "b"},
        body=[1],
    )

    copy = pickle.loads(pickle.dumps(error))

    assert type(copy) is kind
    assert (str(copy), copy.__dict__) == (str(error), error.__dict__)
    assert str(copy) == "GET /x: it failed (HTTP 503) - the service says: 'no'. The service asks to wait 2 s. Wait"
    assert (copy.repeat_may_help, copy.not_processed) == (error.repeat_may_help, error.not_processed)


def test_an_error_without_a_call_is_pickled_too() -> None:
    error = errors.ServiceRunNotKeptError("it left no execution", workflow_id="w")

    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), str(copy), copy.workflow_id) == (type(error), "it left no execution", "w")


@pytest.mark.parametrize("kind", [*exceptions_of(errors.ServiceError)], ids=lambda kind: kind.__name__)
def test_an_error_that_a_person_must_fix_is_neither_repeated_nor_tolerated(kind: type[errors.ServiceError]) -> None:
    assert kind.ends_wait or not kind.final
    assert kind.repeat_may_help is not True or not kind.ends_wait


@pytest.mark.parametrize(
    ("kind", "processed"),
    [
        (errors.ServiceUnreachableError, False),
        (errors.ServiceRateLimitedError, False),
        (errors.ServiceStartingError, False),
        (errors.ServiceConnectionLostError, True),
        (errors.ServiceTimeoutError, True),
        (errors.ServiceServerError, True),
        (errors.ServiceUnavailableError, True),
        (errors.ServiceUnexpectedResponseError, True),
        (errors.ServiceUnreadableResponseError, True),
    ],
)
def test_errors_say_whether_the_server_may_have_acted(kind: type[errors.ServiceApiError], processed: bool) -> None:
    assert kind("x", method="POST", path="/x").not_processed is not processed


@pytest.mark.parametrize(
    ("status", "retry_after", "turned_away"),
    [(503, 1.0, True), (503, None, False), (502, 1.0, False), (400, None, False), (401, None, True)],
)
def test_only_a_401_and_a_503_that_asks_for_a_retry_were_certainly_not_processed(
    status: int, retry_after: float | None, turned_away: bool
) -> None:
    options: dict[str, Any] = {"status": status, "retry_after": retry_after}

    assert errors.ServiceUnavailableError("x", method="POST", path="/x", **options).not_processed is turned_away


def test_an_answer_that_is_not_of_the_api_may_be_that_of_a_port_with_tls(server: requests_mock.Mocker) -> None:
    page = "<head><title>400 The plain HTTP request was sent to HTTPS port</title></head><h1>400 Bad Request</h1>"

    assert fail(server, 400, page, HTML).hint == answers.IF_TLS
    assert fail(server, 400, "Client sent an HTTP request to an HTTPS server.", PLAIN).hint == answers.IF_TLS
    assert fail(server, 400, '{"message": "no"}', JSON).hint is None
    assert fail(server, 400, "Bad cookie", PLAIN).hint is None
