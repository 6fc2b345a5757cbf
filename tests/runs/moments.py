"""Random times for kills, which ``KILL_SEED`` reproduces, and what a process needs to run until then."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable


def seed_of_the_day() -> int:
    """The requested seed, or a different one each time; it is printed."""
    seed = int(os.environ.get("KILL_SEED", random.SystemRandom().randrange(10**6)))
    print(f"KILL_SEED={seed}")
    return seed


def connections() -> dict[str, str]:
    """The Airflow connections of this process, for the environment of another."""
    return {name: value for name, value in os.environ.items() if name.startswith("AIRFLOW_CONN_")}


def soon(condition: Callable[[], bool]) -> None:
    """Return once a condition holds."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "the process did not come so far"
        time.sleep(0.001)
