"""A mail server that keeps what it is sent."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import Message


class _Session(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self._answer(220)
        while line := self.rfile.readline().strip().upper():
            if line == b"DATA":
                self._answer(354)
                lines = iter(self.rfile.readline, b".\r\n")
                self.server.received.append(message_from_bytes(b"".join(lines)))  # type: ignore[attr-defined]
            self._answer(221 if line == b"QUIT" else 250)

    def _answer(self, code: int) -> None:
        self.wfile.write(f"{code} ok\r\n".encode())


@contextmanager
def mail_server() -> Iterator[tuple[int, list[Message]]]:
    """Run a mail server without encryption; its port, and the mails that it has received."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Session) as server:
        server.received = []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_address[1], server.received  # type: ignore[attr-defined]
        finally:
            server.shutdown()
