"""Fixtures for users' tests: ``pytest_plugins = ["airflow_provider_service.simulator.pytest_plugin"]``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_service.simulator import ServiceSimulator


@pytest.fixture
def service_simulator() -> Iterator[ServiceSimulator]:
    """A running, empty service for one test."""
    with ServiceSimulator() as simulator:
        yield simulator
