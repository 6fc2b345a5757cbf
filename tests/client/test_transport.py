"""Sending: retries and their pauses, redirects, connections, and where the key goes."""

from __future__ import annotations

import email.utils
import json
import logging
import ssl
import time
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import requests_mock
from urllib3.exceptions import ClosedPoolError, MaxRetryError, NewConnectionError, ProtocolError, ProxyError, SSLError

from airflow_provider_service import __version__
from airflow_provider_service.client import errors
from airflow_provider_service.client._clock import using
from airflow_provider_service.client._http.transport import MAX_RETRY_AFTER
from tests.set_clock import SetClock

from .clients import BASE, KEY, ROOT, Client

TAG = json.dumps({"id": "t", "name": "x"}).encode()
JSON = {"Content-Type": "application/json"}
HTML = {"Content-Type": "text/html"}

READS_AND_REPEATABLE = ["GET", "PUT", "DELETE"]
OTHERS = ["POST", "PATCH"]


@pytest.fixture
def server() -> Iterator[requests_mock.Mocker]:
    with requests_mock.Mocker() as mocker:
        yield mocker


def test_a_method_may_be_written_in_lower_case(server: requests_mock.Mocker) -> None:
    server.get(f"{ROOT}/tags/t", [{"status_code": 503}, {"content": TAG, "headers": JSON}])

    assert Client().request("get", "/tags/{}", "t")["name"] == "x"
    assert [one.method for one in server.request_history] == ["GET", "GET"]


def test_a_body_is_compact_json_in_utf8(server: requests_mock.Mocker) -> None:
    server.post(f"{ROOT}/tags", content=TAG, headers=JSON)

    Client().tags.create("é \u2028")

    assert server.last_request.body == '{"name":"é \u2028"}'.encode()
    assert server.last_request.headers["Content-Type"] == "application/json"


def test_the_key_is_sent_in_the_header_of_the_connection(server: requests_mock.Mocker) -> None:
    server.get(f"{ROOT}/tags/t", content=TAG)

    Client(key_header="X-N8N-API-KEY").tags.get("t")

    assert server.last_request.headers["X-N8N-API-KEY"] == KEY
    assert "X-SERVICE-API-KEY" not in server.last_request.headers
    assert "Authorization" not in server.last_request.headers
    assert server.last_request.headers["Accept"] == "application/json"


@pytest.mark.parametrize("application", [None, "apache-airflow/3.3.2"])
def test_the_caller_is_named(server: requests_mock.Mocker, application: str | None) -> None:
    server.get(f"{ROOT}/tags/t", content=TAG)

    Client(application=application).tags.get("t")

    named = [f"airflow-provider-service/{__version__}", application, f"python-requests/{requests.__version__}"]
    assert server.last_request.headers["User-Agent"] == " ".join(filter(None, named))


@pytest.mark.parametrize("application", ["", "a\r\nX-Other: b", "caf\u00e9/1"])
def test_an_application_that_does_not_fit_a_header_is_refused(application: str) -> None:
    with pytest.raises(ValueError, match="application"):
        Client(application=application)


# Retries


def attempts(server: requests_mock.Mocker, method: str, *, deadline: float = 600, **failure: Any) -> Client:
    """Make a call that fails once and then succeeds; return the client, whose pauses show the retries."""
    client = Client(retry_deadline=deadline)
    if isinstance(failure.get("headers"), str):
        failure["headers"] = {"Retry-After": failure["headers"]}
    server.register_uri(method, f"{ROOT}/x", [failure, {"json": {"ok": True}}])
    assert client.request(method, "/x") == {"ok": True}
    return client


