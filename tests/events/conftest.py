"""Watchers of a simulator."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from airflow_provider_service.simulator import ServiceSimulator


@pytest.fixture(autouse=True)
def no_real_time(virtual_time: object) -> None:
    """Nothing here waits in real time, unless it is marked."""


@pytest.fixture
def workflow_id(simulator: ServiceSimulator) -> str:
    """A workflow that runs for a minute."""
    return str(simulator.create_webhook_workflow(path="w", behaviour="long", seconds=60)["id"])


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_open() -> Iterator[None]:
    """An open socket that is found afterwards fails the last test as a ResourceWarning."""
    yield
    gc.collect()
