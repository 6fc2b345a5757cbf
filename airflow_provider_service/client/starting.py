"""Start something whose answer may come late or never: call in the background, and search meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

T = TypeVar("T")
Search = Callable[[], "str | None"]

# An answer is awaited this long before a search runs beside it: some calls are answered when the run has ended.
PATIENCE_SECONDS = 1.0
MAX_SEARCH_PAUSE = 5.0
# A call that got no answer may still be on its way: it is looked for at least this long before it counts as lost.
SETTLING_SECONDS = 3.0


class ServiceRunNotFoundError(Exception):
    """A start was asked for, but no execution of it can be found. It may have run."""


class ServiceRunNotStartedError(Exception):
    """The call did not reach the workflow; no execution was made."""


def answer_or_found(send: Callable[[], T], search: Search, stopped: threading.Event) -> tuple[T | None, str | None]:
    """Send a call and wait for its answer, or for the search to find what it started, whichever comes first.

    :param send: makes the call; what it raises is raised here.
    :param search: returns the id of the started execution, or None.
    :param stopped: set from outside to give up.
    :returns: the answer and None, or None and the id that was found.
    :raises ServiceRunNotFoundError: given up while neither was there.
    """
    call = _in_background(send)
    pause = PATIENCE_SECONDS
    while not stopped.is_set():
        if wait([call], timeout=pause).done:
            return call.result(), None
        found = search()
        if found is not None:
            return None, found
        pause = min(pause * 1.5, MAX_SEARCH_PAUSE)
    raise ServiceRunNotFoundError("the task was stopped before it was known which execution it had started")


def search_for(search: Search, seconds: float, stopped: threading.Event) -> str | None:
    """Search again and again for a number of seconds; the id that was found, or None."""
    deadline = time.monotonic() + seconds
    pause = 0.1
    while True:
        found = search()
        if found is not None or time.monotonic() >= deadline or stopped.wait(pause):
            return found
        pause = min(pause * 2, 1.0)


def _in_background(work: Callable[[], T]) -> Future[T]:
    """Run in a thread that does not keep the process alive: an open call must not hold a worker that defers."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except Exception as error:  # noqa: BLE001 - raised by whoever waits for the future
            future.set_exception(error)

    threading.Thread(target=run, name="service-start", daemon=True).start()
    return future
