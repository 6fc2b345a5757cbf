"""A process group that does not outlive the test run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import guard
from .errors import LiveServerError


class GuardedProcess:
    """A command in its own process group, watched by ``guard.py``."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        log: Path,
        scratch: Path,
        grace_seconds: float = 10.0,
    ) -> None:
        """Start it.

        :param folder: where it runs.
        :param environment: its whole environment.
        :param log: file that its output is appended to.
        :param scratch: folder that goes with it: removed by :meth:`end`, and when the test run dies.
        :param grace_seconds: between TERM and KILL.
        """
        self._grace_seconds = grace_seconds
        with log.open("ab") as output:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", guard.__file__, str(grace_seconds), str(scratch), *command],
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,  # an interrupt from the keyboard must not reach the guard
            )
        assert self._guard.stdout is not None
        first_line = self._guard.stdout.readline()
        if not first_line:
            self._guard.wait(grace_seconds)
            raise LiveServerError(f"Could not run {command[0]}.")
        self.group = int(first_line)

    @property
    def exit_code(self) -> int | None:
        """``None`` while it runs; 128 + number of the signal when it was killed."""
        return self._guard.poll()

    def terminate(self) -> None:
        """Ask it to finish, kill what has not after the grace time, keep the scratch folder."""
        if self.exit_code is None:
            os.kill(self.group, signal.SIGTERM)
        try:
            self._guard.wait(self._grace_seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        self.close()

    def kill(self) -> None:
        """KILL the whole group at once, keep the scratch folder."""
        if self.exit_code is None:
            guard.signal_group(self.group, signal.SIGKILL)
        self.close()

    def end(self) -> None:
        """End the whole group and remove the scratch folder."""
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self.close()

    def close(self) -> None:
        """Let go of a command that is over or about to be."""
        self._guard.wait(2 * self._grace_seconds + 5)
        for pipe in (self._guard.stdin, self._guard.stdout):
            if pipe is not None:
                pipe.close()
