"""The base of the databases."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from tests.live.servers.guarded_service import GuardedService
from tests.live.servers.install import Progress
from tests.live.servers.ports import free_ports

READY_SECONDS = 60


class DatabaseService(GuardedService):
    """A database on a loopback port.

    - ``host``, ``port``: where it listens.
    """

    kind: ClassVar[str]
    host: ClassVar[str] = "127.0.0.1"

    def __init__(self, *, progress: Progress = lambda line: None) -> None:
        """Nothing happens yet.

        :param progress: takes a line of text on what is being installed, if anything.
        """
        super().__init__(self.kind, ready_seconds=READY_SECONDS, progress=progress)

    def _prepare(self) -> None:
        [self.port] = free_ports(1)
        self._fill()

    @abstractmethod
    def _fill(self) -> None:
        """Install what is missing, and fill the folder."""

    def _environment(self) -> Mapping[str, str]:
        return {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "LC_ALL": "C.UTF-8"}
