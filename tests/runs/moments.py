"""Random times for kills, which ``KILL_SEED`` reproduces, and what a process needs to run until then."""

from __future__ import annotations

import os
import random
from functools import partial

from tests.polling import wait_until

#: Waits for a moment that is soon over.
soon = partial(wait_until, interval=0.001)


def seed_of_the_day() -> int:
    """The requested seed, or a different one each time; it is printed."""
    seed = int(os.environ.get("KILL_SEED", random.SystemRandom().randrange(10**6)))
    print(f"KILL_SEED={seed}")
    return seed


def connections() -> dict[str, str]:
    """The Airflow connections of this process, for the environment of another."""
    return {name: value for name, value in os.environ.items() if name.startswith("AIRFLOW_CONN_")}
