"""A second address of a server, which can be given up."""

from __future__ import annotations

import socket
import threading
from types import TracebackType
from urllib.parse import urlsplit

from airflow_provider_service.simulator._app import listen


class Relay:
    """A loopback port whose connections lead to a server; use it as a context manager, after which nothing listens.

    - ``address``: of the port.
    """

    def __init__(self, base_url: str) -> None:
        self._target = (urlsplit(base_url).hostname, urlsplit(base_url).port)
        self._listener = listen("127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._ends: list[socket.socket] = [self._listener]

    def __enter__(self) -> Relay:
        self._listener.listen()
        threading.Thread(target=self._accept, name="relay", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for end in self._ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:  # it is closed
                continue
            finally:
                end.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(self._target)
            self._ends += [near, far]
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=_pass_on, args=(source, target), name="relay", daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:  # one of them is closed
        return
