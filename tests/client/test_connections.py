"""Connections on real sockets: lost answers, timeouts, redirects, reuse, and that the key is sent nowhere else."""

from __future__ import annotations

import contextlib
import errno
import gc
import gzip
import itertools
import json
import os
import re
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from airflow_provider_service.client import ServiceClient, errors
from airflow_provider_service.client._clock import Clock, using
from airflow_provider_service.client._http import connections
from tests.set_clock import SetClock

from .clients import KEY, Client, make_config
from .tiny_server import TinyServer, accept_socks, answer

TAG = json.dumps({"id": "t", "name": "x"}).encode()


def client_of(tiny: TinyServer, **settings: Any) -> Client:
    return Client(base_url=tiny.address, **settings)


def test_an_answer_in_gzip_is_unpacked() -> None:
    with TinyServer(answer(gzip.compress(TAG), "Content-Encoding: gzip")) as tiny:
        assert client_of(tiny).tags.get("t").name == "x"


def test_a_broken_gzip_is_reported() -> None:
    with (
        TinyServer(answer(b"no gzip", "Content-Encoding: gzip")) as tiny,
        pytest.raises(errors.ServiceUnreadableResponseError, match="ContentDecodingError"),
    ):
        client_of(tiny, retry_deadline=0).tags.get("t")


@pytest.mark.parametrize("step", [None, answer(b'{"id": "t"', length=400)], ids=str)
def test_a_read_whose_answer_is_lost_is_repeated(step: Any) -> None:
    with TinyServer(step, answer(TAG)) as tiny:
        client = client_of(tiny)

        assert client.tags.get("t").name == "x"

    assert len(client.pauses) == 1
    assert len(tiny.received) == 2


@pytest.mark.parametrize("step", [None, answer(b'{"id": "t"', length=400)], ids=str)
def test_a_creation_whose_answer_is_lost_is_not_repeated(step: Any) -> None:
    with TinyServer(step, answer(TAG)) as tiny:
        client = client_of(tiny)

        with pytest.raises(errors.ServiceConnectionLostError, match="POST /tags: the connection broke") as caught:
            client.tags.create("x")

    assert KEY not in str(caught.value)
    assert "object at 0x" not in str(caught.value)
    assert (client.pauses, len(tiny.received)) == ([], 1)


def test_no_answer_in_time_is_a_timeout() -> None:
    slow = pytest.raises(errors.ServiceTimeoutError, match="POST /tags: the whole answer did not arrive")
    with TinyServer(1.0) as tiny, slow:
        client_of(tiny, timeout=0.1).tags.create("x")


def test_a_server_that_gives_no_sign_of_life_is_a_lost_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    read = socket.SocketIO.readinto

    def gives_up(file: Any, buffer: Any) -> int | None:
        if file._sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE):  # ours, and not the server's
            raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")
        return read(file, buffer)

    lost = pytest.raises(errors.ServiceConnectionLostError, match=r"the connection broke .*Connection timed out")
    with TinyServer(1.0) as tiny, lost:
        monkeypatch.setattr(socket.SocketIO, "readinto", gives_up)
        client_of(tiny).tags.create("x")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_server_that_is_down_is_tried_again_until_the_deadline(method: str, closed_port: int) -> None:
    address = f"http://127.0.0.1:{closed_port}"
    client = Client(base_url=address, retry_deadline=5.0)

    with pytest.raises(errors.ServiceUnreachableError, match=f"{address} is not reachable: .*refused") as caught:
        client.request(method, "/x")

    assert type(caught.value) is errors.ServiceUnreachableError
    assert caught.value.not_processed
    assert client.pauses
    assert "object at 0x" not in str(caught.value)


def test_tls_with_a_server_without_tls_fails_at_once() -> None:
    with TinyServer(answer(TAG)) as tiny:
        client = Client(base_url=tiny.address.replace("http:", "https:"), timeout=2)

        with pytest.raises(errors.ServiceTlsError, match="TLS failed with https://127") as caught:
            client.tags.get("t")

    assert client.pauses == []
    assert "Check the scheme of the host and the extra 'verify'" in str(caught.value)


