"""Servers that run in a thread of the tests."""

from __future__ import annotations

import threading
from http.server import ThreadingHTTPServer
from typing import Self


class Serving:
    """A server that runs while this is used as a context manager.

    :param server: the server, which is closed at the end.
    """

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self._server = server

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, name=type(self).__name__, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
