"""Limits of time and size: whatever a server does, a call ends, and with an error that says so.

Each slow server here would complete its answer after some seconds, so that a call without a limit would succeed.
"""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_service.client import errors
from airflow_provider_service.client._http.exchange import Answer

from .clients import Client
from .tiny_server import Received, TinyServer, answer

TAG = b'{"id": "t", "name": "x"}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
SLOWNESS = 0.1
PIECES = 60
TIMEOUT = 0.5


def slowly(*parts: bytes) -> Iterator[bytes | float]:
    for part in parts:
        yield part
        yield SLOWNESS


def dripping(before: bytes, drop: bytes, after: bytes) -> Callable[[Received], Any]:
    return lambda _: slowly(before, *[drop] * PIECES, after)


SLOW: dict[str, Callable[[Received], Any]] = {
    "status": lambda _: slowly(*(bytes([one]) for one in b"HTTP/1.1 200 " + b"O" * PIECES), b"\r\n\r\n{}"),
    "interim answers": dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n", answer(TAG)),
    "header": dripping(HEAD + b"X-Long: ", b"x", b"\r\nContent-Length: 24\r\n\r\n" + TAG),
    "headers": dripping(HEAD, b"X: 1\r\n", b"Content-Length: 24\r\n\r\n" + TAG),
    "body": dripping(HEAD + b"Content-Length: 84\r\n\r\n", b" ", TAG),
    "body without length": dripping(HEAD + b"\r\n", b" ", TAG),
    "chunks": dripping(CHUNKED, b"1\r\n \r\n", b"18\r\n" + TAG + b"\r\n0\r\n\r\n"),
    "size of a chunk": dripping(CHUNKED, b"0", b"18\r\n" + TAG + b"\r\n0\r\n\r\n"),
    "extension of a chunk": dripping(CHUNKED + b"18;x=", b"x", b"\r\n" + TAG + b"\r\n0\r\n\r\n"),
    "trailers": dripping(CHUNKED + b"18\r\n" + TAG + b"\r\n0\r\n", b"X: 1\r\n", b"\r\n"),
    "silence": lambda _: iter([PIECES * SLOWNESS, answer(TAG)]),
}


@pytest.mark.parametrize("slow", SLOW.values(), ids=SLOW)
def test_a_slow_answer_ends_at_the_time_limit_of_the_call(slow: Callable[[Received], Any]) -> None:
    with TinyServer(slow) as tiny:
        client = Client(base_url=tiny.address, timeout=TIMEOUT, retry_deadline=0)

        with pytest.raises(
            errors.ServiceTimeoutError, match=r"GET /tags/t: the whole answer .* the timeout of 0\.5 s"
        ) as caught:
            client.tags.get("t")
        client.transport.close()

    assert not caught.value.not_processed
    assert len(tiny.received) == 1


def test_the_limit_of_a_webhook_call_is_its_own() -> None:
    with TinyServer(SLOW["body"]) as tiny:
        client = Client(base_url=tiny.address, timeout=600)

        with pytest.raises(errors.ServiceTimeoutError, match=r"POST /webhook/x: .* the timeout of 0\.5 s"):
            client.transport.call_webhook("POST", "x", headers={}, payload={}, timeout=TIMEOUT)

    assert len(tiny.received) == 1


def test_redirects_have_one_limit_together() -> None:
    def redirect(_: Received) -> Any:
        return slowly(*[b""] * 3, answer(b"", "Location: /api/v1/tags/t", "Connection: close", status="302 Found"))

    # On a busy machine, the limit may pass while the next connection is made.
    limited = pytest.raises((errors.ServiceTimeoutError, errors.ServiceUnreachableError), match=r"0\.5 s")
    with TinyServer(redirect) as tiny, limited:
        Client(base_url=tiny.address, timeout=TIMEOUT, retry_deadline=0).tags.get("t")

    assert len(tiny.received) < 4