@pytest.mark.parametrize("socks", [False, True], ids=["", "through SOCKS"])
@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 200 OK\r\n", answer(TAG, length=400)], ids=["", "head", "body"])
def test_tls_that_breaks_after_the_request_may_have_been_processed(
    certificate: Path, before: bytes, socks: bool
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def serve(listener: socket.socket) -> None:
        accepted, _ = listener.accept()
        if socks:
            accept_socks(accepted)
        with context.wrap_socket(accepted, server_side=True) as connection:
            connection.recv(65536)
            connection.sendall(before)
            os.write(connection.fileno(), b"<html>502 Bad Gateway</html>")  # not encrypted
            connection.recv(65536)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve, args=(listener,), daemon=True)
        server.start()
        port = listener.getsockname()[1]
        proxies = {"https": f"socks5h://127.0.0.1:{port}"} if socks else None
        client = Client(base_url=f"https://localhost:{port}", verify=str(certificate), proxies=proxies)
        with pytest.raises(errors.ServiceConnectionLostError, match=r"the connection broke .*SSL") as caught:
            client.tags.create("x")
        client.transport.close()
        server.join(timeout=60)

    assert not caught.value.not_processed
    assert client.pauses == []


def test_a_server_that_requires_a_certificate_of_the_client_is_reported_as_such(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    over = threading.Event()

    def serve(listener: socket.socket) -> None:
        with context.wrap_socket(listener.accept()[0], server_side=True, do_handshake_on_connect=False) as connection:
            with contextlib.suppress(ssl.SSLError):
                connection.do_handshake()
            over.wait(60)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve, args=(listener,), daemon=True)
        server.start()
        client = Client(base_url=f"https://localhost:{listener.getsockname()[1]}", verify=str(certificate))
        with pytest.raises(errors.ServiceTlsError, match=r"(?i)certificate.required|handshake.failure") as caught:
            client.tags.create("x")
        over.set()
        server.join(timeout=60)

    assert caught.value.not_processed


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
def test_a_redirect_to_another_origin_is_not_followed_and_the_key_stays(method: str, status: str) -> None:
    with (
        TinyServer(answer(TAG)) as elsewhere,
        TinyServer(answer(b"", f"Location: {elsewhere.address}/api/v1/x?token=1", status=status)) as tiny,
    ):
        with pytest.raises(errors.ServiceRedirectError) as caught:
            client_of(tiny).request(method, "/x", body={} if method in ("POST", "PUT") else None)

        assert elsewhere.received == []
        assert len(tiny.received) == 1
    assert f"{method} /x: redirected to {elsewhere.address}/api/v1/x; only reads follow" in str(caught.value)
    assert "Set the connection's host" in str(caught.value)
    assert KEY not in str(caught.value)


def test_a_key_that_a_redirect_echoes_is_not_shown() -> None:
    with (
        TinyServer(answer(b"", f"Location: http://127.0.0.2/{KEY}/x", status="302 Found")) as tiny,
        pytest.raises(errors.ServiceRedirectError, match=re.escape("redirected to http://127.0.0.2/***/x")),
    ):
        client_of(tiny).tags.get("t")


def test_a_read_follows_a_redirect_within_its_origin_with_the_key() -> None:
    with TinyServer(answer(b"", "Location: /other/tags/t", status="302 Found"), answer(TAG)) as tiny:
        assert client_of(tiny).tags.get("t").name == "x"

    assert [received.path for received in tiny.received] == ["/api/v1/tags/t", "/other/tags/t"]
    assert {received.headers["x-service-api-key"] for received in tiny.received} == {KEY}


def test_a_write_follows_no_redirect_even_within_its_origin() -> None:
    with (
        TinyServer(answer(b"", "Location: /other", status="307 Temporary Redirect")) as tiny,
        pytest.raises(errors.ServiceRedirectError, match="POST /tags: redirected to"),
    ):
        client_of(tiny).tags.create("x")

    assert len(tiny.received) == 1


def test_connections_are_kept_for_as_long_as_the_server_certainly_keeps_them(set_clock: SetClock) -> None:
    with TinyServer(answer(TAG)) as tiny:
        client = client_of(tiny)
        client.tags.get("t")
        client.tags.create("x")
        set_clock.advance(connections.REUSE_CONNECTION_SECONDS)
        client.tags.get("t")
        set_clock.advance(connections.REUSE_CONNECTION_SECONDS)
        client.tags.create("x")
        client.transport.close()
        client.tags.get("t")

    assert [received.connection for received in tiny.received] == [1, 1, 2, 3, 4]


