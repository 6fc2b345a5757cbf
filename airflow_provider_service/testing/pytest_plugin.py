"""Fixtures for users' tests: ``pytest_plugins = ["airflow_provider_service.testing.pytest_plugin"]``."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing._passing_time import time_passes_at
from airflow_provider_service.testing._service import SimulatedService

__all__ = ["service", "service_conn_id", "service_connection", "service_simulator"]


@pytest.fixture
def service_simulator() -> Iterator[ServiceSimulator]:
    """A running, empty service for one test, to which no connection leads."""
    with ServiceSimulator() as simulator:
        yield simulator


@pytest.fixture
def service_conn_id() -> str:
    """Id of the connection that leads to the simulated service; override this fixture to choose another."""
    return "service_default"


@pytest.fixture
def service_connection(
    service_simulator: ServiceSimulator, service_conn_id: str, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Id of the Airflow connection to the simulated service and its MCP endpoint, set in the test's environment."""
    fields = json.loads(service_simulator.connection_json())
    extra = {"mcp_api_key": service_simulator.mcp_api_key}
    monkeypatch.setenv(f"AIRFLOW_CONN_{service_conn_id.upper()}", json.dumps({**fields, "extra": extra}))
    return service_conn_id


@pytest.fixture
def service(service_simulator: ServiceSimulator, service_connection: str) -> Iterator[SimulatedService]:
    """A simulated service behind the connection, for one test. Waits for its executions take no time."""
    with time_passes_at(service_simulator):
        yield SimulatedService(service_simulator, service_connection)
