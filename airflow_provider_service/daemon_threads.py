"""Blocking calls in daemon threads: a call that hangs never keeps its process from exiting.

The interpreter joins the threads of a ``ThreadPoolExecutor`` before it exits, including those of
``asyncio.to_thread``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def in_background(call: Callable[..., T], *arguments: object, name: str = "service-call") -> Future[T]:
    """Start a blocking call in a new thread, in the context of the caller.

    :param name: name of the thread.
    :returns: its result, or whatever it raises, ``SystemExit`` included. It cannot be cancelled.
    """
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

    Thread(target=run, name=name, daemon=True).start()
    return done


def in_daemon_thread(call: Callable[..., T], *arguments: object, name: str = "service-call") -> asyncio.Future[T]:
    """The same as :func:`in_background`, as a future of the running event loop.

    If that future is cancelled, the call keeps running and its result is ignored.
    """
    return asyncio.wrap_future(in_background(call, *arguments, name=name))
