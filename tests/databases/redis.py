"""Redis, in memory only."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import ClassVar

from .debian import program
from .service import DatabaseService


class Redis(DatabaseService):
    """A Redis server without a password."""

    kind: ClassVar[str] = "redis"

    def url(self, database: int = 0) -> str:
        """The address of one of its databases, ``redis://host:port/number``."""
        return f"redis://{self.host}:{self.port}/{database}"

    def _fill(self) -> None:
        self._server = program("redis-server", "redis-server", progress=self._progress)

    def _command(self) -> Sequence[str]:
        address = ["--bind", self.host, "--port", str(self.port)]
        return [str(self._server), *address, "--save", "", "--appendonly", "no", "--dir", str(self.folder)]

    def _serves(self) -> bool:
        try:
            with socket.create_connection((self.host, self.port), timeout=5) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16) == b"+PONG\r\n"
        except OSError:
            return False
