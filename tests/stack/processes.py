"""The processes of a deployment: started, killed, frozen and ended, each with its output in a file."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence
from pathlib import Path

import psutil

from tests.live.servers.errors import LiveServerError, tail
from tests.live.servers.guarded import GuardedProcess

GRACE_SECONDS = 15.0
#: An environment variable that marks all processes started by a deployment, even those that have lost their parent.
MARK = "STACK_DEPLOYMENT"


class Component:
    """One process with all its children.

    - ``kills``: how often it was killed.
    - ``environment``: its variables from the next start on.

    :param name: of the process, and of the file with its output.
    :param command: what runs.
    """

    def __init__(self, name: str, command: Sequence[str], *, folder: Path, environment: dict[str, str]) -> None:
        self.name = name
        self.log = folder / "output" / f"{name}.log"
        self.kills = 0
        self._command, self._folder = command, folder
        self.environment = environment
        self._process: GuardedProcess | None = None

    def start(self) -> None:
        """Start it; safe to repeat while it runs."""
        if not self.has_ended():
            return
        self.log.parent.mkdir(parents=True, exist_ok=True)
        scratch = self._folder / "scratch" / self.name
        scratch.mkdir(parents=True, exist_ok=True)
        self._process = GuardedProcess(
            self._command,
            folder=self._folder,
            environment={**self.environment, MARK: f"{self._folder}:{self.name}"},
            log=self.log,
            scratch=scratch,
            grace_seconds=GRACE_SECONDS,
        )

    def restart(self) -> None:
        """End it, if it has not ended, and start it again."""
        self.end()
        self.start()

    def kill(self) -> None:
        """KILL it and all its children at once, as when its machine loses power."""
        victims = self.members()
        for one in victims:  # stopped first, so that none briefly outlives its parent and reacts to that
            _send(one, signal.SIGSTOP)
        for one in victims:
            _send(one, signal.SIGKILL)
        psutil.wait_procs(victims, timeout=GRACE_SECONDS)
        if self._process is not None:
            self._process.kill()
        self.kills += 1

    def freeze(self) -> None:
        """Suspend it and all its children until :meth:`thaw`."""
        for one in self.members():
            _send(one, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it continue after :meth:`freeze`."""
        for one in self.members():
            _send(one, signal.SIGCONT)

    def end(self) -> None:
        """Ask it to finish, and kill what is left after the grace time."""
        if self._process is not None:
            self._process.end()
            self._process = None
        for one in self.members():
            _send(one, signal.SIGKILL)

    def check(self) -> None:
        """Raise when it is not running.

        :raises LiveServerError: holds the end of its output.
        """
        if self.has_ended():
            raise LiveServerError(f"{self.name} is not running. End of its output:\n{tail(self.log)}")

    def has_ended(self) -> bool:
        """Whether its main process has ended."""
        return self._process is None or self._process.exit_code is not None

    def members(self) -> list[psutil.Process]:
        """All processes of it, its main process first."""
        found: dict[int, psutil.Process] = {}
        if (main := self._main()) is not None:
            # A process that has changed its title may have lost its mark.
            found = {one.pid: one for one in (main, *main.children(recursive=True))}
        return [*(found | {one.pid: one for one in _marked(f"{self._folder}:{self.name}")}).values()]

    def usage(self) -> tuple[float, int]:
        """CPU seconds used so far, and bytes of memory that no other process shares, of all its processes."""
        alive = self.members()
        cpu = sum(sum(one.cpu_times()[:2]) for one in alive)
        return cpu, sum(one.memory_full_info().uss for one in alive)

    def request_end(self) -> None:
        """Ask it to finish, without waiting."""
        if (main := self._main()) is not None:
            _send(main, signal.SIGTERM)

    def _main(self) -> psutil.Process | None:
        if self._process is None or self._process.exit_code is not None:
            return None
        return psutil.Process(self._process.group)


def leftovers(folder: Path) -> list[psutil.Process]:
    """Processes of a deployment that are still running."""
    return list(_marked(f"{folder}:"))


def _marked(prefix: str) -> Iterable[psutil.Process]:
    for one in psutil.process_iter():
        try:
            # Of the guard itself too: it has the same environment, and must survive to say how its command ended.
            mark = one.environ().get(MARK, "")
            if (mark == prefix or (prefix.endswith(":") and mark.startswith(prefix))) and not _is_guard(one):
                yield one
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue


def _is_guard(process: psutil.Process) -> bool:
    return any(part.endswith("/guard.py") for part in process.cmdline()[:4])


def _send(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return