@pytest.mark.parametrize("method", [*READS_AND_REPEATABLE, *OTHERS])
@pytest.mark.parametrize(
    "failure",
    [
        {"status_code": 429},
        {"status_code": 401, "json": {"message": "connect ECONNREFUSED 127.0.0.1:5432"}, "headers": JSON},
        {"status_code": 503, "headers": {"Retry-After": "1"}},
        {"status_code": 404, "text": "<pre>Cannot GET</pre>", "headers": HTML},
        {"exc": requests.ConnectTimeout("slow")},
        {"exc": requests.ConnectionError(MaxRetryError(None, "/", NewConnectionError(None, "refused")))},  # type: ignore[arg-type]
        {"exc": requests.exceptions.ProxyError(MaxRetryError(None, "/", ProxyError("no", OSError("down"))))},  # type: ignore[arg-type]
        {"exc": requests.ConnectionError(ClosedPoolError(None, "closed"))},  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_a_request_that_was_not_processed_is_repeated_with_every_method(
    server: requests_mock.Mocker, method: str, failure: dict[str, Any]
) -> None:
    assert len(attempts(server, method, **failure).pauses) == 1


AMBIGUOUS: list[tuple[dict[str, Any], type[errors.ServiceApiError]]] = [
    ({"status_code": 502}, errors.ServiceUnavailableError),
    ({"status_code": 503}, errors.ServiceUnavailableError),
    ({"status_code": 504, "headers": {"Retry-After": "1"}}, errors.ServiceUnavailableError),
    ({"exc": requests.ReadTimeout("slow")}, errors.ServiceTimeoutError),
    (
        {"exc": requests.ConnectionError(ProtocolError("reset", ConnectionResetError()))},
        errors.ServiceConnectionLostError,
    ),
    ({"exc": requests.exceptions.ChunkedEncodingError(ProtocolError("cut"))}, errors.ServiceConnectionLostError),
    ({"exc": requests.ConnectionError()}, errors.ServiceConnectionLostError),
    (
        {"exc": requests.exceptions.SSLError(MaxRetryError(None, "/", SSLError(ssl.SSLEOFError("EOF occurred"))))},  # type: ignore[arg-type]
        errors.ServiceConnectionLostError,
    ),
    ({"text": '{"ok": tr', "headers": JSON}, errors.ServiceUnreadableResponseError),
    ({"text": "<html>Welcome to the hotel's network</html>", "headers": JSON}, errors.ServiceUnreadableResponseError),
    ({"content": b"\xff\xfe\x00", "headers": JSON}, errors.ServiceUnreadableResponseError),
    ({"exc": requests.exceptions.ContentDecodingError("not gzip")}, errors.ServiceUnreadableResponseError),
]


@pytest.mark.parametrize(("failure", "kind"), AMBIGUOUS, ids=str)
@pytest.mark.parametrize("method", READS_AND_REPEATABLE)
def test_a_request_that_may_have_been_processed_is_repeated_if_that_does_no_harm(
    server: requests_mock.Mocker, method: str, failure: dict[str, Any], kind: type[errors.ServiceApiError]
) -> None:
    assert len(attempts(server, method, **failure).pauses) == 1


@pytest.mark.parametrize(("failure", "kind"), AMBIGUOUS, ids=str)
@pytest.mark.parametrize("method", OTHERS)
def test_a_request_that_may_have_been_processed_is_not_repeated_otherwise(
    server: requests_mock.Mocker, method: str, failure: dict[str, Any], kind: type[errors.ServiceApiError]
) -> None:
    with pytest.raises(kind) as caught:
        attempts(server, method, **failure)

    assert caught.value.not_processed is False
    assert server.call_count == 1


@pytest.mark.parametrize("method", [*READS_AND_REPEATABLE, *OTHERS])
@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 413, 415, 422, 500, 501])
def test_a_failure_that_would_recur_is_not_repeated(server: requests_mock.Mocker, method: str, status: int) -> None:
    with pytest.raises(errors.ServiceApiError):
        attempts(server, method, status_code=status, json={"message": "no"}, headers=JSON)

    assert server.call_count == 1


@pytest.mark.parametrize("method", [*READS_AND_REPEATABLE, *OTHERS])
@pytest.mark.parametrize(
    "answer",
    [
        {"text": "<html>Sign in</html>", "headers": HTML},
        {"text": "hm"},
        {"text": '{"n": NaN}', "headers": JSON},
        {"text": '{"n": ' + "9" * 5000 + "}", "headers": JSON},
        {"text": "[" * 5000 + "]" * 5000, "headers": JSON},
        {"status_code": 304},
    ],
    ids=["a page", "no type", "NaN", "digits", "depth", "status"],
)
def test_an_answer_that_would_recur_is_not_requested_again(
    server: requests_mock.Mocker, method: str, answer: dict[str, Any]
) -> None:
    with pytest.raises(errors.ServiceUnexpectedResponseError):
        attempts(server, method, **answer)

    assert server.call_count == 1


@pytest.mark.parametrize(("repeatable", "calls"), [(True, 2), (False, 1), (None, 1)])
def test_a_caller_can_say_whether_a_repeat_does_harm(
    server: requests_mock.Mocker, repeatable: bool | None, calls: int
) -> None:
    server.post(f"{ROOT}/x", [{"status_code": 502}, {"json": 1}])

    try:
        assert Client().request("POST", "/x", repeatable=repeatable) == 1
    except errors.ServiceUnavailableError:
        assert calls == 1
    assert server.call_count == calls


