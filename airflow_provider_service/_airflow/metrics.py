"""Report the provider's metrics, which are added to Airflow's own.

Without a metrics backend in Airflow's settings, a report does nothing.
"""

from __future__ import annotations

import re
import socket
from datetime import timedelta
from functools import cache
from typing import Any

RUNS_STARTED = "service.runs.started"
RUNS_RESUMED = "service.runs.resumed"
RUNS_IN_DOUBT = "service.runs.in_doubt"
WAITS_ACTIVE = "service.waits.active"
POLL_REQUESTS = "service.polls.requests"
POLL_DURATION = "service.polls.duration"
ROWS_INSERTED = "service.rows.inserted"
ROWS_UPDATED = "service.rows.updated"
ROWS_DELETED = "service.rows.deleted"


def count(name: str, by: int = 1) -> None:
    if by:
        _stats().incr(name, count=by)


def report_of_host(name: str, value: int) -> None:
    """Report a value of this host, whose name becomes the last part of the metric's, as in Airflow's own."""
    _stats().gauge(f"{name}.{_host()}", value)


def report_duration(name: str, seconds: float) -> None:
    # Airflow converts a timedelta to the unit of its settings; a number would be reported unchanged.
    _stats().timing(name, timedelta(seconds=seconds))


def _stats() -> Any:
    from airflow.providers.common.compat.sdk import Stats

    return Stats


@cache
def _host() -> str:
    return re.sub(r"[^\w-]", "_", socket.gethostname(), flags=re.ASCII)
