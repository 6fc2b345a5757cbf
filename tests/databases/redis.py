"""Redis, in memory only."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import ClassVar

from .debian import program
from .service import DatabaseService


class Redis(DatabaseService):
    """A Redis server without a password."""

    name: ClassVar[str] = "redis"

    def url(self, database: int = 0) -> str:
        """The address of one of its databases, ``redis://host:port/number``."""
        return f"redis://{self.host}:{self.port}/{database}"

    def _prepare(self) -> Sequence[str]:
        server = program("redis-server", "redis-server", progress=self._progress)
        address = ["--bind", self.host, "--port", str(self.port)]
        return [str(server), *address, "--save", "", "--appendonly", "no", "--dir", str(self.folder)]

    def _answers(self) -> bool:
        try:
            with socket.create_connection((self.host, self.port), timeout=5) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16) == b"+PONG\r\n"
        except OSError:
            return False
