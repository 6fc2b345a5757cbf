"""The base of the databases: a guarded process with its own folder."""

from __future__ import annotations

import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar

from typing_extensions import Self

from tests.live.servers import LiveServerError, wait_until
from tests.live.servers.errors import tail
from tests.live.servers.guarded import GuardedProcess
from tests.live.servers.ports import free_ports

from .debian import Progress

READY_SECONDS = 60


class DatabaseService(ABC):
    """A database on a loopback port; use it as a context manager.

    It ends, and its folder goes, also when the test run dies.

    - ``host``, ``port``: where it listens.
    - ``log``: what it prints; gone after ``stop``.
    """

    name: ClassVar[str]
    host: ClassVar[str] = "127.0.0.1"

    def __init__(self, *, progress: Progress = lambda line: None) -> None:
        """Nothing happens yet.

        :param progress: called with a text on what is being installed, if anything.
        """
        self._progress = progress
        self._process: GuardedProcess | None = None

    def start(self) -> None:
        """Start with an empty folder, and return when it answers.

        :raises LiveServerError: it is not installed, or does not come up; holds the end of its log.
        """
        self.folder = Path(tempfile.mkdtemp(prefix=f"{self.name}-"))
        self.log = self.folder / "log"
        [self.port] = free_ports(1)
        try:
            self._process = GuardedProcess(
                self._prepare(),
                folder=self.folder,
                environment={"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "LC_ALL": "C.UTF-8"},
                log=self.log,
                scratch=self.folder,
            )
            wait_until(self._ready, seconds=READY_SECONDS, what=self.name)
        except TimeoutError as error:
            reason = f"{error} End of its log:\n{tail(self.log)}"
            self.stop()
            raise LiveServerError(reason) from None
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it and remove its folder. Safe to repeat."""
        if self._process is not None:
            self._process.end()
            self._process = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _ready(self) -> bool:
        if self._process is not None and self._process.exit_code is not None:
            raise LiveServerError(f"{self.name} has ended. End of its log:\n{tail(self.log)}")
        return self._answers()

    @abstractmethod
    def _prepare(self) -> Sequence[str]:
        """Fill the folder, and return the command that runs the service in the foreground."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether it serves."""
