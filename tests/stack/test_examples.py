"""Every example DAG, run by Airflow as users run it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client._lookup import find_data_table

from . import needs
from .airflow_api import AirflowApi
from .conftest import ROOT
from .deployment import Deployment
from .figures import FIGURES
from .simulated import SimulatedService

SECONDS = 400
ENDS = {
    "example_service_first": "success",
    "example_service_activate_and_wait": "success",
    "example_service_run_and_wait": "success",
    "example_service_fan_out": "success",
    "example_service_health_check": "success",
    "example_service_nightly": "success",
    "example_service_sub_workflow": "success",
    "example_service_taskflow": "success",
    "example_service_approval": "success",
    "example_service_send_file": "success",
    "example_service_upsert_rows": "success",
    "example_service_main_job": "success",
    "example_service_nightly_audit": "success",
    "example_service_audit_report": "success",
    "example_service_housekeeping": "success",
    "example_service_desired_state": "success",
    "example_service_query_to_table": "success",
    "example_service_deploy_folder": "success",
    "example_service_asset_event": "success",
    "example_service_alert": "failed",
}
PARTS = 5
#: They need what others have made.
AFTERWARDS = {
    "example_service_export_table": "success",
    "example_service_table_to_parquet": "success",
    "example_service_wait_for_rows": "success",
    "example_service_promote": "success",
    "example_service_weekly_backup": "success",
}


def test_there_is_an_end_for_every_example() -> None:
    files = {file.stem for file in (ROOT / "example_dags").glob("example_*.py")}
    assert files == {*ENDS, *AFTERWARDS}


@pytest.mark.smoke
def test_processes_use_the_wheel(deployment: Deployment) -> None:
    [provider] = [line for line in deployment.airflow("providers", "list").splitlines() if "-provider-service " in line]
    assert "airflow-provider-service" in provider
    assert str(ROOT / "airflow_provider_service") not in deployment.airflow("info")


@pytest.mark.usefixtures("nightly_sync")
def test_every_example_ends_as_it_says(
    deployment: Deployment, service: SimulatedService, client: ServiceClient, tmp_path: Path
) -> None:
    api = deployment.api
    service.has_no_audit_findings()
    confs = needs.meet(client, api, deployment.database, tmp_path)
    before = executions_by_workflow(client)

    ends, runs = run_all(api, confs)

    assert ends == ENDS
    assert api.task_states("example_service_alert", runs["example_service_alert"])["load"] == {"failed"}
    assert executions_by_workflow(client) - before == {
        ("Nightly sync", "success"): 1,
        ("Airflow example: activate and wait", "success"): 1,
        ("Airflow example: run and wait", "success"): 1,
        ("Airflow example: main job", "success"): 1,
        ("Airflow example: fan out", "success"): PARTS,
        ("Airflow example: alert", "success"): 1,
        ("Nightly inventory", "success"): 1,
        ("Approve an order", "success"): 1,
        ("Airflow example: sub-workflow", "success"): 1,
        ("Sync region", "success"): 2,
        ("Book invoice", "success"): 1,
    }
    assert count_rows(client, "airflow_example_orders") == 15
    assert count_rows(client, "airflow_example_stock") == 100
    assert count_rows(client, "airflow_example_sales") == 30
    FIGURES.add("example DAGs that ended as they say", len(ends))


def test_what_examples_made_is_taken_further_by_others(
    api: AirflowApi, service: SimulatedService, tmp_path: Path
) -> None:
    confs = {name: {"folder": str(tmp_path)} for name in AFTERWARDS if name != "example_service_promote"}
    with SimulatedService() as production, production.client() as there:
        api.set_connection({**service.connection(), "connection_id": "service_staging"})
        api.set_connection({**production.connection(), "connection_id": "service_production"})

        ends, runs = run_all(api, confs, AFTERWARDS)

        assert ends == AFTERWARDS
        assert {one.name: one.active for one in there.workflows.list()} == {
            "Airflow example: price of a product": True,
            "Airflow example: quote": True,
        }
    assert len((tmp_path / "airflow_example_orders.csv").read_text().splitlines()) == 16
    assert api.xcom("example_service_export_table", runs["example_service_export_table"], "count_lines") == 16
    assert api.xcom("example_service_table_to_parquet", runs["example_service_table_to_parquet"], "count_rows") == 15
    assert len(list(tmp_path.glob("service-*.zip"))) == 1
    FIGURES.add("example DAGs that ended as they say", len(ends))


def run_all(
    api: AirflowApi, confs: Mapping[str, dict[str, Any]] = MappingProxyType({}), dag_ids: Iterable[str] = ENDS
) -> tuple[dict[str, str], dict[str, str]]:
    """Run the examples side by side; how the run of each has ended, and its id.

    :param confs: configuration of the runs of some DAGs.
    :param dag_ids: the examples.
    """
    confs = {"example_service_fan_out": {"parts": PARTS}, **confs}
    runs = {}
    for dag_id in dag_ids:
        api.unpause(dag_id)
        runs[dag_id] = api.trigger(dag_id, confs.get(dag_id))
    ends = {dag_id: api.wait_for_run(dag_id, run_id, seconds=SECONDS) for dag_id, run_id in runs.items()}
    return ends, runs


def executions_by_workflow(client: ServiceClient) -> Counter[tuple[str, str]]:
    """How many executions the service holds, by the name of their workflow and their status.

    Those of the bridge do not count: it is called again if the workflow that it starts has only just been activated.
    """
    names = {one.id: one.name for one in client.workflows.list() if one.name != "Airflow bridge"}
    listed = client.executions.list()
    return Counter((names[one.workflow_id], one.status) for one in listed if one.workflow_id in names)


def count_rows(client: ServiceClient, name: str) -> int:
    table = find_data_table(client, name)
    assert table is not None
    return sum(1 for _ in client.data_table_rows.list(table.id))
