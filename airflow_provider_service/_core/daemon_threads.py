"""Blocking calls in daemon threads: a call that hangs never keeps its process from exiting.

The interpreter joins the threads of a ``ThreadPoolExecutor`` before it exits, including those of
``asyncio.to_thread``.
"""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Lock, Thread
from typing import TypeVar

T = TypeVar("T")


def in_background(call: Callable[..., T], *arguments: object, name: str = "service-call") -> Future[T]:
    """Start a blocking call in a new thread, in the context of the caller; its result cannot be cancelled."""
    done, run = _prepared(call, *arguments)
    Thread(target=run, name=name, daemon=True).start()
    return done


def in_daemon_thread(call: Callable[..., T], *arguments: object, name: str = "service-call") -> asyncio.Future[T]:
    """The same, as a future of the running event loop; if that is cancelled, the call keeps running."""
    return asyncio.wrap_future(in_background(call, *arguments, name=name))


class DaemonPool:
    """Runs blocking calls in a few daemon threads, which end when nothing is left to do."""

    def __init__(self, threads: int, waiting: int, *, name: str) -> None:
        self._free = threads
        self._waiting: queue.Queue[Callable[[], None]] = queue.Queue(waiting)
        self._name = name
        self._lock = Lock()

    def submit(self, call: Callable[..., T], *arguments: object) -> Future[T]:
        """Run a call as soon as a thread is free; ``queue.Full`` if too many wait already."""
        done, run = _prepared(call, *arguments)
        with self._lock:
            if self._free:
                Thread(target=self._work, args=(run,), name=self._name, daemon=True).start()
                self._free -= 1
            else:
                self._waiting.put_nowait(run)
        return done

    def _work(self, run: Callable[[], None]) -> None:
        while True:
            run()
            with self._lock:
                try:
                    run = self._waiting.get_nowait()
                except queue.Empty:
                    self._free += 1
                    return


def _prepared(call: Callable[..., T], *arguments: object) -> tuple[Future[T], Callable[[], None]]:
    """A future, and what runs the call and sets its result, or whatever it raises, ``SystemExit`` included."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # from here on it cannot be cancelled, so that its result can be set
    context = copy_context()

    def run() -> None:
        try:
            result = context.run(call, *arguments)
        except BaseException as error:  # noqa: BLE001 - whoever waits for the future handles it
            done.set_exception(error)
        else:
            done.set_result(result)

    return done, run
