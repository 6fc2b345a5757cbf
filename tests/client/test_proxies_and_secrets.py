"""Proxies are used, and named when they fail; no secret is sent to others, or is in the frames of an error."""

from __future__ import annotations

import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_service.client import errors
from airflow_provider_service.client._http.webhook_answers import checked_headers
from airflow_provider_service.client.resources._webhooks import authentication_headers
from tests.frames import showing

from .clients import KEY, Client
from .tiny_server import Received, Step, TinyServer, answer

TAG = b'{"id": "t", "name": "x"}'
PASSWORD = "proxy-password-of-a-test"
WEBHOOK_SECRET = "webhook-secret-of-a-test"
MCP_KEY = "mcp-key-of-a-test"
CREDENTIAL_SECRET = "credential-secret-of-a-test"
PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


# ~/.netrc


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


# Proxies


def refusing(status: str) -> bytes:
    return answer(b"<h1>No</h1>", "Content-Type: text/html", status=status)


def test_a_proxy_of_the_environment_is_used_with_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    with TinyServer(answer(TAG)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.address.replace("//", f"//user:{PASSWORD}@"))
        assert Client(base_url="http://service.test").tags.get("t").name == "x"
        monkeypatch.setenv("no_proxy", "service.test")
        with pytest.raises(errors.ServiceUnreachableError, match=r"http://service\.test is not reachable"):
            Client(base_url="http://service.test", retry_deadline=0).tags.get("t")

    (received,) = proxy.received
    assert received.path == "http://service.test/api/v1/tags/t"
    assert received.headers["proxy-authorization"].startswith("Basic ")


@pytest.mark.parametrize("name", ["all", "all://service.test", "http"])
def test_a_proxy_of_the_connection_goes_before_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, closed_port: int, name: str
) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{closed_port}")
    with TinyServer(answer(TAG)) as proxy:
        settings = {"base_url": "http://service.test", "proxies": {name: proxy.address}}
        assert Client(**settings, retry_deadline=0).tags.get("t").name == "x"
        assert Client(base_url=proxy.address, proxies={"all": ""}, retry_deadline=0).tags.get("t").name == "x"

    assert [received.path for received in proxy.received] == ["http://service.test/api/v1/tags/t", "/api/v1/tags/t"]


FAILING: dict[str, tuple[Any, str, bool]] = {
    "asks for a password": (refusing("407 Proxy Authentication Required"), "Proxy Authentication Required", False),
    "forbids": (refusing("403 Forbidden"), "403 Forbidden", False),
    "does not reach the service": (refusing("502 Bad Gateway"), "502 Bad Gateway", True),
}


@pytest.mark.parametrize(("refusal", "says", "again"), FAILING.values(), ids=FAILING)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_proxy_that_opens_no_tunnel_is_named(refusal: bytes, says: str, again: bool, method: str) -> None:
    with TinyServer(refusal) as proxy:
        address = proxy.address.replace("//", f"//user:{PASSWORD}@")
        client = Client(base_url="https://service.test", proxies={"https": address}, retry_deadline=0)
        with pytest.raises(errors.ServiceProxyError, match=f"the proxy {proxy.address} did not .*{says}") as caught:
            client.request(method, "/x")

    assert (caught.value.not_processed, caught.value.repeat_may_help) == (True, again)
    assert PASSWORD not in str(caught.value)
    assert "'proxies'" in str(caught.value)


def test_a_proxy_that_asks_for_a_password_without_a_tunnel_is_named() -> None:
    with TinyServer(refusing("407 Proxy Authentication Required")) as proxy:
        client = Client(base_url="http://service.test", proxies={"http": proxy.address})
        with pytest.raises(
            errors.ServiceProxyError, match=f"the proxy {proxy.address} did not .*Required \\(HTTP 407\\)"
        ):
            client.request("POST", "/x")

    assert (len(proxy.received), client.pauses) == (1, [])


