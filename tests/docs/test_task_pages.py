"""The examples of the pages about single tasks do what the pages say."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing import run_task
from scripts.dag_runner import load_dag, run_dag
from tests.runs.workflows import held, put, puts_out, started_with, webhook

from .rotation_example import rotate

FUNCTIONS = Path(__file__).parent / "functions"


@pytest.mark.slow
@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(("missing", "chosen"), [(3, "order"), (0, "done")])
def test_the_output_decides_what_runs(simulator: ServiceSimulator, missing: int, chosen: str) -> None:
    put(simulator, webhook("check"), puts_out(json.dumps({"missing": missing})), name="Check stock")
    orders = put(simulator, webhook("order"), name="Order articles")

    state, tasks = run_dag(FUNCTIONS / "branch_dag.py", {})

    assert state == "success", tasks
    ends = {"order": "skipped", "done": "skipped", chosen: "success"}
    assert {one.task_id: one.state for one in tasks} == {"check": "success", "choose": "success", **ends}
    assert [started_with(one)["body"] for one in held(simulator, orders)] == [{"missing": 3}] * (chosen == "order")


@pytest.mark.usefixtures("database")
def test_a_task_uses_the_output_of_a_run(simulator: ServiceSimulator) -> None:
    put(simulator, webhook(), puts_out('{"orders": 3}'), name="Build report")
    dag = load_dag(FUNCTIONS / "report_dag.py")

    state, tasks = run_dag(FUNCTIONS / "report_dag.py")

    assert state == "success", tasks
    output = run_task(dag.get_task("report")).return_value
    assert dag.get_task("count_orders").python_callable(output) == 3


@pytest.mark.slow
@pytest.mark.usefixtures("database")
def test_a_mapped_operator_with_limits_runs_for_each_item(simulator: ServiceSimulator) -> None:
    workflow = put(simulator, webhook("sync"), name="Sync region")

    state, tasks = run_dag(FUNCTIONS / "limits_dag.py", {})

    assert state == "success", tasks
    assert sorted(started_with(one)["body"]["region"] for one in held(simulator, workflow)) == ["eu", "us"]


@pytest.mark.usefixtures("database")
def test_a_nightly_run_gets_its_day(simulator: ServiceSimulator) -> None:
    workflow = put(simulator, webhook("sync"), name="Nightly sync")

    state, tasks = run_dag(FUNCTIONS / "nightly_dag.py", logical_date=datetime(2026, 1, 3, 2, tzinfo=UTC))

    assert state == "success", tasks
    assert [started_with(one)["body"] for one in held(simulator, workflow)] == [{"day": "2026-01-03"}]


@pytest.mark.slow
@pytest.mark.usefixtures("database")
def test_what_failed_in_an_outage_is_retried(simulator: ServiceSimulator) -> None:
    workflow = put(simulator, webhook("sync"), name="Sync")
    began = simulator.clock.now()
    failed = [simulator.start_execution(workflow, status="error") for _ in range(2)]
    simulator.start_execution(workflow, status="success")
    simulator.clock.advance(3600)
    simulator.start_execution(workflow, status="error")
    outage = [(began + timedelta(minutes=minutes)).isoformat() for minutes in (-1, 30)]

    state, tasks = run_dag(FUNCTIONS / "outage_dag.py", dict(zip(("since", "until"), outage, strict=True)))

    assert state == "success", tasks
    retried = [one.retry_of for one in held(simulator, workflow) if one.retry_of]
    assert sorted(map(str, retried)) == sorted(failed)


@pytest.mark.slow
@pytest.mark.usefixtures("database")
def test_after_maintenance_the_same_workflows_are_active(simulator: ServiceSimulator, client: ServiceClient) -> None:
    tag = client.tags.create("uses-database")
    names = ("One", "Two", "Off", "Untagged")
    ids = {name: put(simulator, webhook(name), name=name, active=name != "Off") for name in names}
    for name in names[:3]:
        client.workflows.update_tags(ids[name], [tag.id])
    before = client.workflows.get(ids["One"])
    renamed = [{**one, "name": f"Unfinished {one['name']}"} for one in before.nodes]
    client.workflows.update(before.id, before.name, renamed, {}, {}, publish_if_active=False)
    simulator.clear_requests()

    state, tasks = run_dag(FUNCTIONS / "maintenance_dag.py", {})

    assert state == "success", tasks
    ended = [one.path.split("/")[-2] for one in simulator.requests if one.path.endswith("/deactivate")]
    assert sorted(ended) == sorted([ids["One"], ids["Two"]])
    assert {one.name for one in client.workflows.list(active=True)} == {"One", "Two", "Untagged"}
    assert client.workflows.get(ids["One"]).active_version_id == before.active_version_id


@pytest.mark.usefixtures("database")
def test_invited_users_become_members(simulator: ServiceSimulator, client: ServiceClient) -> None:
    state, tasks = run_dag(FUNCTIONS / "users_dag.py", {})

    assert state == "success", tasks
    [sales] = [one for one in client.projects.list() if one.name == "Sales"]
    members = {one.email: one.role for one in client.projects.list_users(sales.id)}
    assert members.items() >= {("ana@example.com", "project:editor"), ("bo@example.com", "project:admin")}


def test_a_credential_follows_a_connection(simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", "postgres://etl:new-secret@db.example.com/orders")
    stored = simulator.in_loop(
        lambda: simulator.state.credentials.create("Warehouse", "postgres", {"password": "old", "ssl": "require"})
    )

    result = run_task(rotate)

    assert result.return_value["outcome"] == "updated"
    assert simulator.in_loop(lambda: simulator.state.credentials.data(stored["id"])) == {
        "password": "new-secret",
        "ssl": "require",
        "host": "db.example.com",
        "user": "etl",
        "database": "orders",
    }
