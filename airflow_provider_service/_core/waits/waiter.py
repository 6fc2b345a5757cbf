"""A wait at a shared poller."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING

from airflow_provider_service._core.waits.watch import Watch
from airflow_provider_service.client.resources._executions import number_of

if TYPE_CHECKING:
    from airflow_provider_service._core.waits.outcome import Outcome
    from airflow_provider_service._core.waits.watch import Wait

log = logging.getLogger(__name__)


class Waiter(Watch):
    """A wait at a poller.

    :param wait: the wait; its connection leads to the poller's server.
    """

    __slots__ = ("_context", "future", "is_last_poll", "is_slow")

    explains = False  # the task does that when it continues in a worker

    def __init__(self, wait: Wait) -> None:
        super().__init__(wait)
        #: Yields the outcome, or None if the connection has changed.
        self.future: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()
        self.is_last_poll = self.is_slow = False
        # Airflow uses the context to find the log of the task. The poller serves many tasks, so it has no such context.
        self._context = copy_context()

    def saw_active(self) -> None:
        """Record in the context of the wait that its execution was seen and has not ended."""
        if self.in_trouble:
            self._context.copy().run(super().saw_active)

    def poll_failed(
        self, error: Exception, *, is_quiet: bool = False, others_succeeded_at: float = -math.inf
    ) -> Outcome | None:
        """Record a failed poll in the context of the wait."""
        failed = partial(super().poll_failed, error, is_quiet=is_quiet, others_succeeded_at=others_succeeded_at)
        return self._context.copy().run(failed)

    @property
    def number(self) -> int:
        """The id of the execution as a number; 0 if it is not a number."""
        return number_of(self.execution_id)

    def end(self, outcome: Outcome | None) -> None:
        """End the wait with an outcome, unless it has already been left."""
        if not self.future.done():
            self.future.set_result(outcome)

    def end_overdue(self) -> None:
        """End the wait at its deadline, unless the last poll has already ended it."""
        self.end(self.timed_out())

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Keep an error in this wait from affecting other waits. The wait continues until its deadline."""
        try:
            yield
        except Exception:
            log.exception("The wait for execution %s could not be polled", self.execution_id)