def test_a_407_of_the_service_is_not_a_failure_of_a_proxy() -> None:
    with TinyServer(refusing("407 Proxy Authentication Required")) as tiny:
        client = Client(base_url=tiny.address)
        with pytest.raises(errors.ServiceInvalidRequestError):
            client.request("GET", "/x")
        assert client.transport.call_webhook("POST", "x", headers={}, payload={}, timeout=20).status == 407
        client.transport.close()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_unreachable_proxy_is_named(scheme: str, closed_port: int) -> None:
    proxies = {scheme: f"http://user:{PASSWORD}@127.0.0.1:{closed_port}"}
    client = Client(base_url=f"{scheme}://service.test", proxies=proxies, retry_deadline=0)

    with pytest.raises(
        errors.ServiceProxyError, match=f"the proxy http://127.0.0.1:{closed_port} did not .*refused"
    ) as caught:
        client.tags.create("x")

    assert (caught.value.not_processed, caught.value.repeat_may_help) == (True, True)
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_whose_name_is_not_known_is_named(scheme: str) -> None:
    proxies = {scheme: f"http://user:{PASSWORD}@proxy.invalid:3128"}
    client = Client(base_url=f"{scheme}://service.test", proxies=proxies, retry_deadline=0)

    with pytest.raises(
        errors.ServiceProxyError, match=r"the proxy http://proxy\.invalid:3128 did not .*resolve"
    ) as caught:
        client.tags.create("x")

    assert PASSWORD not in str(caught.value)


def test_a_proxy_that_does_not_answer_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        proxies = {"https": address}
        client = Client(base_url="https://service.test", proxies=proxies, connect_timeout=0.3, retry_deadline=0)

        with pytest.raises(errors.ServiceUnreachableError, match=rf"through the proxy {address} within 0\.3 s"):
            client.tags.create("x")


def proxied(scheme: str, certificate: Path, *steps: Step) -> tuple[TinyServer, dict[str, Any]]:
    """A proxy that passes calls on or opens tunnels, and the settings for it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    proxy = TinyServer(*steps, tunnel=context)
    host = {"base_url": f"{scheme}://localhost", "verify": str(certificate)}
    return proxy, {**host, "proxies": {scheme: proxy.address}}


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_call_whose_answer_a_proxy_loses_may_have_been_processed(scheme: str, certificate: Path) -> None:
    kept, lost = answer(TAG), None
    proxy, settings = proxied(scheme, certificate, kept, lost, lost, kept)
    with proxy:
        client = Client(**settings)
        assert client.tags.create("x").name == "x"
        for _ in range(2):  # on the connection of the call before, and on a new one
            with pytest.raises(errors.ServiceConnectionLostError, match="POST /tags: the connection broke") as caught:
                client.tags.create("x")
            assert not caught.value.not_processed
        client.transport.close()

    assert (client.pauses, len(proxy.received)) == ([], 3)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_read_whose_answer_a_proxy_loses_is_repeated(scheme: str, certificate: Path) -> None:
    proxy, settings = proxied(scheme, certificate, None, None, answer(TAG))
    with proxy:
        client = Client(**settings)
        assert client.tags.get("t").name == "x"
        client.transport.close()

    assert (len(client.pauses), len(proxy.received)) == (2, 3)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_can_no_longer_be_reached_is_named(scheme: str, certificate: Path) -> None:
    proxy, settings = proxied(scheme, certificate, answer(TAG, "Connection: close"))
    with proxy:
        client = Client(**settings, retry_deadline=0)
        client.tags.create("x")

    with pytest.raises(errors.ServiceProxyError, match=f"the proxy {proxy.address} did not .*refused") as caught:
        client.tags.create("x")
    assert caught.value.not_processed


@pytest.mark.parametrize(
    "address", [f"http://:{PASSWORD}@", "http://[::1", "ftp://proxy", f"http://u:{PASSWORD}@h:99999"]
)
def test_an_unusable_proxy_of_the_environment_is_reported(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("https_proxy", address)

    with pytest.raises(errors.ServiceConfigError, match=r"the proxy .*cannot be used.*nothing was sent") as caught:
        Client(retry_deadline=0).tags.get("t")

    assert PASSWORD not in str(caught.value)


# Frames


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
