"""A server of a few scripted answers on a real socket, for what a mock can not show."""

from __future__ import annotations

import socketserver
import threading
import time
from dataclasses import dataclass
from types import TracebackType

#: Bytes to send; None to close the connection without an answer; seconds to be silent before that.
Step = bytes | float | None

TLS_HANDSHAKE = b"\x16"


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
    """Answers requests with the steps in turn, then with the last one for ever."""

    def __init__(self, *steps: Step) -> None:
        self.received: list[Received] = []
        self._steps, self._connections, self._lock = list(steps), 0, threading.Lock()
        owner = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                owner._serve(self)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> TinyServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join(timeout=5)
        self._server.server_close()

    def _serve(self, handler: socketserver.StreamRequestHandler) -> None:
        with self._lock:
            self._connections += 1
            connection = self._connections
        while (received := _read(handler, connection)) is not None:
            with self._lock:
                self.received.append(received)
                step = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
            if not isinstance(step, bytes):
                time.sleep(step or 0)
                return
            handler.wfile.write(step)
            head, _, body = step.partition(b"\r\n\r\n")
            if f"Content-Length: {len(body)}".encode() not in head:
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
