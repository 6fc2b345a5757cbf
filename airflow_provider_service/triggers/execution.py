"""The trigger that waits for an execution."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_service.daemon_threads import in_daemon_thread
from airflow_provider_service.waits.outcome import OnVanished, broken
from airflow_provider_service.waits.stop import stop_execution

if TYPE_CHECKING:
    from airflow_provider_service.waits.poller import Poller, Wait

_is_loaded = False


async def _load() -> None:
    """Import what polls, once and in a thread: it takes a third of a second, which would stall the event loop."""
    global _is_loaded
    if not _is_loaded:
        await in_daemon_thread(import_module, "airflow_provider_service.waits.poller")
        _is_loaded = True


class ServiceExecutionTrigger(BaseTrigger):
    """Fires once, when an execution has ended, cannot be observed, or its deadline has passed.

    :param service_conn_id: Airflow connection of type ``service``.
    :param execution_id: the execution.
    :param poll_interval: seconds between two looks; waits of the same interval share their requests.
    :param deadline: moment that ends the wait, in seconds since the epoch; a restart of the triggerer keeps it.
    :param timeout: seconds from the begin of the wait to the deadline, for the message.
    :param on_vanished: ``"fail"`` or ``"succeed"`` when the execution cannot be found.
    :param fault_tolerance: seconds that looking may fail in a row.
    :param cancel_on_kill: stop the execution when a user ends or clears the waiting task (Airflow 3.3 and newer).
    """

    def __init__(
        self,
        *,
        service_conn_id: str,
        execution_id: str,
        poll_interval: float,
        deadline: float,
        timeout: float,
        on_vanished: OnVanished,
        fault_tolerance: float,
        cancel_on_kill: bool = False,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.service_conn_id = service_conn_id
        self.execution_id = execution_id
        self.poll_interval = poll_interval
        self.deadline = deadline
        self.timeout = timeout
        self.on_vanished = on_vanished
        self.fault_tolerance = fault_tolerance
        self.cancel_on_kill = cancel_on_kill

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and arguments that make this trigger again."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "service_conn_id": self.service_conn_id,
                "execution_id": self.execution_id,
                "poll_interval": self.poll_interval,
                "deadline": self.deadline,
                "timeout": self.timeout,
                "on_vanished": self.on_vanished,
                "fault_tolerance": self.fault_tolerance,
                "cancel_on_kill": self.cancel_on_kill,
            },
        )

    def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait, and fire the outcome."""
        # Not an async generator, and all in one coroutine: what each of thousands of waits keeps makes Python's garbage
        # collector slow, which stalls the event loop.
        self._has_fired = False
        return self

    def __aiter__(self) -> AsyncIterator[TriggerEvent]:
        return self

    async def __anext__(self) -> TriggerEvent:
        if self._has_fired:
            raise StopAsyncIteration
        self._has_fired, outcome = True, None
        try:
            while outcome is None:
                poller, wait = await self._join_poller()
                try:
                    outcome = await wait.future
                finally:
                    poller.leave(wait)
        except Exception as error:
            # A trigger that dies gives the task an unreadable failure; this one says what happened.
            self.log.exception("The wait for execution %s broke", self.execution_id)
            outcome = broken(self.execution_id, error)
        return TriggerEvent(outcome.to_event())

    async def on_kill(self) -> None:
        """Stop the execution, if ``cancel_on_kill`` is set and Airflow confirms that somebody ended the task."""
        if not self.cancel_on_kill:
            return
        work = asyncio.create_task(self._stop_if_killed())
        # Airflow cancels again about every second, until the trigger has ended. That must not cut this short.
        while not work.done():
            with suppress(asyncio.CancelledError):
                await asyncio.shield(work)

    async def _stop_if_killed(self) -> None:
        from airflow_provider_service.hooks.connection import config_for
        from airflow_provider_service.waits.killed import was_killed

        if await was_killed(self.task_instance, self.execution_id):
            config = await config_for(self.service_conn_id)
            await in_daemon_thread(stop_execution, config, self.execution_id)

    async def _join_poller(self) -> tuple[Poller, Wait]:
        await _load()
        from airflow_provider_service.waits.poller import Wait, poller_of

        poller = await poller_of(self.service_conn_id, self.poll_interval)
        wait = Wait(
            self.execution_id,
            self.service_conn_id,
            deadline=self.deadline,
            timeout=self.timeout,
            on_vanished=self.on_vanished,
            fault_tolerance=self.fault_tolerance,
        )
        poller.join(wait)
        return poller, wait