def test_a_slow_reader_of_a_large_body_ends_the_call_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:  # takes the connection, reads nothing
        client = Client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=TIMEOUT)

        with pytest.raises(errors.ServiceTimeoutError) as caught:
            client.request("POST", "/x", body="x" * 30_000_000)

    assert not caught.value.not_processed


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_tls_handshake_without_an_answer_ends_as_no_connection(method: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"https://127.0.0.1:{listener.getsockname()[1]}"
        client = Client(base_url=address, timeout=20, connect_timeout=0.3, retry_deadline=0)

        with pytest.raises(errors.ServiceUnreachableError, match=f"no connection to {address} within 0.3 s") as caught:
            client.request(method, "/x")

    assert caught.value.not_processed


@pytest.mark.parametrize("name", ["header", "body", "chunks", "silence"])
def test_the_limit_holds_with_tls(certificate: Path, name: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with TinyServer(answer(TAG), SLOW[name], tls=context) as tiny:
        client = Client(
            base_url=tiny.address.replace("127.0.0.1", "localhost"),
            verify=str(certificate),
            retry_deadline=0,
        )
        assert client.tags.get("t").name == "x"  # it has to shake hands first, so it has time

        with pytest.raises(errors.ServiceTimeoutError, match=r"the timeout of 0\.5 s"):
            client.transport.call("GET", "/tags/t", timeout=TIMEOUT)
        client.transport.close()

    assert [received.connection for received in tiny.received] == [1, 1]


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port on 127.0.0.2 and 127.0.0.3 where connections are neither accepted nor refused."""
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.2", 0))
        port = one.getsockname()[1]
        two.bind(("127.0.0.3", port))
        waiting = []
        for listener, host in ((one, "127.0.0.2"), (two, "127.0.0.3")):
            listener.listen(0)
            for _ in range(4):  # fills the queue, after which nothing is answered
                waiting.append(socket.socket())
                waiting[-1].setblocking(False)
                waiting[-1].connect_ex((host, port))
        yield port
        for connection in waiting:
            connection.close()


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: tuple[str, int]) -> None:
    """Let the name service.test have several addresses."""
    resolve = socket.getaddrinfo

    def fake(host: Any, *args: Any, **options: Any) -> Any:
        if host != "service.test":
            return resolve(host, *args, **options)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", fake)


def test_all_addresses_of_a_host_share_the_time_for_a_connection(
    monkeypatch: pytest.MonkeyPatch, silent_port: int
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    resolving(monkeypatch, ("127.0.0.2", silent_port), ("127.0.0.3", silent_port))
    client = Client(base_url=f"http://service.test:{silent_port}", connect_timeout=0.6, timeout=600, retry_deadline=0)

    with pytest.raises(errors.ServiceUnreachableError, match=r"no connection to .* within 0\.6 s") as caught:
        client.tags.create("x")

    assert caught.value.not_processed


def test_an_address_that_does_not_answer_leaves_time_for_the_next(
    monkeypatch: pytest.MonkeyPatch, silent_port: int
) -> None:
    with TinyServer(answer(TAG), port=silent_port) as tiny:
        resolving(monkeypatch, ("127.0.0.2", silent_port), ("127.0.0.3", silent_port), ("127.0.0.1", silent_port))
        client = Client(base_url=f"http://service.test:{silent_port}", connect_timeout=3, retry_deadline=0)

        assert client.tags.get("t").name == "x"
        client.transport.close()

    assert len(tiny.received) == 1


@pytest.mark.parametrize("timeout", [1e300, 10**400, float("inf")], ids=["large", "huge", "infinite"])
def test_a_time_limit_beyond_that_of_sockets_is_accepted(timeout: float) -> None:
    with TinyServer(answer(TAG)) as tiny:
        client = Client(base_url=tiny.address)

        assert client.transport.call("GET", "/tags/t", timeout=timeout)["name"] == "x"
        assert client.transport.call_webhook("GET", "x", headers={}, payload={}, timeout=timeout).status == 200
        client.transport.close()


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), "5", True, -(10**5000)], ids=lambda value: str(type(value)))
def test_an_invalid_time_limit_is_refused(timeout: Any) -> None:
    for call in (
        lambda: Client().transport.call("GET", "/x", timeout=timeout),
        lambda: Client().transport.call_webhook("GET", "x", headers={}, payload={}, timeout=timeout),
    ):
        with pytest.raises(errors.ServiceInputError, match="timeout must be a number of seconds above 0"):
            call()


# Size

MIB = 1024 * 1024


# Made here, so that the memory that it takes does not count as the client's.
BOMB = answer(gzip.compress(b" " * 64 * MIB), "Content-Encoding: gzip", "Connection: close")


def endless(_: Received) -> Iterator[bytes]:
    yield CHUNKED
    while True:
        yield b"10000\r\n" + b" " * 65536 + b"\r\n"


LARGE: dict[str, Any] = {
    "plain": answer(b'"' + b"x" * 2 * MIB + b'"'),
    "error": answer(b'"' + b"x" * 2 * MIB + b'"', status="500 Internal Server Error"),
    "endless": endless,
    "bomb": BOMB,
    "redirect": lambda received: answer(b" " * 2 * MIB, "Location: /x", status="302 Found"),
}


@pytest.mark.parametrize("large", LARGE.values(), ids=LARGE)
@pytest.mark.parametrize("call", ["read", "write", "webhook"])
def test_an_answer_that_is_too_large_is_not_read_to_its_end(large: Any, call: str) -> None:
    with TinyServer(large) as tiny:
        client = Client(base_url=tiny.address, max_answer_mib=1)
        calls: dict[str, Callable[[], Any]] = {
            "read": lambda: client.tags.get("t"),
            "write": lambda: client.tags.create("x"),
            "webhook": lambda: client.transport.call_webhook("POST", "x", headers={}, payload={}, timeout=30),
        }
        tracemalloc.start()
        with pytest.raises(errors.ServiceAnswerTooLargeError, match=r"larger than 1 MiB.*'max_answer_mib'") as caught:
            calls[call]()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        client.transport.close()

    assert "was discarded" in str(caught.value)
    assert (caught.value.not_processed, client.pauses, len(tiny.received)) == (False, [], 1)
    assert peak < 16 * MIB


# As Punycode, the first text is the letter a and another one; as an international domain name, the last one is münchen.
@pytest.mark.parametrize(
    ("name", "text"),
    [("punycode", "a-kva"), ("PunyCode", "a-kva"), ("idna", "xn--mnchen-3ya"), ("IDNA", "xn--mnchen-3ya")],
)
def test_an_encoding_that_takes_long_to_read_is_ignored(name: str, text: str) -> None:
    assert Answer(200, {"Content-Type": f"text/plain; charset={name}"}, text.encode()).text == text


def test_an_answer_as_large_as_allowed_is_read() -> None:
    text = "x" * (MIB - 2)
    with TinyServer(answer(f'"{text}"'.encode())) as tiny:
        assert Client(base_url=tiny.address, max_answer_mib=1).request("GET", "/x") == text


def test_a_call_that_hangs_does_not_block_others() -> None:
    release = threading.Event()

    def held(_: Received) -> bytes:
        release.wait(30)
        return answer(TAG)

    with TinyServer(held, answer(TAG)) as tiny:
        client = Client(base_url=tiny.address, timeout=60)
        waiting = threading.Thread(target=client.tags.get, args=("first",))
        waiting.start()
        while not tiny.received:
            pass
        assert client.tags.get("second").name == "x"
        release.set()
        waiting.join(30)
        client.transport.close()
