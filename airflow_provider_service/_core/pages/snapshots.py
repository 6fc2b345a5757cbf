"""Share reads among viewers: results are cached for a while, and simultaneous viewers share a read."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from airflow_provider_service._core.daemon_threads import DaemonPool, in_background
from airflow_provider_service.client._clock import clock

T = TypeVar("T")

#: Minimum number of seconds between the beginnings of two reads of the same thing.
LEAST_PAUSE_SECONDS = 2.0
#: The share of one core that repeated reads of the same thing may cost.
CPU_SHARE = 0.05
#: Default number of cached results.
CAPACITY = 200
#: Maximum number of simultaneous reads of one group, which limits the threads that a silent service can occupy.
MAX_READS = 8
#: Maximum number of quick reads that wait for one of as many threads; further ones are refused.
MAX_WAITING = 150
#: Held while a page is computed, so that Airflow's own requests wait for at most one such computation.
COMPUTING = threading.Lock()


@dataclass
class _Entry(Generic[T]):
    began: float
    last: T | None
    reading: Future[T] = field(init=False)
    cost: float = 0.0


class TooManyReadsError(Exception):
    """Too many reads are under way for another one to begin now."""


class Snapshots(Generic[T]):
    """Caches the last result of each read. Safe to use from several threads and event loops.

    :param keep: returns the seconds for which a value stays valid, which are at least :data:`LEAST_PAUSE_SECONDS`, and
        more if a read is costly.
    :param processes: number of processes that read the same things, each with its own snapshots; the pause is that many
        times as long, so that together they read no more often.
    :param capacity: number of cached results; the least recently used one is removed first.
    """

    def __init__(self, keep: Callable[[T], float], *, processes: int = 1, capacity: int = CAPACITY) -> None:
        self._keep, self._capacity = keep, capacity
        self._pause = LEAST_PAUSE_SECONDS * max(1, processes)
        self._entries: OrderedDict[Hashable, _Entry[T]] = OrderedDict()
        self._lock = threading.Lock()
        self._under_way: Counter[Hashable] = Counter()
        self._quick = DaemonPool(MAX_READS, MAX_WAITING, name="service-page")

    def look(self, key: Hashable, read: Callable[[T | None], T], group: Hashable = None) -> Future[T]:
        """Return the latest value, or that of a read that begins now.

        :param key: identifies the thing to read.
        :param read: reads it, given the last value; runs in one of the snapshots' own threads.
        :param group: identifies reads that are slow together, such as those of a connection; a read without a group is
            quick, and waits for its turn unless too many others wait already.
        :raises TooManyReadsError: a read is needed, and cannot begin now.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and self._is_good(entry):
                self._entries.move_to_end(key)
                return entry.reading
            fresh = _Entry(clock().monotonic(), _value_of(entry))
            fresh.reading = self._begin(partial(self._read, read, fresh), group)
            self._entries[key] = fresh
            self._entries.move_to_end(key)
            while len(self._entries) > self._capacity:
                self._entries.popitem(last=False)
        return fresh.reading

    def _begin(self, read: Callable[[], T], group: Hashable) -> Future[T]:
        if group is None:
            try:
                return self._quick.submit(read)
            except queue.Full:
                raise TooManyReadsError("too many pages are open") from None
        if self._under_way[group] >= MAX_READS:
            raise TooManyReadsError("the service answers slowly, and too many pages wait for it")
        reading = in_background(self._read_of_group, read, group, name="service-page")
        self._under_way[group] += 1
        return reading

    def _is_good(self, entry: _Entry[T]) -> bool:
        if not entry.reading.done():
            return True
        failed = entry.reading.exception() is not None
        keep = 0.0 if failed else self._keep(entry.reading.result())
        return clock().monotonic() - entry.began < max(keep, self._pause, entry.cost / CPU_SHARE)

    def _read_of_group(self, read: Callable[[], T], group: Hashable) -> T:
        try:
            return read()
        finally:
            with self._lock:
                self._under_way[group] -= 1
                if not self._under_way[group]:
                    del self._under_way[group]

    @staticmethod
    def _read(read: Callable[[T | None], T], entry: _Entry[T]) -> T:
        began = time.thread_time()
        try:
            return read(entry.last)
        finally:
            entry.cost = time.thread_time() - began


def _value_of(entry: _Entry[T] | None) -> T | None:
    """Return the last value that could be read."""
    if entry is None:
        return None
    if not entry.reading.done() or entry.reading.exception() is not None:
        return entry.last
    return entry.reading.result()
