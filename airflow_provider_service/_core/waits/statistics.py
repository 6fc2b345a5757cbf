"""Statistics of polling for Airflow's metrics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_provider_service._airflow import metrics
from airflow_provider_service.client._clock import clock

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceClient


class PollStatistics:
    """Reports the requests that a client sends for polls, and how long polls last.

    :param client: sends nothing else.
    """

    def __init__(self, client: ServiceClient) -> None:
        self._transport, self._reported = client.transport, 0

    @contextmanager
    def poll(self) -> Iterator[None]:
        """Report one poll, and the requests since the one before."""
        began = clock().monotonic()
        try:
            yield
        finally:
            metrics.report_duration(metrics.POLL_DURATION, clock().monotonic() - began)
            sent = self._transport.requests_sent
            metrics.count(metrics.POLL_REQUESTS, sent - self._reported)
            self._reported = sent
