"""Waits against a simulator, as Airflow drives them."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import BaseSensorOperator

from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing._passing_time import PassingTime
from tests.airflow_features import AIRFLOW
from tests.polling import wait_until

from .driving import TaskInstance
from .polls import CONNECTION, poller_threads


@pytest.fixture
def simulator(simulator: ServiceSimulator, task_log: None) -> ServiceSimulator:
    """An empty service behind the default connection, and tasks whose log is seen."""
    return simulator


@pytest.fixture
def workflow_id(simulator: ServiceSimulator) -> str:
    """A workflow that runs for a minute."""
    workflow = simulator.create_webhook_workflow(path="w", behaviour="long", seconds=60, respond_with_id=True)
    return str(workflow["id"])


@pytest.fixture
def no_socket_times_out(simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sockets go by the system's clock, by which a test of a second takes minutes on a busy machine."""
    monkeypatch.setenv(CONNECTION, json.dumps({**json.loads(os.environ[CONNECTION]), "extra": {"timeout": 3600}}))


@pytest.fixture(autouse=True)
def reschedules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Airflow 2.11 know when a task was first rescheduled: it asks its database, others ask the task instance."""
    if AIRFLOW.startswith("2."):
        monkeypatch.setattr(
            "airflow.sensors.base._orig_start_date", lambda *_, **__: TaskInstance.latest.first_reschedule
        )


@pytest.fixture(autouse=True)
def no_real_time(virtual_time: PassingTime | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here waits in real time, unless it is marked; Airflow's sensors go by the clock of the test, too."""
    if virtual_time is not None:
        of_sensors: Any = sys.modules[BaseSensorOperator.__module__]
        monkeypatch.setattr(of_sensors, "time", virtual_time)
        monkeypatch.setattr(of_sensors.timezone, "utcnow", virtual_time.utcnow)


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_open() -> Iterator[None]:
    """An open socket that is found afterwards fails the last test as a ResourceWarning."""
    yield
    gc.collect()


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """After each test the pollers' threads have ended."""
    yield
    wait_until(lambda: not poller_threads(), seconds=60, what="the threads to end", interval=0.01)
