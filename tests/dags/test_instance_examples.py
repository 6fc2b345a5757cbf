"""The example DAGs that deploy workflows, run by Airflow against simulators."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest

from airflow_provider_service._core.instances.deployment_record import is_deployment_record
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.simulator import ServiceSimulator
from scripts.dag_runner import TaskRun

from .conftest import EXAMPLE_DAGS

Run = Callable[..., tuple[str, list[TaskRun]]]
NAMES = {"Airflow example: price of a product", "Airflow example: quote"}


def held(client: ServiceClient) -> dict[str, tuple[str, bool]]:
    listed = (one for one in client.workflows.list() if not is_deployment_record(one))
    return {one.name: (one.id, one.active) for one in listed}


@pytest.mark.slow
def test_deploy_folder_and_the_export_is_the_folder(run: Run, client: ServiceClient, tmp_path: Path) -> None:
    for _ in range(2):
        state, runs = run("example_service_deploy_folder", copies=str(tmp_path))
        assert state == "success", runs
        assert {name: active for name, (_, active) in held(client).items()} == dict.fromkeys(NAMES, True)
    folder = EXAMPLE_DAGS / "workflows"
    quote = "Airflow example_ quote.json"
    copy = json.loads((tmp_path / quote).read_text())
    assert copy.pop("id") == held(client)["Airflow example: quote"][0]
    assert copy == json.loads((folder / quote).read_text())


def test_deploy_folder_is_rolled_back_when_a_workflow_is_refused(
    run: Run, client: ServiceClient, simulator: ServiceSimulator, tmp_path: Path
) -> None:
    simulator.inject("status", status=400, method="POST", path="/activate$")

    state, runs = run("example_service_deploy_folder", copies=str(tmp_path))

    assert state == "failed"
    assert {one.task_id: one.tries for one in runs if one.task_id == "deploy"} == {"deploy": 1}
    assert held(client) == {}
    assert list(client.tags.list()) == []


@pytest.mark.slow
def test_weekly_backup(run: Run, client: ServiceClient, tmp_path: Path) -> None:
    assert run("example_service_deploy_folder", copies=str(tmp_path / "copies"))[0] == "success"
    before = {one.name: one.updated_at for one in client.workflows.list()}

    state, runs = run("example_service_weekly_backup", folder=str(tmp_path))

    assert state == "success", runs
    [archive] = tmp_path.glob("*.zip")
    with ZipFile(archive) as file:
        assert {f"workflows/{name.replace(':', '_')}.json" for name in NAMES} <= {*file.namelist()}
    assert "secrets of credentials" in (tmp_path / "service-backup.md").read_text()
    assert {one.name: one.updated_at for one in client.workflows.list()} == before


@pytest.mark.slow
def test_promote(
    run: Run, client: ServiceClient, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert run("example_service_deploy_folder", copies=str(tmp_path))[0] == "success"
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_STAGING", simulator.connection_json())
    with ServiceSimulator() as production:
        monkeypatch.setenv("AIRFLOW_CONN_SERVICE_PRODUCTION", production.connection_json())
        with ServiceClient(ServiceConfig(base_url=production.base_url, api_key=production.api_key)) as there:
            state, runs = run("example_service_promote", most=1)
            assert (state, held(there)) == ("failed", {})

            state, runs = run("example_service_promote")

            assert state == "success", runs
            assert {name: active for name, (_, active) in held(there).items()} == dict.fromkeys(NAMES, True)
            [quote] = there.workflows.list(name="Airflow example: quote")
            called = (quote.nodes or [])[1]["parameters"]["workflowId"]["value"]
            assert called == held(there)["Airflow example: price of a product"][0]
            assert called not in {workflow_id for workflow_id, _ in held(client).values()}
