"""A relay between a worker and the real server that records the worker's requests."""

from __future__ import annotations

import re
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Literal
from urllib.parse import urlsplit

_FIRST_LINE = re.compile(rb"^([A-Z]+) (\S+) HTTP/1\.1\r\n")


@dataclass
class Relayed:
    """One request, and whether its answer has begun."""

    method: str
    path: str
    query: str
    answered: bool = False


@dataclass(frozen=True)
class Hold:
    """Where the relay stops: from there on it passes nothing on until it is released.

    :param path: regular expression, searched in the path of a request.
    :param part: the request, or its answer.
    :param passing: number of such requests that pass before.
    """

    path: str
    part: Literal["request", "answer"]
    passing: int = 0


class Relay:
    """Passes bytes on between callers and one server; when a caller is gone, so is its connection to the server.

    Use it as a context manager.

    - ``base_url``: where it listens.
    - ``requests``: those that came in, oldest first.
    """

    def __init__(self, server_url: str, hold: Hold | None = None) -> None:
        address = urlsplit(server_url)
        self._server = (str(address.hostname), int(address.port or 80))
        self._hold = hold
        self._held = threading.Event()
        self._released = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests: list[Relayed] = []

    def __enter__(self) -> Relay:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self.release()

    def release(self) -> None:
        """Pass on what was held."""
        self._released.set()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller: socket.socket) -> None:
        with caller, socket.create_connection(self._server) as server:
            mine: list[Relayed] = []
            threading.Thread(target=self._answer, args=(mine, caller, server), daemon=True).start()
            with suppress(OSError):
                while data := caller.recv(65536):
                    if line := _FIRST_LINE.match(data):
                        mine.append(self._noted(line[1].decode(), line[2].decode()))
                        self._wait("request", mine[-1])
                    server.sendall(data)
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)

    def _noted(self, method: str, target: str) -> Relayed:
        path, _, query = target.partition("?")
        self.requests.append(Relayed(method, path, query))
        return self.requests[-1]

    def _answer(self, mine: list[Relayed], caller: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                if not mine[-1].answered:
                    self._wait("answer", mine[-1])
                    mine[-1].answered = True
                caller.sendall(data)
        with suppress(OSError):
            caller.shutdown(socket.SHUT_RDWR)

    def _wait(self, part: Literal["request", "answer"], one: Relayed) -> None:
        hold = self._hold
        if hold is not None and hold.part == part and re.search(hold.path, one.path):
            like_it = [id(each) for each in self.requests if re.search(hold.path, each.path)]
            if like_it.index(id(one)) >= hold.passing:
                self._held.set()
        if self._held.is_set():
            self._released.wait()
