"""Kills at intended points, which are chosen by the requests that the service has received."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress

from tests.polling import wait_until

from .deployment import Deployment
from .figures import FIGURES
from .gate import WINDOWS, Window
from .simulated import SimulatedService

# The failure of a scheduler or triggerer matters less than that of a worker, and these start faster.
VICTIMS = ("worker", "worker", "triggerer-1", "worker", "worker", "scheduler", "worker", "worker", "triggerer-2")
NAMES = {
    "before": "before the call",
    "arriving": "during the call, as it arrives",
    "answering": "during the call, before its answer",
    "after": "after the call, before its id is stored",
    "waiting": "during a wait",
}
MOMENT_SECONDS = 120
#: Where the plan begins, so that each run of the tests kills at other points.
SEED = int(os.environ.get("STACK_SEED", random.SystemRandom().randrange(1000)))


class Killer:
    """Kills processes of a deployment, and starts them again.

    - ``kills``: the kills within their window.
    """

    def __init__(self, deployment: Deployment, service: SimulatedService) -> None:
        self._deployment, self._service = deployment, service
        self._plan = itertools.islice(plan(), SEED % (len(VICTIMS) * len(WINDOWS)), None)
        self.kills = 0

    def kill_next(self, is_over: Callable[[], bool]) -> None:
        """Wait for the next point at which to kill, and kill; after a while without one, use the next window.

        :param is_over: whether there will be no more of these points.
        """
        victim, window = next(self._plan)
        self._service.arm(window)
        try:
            with suppress(TimeoutError):
                wait_until(lambda: self._service.held() or is_over(), seconds=MOMENT_SECONDS, what=NAMES[window])
            hit = self._service.held()
            if not hit:
                return
            # The window is open for the process whose request is held: the answer will arrive after its death.
            self._deployment[victim].kill()
            self.kills += 1
            self._count(victim, window, hit)
        finally:
            self._service.arm(None)
            self._deployment[victim].start()

    def _count(self, victim: str, window: Window, hit: int) -> None:
        kind = victim.partition("-")[0]
        FIGURES.add(f"kills of a {kind} {NAMES[window]}")
        if kind == "worker":
            FIGURES.add(f"task attempts killed {NAMES[window]}", hit)


def plan() -> Iterator[tuple[str, Window]]:
    """Which processes are killed, and in which windows, in turn."""
    windows = itertools.cycle(WINDOWS)
    for victim in itertools.cycle(VICTIMS):
        yield victim, "waiting" if victim.startswith("triggerer") else next(windows)
