"""The trigger that waits for an execution."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import fields
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_service._core.arguments import (
    FAULT_PAUSE_SECONDS,
    FAULT_TOLERANCE_SECONDS,
    LEAST_POLL_SECONDS,
    ON_VANISHED,
    POLL_SECONDS,
    read_seconds,
    require_choice,
    require_flag,
)
from airflow_provider_service._core.daemon_threads import DaemonPool, in_daemon_thread
from airflow_provider_service._core.waits.outcome import broken
from airflow_provider_service._core.waits.stop import log_failure, try_to_stop, was_killed
from airflow_provider_service._core.waits.watch import FaultTolerance, Wait
from airflow_provider_service.client._clock import clock
from airflow_provider_service.triggers._polling import until_it_may_fire

if TYPE_CHECKING:
    from airflow_provider_service._core.arguments import Duration, OnVanished
    from airflow_provider_service._core.waits.poller import Poller, Waiter

__all__ = ["ServiceExecutionTrigger"]

#: Stops of killed tasks at once: a user may end hundreds, and a service answers only so many requests in time.
MAX_STOPS_AT_ONCE = 5

# By connection, so that a service that hangs does not delay the stops of others.
_stops = defaultdict[str, DaemonPool](lambda: DaemonPool(MAX_STOPS_AT_ONCE, 0, name="service-stop"))
_is_loaded = False


async def _load() -> None:
    """Import the poller once, in a thread: the import takes a third of a second, which would stall the event loop."""
    global _is_loaded
    if not _is_loaded:
        await in_daemon_thread(import_module, "airflow_provider_service._core.waits.poller")
        _is_loaded = True


class ServiceExecutionTrigger(BaseTrigger):
    """Fires once, when an execution has ended or cannot be observed, or when the deadline has passed.

    The event is ``{"execution_id", "verdict", "message", "status", "workflow_id", "started_at", "stopped_at", "url",
    "final", "is_overdue"}``. The verdict is ``"succeeded"``, ``"failed"``, ``"vanished"``, ``"timed_out"`` or
    ``"unobservable"``. With the last one, ``final`` says whether a retry is pointless, and ``is_overdue`` whether the
    deadline has passed. The message does not say why an execution failed, because the service's own message may quote
    secrets that the workflow was called with; the task reads it when it continues.

    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``.
    :param execution_id: id of the execution.
    :param deadline: Unix time, in seconds, at which the wait ends; it stays the same if the triggerer restarts.
    :param timeout: seconds, or a timedelta, from the beginning of the wait to the deadline, for messages.
    :param poll_interval: seconds, or a timedelta, between two polls; waits of the same interval share their requests.
        10 seconds by default.
    :param on_vanished: ``"fail"`` (the default) or ``"succeed"`` if the execution cannot be found.
    :param fault_tolerance: seconds, or a timedelta, for which polls may keep failing, and for which the stop of an
        execution is tried; 300 seconds by default.
    :param cancel_on_kill: stop the execution if a user marks the deferred task as success or failed (Airflow 3.3 and
        newer); False by default.
    :param expected_workflow_id: id of the execution's workflow, if known: if the connection leads to another server in
        the meantime, whose execution of this id is one of another workflow, the wait fails; None (the default) for any.
    :raises ServiceInputError: an argument is invalid.
    """

    def __init__(
        self,
        *,
        service_conn_id: str,
        execution_id: str,
        deadline: float,
        timeout: Duration,
        poll_interval: Duration = POLL_SECONDS,
        on_vanished: OnVanished = "fail",
        fault_tolerance: Duration = FAULT_TOLERANCE_SECONDS,
        cancel_on_kill: bool = False,
        expected_workflow_id: str | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        require_choice("on_vanished", on_vanished, ON_VANISHED)
        require_flag("cancel_on_kill", cancel_on_kill)
        self.service_conn_id = service_conn_id
        self.execution_id = execution_id
        self.deadline = deadline
        self.timeout = read_seconds("timeout", timeout, or_zero=True)
        self.poll_interval = max(read_seconds("poll_interval", poll_interval, or_zero=True), LEAST_POLL_SECONDS)
        self.on_vanished = on_vanished
        self.fault_tolerance = read_seconds("fault_tolerance", fault_tolerance, or_zero=True)
        self.cancel_on_kill = cancel_on_kill
        self.expected_workflow_id = expected_workflow_id
        self._stopping: asyncio.Task[None] | None = None

    @property
    def wait(self) -> Wait:
        """The wait. It is not stored, because the objects of thousands of waits slow Python's garbage collector."""
        return Wait(**{field.name: getattr(self, field.name) for field in fields(Wait)})

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and arguments that recreate this trigger."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {**self.wait.to_arguments(), "cancel_on_kill": self.cancel_on_kill},
        )

    def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait, and emit the outcome."""
        # Not an async generator, and all in one coroutine: the objects of thousands of waits slow Python's garbage
        # collector, which stalls the event loop.
        self._has_fired = False
        return self

    def __aiter__(self) -> AsyncIterator[TriggerEvent]:
        return self

    async def __anext__(self) -> TriggerEvent:
        if self._has_fired:
            raise StopAsyncIteration
        self._has_fired, began, outcome = True, clock().monotonic(), None
        try:
            while outcome is None:
                poller, waiter = await self._join_poller()
                try:
                    outcome = await waiter.future
                finally:
                    poller.leave(waiter)
        except Exception as error:
            # If a trigger dies, the task fails with an unreadable message; this event says what happened.
            self.log.exception("The wait for execution %s failed", self.execution_id)
            outcome = broken(self.execution_id, error)._replace(is_overdue=not self.wait.seconds_left)
        await until_it_may_fire(self, began)
        return TriggerEvent(outcome.to_event())

    async def on_kill(self) -> None:
        """Stop the execution, if ``cancel_on_kill`` is set and Airflow confirms that a user ended the task."""
        if not self.cancel_on_kill:
            return
        self._stopping = asyncio.create_task(self._stop_if_killed())
        await self._until_stopped()

    async def cleanup(self) -> None:
        """Keep the log of the task open until it says what became of the execution."""
        # Before Python 3.12, Airflow's own wait for on_kill ends as soon as it is cancelled for the third time.
        await self._until_stopped()

    async def _until_stopped(self) -> None:
        # Airflow cancels again about every second until the trigger has ended. That must not interrupt this.
        while self._stopping is not None and not self._stopping.done():
            with suppress(asyncio.CancelledError):
                await asyncio.shield(self._stopping)

    async def _stop_if_killed(self) -> None:
        await _load()
        from airflow_provider_service._core.waits.poller import shared_config_for

        faults = FaultTolerance(f"execution {self.execution_id}", self.fault_tolerance, doing="Stopping")
        # Asked before each try, because a task that is cleared in the meantime resumes the execution.
        while await was_killed(self.task_instance, self.execution_id, is_again=faults.in_trouble):
            try:
                config = (await shared_config_for(self.service_conn_id)).one_try()
                stop = partial(try_to_stop, config, self.execution_id, workflow_id=self.expected_workflow_id)
                await asyncio.wrap_future(_stops[self.service_conn_id].submit(stop))
                return
            except Exception as error:  # noqa: BLE001 - FaultTolerance decides
                if not faults.tolerates(error):
                    log_failure(self.execution_id, error)
                    return
            await clock().async_sleep(faults.pause(self.poll_interval))

    async def _join_poller(self) -> tuple[Poller, Waiter]:
        await _load()
        from airflow_provider_service._core.waits.poller import Waiter, poller_of

        faults = FaultTolerance(f"connection '{self.service_conn_id}'", self.fault_tolerance)
        while True:
            try:
                poller = await poller_of(self.service_conn_id, self.poll_interval)
            except Exception as error:
                # While a secrets backend does not answer, Airflow says that there is no such connection.
                left = self.wait.seconds_left
                if not (left and faults.tolerates(error)):
                    raise
                await clock().async_sleep(min(self.poll_interval, FAULT_PAUSE_SECONDS, left))
            else:
                faults.succeeded()
                waiter = Waiter(self.wait)
                poller.join(waiter)
                return poller, waiter
