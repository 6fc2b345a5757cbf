"""A server with a few scripted answers on a real socket, for tests that a mock does not allow."""

from __future__ import annotations

import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

#: Bytes to send; a function that makes them of the request; None to close the connection without an answer; seconds to
#: be silent before that; pieces to send one after the other, with pauses where a piece is a number of seconds.
Step = bytes | float | None | Callable[["Received"], bytes] | Iterable[bytes | float]

TLS_HANDSHAKE = b"\x16"
SOCKS_NAME = 3


@dataclass(frozen=True)
class Received:
    connection: int
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


def answer(body: bytes = b"{}", *headers: str, status: str = "200 OK", length: int | None = None) -> bytes:
    """An answer in bytes; ``length`` states another length than that of the body."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *headers]
    if not any(line.lower().startswith("content-type") for line in headers):
        lines.append("Content-Type: application/json")
    return "\r\n".join([*lines, "", ""]).encode() + body


class TinyServer:
    """Answers requests with the steps in turn, then with the last one forever.

    :param tunnel: be a proxy that opens tunnels: CONNECT is accepted, and what follows arrives in TLS.
    :param socks: be a SOCKS proxy instead; with ``tunnel``, what follows arrives in TLS.
    """

    def __init__(
        self,
        *steps: Step,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        tunnel: ssl.SSLContext | None = None,
        socks: bool = False,
    ) -> None:
        self.received: list[Received] = []
        self._tunnel, self._socks = tunnel, socks
        self._steps, self._connections, self._lock = list(steps), 0, threading.Lock()
        self._stopping = threading.Event()
        owner = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                owner._serve(self)

            def finish(self) -> None:
                super().finish()
                if self.connection is not self.request:  # the server closes only what it has accepted
                    self.connection.close()

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

            def get_request(self) -> tuple[Any, Any]:
                connection, client = super().get_request()
                return (tls.wrap_socket(connection, server_side=True) if tls else connection), client

        self._scheme = "https" if tls else "socks5h" if socks else "http"
        self._server = Server(("127.0.0.1", port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def address(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> TinyServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._thread.join(timeout=60)
        self._server.server_close()

    def _serve(self, handler: socketserver.StreamRequestHandler) -> None:
        with self._lock:
            self._connections += 1
            connection = self._connections
        if self._socks:
            accept_socks(handler.connection)
            if self._tunnel:
                _encrypt(handler, self._tunnel)
        while (received := _read(handler, connection)) is not None:
            if self._tunnel and received.method == "CONNECT":
                handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
                _encrypt(handler, self._tunnel)
                continue
            with self._lock:
                self.received.append(received)
                step = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
            if callable(step):
                step = step(received)
            if isinstance(step, Iterable) and not isinstance(step, bytes):
                _drip(handler, step)
                return
            if not isinstance(step, bytes):
                self._stopping.wait(step or 0)
                return
            handler.wfile.write(step)
            if b"Connection: close" in step:
                return
            head, _, body = step.partition(b"\r\n\r\n")
            if f"Content-Length: {len(body)}".encode() not in head:
                return


def accept_socks(connection: socket.socket) -> None:
    """Answer a client that asks for a connection by version 5 of SOCKS, to whatever address."""

    def read(size: int) -> bytes:
        return connection.recv(size, socket.MSG_WAITALL)

    _, methods = read(2)
    read(methods)
    connection.sendall(b"\x05\x00")
    *_, kind = read(4)
    read((read(1)[0] if kind == SOCKS_NAME else 4) + 2)
    connection.sendall(b"\x05\x00\x00\x01" + bytes(6))


def _encrypt(handler: socketserver.StreamRequestHandler, tls: ssl.SSLContext) -> None:
    handler.connection = tls.wrap_socket(handler.connection, server_side=True)
    handler.rfile, handler.wfile = handler.connection.makefile("rb"), handler.connection.makefile("wb", 0)


def _drip(handler: socketserver.StreamRequestHandler, pieces: Iterable[bytes | float]) -> None:
    try:
        for piece in pieces:
            if isinstance(piece, bytes):
                handler.wfile.write(piece)
            else:
                time.sleep(piece)
    except OSError:  # the client has left
        return


def _read(handler: socketserver.StreamRequestHandler, connection: int) -> Received | None:
    try:
        first = handler.rfile.read(1)
        if first == TLS_HANDSHAKE:
            handler.wfile.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            return None
        method, path, _ = (first + handler.rfile.readline()).decode().split()
    except (ValueError, OSError):
        return None
    headers: dict[str, str] = {}
    while line := handler.rfile.readline().decode().strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return Received(connection, method, path, headers, handler.rfile.read(int(headers.get("content-length", 0))))
