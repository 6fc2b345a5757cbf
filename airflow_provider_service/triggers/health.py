"""The trigger that waits until workflows are healthy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from importlib import import_module
from typing import Any
from weakref import WeakKeyDictionary

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_service.arguments import read_seconds
from airflow_provider_service.daemon_threads import in_daemon_thread
from airflow_provider_service.health.check import DAY, LOOK_SECONDS, HealthCheck
from airflow_provider_service.health.look import HealthOutcome, HealthWatch, unreadable
from airflow_provider_service.task_arguments import FAULT_TOLERANCE_SECONDS
from airflow_provider_service.waits.clock import clock

# What a look may take that begins at the deadline.
LAST_LOOK_SECONDS = 30.0
# Looks at a time in one triggerer: each occupies a thread and reads pages of executions.
LOOKS_AT_A_TIME = 5

_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


class ServiceWorkflowHealthTrigger(BaseTrigger):
    """Fires once, when no threshold is breached, when the figures cannot be read, or when the deadline has passed.

    The event is ``{"verdict", "message", "health", "final"}``. The verdict is ``"healthy"``, ``"timed_out"`` or
    ``"unreadable"``; ``health`` holds the figures as the task returns them, and ``final`` says whether trying again is
    pointless. The choice of workflows and the thresholds are those of ``ServiceWorkflowHealthSensor``; thresholds that
    are None, the default of each, are not checked.

    :param service_conn_id: Airflow connection of type ``service``.
    :param deadline: Unix time, in seconds, at which the wait ends; it stays the same if the triggerer restarts.
    :param timeout: seconds, or a timedelta, from the beginning of the wait to the deadline, for messages.
    :param poll_interval: seconds, or a timedelta, between two checks; 300 seconds by default.
    :param fault_tolerance: seconds, or a timedelta, for which checks may keep failing; 300 seconds by default.
    :param workflow_id: id of the workflow; give a workflow, a tag, a project, or ``all_workflows=True``.
    :param workflow_name: exact name of the workflow, instead of its id.
    :param tag_id: id of a tag.
    :param tag_name: exact name of the tag, instead of its id.
    :param project_id: id of a project.
    :param project_name: exact name of the project, instead of its id.
    :param all_workflows: True for the workflows of every project; False by default.
    :param window: seconds, or a timedelta, before now; 24 hours by default.
    :param max_failure_rate: highest share of the runs that may have failed, from 0 to 1.
    :param max_age_of_success: seconds, or a timedelta, since the end of the last success.
    :param min_runs: lowest number of runs that succeeded or failed.
    :param max_duration_median: highest median of the duration, in seconds, or a timedelta.
    :param max_duration_p95: highest 95th percentile of the duration, in seconds, or a timedelta.
    :raises ServiceInputError: an argument is invalid.
    """

    def __init__(
        self,
        *,
        service_conn_id: str,
        deadline: float,
        timeout: float | timedelta,
        poll_interval: float | timedelta = LOOK_SECONDS,
        fault_tolerance: float | timedelta = FAULT_TOLERANCE_SECONDS,
        workflow_id: str | None = None,
        workflow_name: str | None = None,
        tag_id: str | None = None,
        tag_name: str | None = None,
        project_id: str | None = None,
        project_name: str | None = None,
        all_workflows: bool = False,
        window: float | timedelta = DAY,
        max_failure_rate: float | None = None,
        max_age_of_success: float | timedelta | None = None,
        min_runs: int | None = None,
        max_duration_median: float | timedelta | None = None,
        max_duration_p95: float | timedelta | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.service_conn_id = service_conn_id
        self.deadline = deadline
        self.timeout = read_seconds("timeout", timeout, or_zero=True)
        self.poll_interval = read_seconds("poll_interval", poll_interval, or_zero=True)
        self.fault_tolerance = read_seconds("fault_tolerance", fault_tolerance, or_zero=True)
        self.check = HealthCheck.of_values(
            workflow_id=workflow_id,
            workflow_name=workflow_name,
            tag_id=tag_id,
            tag_name=tag_name,
            project_id=project_id,
            project_name=project_name,
            all_workflows=all_workflows,
            window=window,
            max_failure_rate=max_failure_rate,
            max_age_of_success=max_age_of_success,
            min_runs=min_runs,
            max_duration_median=max_duration_median,
            max_duration_p95=max_duration_p95,
        )

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
        try:
            outcome = await self._wait()
        except Exception as error:
            # If a trigger dies, the task fails with an unreadable message; this event says what happened.
            self.log.exception("The wait for healthy workflows failed")
            outcome = unreadable(error)
        yield TriggerEvent(outcome.to_event())

    async def _wait(self) -> HealthOutcome:
        watch = HealthWatch(self.check, self.timeout, self.fault_tolerance)
        while True:
            # The worker has looked before it deferred the task.
            await clock().sleep(min(watch.pause(self.poll_interval), self._seconds_left), self.deadline)
            outcome = await self._look(watch)
            if outcome and outcome.verdict != "unhealthy":
                return outcome
            if not self._seconds_left:
                return watch.timed_out()
            self.log.info("Still waiting: %s", outcome.message if outcome else "the figures could not be read")

    async def _look(self, watch: HealthWatch) -> HealthOutcome | None:
        # Loaded in a thread: it takes a third of a second, which would stall the event loop.
        connection = await in_daemon_thread(import_module, "airflow_provider_service.connection")

        async def look() -> HealthOutcome | None:
            async with _turn():
                # The connection is read again each time, so that a changed key is picked up.
                config = await connection.config_for(self.service_conn_id)
                return await in_daemon_thread(watch.look, config, name="service-health")

        try:
            return await asyncio.wait_for(look(), max(self._seconds_left, LAST_LOOK_SECONDS))
        except asyncio.TimeoutError:
            return None

    @property
    def _seconds_left(self) -> float:
        return max(self.deadline - clock().now(), 0.0)


def _turn() -> asyncio.Semaphore:
    return _turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(LOOKS_AT_A_TIME))
