"""Workflows whose executions went as a test says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from airflow_provider_service.simulator import ServiceSimulator
from tests.waits.conftest import reschedules as reschedules

HOUR = 3600.0


@pytest.fixture
def simulator(simulator: ServiceSimulator, task_log: None) -> ServiceSimulator:
    """An empty service behind the default connection, and tasks whose log is seen."""
    return simulator


@pytest.fixture
def workflow(simulator: ServiceSimulator) -> Callable[..., str]:
    """``workflow("Sync", "success", "error")`` creates a workflow with executions that ended so an hour ago."""

    def create(
        name: str, *statuses: str, active: bool = True, ended: float = HOUR, took: float = 60.0, mode: str = "webhook"
    ) -> str:
        path = name.lower().replace(" ", "-")
        workflow_id = str(simulator.create_webhook_workflow(name, path=path, active=active)["id"])
        simulator.clock.shift(-ended)
        for status in statuses:
            execution = simulator.start_execution(workflow_id, status=status, age=took)
            simulator.state.executions.get(int(execution)).mode = mode  # type: ignore[union-attr]
        simulator.clock.shift(ended)
        return workflow_id

    return create
