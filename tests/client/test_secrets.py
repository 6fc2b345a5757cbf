"""No secret is sent to others, or is in the frames of an error."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_service.client import errors
from airflow_provider_service.client._http.start_answers import checked_headers
from airflow_provider_service.client.resources._webhooks import authentication_headers
from tests.frames import showing

from .clients import KEY, Client
from .tiny_server import Received, TinyServer, answer

TAG = b'{"id": "t", "name": "x"}'
PASSWORD = "proxy-password-of-a-test"
WEBHOOK_SECRET = "webhook-secret-of-a-test"
MCP_KEY = "mcp-key-of-a-test"
CREDENTIAL_SECRET = "credential-secret-of-a-test"


@pytest.fixture
def netrc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "netrc"
    path.write_text("machine 127.0.0.1 login user password from-netrc\ndefault login user password from-netrc\n")
    path.chmod(0o600)
    monkeypatch.setenv("NETRC", str(path))


@pytest.mark.usefixtures("netrc")
def test_credentials_in_netrc_are_not_sent() -> None:
    with TinyServer(answer(b"", "Location: /api/v1/tags/u", status="302 Found"), answer(TAG)) as tiny:
        client = Client(base_url=tiny.address)
        client.tags.get("t")
        client.tags.create("x")
        client.transport.probe("/healthz")
        client.transport.call_webhook("POST", "x", headers={}, payload={}, timeout=20)
        own = authentication_headers("basicAuth", "me", "mine")
        client.transport.call_webhook("POST", "x", headers=own, payload={}, timeout=20)
        client.transport.close()

    sent = [received.headers.get("authorization") for received in tiny.received]
    assert sent == [None] * 5 + ["Basic bWU6bWluZQ=="]


def read(client: Client) -> Any:
    return client.tags.get("t")


def write(client: Client) -> Any:
    return client.tags.create("x")


def webhook(client: Client) -> Any:
    headers = checked_headers({"X-Webhook": WEBHOOK_SECRET})
    return client.transport.call_webhook("POST", "x", headers=headers, payload={}, timeout=1)


def credential(client: Client) -> Any:
    # Too much for one piece, so it is also in frames while it is sent.
    data = {"value": CREDENTIAL_SECRET, "more": {"list": [CREDENTIAL_SECRET] * 20_000}}
    return client.credentials.create("x", "httpHeaderAuth", data)


def credential_change(client: Client) -> Any:
    return client.credentials.update("c", data={"value": CREDENTIAL_SECRET})


def mcp(client: Client) -> Any:
    return client.mcp.execute_workflow("w", trigger_node="Form", inputs={"formData": {}})


def echo(received: Received) -> bytes:
    """Show the key, as a careless proxy does."""
    key = received.headers.get("x-service-api-key") or received.headers["authorization"]
    return answer(f"<p>{key}</p>".encode(), "Content-Type: text/html", status="500 No")


ANSWERS: dict[str, Any] = {
    "refused": answer(b'{"message": "unauthorized"}', status="401 Unauthorized"),
    "failed": echo,
    "redirected": answer(b"", "Location: http://elsewhere.test/", status="302 Found"),
    "no JSON": answer(b"<p>hello</p>"),
    "wrong shape": answer(b'{"id": 5}'),
    "too large": answer(b" " * 2_000_000),
    "cut off": answer(TAG, length=400),
    "lost": None,
    "silent": 5.0,
    "no gzip": answer(TAG, "Content-Encoding: gzip"),
}


def secrets_in(error: BaseException) -> list[str]:
    return showing(error, KEY, MCP_KEY, PASSWORD, WEBHOOK_SECRET, CREDENTIAL_SECRET)


# A workflow may answer anything else.
FAILURES_OF_A_WEBHOOK = ("redirected", "too large", "cut off", "lost", "silent", "no gzip")
FAILURES = [
    *((call, name) for name in ANSWERS for call in (read, credential, mcp)),
    *((webhook, name) for name in FAILURES_OF_A_WEBHOOK),
    (write, "lost"),
    (credential_change, "lost"),
]


@pytest.mark.parametrize(("call", "name"), FAILURES)
def test_no_secret_is_in_the_frames_of_an_error(call: Callable[[Client], Any], name: str) -> None:
    with TinyServer(ANSWERS[name]) as proxy:
        proxies = {"http": proxy.address.replace("//", f"//user:{PASSWORD}@")}
        settings = {"base_url": "http://service.test", "proxies": proxies, "mcp_api_key": MCP_KEY}
        client = Client(**settings, timeout=1, max_answer_mib=1, retry_deadline=0)
        with pytest.raises(errors.ServiceApiError) as caught:
            call(client)
        client.transport.close()

    assert not secrets_in(caught.value)


@pytest.mark.parametrize("call", [read, write, webhook, credential, mcp], ids=lambda call: call.__name__)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_no_secret_is_in_the_frames_of_a_failed_connection(
    scheme: str, call: Callable[[Client], Any], closed_port: int
) -> None:
    for settings in (
        {"base_url": f"{scheme}://127.0.0.1:{closed_port}"},
        {"base_url": f"{scheme}://name.invalid"},
        {"proxies": {scheme: f"http://user:{PASSWORD}@127.0.0.1:{closed_port}"}, "base_url": f"{scheme}://x.test"},
        {"proxies": {scheme: f"socks5h://user:{PASSWORD}@127.0.0.1:{closed_port}"}, "base_url": f"{scheme}://x.test"},
        {"base_url": f"{scheme}://127.0.0.1:{closed_port}", "verify": "/no/such.pem"},
    ):
        with pytest.raises((errors.ServiceApiError, errors.ServiceConfigError)) as caught:
            call(Client(retry_deadline=0, mcp_api_key=MCP_KEY, **settings))

        assert not secrets_in(caught.value)


SENT_BEFORE = {
    "before the answer": b"",
    "in its head": b"HTTP/1.1 200 OK\r\n",
    "in its body": answer(TAG, length=400),
}


class Killed(BaseException):
    """What Airflow raises in a signal handler when a task has exceeded its time."""


@pytest.mark.parametrize("call", [read, write, webhook, credential, mcp], ids=lambda call: call.__name__)
@pytest.mark.parametrize("silent", SENT_BEFORE)
def test_no_secret_is_in_the_frames_of_a_task_that_is_interrupted(silent: str, call: Callable[[Client], Any]) -> None:
    def interrupt(*_: Any) -> None:
        raise Killed

    def pieces(_: Received) -> Iterator[bytes | float]:
        yield SENT_BEFORE[silent]
        yield 0.1  # for the client to read it
        signal.pthread_kill(here, signal.SIGALRM)
        yield 30.0

    here = threading.get_ident()
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with TinyServer(pieces) as proxy:
            proxies = {"http": proxy.address.replace("//", f"//user:{PASSWORD}@")}
            client = Client(base_url="http://service.test", proxies=proxies, timeout=20, mcp_api_key=MCP_KEY)
            with pytest.raises((Killed, errors.ServiceApiError)) as caught:
                call(client)
            client.transport.close()
    finally:
        signal.signal(signal.SIGALRM, before)

    assert caught.type is Killed
    assert not secrets_in(caught.value)


@pytest.mark.parametrize(
    "data",
    [{"value": f"{CREDENTIAL_SECRET}\ud800"}, {"value": CREDENTIAL_SECRET, "other": object()}],
    ids=["text", "object"],
)
def test_no_secret_is_in_the_frames_of_an_argument_that_cannot_be_written(data: dict[str, Any]) -> None:
    with pytest.raises(errors.ServiceInputError, match="cannot be written as JSON") as caught:
        Client().credentials.create("x", "httpHeaderAuth", data)

    assert not secrets_in(caught.value)
