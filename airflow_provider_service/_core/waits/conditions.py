"""Wait for a condition that no event announces, which a sensor polls in the worker or in the triggerer."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from airflow_provider_service._core.waits.outcome import Outcome, Verdict, settle
from airflow_provider_service._core.waits.watch import FaultTolerance
from airflow_provider_service.client.errors import ServiceError

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceClient, ServiceConfig

log = logging.getLogger(__name__)


class PollResult(NamedTuple):
    is_met: bool
    message: str
    result: dict[str, Any]


class Check(Protocol):
    """A condition to poll. It holds only values that a trigger may store."""

    @property
    def subject(self) -> str:
        """What is read, for messages."""

    @property
    def unmet(self) -> str:
        """The beginning of a sentence which says that the condition was not met."""

    def poll(self, client: ServiceClient) -> PollResult:
        """Poll once."""

    def to_arguments(self) -> dict[str, Any]:
        """Return the arguments of the sensor and the trigger that describe the condition."""


@dataclass(frozen=True)
class PollOutcome:
    """How a wait ended, or what its latest poll saw. It travels in trigger events."""

    verdict: Literal["met", "unmet", "timed_out", "unreadable"]
    message: str
    result: dict[str, Any] | None = None
    #: If nothing could be read: whether a retry of the task is pointless.
    final: bool = False

    def to_event(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_event(cls, event: Any) -> PollOutcome:
        """Read a trigger event; one of an unknown shape counts as ``"unreadable"``."""
        if isinstance(event, dict) and event.keys() == {field.name for field in fields(cls)}:
            return cls(**event)
        return cls("unreadable", "the trigger sent an event of an unknown shape")

    def settle(self, *, soft_fail: bool, never_fail: bool) -> dict[str, Any]:
        if self.verdict == "met" and self.result is not None:
            log.info("%s", self.message)
            return self.result
        verdict: Verdict = "timed_out" if self.verdict == "timed_out" else "unobservable"
        outcome = Outcome("", verdict, self.message, final=self.final)
        return settle(outcome, soft_fail=soft_fail, never_fail=never_fail)


def unreadable(subject: str, error: Exception) -> PollOutcome:
    final = isinstance(error, ServiceError) and error.final
    return PollOutcome("unreadable", f"{subject} could not be read: {error}", final=final)


def answer_to(check: Check, config: ServiceConfig, seconds_left: float) -> PollResult | ServiceError:
    """Poll once, and return the result or the fault. Requests are not retried beyond the deadline."""
    from airflow_provider_service.client import ServiceClient

    limits = {"retry_deadline": min(config.retry_deadline, seconds_left)}
    try:
        with ServiceClient(config.model_copy(update=limits)) as client:
            return check.poll(client)
    except ServiceError as error:
        return error


class PollWatch:
    def __init__(self, check: Check, timeout: float, fault_tolerance: float) -> None:
        self._check, self._timeout = check, timeout
        self._faults = FaultTolerance(check.subject, fault_tolerance)
        self._last_message = "nothing was read"

    def pause(self, interval: float) -> float:
        return self._faults.pause(interval) if self._faults.in_trouble else interval

    def poll(self, config: ServiceConfig, seconds_left: float) -> PollOutcome | None:
        """Poll once; None if the poll failed and that is tolerated."""
        return self.judge(answer_to(self._check, config, seconds_left))

    def judge(self, result: PollResult | Exception) -> PollOutcome | None:
        if isinstance(result, Exception):
            return None if self._faults.tolerates(result) else unreadable(self._check.subject, result)
        self._faults.succeeded()
        self._last_message = result.message
        return PollOutcome("met" if result.is_met else "unmet", result.message, result.result)

    def timed_out(self) -> PollOutcome:
        """The outcome of a wait whose deadline has passed. After a failed poll, the condition may be met or not."""
        error = self._faults.last_error
        if error is not None:
            return unreadable(f"when the deadline passed, {self._check.subject}", error)
        return PollOutcome("timed_out", f"{self._check.unmet} within {self._timeout:g} s: {self._last_message}")
