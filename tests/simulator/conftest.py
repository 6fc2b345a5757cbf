"""Features that only the simulator has: its clock, faults, engine, license and setup.

Behaviour that it shares with the real servers is tested once for all of them in ``tests/conformance``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_provider_service.simulator import ServiceSimulator

from .api_client import Api


@pytest.fixture
def connect() -> Iterator[Callable[..., Api]]:
    """``connect(simulator, key=None)`` makes a helper that is closed after the test."""
    made: list[Api] = []

    def make(simulator: ServiceSimulator, key: str | None = None) -> Api:
        made.append(Api(simulator, key))
        return made[-1]

    yield make
    for api in made:
        api.session.close()


@pytest.fixture
def api(simulator: ServiceSimulator, connect: Callable[..., Api]) -> Api:
    """The empty service's API, with a key that may do everything."""
    return connect(simulator)


@pytest.fixture
def build(connect: Callable[..., Api]) -> Iterator[Callable[..., Api]]:
    """``build(**settings)`` starts a simulator with other settings and returns its API."""
    started: list[ServiceSimulator] = []

    def make(**settings: Any) -> Api:
        started.append(ServiceSimulator(**settings).start())
        return connect(started[-1])

    yield make
    for simulator in started:
        simulator.stop()
