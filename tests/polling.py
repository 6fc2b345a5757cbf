"""Waiting for something to become true, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(
    probe: Callable[[], T | None], *, seconds: float = 120.0, what: str = "what was to happen", interval: float = 0.05
) -> T:
    """Call ``probe`` until it answers something true, and return that.

    :param probe: answers something false (``None``, ``False``, an empty list) while it is too early.
    :param seconds: deadline, which only ends a hang; the probe is called at least once.
    :param what: what is waited for, for the error.
    :param interval: seconds between two calls.
    :raises TimeoutError: the deadline passed.
    """
    deadline = time.monotonic() + seconds
    while True:
        if answer := probe():
            return answer
        if time.monotonic() >= deadline:
            raise TimeoutError(f"Waited {seconds:g} s in vain for {what}.")
        time.sleep(interval)
