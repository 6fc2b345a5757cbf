"""Make a call whose answer may come late or never: call in the background, and meanwhile search for what it started."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from airflow_provider_service._core.daemon_threads import in_background
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client.errors import (
    ServiceError,
    ServiceRunInDoubtError,
    ServiceTaskKilledError,
    ServiceWaitError,
)

log = logging.getLogger(__name__)

T = TypeVar("T")

IsAnswered = Callable[[], bool]
LookMeanwhile = Callable[[IsAnswered], str | None]

# Seconds to wait for an answer before the search begins; some calls are answered only when the run has ended.
PATIENCE_SECONDS = 1.0
# The same for calls that are answered when the run begins: of many at once, each would search the others' runs.
PATIENCE_AT_ONCE_SECONDS = 10.0
MAX_SEARCH_PAUSE = 5.0
# A call without an answer may still be on its way, so the search for its execution lasts at least this many seconds.
SETTLING_SECONDS = 3.0
# A call that was answered has started its execution, which becomes visible within this many seconds.
VISIBLE_WITHIN_SECONDS = 30.0
# If executions are not kept, one that is not visible after this many seconds has already ended.
UNKEPT_SECONDS = 1.0


def answer_or_found(
    send: Callable[[], T], search: LookMeanwhile, stopped: threading.Event, *, at_once: bool = False
) -> tuple[T | None, str | None]:
    """Send a call and wait for its answer, or for the search to find what it started, whichever comes first.

    :param send: makes the call; what it raises is raised here.
    :param search: returns the id of the started execution, or None; ends early once the call is answered.
    :param stopped: set from outside to give up.
    :param at_once: whether the call is answered when the run begins, and not only when it ends.
    :returns: the answer and None, or None and the id that was found.
    :raises ServiceRunInDoubtError: the search is refused for good, or gives the call up.
    :raises ServiceWaitError: the search is refused at present, for example because the key has expired.
    :raises ServiceTaskKilledError: the task was killed; if that was before the call, nothing was sent.
    """
    if stopped.is_set():
        raise ServiceTaskKilledError("the task was killed before it started anything")
    # An open call must not hold a worker that defers.
    call = in_background(send, name="service-start")
    answered = threading.Event()
    call.add_done_callback(lambda _: answered.set())
    pause = PATIENCE_AT_ONCE_SECONDS if at_once else PATIENCE_SECONDS
    while True:
        if clock().wait(answered, pause):
            return call.result(), None
        found = _tolerant(search, answered.is_set)
        if found is not None:
            return None, found
        # Not earlier: a task that is killed right after its call should still learn what the call has started.
        if stopped.is_set():
            raise ServiceTaskKilledError("the task was killed before it was known which execution it had started")
        pause = min(pause * 1.5, MAX_SEARCH_PAUSE)


def never() -> bool:
    """Answer for a call that nobody waits for: it is never answered."""
    return False


def search_for(search: Callable[[], T | None], seconds: float, stopped: threading.Event) -> T | None:
    """Search repeatedly for a number of seconds, and once more at the end. Return what was found, or None.

    An execution can move between the lists while one search reads them, so a single search proves nothing.

    :raises ServiceTaskKilledError: the task was killed before the time was over, so nothing is proven.
    """
    deadline = clock().monotonic() + seconds
    pause = min(0.1, seconds / 2)
    while True:
        remaining = deadline - clock().monotonic()
        found = search()
        if found is not None or remaining <= 0:
            return found
        if clock().wait(stopped, min(pause, remaining)):
            raise ServiceTaskKilledError("the task was killed while it searched for the execution that it had started")
        pause = min(pause * 2, 1.0)


def _tolerant(search: LookMeanwhile, is_answered: IsAnswered) -> str | None:
    """Search while the call is still open. A failed search is no reason to give up or to call again."""
    try:
        return search(is_answered)
    except ServiceRunInDoubtError:
        raise
    except ServiceError as error:
        if error.ends_wait:
            kind = ServiceRunInDoubtError if error.final else ServiceWaitError
            raise kind(f"a run was requested, but its execution cannot be searched for: {error}") from error
        log.warning("The search for the started execution failed: %s", error)
        return None