def test_pauses_grow_and_are_random(server: requests_mock.Mocker) -> None:
    server.get(f"{ROOT}/x", [*[{"status_code": 502}] * 12, {"json": 1}])
    each = []

    for _ in range(2):
        with using(SetClock()) as clock:
            Client(retry_deadline=600).request("GET", "/x")
        server.get(f"{ROOT}/x", [*[{"status_code": 502}] * 12, {"json": 1}])
        each.append(clock.pauses)

    assert each[0] != each[1]
    for pauses in each:
        assert len(pauses) == 12
        assert all(0 <= pause <= min(0.5 * 2**number, 20) for number, pause in enumerate(pauses))


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [("7", 7, 7), ("0", 0, 0.5), ("100000", MAX_RETRY_AFTER, MAX_RETRY_AFTER), ("never", 0, 0.5)],
)
def test_retry_after_in_seconds_is_honoured_up_to_a_cap(
    server: requests_mock.Mocker, value: str, least: float, most: float
) -> None:
    (pause,) = attempts(server, "GET", status_code=429, headers={"Retry-After": value}).pauses

    assert least <= pause <= most


def test_retry_after_as_a_date_is_honoured(server: requests_mock.Mocker) -> None:
    date = email.utils.formatdate(time.time() + 30, usegmt=True)

    (pause,) = attempts(server, "POST", status_code=503, headers={"Retry-After": date}).pauses

    assert 28 <= pause <= 30


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("asked", ["120", "61", "Fri, 31 Dec 2100 23:59:59 GMT"])
def test_a_retry_after_beyond_the_deadline_leaves_time_for_more_tries(
    server: requests_mock.Mocker, status: int, asked: str
) -> None:
    client = attempts(server, "POST", deadline=60, status_code=status, headers=asked)

    (pause,) = client.pauses
    assert pause == pytest.approx(30, abs=0.1)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_service_that_always_asks_for_too_long_is_called_a_few_times_until_the_deadline(
    server: requests_mock.Mocker, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(retry_deadline=30)
    server.register_uri(method, f"{ROOT}/x", status_code=503, headers={"Retry-After": "120"})

    with pytest.raises(errors.ServiceUnavailableError, match=r"The service asks to wait 120 s$") as caught:
        client.request(method, "/x")

    assert caught.value.retry_after == 120.0
    assert 2 <= server.call_count <= 8
    assert sum(client.pauses) < 30
    assert "The service asks to wait 120 s. Try 1 failed; trying again in 15.0 s" in caplog.text


def test_without_retries_a_retry_after_brings_no_other_try(server: requests_mock.Mocker) -> None:
    client = Client(retry_deadline=0)
    server.get(f"{ROOT}/x", status_code=429, headers={"Retry-After": "61"})

    with pytest.raises(errors.ServiceRateLimitedError):
        client.request("GET", "/x")

    assert (client.pauses, server.call_count) == ([], 1)


def test_a_deadline_ends_the_retries_with_the_last_error(server: requests_mock.Mocker) -> None:
    server.get(f"{ROOT}/x", status_code=503)

    with pytest.raises(errors.ServiceUnavailableError, match="HTTP 503"):
        Client(retry_deadline=10).request("GET", "/x")

    assert server.call_count >= 2


def test_a_deadline_of_zero_turns_retries_off(server: requests_mock.Mocker) -> None:
    client = Client(retry_deadline=0)
    server.get(f"{ROOT}/x", status_code=503)

    with pytest.raises(errors.ServiceUnavailableError):
        client.request("GET", "/x")

    assert (client.pauses, server.call_count) == ([], 1)


def test_retries_are_logged_without_the_key(server: requests_mock.Mocker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    attempts(server, "GET", status_code=503, json={"message": f"no {KEY}"}, headers=JSON)

    warning = next(record.message for record in caplog.records if record.levelno == logging.WARNING)
    assert "GET /x: the service is not available now (HTTP 503)" in warning
    assert "Try 1 failed; trying again in" in warning
    assert KEY not in caplog.text


def test_the_log_gives_the_same_reason_for_a_retry_once(
    server: requests_mock.Mocker, caplog: pytest.LogCaptureFixture
) -> None:
    server.get(f"{ROOT}/x", [{"status_code": 503}, {"status_code": 503}, {"status_code": 429}, {"json": 1}])

    Client().request("GET", "/x")

    tries = [record.message for record in caplog.records if "failed; trying again in" in record.message]
    assert [message.split(". Try ")[1][0] for message in tries] == ["1", "2", "3"]
    assert [message.startswith("GET /x: the same. Try") for message in tries] == [False, True, False]


def test_a_pause_until_a_date_is_the_same_reason_each_time(
    server: requests_mock.Mocker, caplog: pytest.LogCaptureFixture
) -> None:
    later = email.utils.formatdate(time.time() + 50, usegmt=True)
    server.get(f"{ROOT}/x", [*[{"status_code": 503, "headers": {"Retry-After": later}}] * 2, {"json": 1}])

    Client().request("GET", "/x")

    tries = [record.message for record in caplog.records if "failed; trying again in" in record.message]
    assert [message.startswith("GET /x: the same. Try") for message in tries] == [False, True]


def test_the_timeout_of_a_call_overrides_that_of_the_connection(server: requests_mock.Mocker) -> None:
    server.get(f"{ROOT}/x", json=1)
    client = Client(timeout=30, connect_timeout=2)

    client.request("GET", "/x")
    client.request("GET", "/x", timeout=900)
    client.executions  # noqa: B018 - the resource is made before its timeout is looked at
    server.post(f"{ROOT}/executions/7/retry", json={"id": "8", "status": "success"})
    client.executions.retry(7, timeout=1200)

    assert [request.timeout for request in server.request_history] == [(2, 30), (2, 900), (2, 1200)]


@pytest.mark.parametrize(
    ("settings", "sent"),
    [
        ({}, {"verify": True, "cert": None}),
        ({"verify": False}, {"verify": False, "cert": None}),
        ({"verify": "/ca.pem", "cert": ("c", "k")}, {"verify": "/ca.pem", "cert": ("c", "k")}),
        ({"cert": "c"}, {"verify": True, "cert": "c"}),
    ],
)
def test_tls_settings_reach_the_wire(
    server: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], sent: dict[str, Any]
) -> None:
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)
    server.get(f"{ROOT}/x", json=1)

    Client(**settings).request("GET", "/x")

    assert {"verify": server.last_request.verify, "cert": server.last_request.cert} == sent


