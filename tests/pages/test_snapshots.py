"""However many people look at something, it is read once, and at most once in two seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from airflow_provider_service._core.pages.reading import (
    CAPACITY,
    CPU_SHARE,
    MAX_READS,
    MAX_WAITING,
    Snapshots,
    TooManyReadsError,
)


def counting() -> tuple[list[int | None], Callable[[int | None], int]]:
    seen: list[int | None] = []

    def read(last: int | None) -> int:
        seen.append(last)
        return len(seen)

    return seen, read


def test_all_viewers_within_two_seconds_share_one_read(set_clock):
    snapshots, (reads, read) = Snapshots(lambda _: 0.0), counting()

    for _ in range(100):
        assert snapshots.look("a", read).result() == 1
        set_clock.advance(0.019)
    assert reads == [None]

    set_clock.advance(0.11)
    assert snapshots.look("a", read).result() == 2
    assert reads == [None, 1]


def test_viewers_during_a_read_wait_for_it(set_clock):
    snapshots, go = Snapshots(lambda _: 0.0), threading.Event()
    begun = []

    def slow(_last: None) -> str:
        begun.append(1)
        go.wait()
        return "seen"

    first = snapshots.look("a", slow)
    set_clock.advance(60)
    assert snapshots.look("a", slow) is first
    go.set()
    assert first.result() == "seen"
    assert begun == [1]


def test_processes_that_share_the_work_read_that_much_less_often(set_clock):
    snapshots, (reads, read) = Snapshots(lambda _: 0.0, processes=4), counting()

    for _ in range(8):
        snapshots.look("a", read).result()
        set_clock.advance(1.0)
    assert len(reads) == 1
    snapshots.look("a", read).result()
    assert len(reads) == 2


def test_a_value_is_kept_for_as_long_as_it_is_good(set_clock):
    snapshots, (reads, read) = Snapshots(lambda _: 60.0), counting()

    for _ in range(8):
        snapshots.look("a", read).result()
        set_clock.advance(9.9)
    assert len(reads) == 2


def test_a_failed_read_is_repeated_after_two_seconds_and_the_last_value_stays(set_clock):
    snapshots, (reads, read) = Snapshots(lambda _: 0.0), counting()

    def fail(_last: int | None) -> int:
        raise OSError("gone")

    assert snapshots.look("a", read).result() == 1
    set_clock.advance(2)
    failed = snapshots.look("a", fail)
    assert isinstance(failed.exception(), OSError)
    assert snapshots.look("a", read) is failed
    set_clock.advance(2)
    assert snapshots.look("a", read).result() == 2
    assert reads == [None, 1]


def test_a_service_that_does_not_answer_occupies_few_threads(set_clock):
    snapshots, go = Snapshots(lambda _: 0.0), threading.Event()
    under_way = [snapshots.look(at, lambda _: go.wait(), group="slow") for at in range(MAX_READS)]

    with pytest.raises(TooManyReadsError, match="answers slowly"):
        snapshots.look("one more", lambda _: True, group="slow")
    assert snapshots.look(0, lambda _: True, group="slow") is under_way[0]
    assert snapshots.look("elsewhere", lambda _: True, group="another").result(20)

    go.set()
    for one in under_way:
        assert one.result()
    assert snapshots.look("one more", lambda _: True, group="slow").result()


def test_what_is_quick_waits_for_its_turn(set_clock):
    snapshots, go, lock = Snapshots(lambda _: 0.0), threading.Event(), threading.Lock()
    now, most = 0, 0

    def busy(_last: None) -> bool:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        go.wait(20)
        with lock:
            now -= 1
        return True

    begun = [snapshots.look(at, busy) for at in range(3 * MAX_READS)]
    while most < MAX_READS:
        pass
    go.set()

    assert all(one.result(20) for one in begun)
    assert most == MAX_READS


def test_what_waits_for_its_turn_has_no_thread_and_is_limited(set_clock):
    snapshots, go = Snapshots(lambda _: 0.0), threading.Event()
    before = threading.active_count()
    begun = [snapshots.look(at, lambda _: go.wait(20)) for at in range(MAX_READS + MAX_WAITING)]

    try:
        assert threading.active_count() - before <= MAX_READS
        with pytest.raises(TooManyReadsError, match="too many pages"):
            snapshots.look("one more", lambda _: True)
        assert snapshots.look(0, lambda _: False) is begun[0]
    finally:
        go.set()
    assert all(one.result(20) for one in begun)
    assert snapshots.look("one more", lambda _: True).result(20)


def test_a_failed_read_gives_its_turn_to_the_next(set_clock):
    snapshots, go = Snapshots(lambda _: 0.0), threading.Event()

    def fail(_last: None) -> bool:
        go.wait(20)
        raise OSError("gone")

    failed = [snapshots.look(at, fail) for at in range(3 * MAX_READS)]
    good = snapshots.look("good", lambda _: True)
    go.set()

    assert good.result(20)
    assert all(isinstance(one.exception(20), OSError) for one in failed)


def test_a_value_that_is_costly_to_read_is_read_less_often(set_clock):
    snapshots, reads = Snapshots(lambda _: 0.0), []

    def compute(_last: None) -> int:
        reads.append(1)
        until = time.thread_time() + 0.2
        while time.thread_time() < until:
            pass
        return len(reads)

    assert snapshots.look("a", compute).result() == 1
    set_clock.advance(0.19 / CPU_SHARE)
    assert snapshots.look("a", compute).result() == 1
    set_clock.advance(1e6)
    assert snapshots.look("a", compute).result() == 2


def test_a_value_that_nobody_looks_at_is_forgotten(set_clock):
    snapshots, (reads, read) = Snapshots(lambda _: 1e9), counting()

    for at in range(CAPACITY + 1):
        snapshots.look(at, read).result()
    snapshots.look(CAPACITY, read).result()
    assert len(reads) == CAPACITY + 1
    snapshots.look(0, read).result()
    assert len(reads) == CAPACITY + 2
