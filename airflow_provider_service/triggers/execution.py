"""The trigger that waits for an execution."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from importlib import import_module
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_service.waiting import OnVanished, Outcome, Watch, broken, stop_execution

_is_loaded = False


async def _load() -> None:
    """Import what polls, once and in a thread: it takes a third of a second, which would stall the event loop."""
    global _is_loaded
    if not _is_loaded:
        await asyncio.to_thread(import_module, "airflow_provider_service.triggers.polling")
        _is_loaded = True


class ServiceExecutionTrigger(BaseTrigger):
    """Fires once, when an execution has ended, can not be observed, or its deadline has passed.

    :param service_conn_id: Airflow connection of type ``service``.
    :param execution_id: the execution.
    :param poll_interval: seconds between two looks; waits of the same interval share their requests.
    :param deadline: moment that ends the wait, in seconds since the epoch; a restart of the triggerer keeps it.
    :param timeout: seconds from the begin of the wait to the deadline, for the message.
    :param on_vanished: ``"fail"`` or ``"succeed"`` when the execution can not be found.
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

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait, and fire the outcome."""
        try:
            outcome = await self._outcome()
        except Exception as error:
            # A trigger that dies gives the task an unreadable failure; this one says what happened.
            self.log.exception("The wait for execution %s broke", self.execution_id)
            outcome = broken(self.execution_id, error)
        yield TriggerEvent(outcome.to_event())

    async def on_kill(self) -> None:
        """Stop the execution, when that was asked for; a restart of the triggerer does not get here."""
        if self.cancel_on_kill:
            from airflow_provider_service.hooks.connection import config_for

            config = await config_for(self.service_conn_id)
            # A thread of its own: the poller's may all be waiting for a slow server.
            await asyncio.to_thread(stop_execution, config, self.execution_id)

    async def _outcome(self) -> Outcome:
        await _load()
        from airflow_provider_service.hooks.connection import config_for
        from airflow_provider_service.triggers.polling import poller_for

        while True:
            watch = Watch(
                self.execution_id,
                deadline=self.deadline,
                timeout=self.timeout,
                on_vanished=self.on_vanished,
                fault_tolerance=self.fault_tolerance,
            )
            poller = poller_for(await config_for(self.service_conn_id), self.poll_interval)
            outcome = await poller.wait(watch, self.service_conn_id)
            if outcome is not None:
                return outcome
