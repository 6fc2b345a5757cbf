"""How long a wait goes on although its polls fail."""

from __future__ import annotations

from airflow_provider_service.client.clock import clock
from airflow_provider_service.client.errors import ServiceError

MIN_FAILURES = 3


class FaultTolerance:
    """Tolerates failed polls until they have failed both ``MIN_FAILURES`` times in a row and for some seconds.

    A refused key or request is no fault that passes, and is not tolerated at all.

    :param seconds: for how long polls may keep failing.
    """

    __slots__ = ("_failing_since", "_failures", "_seconds")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._failures, self._failing_since = 0, 0.0

    @property
    def in_trouble(self) -> bool:
        """Whether the last poll failed."""
        return self._failures > 0

    def succeeded(self) -> None:
        """Record a poll that succeeded."""
        self._failures = 0

    def tolerates(self, error: Exception) -> bool:
        """Record a failed poll, and return whether the wait goes on."""
        now = clock().monotonic()
        if not self._failures:
            self._failing_since = now
        self._failures += 1
        if isinstance(error, ServiceError) and error.ends_wait:
            return False
        return self._failures < MIN_FAILURES or now - self._failing_since < self._seconds
