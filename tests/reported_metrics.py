"""What is reported to Airflow's metrics, in place of a server that collects them."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import Stats


class ReportedMetrics:
    """A backend of Airflow's metrics that keeps what it is given."""

    def __init__(self) -> None:
        self.counters: Counter[str] = Counter()
        self.gauges: defaultdict[str, list[int]] = defaultdict(list)
        self.durations: defaultdict[str, list[timedelta]] = defaultdict(list)

    def incr(self, stat: str, count: int = 1, rate: float = 1, **_: Any) -> None:
        self.counters[stat] += count

    def gauge(self, stat: str, value: int, *_: Any, **__: Any) -> None:
        self.gauges[stat].append(value)

    def timing(self, stat: str, dt: timedelta, **_: Any) -> None:
        self.durations[stat].append(dt)


@contextmanager
def reported(monkeypatch: pytest.MonkeyPatch) -> Iterator[ReportedMetrics]:
    """Make Airflow report its metrics here."""
    backend = ReportedMetrics()
    if hasattr(Stats, "initialize") and not hasattr(type(Stats), "__getattr__"):  # Airflow 3.3
        from airflow.sdk.observability.metrics.stats_utils import get_stats_factory

        Stats.initialize(factory=lambda: backend, export_legacy_names=False)
        yield backend
        Stats.initialize(factory=get_stats_factory(), export_legacy_names=False)
    else:
        monkeypatch.setattr(Stats, "_instance_pid", os.getpid(), raising=False)
        monkeypatch.setattr(Stats, "instance", backend)
        yield backend
