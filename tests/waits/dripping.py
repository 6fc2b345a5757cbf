"""A server whose answers never end, with an occasional byte."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BYTE_SECONDS = 0.05


class DrippingServer(ThreadingHTTPServer):
    """Answers every request byte by byte, and never to the end."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Dripping)
        self.stopped = threading.Event()
        #: How many answers are on their way.
        self.open = 0
        self.lock = threading.Lock()

    def connection_json(self, **extra: object) -> str:
        """The server as an Airflow connection."""
        address = f"http://127.0.0.1:{self.server_port}"
        return json.dumps({"conn_type": "service", "host": address, "password": "key-of-this", "extra": extra})

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that go away are what these tests are about."""


class _Dripping(BaseHTTPRequestHandler):
    server: DrippingServer

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        with self.server.lock:
            self.server.open += 1
        try:
            while not self.server.stopped.wait(BYTE_SECONDS):
                self.wfile.write(b" ")
                self.wfile.flush()
        finally:
            with self.server.lock:
                self.server.open -= 1

    def log_message(self, *arguments: object) -> None:
        """Be silent."""


@contextmanager
def dripping_server() -> Iterator[DrippingServer]:
    """A server on a free port."""
    with DrippingServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.stopped.set()
            server.shutdown()
            thread.join()
