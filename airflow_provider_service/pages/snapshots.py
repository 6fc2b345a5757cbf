"""One read for all who look: what was read is kept for a while, and nobody reads what is being read already."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar

from airflow_provider_service.daemon_threads import in_background

T = TypeVar("T")

#: The shortest time between the beginnings of two reads of the same thing.
LEAST_PAUSE_SECONDS = 2.0
#: Things that are remembered; the one that was looked at least recently goes first.
CAPACITY = 500
#: Reads at a time, so that a service that does not answer occupies no more threads than these.
MAX_READS = 8


@dataclass
class _Entry(Generic[T]):
    began: float
    reading: Future[T]
    last: T | None


class TooManyReadsError(Exception):
    """So many reads are under way that another one cannot begin now."""


class Snapshots(Generic[T]):
    """What was last read of each thing. Safe to use from several threads and event loops.

    :param keep: seconds for which a value stays good; at least :data:`LEAST_PAUSE_SECONDS` count.
    :param processes: processes that read the same things, each with its own snapshots; the pause is that many times
        as long, so that together they read no more often.
    :param now: a clock that never goes back, in seconds.
    """

    def __init__(
        self, keep: Callable[[T], float], *, processes: int = 1, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._keep, self._now = keep, now
        self._pause = LEAST_PAUSE_SECONDS * max(1, processes)
        self._entries: OrderedDict[Hashable, _Entry[T]] = OrderedDict()
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(MAX_READS)

    def look(self, key: Hashable, read: Callable[[T | None], T]) -> Future[T]:
        """The latest value, or that of a read that begins now.

        :param key: names the thing.
        :param read: reads it, given the last value; it runs in a thread of its own.
        :raises TooManyReadsError: a read is needed, and cannot begin now.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and self._is_good(entry):
                self._entries.move_to_end(key)
                return entry.reading
            if not self._turns.acquire(blocking=False):
                raise TooManyReadsError("the service answers slowly, and too many pages wait for it")
            last = _value_of(entry)
            reading = in_background(self._read, read, last, name="service-page")
            self._entries[key] = _Entry(self._now(), reading, last)
            self._entries.move_to_end(key)
            while len(self._entries) > CAPACITY:
                self._entries.popitem(last=False)
        return reading

    def _is_good(self, entry: _Entry[T]) -> bool:
        if not entry.reading.done():
            return True
        failed = entry.reading.exception() is not None
        keep = 0.0 if failed else self._keep(entry.reading.result())
        return self._now() - entry.began < max(keep, self._pause)

    def _read(self, read: Callable[[T | None], T], last: T | None) -> T:
        try:
            return read(last)
        finally:
            self._turns.release()


def _value_of(entry: _Entry[T] | None) -> T | None:
    """The last value that could be read."""
    if entry is None:
        return None
    if not entry.reading.done() or entry.reading.exception() is not None:
        return entry.last
    return entry.reading.result()
