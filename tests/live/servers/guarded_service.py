"""The base of what the tests start besides Airflow: a guarded process that serves on loopback ports."""

from __future__ import annotations

import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.polling import wait_until

from .errors import LiveServerError, tail
from .guarded import GuardedProcess
from .install import Progress


class GuardedService(ABC):
    """A service in a process of its own, with a folder of its own; use it as a context manager.

    When the test run dies without ``stop``, the process group still ends and the folder goes.

    - ``folder``, ``log``: gone after ``stop``.
    """

    def __init__(self, name: str, *, ready_seconds: float, progress: Progress) -> None:
        """Nothing happens yet.

        :param name: of the service, for messages and for its folder.
        :param ready_seconds: deadline of each start.
        :param progress: takes a line of text now and then, while something long goes on.
        """
        self.name = name
        self._ready_seconds = ready_seconds
        self._progress = progress
        self._process: GuardedProcess | None = None

    def start(self) -> None:
        """Start with a fresh folder, and return when it serves.

        :raises LiveServerError: it cannot be started; contains the end of its log.
        """
        self.folder = Path(tempfile.mkdtemp(prefix=f"{self.name}-".replace(" ", "-")))
        self.log = self.folder / "log"
        try:
            self._prepare()
            self._launch()
            self._set_up()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the whole process group (TERM, then KILL) and remove the folder. Safe to repeat."""
        if self._process is not None:
            self._process.end()
            self._process = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def wait_until_ready(self) -> None:
        """Return when it answers as it should.

        :raises LiveServerError: it ended, or took too long; contains the end of its log.
        """
        try:
            wait_until(self._ready, seconds=self._ready_seconds, what=self.name)
        except TimeoutError as error:
            raise LiveServerError(f"{error} End of its log:\n{self.log_tail()}") from None

    def log_tail(self, lines: int = 40) -> str:
        """The end of its log."""
        return tail(self.log, lines)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _launch(self) -> None:
        self._spawn()
        self.wait_until_ready()

    def _spawn(self) -> None:
        self._process = GuardedProcess(
            self._command(), folder=self.folder, environment=self._environment(), log=self.log, scratch=self.folder
        )

    def _ready(self) -> bool:
        assert self._process is not None
        code = self._process.exit_code
        if code is not None:
            raise LiveServerError(f"{self.name} ended with code {code}. End of its log:\n{self.log_tail()}")
        return self._serves()

    @abstractmethod
    def _prepare(self) -> None:
        """Install what is missing, choose ports, and fill the folder."""

    @abstractmethod
    def _command(self) -> Sequence[str]:
        """The command that runs the service in the foreground."""

    @abstractmethod
    def _environment(self) -> Mapping[str, str]:
        """The whole environment of the command."""

    @abstractmethod
    def _serves(self) -> bool:
        """Whether it answers as it should."""

    def _set_up(self) -> None:  # noqa: B027 - most need nothing
        """Make what the tests need, once it serves."""
