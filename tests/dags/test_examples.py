"""Every example DAG runs and has its documented effect on the service."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import parquet

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client._execution_data import last_output
from airflow_provider_service.client._lookup import find_data_table, find_workflow
from airflow_provider_service.client.errors import ServiceNotFoundError
from airflow_provider_service.simulator import ServiceSimulator
from scripts.dag_runner import TaskRun
from tests.shop import CONNECTION, SALES, shop

from .conftest import EXAMPLE_DAGS

DAY = 86_400.0

Run = Callable[..., tuple[str, list[TaskRun]]]


def states(runs: list[TaskRun]) -> dict[str, set[str]]:
    """The states of each task, over its mapped instances."""
    found: dict[str, set[str]] = {}
    for one in runs:
        found.setdefault(one.task_id, set()).add(one.state)
    return found


def test_first_with_a_host_and_a_key(
    run: Run, simulator: ServiceSimulator, client: ServiceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = simulator.base_url.removeprefix("http://")
    monkeypatch.delenv("AIRFLOW_CONN_SERVICE_DEFAULT")
    monkeypatch.setenv("AIRFLOW_CONN_N8N_DEFAULT", f"n8n://http://:{simulator.api_key}@{address}")
    simulator.create_webhook_workflow("Nightly sync", path="nightly")

    state, runs = run("example_service_first")

    assert state == "success", runs
    [execution] = client.executions.list(include_data=True)
    assert execution.status == "success"
    [call] = [one for one in simulator.requests if one.path == "/webhook/nightly"]
    assert call.body["requested_by"].startswith("manual__")


@pytest.mark.slow
def test_activate_and_wait(run: Run, client: ServiceClient) -> None:
    state, runs = run("example_service_activate_and_wait")

    assert state == "success", runs
    workflow = find_workflow(client, "Airflow example: activate and wait")
    assert workflow is not None
    assert workflow.active
    assert [one.status for one in client.executions.list(workflow_id=workflow.id)] == ["success"]


@pytest.mark.slow
def test_activate_and_wait_again_changes_nothing_else(run: Run, client: ServiceClient) -> None:
    assert run("example_service_activate_and_wait")[0] == "success"
    workflow = find_workflow(client, "Airflow example: activate and wait")
    assert workflow is not None
    execution = next(client.executions.list(workflow_id=workflow.id))
    client.executions.delete(execution.id)

    # The same DAG again makes an execution of its own, and changes nothing else.
    state, _ = run("example_service_activate_and_wait")

    assert state == "success"
    assert len(list(client.executions.list(workflow_id=workflow.id))) == 1
    assert len(list(client.workflows.list())) == 1


@pytest.mark.slow
def test_upsert_rows_from_mapped_tasks_twice(run: Run, client: ServiceClient) -> None:
    for _ in range(2):
        state, runs = run("example_service_upsert_rows")
        assert state == "success", runs
        assert {one.map_index for one in runs if one.task_id == "upsert"} == {0, 1, 2}

        table = find_data_table(client, "airflow_example_orders")
        assert table is not None
        rows = list(client.data_table_rows.list(table.id))
        assert len(rows) == 15
        assert {row["region"] for row in rows} == {"north", "south", "west"}


def test_nightly_audit_passes_without_risks(run: Run, simulator: ServiceSimulator) -> None:
    simulator.state.audit.reports = {}

    state, runs = run("example_service_nightly_audit")

    assert state == "success", runs
    assert [one.path for one in simulator.requests if one.method == "POST"] == [
        "/api/v1/source-control/pull",
        "/api/v1/audit",
    ]


def test_nightly_audit_fails_on_risks(run: Run, simulator: ServiceSimulator) -> None:
    finding = {"title": "Unused", "description": "d", "recommendation": "r", "location": [{"name": "x"}]}
    simulator.state.audit.reports = {"Credentials Risk Report": {"risk": "credentials", "sections": [finding]}}

    state, runs = run("example_service_nightly_audit")

    assert state == "failed"
    assert states(runs) == {"pull": {"success"}, "audit": {"failed"}}


def test_audit_report_is_written_even_if_the_audit_fails(run: Run, simulator: ServiceSimulator, tmp_path: Path) -> None:
    finding = {
        "title": "Expressions in queries",
        "description": "d",
        "recommendation": "r",
        "location": [{"name": "x"}],
    }
    for findings, end in (
        ({}, "success"),
        ({"Database Risk Report": {"risk": "database", "sections": [finding]}}, "failed"),
    ):
        simulator.state.audit.reports = findings

        state, runs = run("example_service_audit_report", folder=str(tmp_path))

        assert state == end, runs
        assert states(runs) == {"audit": {end}, "insights": {"success"}}
        assert ("Expressions in queries" in (tmp_path / "service-audit.html").read_text()) == bool(findings)
        assert (tmp_path / "service-insights.md").read_text().startswith("# Insights\n")


def test_health_check_passes(run: Run, simulator: ServiceSimulator, client: ServiceClient) -> None:
    workflow = simulator.create_webhook_workflow("Sync", path="sync")
    client.workflows.update_tags(workflow["id"], [client.tags.create("critical").id])
    simulator.start_execution(workflow["id"], status="success")

    state, runs = run("example_service_health_check")

    assert state == "success", runs


def test_health_check_alerts(run: Run, simulator: ServiceSimulator, client: ServiceClient) -> None:
    workflow = simulator.create_webhook_workflow("Sync", path="sync")
    client.workflows.update_tags(workflow["id"], [client.tags.create("critical").id])
    simulator.start_execution(workflow["id"], status="error")

    state, runs = run("example_service_health_check")

    assert state == "failed"
    assert states(runs)["check"] == {"failed"}
    [alert] = [one for one in simulator.requests if one.path == "/webhook/airflow-example-health-alert"]
    assert alert.body["message"] == "Workflows are unhealthy"
    assert "'Sync' (failure rate 1, above max_failure_rate 0.1; no success" in alert.body["exception"]


def test_desired_state_twice(run: Run, client: ServiceClient) -> None:
    client.tags.create("airflow-old-one")
    client.tags.create("other")
    for _ in range(2):
        state, runs = run("example_service_desired_state")

        assert state == "success", runs
        assert {tag.name for tag in client.tags.list()} == {"airflow-critical", "airflow-nightly", "other"}
        table = find_data_table(client, "airflow_example_customers")
        assert table is not None
        assert {one.name: one.type for one in table.columns or ()} == {"name": "string", "since": "date"}


@pytest.mark.slow
def test_export_table(run: Run, client: ServiceClient, tmp_path: Path) -> None:
    assert run("example_service_upsert_rows")[0] == "success"

    state, runs = run("example_service_export_table", folder=str(tmp_path))

    assert state == "success", runs
    with (tmp_path / "airflow_example_orders.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 15
    assert {"order_id": "north-1", "region": "north", "amount": "10.5", "paid": "false"}.items() <= rows[0].items()


def test_wait_for_rows(run: Run, client: ServiceClient) -> None:
    table = client.data_tables.create("airflow_example_orders", [{"name": "paid", "type": "boolean"}])
    client.data_table_rows.insert(table.id, [{"paid": False}, {"paid": True}, {"paid": True}])

    state, runs = run("example_service_wait_for_rows")

    assert state == "success", runs


def test_query_to_table_twice(run: Run, client: ServiceClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = [("a-1", "north", 11, 1, None), ("a-4", "west", 7, 0, None)]
    for sales in (SALES, changed):
        monkeypatch.setenv(CONNECTION, shop(tmp_path / "shop.sqlite", sales))
        state, runs = run("example_service_query_to_table")
        assert state == "success", runs
        table = find_data_table(client, "airflow_example_sales")
        assert table is not None
        rows = {row["sale_id"]: row for row in client.data_table_rows.list(table.id)}
        assert rows.keys() == {sale[0] for sale in sales}
        if sales is SALES:
            first = rows["a-1"]
            assert (first["amount"], first["paid"], first["sold_at"]) == (10.5, True, "2026-01-02T01:04:05.000Z")
    assert (rows["a-1"]["id"], rows["a-1"]["amount"]) == (first["id"], 11)


@pytest.mark.slow
def test_table_to_parquet(run: Run, simulator: ServiceSimulator, tmp_path: Path) -> None:
    assert run("example_service_upsert_rows")[0] == "success"

    state, runs = run("example_service_table_to_parquet", folder=str(tmp_path))

    assert state == "success", runs
    table = parquet.read_table(tmp_path / "airflow_example_orders.parquet")
    assert table.num_rows == 15
    assert table.column("paid").to_pylist().count(True) == 6


def test_housekeeping(run: Run, simulator: ServiceSimulator, client: ServiceClient) -> None:
    workflow = simulator.create_webhook_workflow("w", path="w")
    old_failed = simulator.start_execution(workflow["id"], status="error", age=40 * DAY)
    old_good = simulator.start_execution(workflow["id"], status="success", age=40 * DAY)
    hanging = simulator.start_execution(workflow["id"], status="running", age=40 * DAY)
    new_failed = simulator.start_execution(workflow["id"], status="error")

    state, runs = run("example_service_housekeeping")

    assert state == "success", runs
    assert client.executions.get(hanging).status == "canceled"
    assert {one.id for one in client.executions.list()} == {old_good, hanging, new_failed}
    with pytest.raises(ServiceNotFoundError):
        client.executions.get(old_failed)


def test_main_job(run: Run, client: ServiceClient) -> None:
    state, runs = run("example_service_main_job")

    assert state == "success", runs
    table = find_data_table(client, "airflow_example_stock")
    assert table is not None
    assert sum(1 for _ in client.data_table_rows.list(table.id)) == 100


@pytest.mark.slow
def test_main_job_without_source_control(run: Run, simulator: ServiceSimulator) -> None:
    simulator.state.licensed = False

    state, runs = run("example_service_main_job", pull=False)

    assert state == "success", runs
    assert states(runs)["pull_source_control"] == {"skipped"}
    assert states(runs)["generate_audit"] == {"success"}


@pytest.mark.parametrize("path", sorted(EXAMPLE_DAGS.glob("example_*.py")), ids=lambda path: path.stem)
def test_every_example_has_a_test(path: Path) -> None:
    tests = [one.read_text() for one in Path(__file__).parent.glob("test_*.py")]
    assert any(path.stem in text for text in tests)


@pytest.mark.slow
def test_sub_workflow(run: Run, client: ServiceClient) -> None:
    for _ in range(2):
        state, runs = run("example_service_sub_workflow")
        assert state == "success", runs

    workflow = find_workflow(client, "Airflow example: sub-workflow")
    assert workflow is not None
    ended = list(client.executions.list(workflow_id=workflow.id, include_data=True))
    assert [(one.mode, one.status) for one in ended] == [("integrated", "success")] * 2
    assert last_output(ended[0]) == [{"region": "north", "done": True}, {"region": "south", "done": True}]
    assert len(list(client.workflows.list(tags="airflow-bridge"))) == 1