def test_a_connection_without_a_deadline_works_however_long_the_process_has_run(set_clock: SetClock) -> None:
    set_clock.advance(2 * connections.MAX_SOCKET_SECONDS)
    with TinyServer(answer(TAG)) as tiny, requests.Session() as session:
        session.mount("http://", connections.TimedAdapter())

        assert session.get(tiny.address, timeout=30).content == TAG


class RunsOut(Clock):
    """A clock on which an hour passes after some readings."""

    def __init__(self, looks: int) -> None:
        self._times = itertools.chain([0.0] * looks, itertools.repeat(3600.0))

    def monotonic(self) -> float:
        return next(self._times)


@pytest.mark.parametrize("looks", range(2, 10))
def test_no_socket_stays_open_whenever_the_time_runs_out(recwarn: pytest.WarningsRecorder, looks: int) -> None:
    with TinyServer(answer(TAG)) as tiny:
        client = client_of(tiny, retry_deadline=0)
        with using(RunsOut(looks)), pytest.raises((errors.ServiceUnreachableError, errors.ServiceTimeoutError)):
            client.tags.get("t")
        client.transport.close()
    gc.collect()

    assert [str(one.message) for one in recwarn if one.category is ResourceWarning] == []


def test_each_connection_has_its_own_idle_time(set_clock: SetClock) -> None:
    together = threading.Barrier(2, timeout=30)

    def at_once(*_: Any) -> bytes:
        together.wait()
        return answer(TAG)

    with TinyServer(at_once, at_once, answer(TAG), at_once, at_once) as tiny, ThreadPoolExecutor(2) as pool:
        client = client_of(tiny)
        [*pool.map(client.tags.get, "ab")]
        set_clock.advance(connections.REUSE_CONNECTION_SECONDS - 1)
        client.tags.get("c")
        set_clock.advance(2)
        [*pool.map(client.tags.create, "de")]
        client.transport.close()

    used = [received.connection for received in tiny.received]
    assert set(used[:2]) == {1, 2}
    # The one that was used in between is still usable; the other one has been idle for too long.
    assert set(used[3:]) == {used[2], 3}


def test_several_threads_share_a_client() -> None:
    with TinyServer(answer(TAG)) as tiny, ThreadPoolExecutor(8) as pool:
        client = client_of(tiny)

        assert {*pool.map(lambda number: client.tags.get(f"t{number}").name, range(40))} == {"x"}
        client.transport.close()

    assert {received.path for received in tiny.received} == {f"/api/v1/tags/t{number}" for number in range(40)}


def test_a_probe_asks_without_the_key() -> None:
    with TinyServer(answer(b'{"status":"error"}', status="503 Service Unavailable")) as tiny:
        assert client_of(tiny).transport.probe("/healthz/readiness") == 503

    (received,) = tiny.received
    assert received.path == "/healthz/readiness"
    assert KEY not in str(received)


def test_a_probe_without_an_answer_is_none(closed_port: int) -> None:
    assert Client(base_url=f"http://127.0.0.1:{closed_port}").transport.probe("/healthz") is None
    with TinyServer(answer(b"", "Location: http://elsewhere.example/", status="302 Found")) as tiny:
        assert client_of(tiny).transport.probe("/healthz") is None


def test_a_client_closes_its_connections() -> None:
    with TinyServer(answer(TAG)) as tiny:
        with ServiceClient(make_config(base_url=tiny.address)) as client:
            client.tags.get("t")
            client.tags.get("t")
        client.tags.get("t")
        client.close()

    assert [received.connection for received in tiny.received] == [1, 1, 2]


def test_a_webhook_is_called_without_the_key_and_its_query_stays_out_of_errors() -> None:
    with TinyServer(answer(b"{}"), answer(b"{}"), answer(b"down", status="502 Bad Gateway")) as tiny:
        webhook = client_of(tiny).transport.call_webhook
        webhook("POST", "a b/c", headers={"X-Own": "1"}, payload={"n": 1}, timeout=60)
        webhook("GET", "a", headers={}, payload={"q": "x y"}, timeout=60)
        with pytest.raises(errors.ServiceApiError) as caught:
            webhook("GET", "a", headers={}, payload={"q": "private"}, timeout=60)

    sent = [(received.method, received.path, received.body) for received in tiny.received]
    assert sent[:2] == [("POST", "/webhook/a%20b/c", b'{"n":1}'), ("GET", "/webhook/a?q=x%20y", b"")]
    assert KEY not in str(tiny.received)
    assert "GET /webhook/a: " in str(caught.value)
    assert "private" not in str(caught.value)
