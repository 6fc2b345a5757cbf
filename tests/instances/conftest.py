"""Workflows that name each other and more, deployed to simulators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_service._core.instances.apply import apply_plan
from airflow_provider_service._core.instances.export import ExportSelection, exported, write_folder
from airflow_provider_service._core.instances.plan import DeploymentTarget, make_plan
from airflow_provider_service._core.instances.source import read_source
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.simulator import ServiceSimulator
from tests.operators.conftest import execute, link, task_instance, writes

__all__ = ["execute", "link", "task_instance", "writes"]

Deploy = Callable[..., dict[str, list[str]]]


@pytest.fixture(scope="session")
def running_second() -> Iterator[ServiceSimulator]:
    with ServiceSimulator() as simulator:
        yield simulator


@pytest.fixture
def second(running_second: ServiceSimulator, monkeypatch: pytest.MonkeyPatch) -> ServiceSimulator:
    """Another empty service, behind the connection ``production``."""
    running_second.reset()
    monkeypatch.setenv("AIRFLOW_CONN_PRODUCTION", running_second.connection_json())
    return running_second


@pytest.fixture
def second_client(second: ServiceSimulator) -> Iterator[ServiceClient]:
    with ServiceClient(ServiceConfig(base_url=second.base_url, api_key=second.api_key)) as one:
        yield one


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where a backup is written."""
    return str(tmp_path / "backup.zip")


@pytest.fixture
def deploy(client: ServiceClient) -> Deploy:
    """``deploy(source)`` deploys, and returns the names of the workflows by what happened to them, where any."""

    def run(
        source: Any,
        *,
        to: ServiceClient = client,
        deployment_name: str | None = None,
        archive_missing: bool = False,
        **options: Any,
    ) -> dict[str, list[str]]:
        target = DeploymentTarget(to, deployment_name=deployment_name, archive_missing=archive_missing)
        plan = make_plan(read_source(source), target, **options)
        apply_plan(plan, target)
        return {action: names for action, names in plan.by_action().items() if names}

    return run


@pytest.fixture
def files(client: ServiceClient, tmp_path: Path) -> Callable[..., dict[str, str]]:
    """``files()`` exports everything, and returns the content of the files by their path."""

    def export(of: ServiceClient = client, folder: str = "export", **options: bool) -> dict[str, str]:
        root = tmp_path / folder
        write_folder(str(root), exported(of, ExportSelection()), **options)
        found = (path for path in root.rglob("*") if path.is_file())
        return {str(path.relative_to(root)): path.read_text() for path in found}

    return export


def moments(simulator: ServiceSimulator) -> list[int]:
    """After how many of its requests a service has been changed, all but the last time."""
    return [number for number, one in enumerate(simulator.requests, start=1) if one.method != "GET"][:-1]
