"""Tolerate failing polls of a wait for some time, and log them."""

from __future__ import annotations

import logging
import math

from airflow_provider_service._airflow.task_arguments import FAULT_PAUSE_SECONDS
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client.errors import ServiceError

log = logging.getLogger(__name__)

MIN_FAILURES = 3
# The longest pause between two polls that the service can ask for.
MAX_ASKED_SECONDS = 60.0
# How long a page of a list is requested again while the service answers others: shorter than the patience with a list.
PAGE_RETRY_SECONDS = 4.0


class FaultTolerance:
    """Tolerates failed polls until they have failed both ``MIN_FAILURES`` times in a row and for some seconds.

    A refused key or request is not temporary, and is not tolerated at all. The log gets one line when polls
    begin to fail, and one when they work again.

    :param subject: what is read, for messages.
    :param seconds: for how long polls may keep failing; None tolerates any fault for as long as it lasts.
    :param doing: what fails, for messages: the subject is read, or something else is done to it.
    """

    __slots__ = ("_doing", "_failing_since", "_failures", "_is_logged", "_next", "_seconds", "_subject", "last_error")

    def __init__(self, subject: str, seconds: float | None, *, doing: str = "Reading") -> None:
        self._subject, self._seconds, self._doing = subject, seconds, doing
        self._failures, self._failing_since, self._is_logged, self._next = 0, 0.0, False, 0.0
        #: The failure of the last poll; None if it succeeded.
        self.last_error: Exception | None = None

    @property
    def in_trouble(self) -> bool:
        """Whether the last poll failed."""
        return self.last_error is not None

    @property
    def asked_pause(self) -> float:
        """Seconds for which the service asks not to be polled, but at most ``MAX_ASKED_SECONDS``; 0 if polls work."""
        return max(0.0, self._next - clock().monotonic()) if self.in_trouble else 0.0

    def pause(self, interval: float) -> float:
        """Seconds until the next poll after one that failed."""
        return max(min(interval, FAULT_PAUSE_SECONDS), self.asked_pause)

    def succeeded(self) -> None:
        """Record a poll that succeeded."""
        if self._is_logged:
            seconds = clock().monotonic() - self._failing_since
            log.info("%s %s works again, after %.0f s", self._doing, self._subject, seconds)
        self._failures, self._is_logged, self.last_error = 0, False, None

    def tolerates(self, error: Exception, *, is_quiet: bool = False, others_succeeded_at: float = -math.inf) -> bool:
        """Record a failed poll, and return whether the wait goes on.

        :param is_quiet: whether a first failure is not logged yet, because the subject is read in another way at once,
            or not read again.
        :param others_succeeded_at: when the service last answered requests for something else. If it has done so since
            polls began to fail, it is not away, and they count as failing only from now on.
        """
        now = clock().monotonic()
        self._next = now + min(getattr(error, "retry_after", None) or 0.0, MAX_ASKED_SECONDS)
        if not self._failures or others_succeeded_at > self._failing_since:
            self._failures, self._failing_since = 0, now
        self._failures, self.last_error = self._failures + 1, error
        goes_on = self._goes_on(error, now)
        if goes_on and not self._is_logged and (self._failures > 1 or not is_quiet):
            self._is_logged = True
            self._log_beginning(error)
        return goes_on

    def _goes_on(self, error: Exception, now: float) -> bool:
        if self._seconds is None:
            return True
        if isinstance(error, ServiceError) and error.ends_wait:
            return False
        return self._failures < MIN_FAILURES or now - self._failing_since < self._seconds

    def _log_beginning(self, error: Exception) -> None:
        so = "trying again until it works" if self._seconds is None else f"this is tolerated for {self._seconds:g} s"
        unexpected = None if isinstance(error, ServiceError) else error
        log.warning("%s %s fails; %s: %s", self._doing, self._subject, so, error, exc_info=unexpected)
