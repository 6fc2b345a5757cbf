"""A proxy between a browser and the servers that it asks, which keeps everything that the browser gets."""

from __future__ import annotations

import sys
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import urlsplit

from .serving import Serving

SECONDS = 60
# Between two stations only; and bodies are to be kept as what they say.
_NOT_PASSED_ON = frozenset({"accept-encoding", "connection", "keep-alive", "proxy-connection", "transfer-encoding"})


class Received(NamedTuple):
    """A response.

    :param headers: its headers, a line each.
    """

    url: str
    status: int
    headers: str
    body: bytes

    def told(self) -> str:
        """All that it says."""
        return f"{self.url}\n{self.headers}\n\n{self.body.decode('utf-8', 'replace')}"


class Recorder(Serving):
    """An HTTP proxy on a loopback port; use it as a context manager.

    - ``address``: for the settings of a browser.
    - ``received``: what was passed on, oldest first.
    """

    def __init__(self) -> None:
        self.received: list[Received] = []
        super().__init__(_Server(("127.0.0.1", 0), _handler(self.received)))
        self.address = f"127.0.0.1:{self._server.server_port}"

    def holding(self, text: str) -> list[str]:
        """The addresses of the responses in which a text occurs."""
        return [one.url for one in list(self.received) if text in one.told()]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a browser that has left a page before it was there."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def _handler(received: list[Received]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def pass_on(self) -> None:
            address = urlsplit(self.path)
            if address.scheme != "http" or not address.hostname:  # the browser asks its maker for something
                self.send_error(403)
                return
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            server = HTTPConnection(address.hostname, address.port or 80, timeout=SECONDS)
            try:
                path = address._replace(scheme="", netloc="").geturl()
                sent = {name: value for name, value in self.headers.items() if name.lower() not in _NOT_PASSED_ON}
                server.request(self.command, path or "/", body or None, sent)
                answer = server.getresponse()
                data = answer.read()
            except OSError:
                self.send_error(502)
                return
            finally:
                server.close()
            headers = [(name, value) for name, value in answer.getheaders() if name.lower() not in _NOT_PASSED_ON]
            lines = "\n".join(f"{name}: {value}" for name, value in headers)
            received.append(Received(self.path, answer.status, lines, data))
            self.send_response_only(answer.status, answer.reason)
            for name, value in headers:
                if name.lower() != "content-length":
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_HEAD = do_POST = do_PATCH = do_PUT = do_DELETE = do_OPTIONS = do_CONNECT = pass_on  # noqa: N815

        def log_message(self, *_arguments: object) -> None:
            """Say nothing."""

    return Handler
