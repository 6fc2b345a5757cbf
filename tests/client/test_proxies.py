"""Proxies are used, and named when they fail."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from requests.exceptions import InvalidSchema

from airflow_provider_service.client import errors

from .clients import Client
from .tiny_server import Received, Step, TinyServer, answer

TAG = b'{"id": "t", "name": "x"}'
PASSWORD = "proxy-password-of-a-test"


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


#: Scheme of the service, and whether the proxy is one by SOCKS.
PROXIED = {
    "http": ("http", False),
    "https": ("https", False),
    "http, SOCKS": ("http", True),
    "https, SOCKS": ("https", True),
}
every_proxy = pytest.mark.parametrize(("scheme", "socks"), PROXIED.values(), ids=PROXIED)


def proxied(scheme: str, socks: bool, certificate: Path, *steps: Step) -> tuple[TinyServer, dict[str, Any]]:
    """A proxy that passes calls on or opens tunnels, and the settings for it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    proxy = TinyServer(*steps, tunnel=context if scheme == "https" else None, socks=socks)
    host = {"base_url": f"{scheme}://localhost", "verify": str(certificate)}
    return proxy, {**host, "proxies": {scheme: proxy.address}}


@every_proxy
def test_a_call_whose_answer_a_proxy_loses_may_have_been_processed(scheme: str, socks: bool, certificate: Path) -> None:
    kept, lost = answer(TAG), None
    proxy, settings = proxied(scheme, socks, certificate, kept, lost, lost, kept)
    with proxy:
        client = Client(**settings)
        assert client.tags.create("x").name == "x"
        for _ in range(2):  # on the connection of the call before, and on a new one
            with pytest.raises(errors.ServiceConnectionLostError, match="POST /tags: the connection broke") as caught:
                client.tags.create("x")
            assert not caught.value.not_processed
        client.transport.close()

    assert (client.pauses, len(proxy.received)) == ([], 3)


@every_proxy
def test_a_read_whose_answer_a_proxy_loses_is_repeated(scheme: str, socks: bool, certificate: Path) -> None:
    proxy, settings = proxied(scheme, socks, certificate, None, None, answer(TAG))
    with proxy:
        client = Client(**settings)
        assert client.tags.get("t").name == "x"
        client.transport.close()

    assert (len(client.pauses), len(proxy.received)) == (2, 3)


@every_proxy
def test_a_proxy_that_can_no_longer_be_reached_is_named(scheme: str, socks: bool, certificate: Path) -> None:
    proxy, settings = proxied(scheme, socks, certificate, answer(TAG, "Connection: close"))
    with proxy:
        client = Client(**settings, retry_deadline=0)
        client.tags.create("x")

    kind = errors.ServiceUnreachableError if socks else errors.ServiceProxyError
    with pytest.raises(kind, match=rf"the proxy {proxy.address}.* refused") as caught:
        client.tags.create("x")
    assert caught.value.not_processed


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_whole_answer_arrives_through_a_socks_proxy_in_time(scheme: str, certificate: Path) -> None:
    def slowly(_: Received) -> Iterator[bytes | float]:
        for number in range(200):
            yield answer(TAG)[number : number + 1]
            yield 0.1

    proxy, settings = proxied(scheme, True, certificate, slowly)
    with proxy:
        client = Client(**settings, retry_deadline=0, timeout=2)
        with pytest.raises(errors.ServiceTimeoutError, match="did not arrive within the timeout of 2 s"):
            client.tags.create("x")
        client.transport.close()


def test_a_socks_proxy_that_does_not_answer_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"socks5://127.0.0.1:{listener.getsockname()[1]}"
        settings = {"base_url": "http://127.0.0.1:1", "proxies": {"http": address}}
        client = Client(**settings, connect_timeout=0.3, retry_deadline=0)

        with pytest.raises(errors.ServiceUnreachableError, match=rf"through the proxy {address} within 0\.3 s"):
            client.tags.create("x")


def test_a_socks_proxy_needs_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def manager(*_: Any, **__: Any) -> None:  # what requests has in its place without the package
        raise InvalidSchema("Missing dependencies for SOCKS support.")

    monkeypatch.setattr("requests.adapters.SOCKSProxyManager", manager)
    client = Client(proxies={"https": "socks5://127.0.0.1:1080"})

    with pytest.raises(errors.ServiceConfigError, match=r"a package for it is missing.* nothing was sent"):
        client.tags.create("x")


@pytest.mark.parametrize(
    "address", [f"http://:{PASSWORD}@", "http://[::1", "ftp://proxy", f"http://u:{PASSWORD}@h:99999"]
)
def test_an_unusable_proxy_of_the_environment_is_reported(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("https_proxy", address)

    with pytest.raises(errors.ServiceConfigError, match=r"the proxy .*cannot be used.*nothing was sent") as caught:
        Client(retry_deadline=0).tags.get("t")

    assert PASSWORD not in str(caught.value)
