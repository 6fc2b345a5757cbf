"""Repeated checks of the health of workflows: what a sensor does in the worker and in the triggerer."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from airflow_provider_service.client.errors import ServiceError
from airflow_provider_service.waits.clock import clock
from airflow_provider_service.waits.outcome import Outcome, settle
from airflow_provider_service.waits.watch import is_too_much

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceConfig
    from airflow_provider_service.health.check import HealthCheck

log = logging.getLogger(__name__)

# Pause after a check that could not be made, if the interval is longer.
FAULT_PAUSE_SECONDS = 10.0


@dataclass(frozen=True)
class HealthOutcome:
    """How a wait for healthy workflows ended, or what its latest look saw. It travels in trigger events.

    :param verdict: ``"healthy"``, ``"unhealthy"``, ``"timed_out"`` or ``"unreadable"``.
    :param message: one line for the task's log.
    :param health: the figures, as a task returns them, if they could be read.
    :param final: of figures that cannot be read: whether trying the task again is pointless.
    """

    verdict: str
    message: str
    health: dict[str, Any] | None = None
    final: bool = False

    def to_event(self) -> dict[str, Any]:
        """The outcome as the payload of a trigger event."""
        return asdict(self)

    @classmethod
    def from_event(cls, event: Any) -> HealthOutcome:
        """Read a trigger event; one of another shape counts as figures that cannot be read."""
        if isinstance(event, dict) and event.keys() == {field.name for field in fields(cls)}:
            return cls(**event)
        return cls("unreadable", "the trigger sent an event of an unknown shape")

    def settle(self, *, soft_fail: bool, never_fail: bool) -> dict[str, Any]:
        """End a task that waits as the outcome says.

        :param soft_fail: skip instead of failing when the workflows were not healthy in time.
        :param never_fail: skip instead of failing, whatever happened.
        :returns: what the task returns when the workflows are healthy.
        """
        if self.verdict == "healthy" and self.health is not None:
            log.info("Workflow health: %s", self.message)
            return self.health
        return settle(
            Outcome("", "timed_out" if self.verdict == "timed_out" else "unobservable", self.message, final=self.final),
            soft_fail=soft_fail,
            never_fail=never_fail,
        )


def unreadable(error: Exception) -> HealthOutcome:
    """The outcome of a wait whose figures cannot be read."""
    final = isinstance(error, ServiceError) and error.final
    return HealthOutcome("unreadable", f"the health of workflows could not be read: {error}", final=final)


class HealthWatch:
    """Looks at the health of workflows, again and again, and tolerates faults for a while.

    :param check: what to read and how to judge it.
    :param timeout: seconds that the wait takes at most, for its message.
    :param fault_tolerance: seconds for which looking may keep failing.
    """

    def __init__(self, check: HealthCheck, timeout: float, fault_tolerance: float) -> None:
        self._check, self._timeout, self._fault_tolerance = check, timeout, fault_tolerance
        self._failures, self._failing_since = 0, 0.0
        self._last_message = "they were not read"

    @property
    def in_trouble(self) -> bool:
        """Whether the last look failed."""
        return self._failures > 0

    def pause(self, interval: float) -> float:
        """Seconds until the next look."""
        return min(interval, FAULT_PAUSE_SECONDS) if self.in_trouble else interval

    def look(self, config: ServiceConfig) -> HealthOutcome | None:
        """Check once; None if that failed and is tolerated. The call blocks."""
        from airflow_provider_service.client import ServiceClient
        from airflow_provider_service.health.reading import perform

        try:
            with ServiceClient(config) as client:
                health = perform(self._check, client)
        except ServiceError as error:
            return self._failed(error)
        self._failures, self._last_message = 0, health.message
        return HealthOutcome("healthy" if health.is_healthy else "unhealthy", health.message, health.to_xcom())

    def _failed(self, error: ServiceError) -> HealthOutcome | None:
        log.warning("The health of workflows could not be read: %s", error)
        now = clock().monotonic()
        if not self._failures:
            self._failing_since = now
        self._failures += 1
        if error.ends_wait or is_too_much(self._failures, now - self._failing_since, self._fault_tolerance):
            return unreadable(error)
        return None

    def timed_out(self) -> HealthOutcome:
        """The outcome of a wait whose deadline has passed."""
        message = f"the workflows were not healthy within {self._timeout:g} s: {self._last_message}"
        return HealthOutcome("timed_out", message)
