"""A call in the background, and the search for its execution: the wait for the answer ends whenever the call ends."""

from __future__ import annotations

import threading

import pytest

from airflow_provider_service._core.runs.searching import IsAnswered, answer_or_found


def no_search(is_answered: IsAnswered) -> None:
    raise AssertionError("the call has ended")


def test_a_call_that_ends_its_thread_ends_the_wait() -> None:
    def send() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit, match="3"):
        answer_or_found(send, no_search, threading.Event(), at_once=True)


class SetAfterTheFirstLook(threading.Event):
    """The task is killed right after its call."""

    def is_set(self) -> bool:
        before = super().is_set()
        self.set()
        return before


def test_a_task_that_is_killed_right_after_its_call_waits_for_the_answer() -> None:
    go_on = threading.Event()
    threading.Timer(0.2, go_on.set).start()

    assert answer_or_found(go_on.wait, no_search, SetAfterTheFirstLook(), at_once=True) == (True, None)
