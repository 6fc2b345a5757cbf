"""The base of all polling triggers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextvars import Context
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_0_PLUS
from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_service._core.arguments import LEAST_POLL_SECONDS, read_seconds
from airflow_provider_service._core.daemon_threads import in_daemon_thread
from airflow_provider_service._core.waits.conditions import PollOutcome, PollWatch, answer_to, unreadable
from airflow_provider_service.client._clock import clock

if TYPE_CHECKING:
    from airflow_provider_service._core.waits.conditions import Check, PollResult

    Answer = PollResult | Exception

#: Seconds that a last poll may take if it begins at the deadline or later, and that it may wait for its turn before.
LAST_POLL_SECONDS = 30.0
#: Polls at a time in one triggerer: each occupies a thread and may read several pages.
POLLS_AT_A_TIME = 5
#: On Airflow 3, a deferred task continues no sooner: the worker may need 5 s to notice that its task was deferred, and
#: a scheduler that hears of it after it has queued the task again fails the task.
LEAST_SECONDS = 7.0

_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
#: The polls that are under way, by what they ask; waits that ask the same share the answer.
_polls: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Task[Answer]]] = WeakKeyDictionary()


async def until_it_may_fire(trigger: BaseTrigger, began: float) -> None:
    remaining = began + LEAST_SECONDS - clock().monotonic()
    if AIRFLOW_V_3_0_PLUS and trigger.trigger_id is not None and remaining > 0:  # without an id, it runs in a test
        await clock().async_sleep(remaining)


class PollingTrigger(BaseTrigger):
    """Base of the polling triggers, which fire once."""

    check: Check

    def __init__(
        self,
        *,
        service_conn_id: str,
        deadline: float,
        timeout: float | timedelta,
        poll_interval: float | timedelta,
        fault_tolerance: float | timedelta,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.service_conn_id = service_conn_id
        self.deadline = deadline
        self.timeout = read_seconds("timeout", timeout, or_zero=True)
        self.poll_interval = max(read_seconds("poll_interval", poll_interval, or_zero=True), LEAST_POLL_SECONDS)
        self.fault_tolerance = read_seconds("fault_tolerance", fault_tolerance, or_zero=True)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and arguments that recreate this trigger."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "service_conn_id": self.service_conn_id,
                "deadline": self.deadline,
                "timeout": self.timeout,
                "poll_interval": self.poll_interval,
                "fault_tolerance": self.fault_tolerance,
                **self.check.to_arguments(),
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait, and emit the outcome."""
        began = clock().monotonic()
        try:
            outcome = await self._wait()
        except Exception as error:
            # If a trigger dies, the task fails with an unreadable message; this event says what happened.
            self.log.exception("The wait failed")
            outcome = unreadable(self.check.subject, error)
        await until_it_may_fire(self, began)
        yield TriggerEvent(outcome.to_event())

    async def _wait(self) -> PollOutcome:
        watch = PollWatch(self.check, self.timeout, self.fault_tolerance)
        question = repr((self.service_conn_id, type(self.check).__name__, self.check.to_arguments()))
        while True:
            # The worker has polled before it deferred the task. Waits that ask the same poll at the same times.
            phase = (clock().monotonic() / self.poll_interval + hash(question) % 1000 / 1000) % 1
            pause = watch.pause(self.poll_interval * (1 - phase))
            await clock().async_sleep(min(pause, self._seconds_left), self.deadline)
            outcome = await self._poll(watch, question)
            if outcome and outcome.verdict != "unmet":
                return outcome
            if not self._seconds_left:
                return watch.timed_out()
            if outcome:
                self.log.info("Still waiting: %s", outcome.message)

    async def _poll(self, watch: PollWatch, question: str) -> PollOutcome | None:
        polls = _polls.setdefault(asyncio.get_running_loop(), {})
        if question not in polls:
            # The task must not run in the context of the trigger that happens to come first, nor end with it.
            polls[question] = Context().run(asyncio.create_task, self._answer())
            polls[question].add_done_callback(lambda _: polls.pop(question))
        # After a restart of the triggerer, many polls wait for their turns, beyond their deadlines.
        answer = await _limited(asyncio.shield(polls[question]), self._seconds_left + 2 * LAST_POLL_SECONDS)
        if isinstance(answer, TimeoutError) and not self._seconds_left:
            return unreadable(self.check.subject, answer)
        return watch.judge(answer)

    async def _answer(self) -> Answer:
        # Imported in a thread: the import takes a third of a second, which would stall the event loop.
        connection = await in_daemon_thread(import_module, "airflow_provider_service._airflow.connection")

        async def ask() -> Answer:
            # The connection is read again each time, so that a changed key is picked up.
            try:
                config = await connection.config_for(self.service_conn_id)
            except Exception as error:  # noqa: BLE001 - FaultTolerance decides, and logs it
                return error
            return await in_daemon_thread(answer_to, self.check, config, self._seconds_left, name="service-poll")

        async with _turn():
            return await _limited(ask(), max(self._seconds_left, LAST_POLL_SECONDS))

    @property
    def _seconds_left(self) -> float:
        return max(self.deadline - clock().now(), 0.0)


def _turn() -> asyncio.Semaphore:
    return _turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(POLLS_AT_A_TIME))


async def _limited(answer: Awaitable[Answer], seconds: float) -> Answer:
    try:
        return await clock().wait_for(answer, seconds)
    except TimeoutError:
        return TimeoutError(f"reading it took longer than {seconds:g} s")