@pytest.mark.parametrize(("verify", "used"), [(True, "/env.pem"), (False, False), ("/own.pem", "/own.pem")])
def test_a_ca_bundle_of_the_environment_does_not_undo_the_connection(
    server: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch, verify: bool | str, used: bool | str
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/env.pem")
    server.get(f"{ROOT}/x", json=1)

    Client(verify=verify).request("GET", "/x")

    assert server.last_request.verify == used


def test_proxies_reach_the_wire(server: requests_mock.Mocker) -> None:
    server.get(f"{ROOT}/x", json=1)

    Client(proxies={"https": "http://proxy:3128"}).request("GET", "/x")

    assert server.last_request.proxies["https"] == "http://proxy:3128"


def test_a_missing_ca_bundle_is_reported() -> None:
    client = Client(verify="/no/such/bundle.pem")

    with pytest.raises(errors.ServiceConfigError, match=r"'verify' and 'cert' cannot be used: .*bundle\.pem"):
        client.request("GET", "/x")

    assert client.pauses == []
    assert client.transport.probe("/healthz") is None


def test_a_redirect_that_cannot_be_followed_is_reported(server: requests_mock.Mocker) -> None:
    server.get(f"{ROOT}/x", exc=requests.TooManyRedirects("30"))

    with pytest.raises(errors.ServiceUnexpectedResponseError, match="GET /x: the answer cannot be read: TooManyRedir"):
        Client().request("GET", "/x")


def test_another_scheme_or_port_is_another_origin(server: requests_mock.Mocker) -> None:
    for target in ("http://service.example.com/x", "https://service.example.com:8443/x", "//other.example.com/x"):
        server.get(f"{ROOT}/x", status_code=302, headers={"Location": target})
        with pytest.raises(errors.ServiceRedirectError):
            Client().request("GET", "/x")

    server.get(f"{ROOT}/x", status_code=302, headers={"Location": f"{BASE}:443/y"})
    server.get(f"{BASE}:443/y", json=1)
    assert Client().request("GET", "/x") == 1


def test_an_empty_answer_is_none_and_bytes_stay_bytes(server: requests_mock.Mocker) -> None:
    server.get(f"{ROOT}/x", content=b"")
    assert Client().request("GET", "/x") is None
    assert Client().transport.call("GET", "/x", binary=True) == b""
