"""The example DAGs, run by Airflow against the real server.

The free edition has no source control: the pull, and nothing else, is left out.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from pyarrow import parquet

from airflow_provider_service._core.instances.deployment_record import is_deployment_record
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.client._execution_data import last_output, starting_items
from airflow_provider_service.client._lookup import find_data_table, find_workflow
from airflow_provider_service.triggers.events import ServiceExecutionEventTrigger
from scripts.dag_runner import TaskRun, run_dag
from tests.conformance.differences import difference
from tests.instances.workflows import parent
from tests.polling import wait_until
from tests.runs.workflows import FORM, SCHEDULE, puts_out, webhook
from tests.shop import CONNECTION, SALES, shop

from . import running
from .conftest import MakeServer
from .servers import LiveServer

EXAMPLE_DAGS = Path(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
# The older generation has no data tables, and nothing that stops executions; it activates no sub-workflows.
LACKING = {
    1: {
        "example_service_deploy_folder",
        "example_service_export_table",
        "example_service_housekeeping",
        "example_service_main_job",
        "example_service_audit_report",
        "example_service_query_to_table",
        "example_service_upsert_rows",
        "example_service_wait_for_rows",
        "example_service_desired_state",
    }
}
STARTED_BY_MCP = ("example_service_nightly", "example_service_approval")

Run = Callable[..., tuple[str, dict[str, set[str]]]]

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture(autouse=True)
def connection(live_server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection that the examples use."""
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps(running.connection(live_server)))


@pytest.fixture(autouse=True)
def client(live_server: LiveServer) -> Iterator[ServiceClient]:
    """A client that sees what the server holds; all of it is gone after the test."""
    config = ServiceConfig(
        base_url=live_server.base_url, api_key=live_server.api_key, key_header=live_server.key_header
    )
    with ServiceClient(config) as client:
        yield client
        running.delete_workflows(client)
        running.delete_credentials(client)
        if live_server.generation.major != 1:
            for table in list(client.data_tables.list()):
                client.data_tables.delete(table.id)


@pytest.fixture
def run(live_server: LiveServer) -> Run:
    """``run("example_name", **conf)`` runs an example: the state of the run, and of its tasks by their ids."""

    def run_example(name: str, *, pretend: str | None = None, **conf: Any) -> tuple[str, dict[str, set[str]]]:
        state, runs = run_dag(EXAMPLE_DAGS / f"{name}.py", conf, pretend=pretend)
        generation = live_server.generation
        by_mcp = name in STARTED_BY_MCP and difference("MCP endpoint", generation.name)
        lacking = by_mcp or name in LACKING.get(generation.major, ())
        if lacking:
            assert state == "failed"
            # The failure is checked above; what the test looks for next can only be there after a success.
            pytest.skip(f"this generation does not offer what {name} needs, and the DAG failed")
        assert all(one.tries <= 1 for one in runs), runs
        return state, by_task(runs)

    return run_example


def by_task(runs: list[TaskRun]) -> dict[str, set[str]]:
    states: dict[str, set[str]] = {}
    for one in runs:
        states.setdefault(one.task_id, set()).add(one.state)
    return states


# Before the tests that leave credentials on a server that cannot list them.
def test_nightly_audit_but_for_the_pull(run: Run) -> None:
    state, tasks = run("example_service_nightly_audit", pretend="^pull$")
    assert (state, tasks) == ("success", {"pull": {"success"}, "audit": {"success"}})


def test_audit_report(run: Run, tmp_path: Path) -> None:
    state, tasks = run("example_service_audit_report", folder=str(tmp_path))
    assert (state, tasks) == ("success", {"audit": {"success"}, "insights": {"success"}})
    assert "<h1>Security audit</h1>" in (tmp_path / "service-audit.html").read_text()
    assert "| Executions |" in (tmp_path / "service-insights.md").read_text()


def test_desired_state_twice(run: Run, client: ServiceClient) -> None:
    for name in ("airflow-old-one", "other"):
        client.tags.create(name)
    for _ in range(2):
        state, tasks = run("example_service_desired_state")
        assert (state, tasks) == ("success", {"tags": {"success"}, "tables": {"success"}})
        held = {tag.name: tag.id for tag in client.tags.list()}
        assert held.keys() >= {"airflow-critical", "airflow-nightly", "other"}
        assert "airflow-old-one" not in held
        assert find_data_table(client, "airflow_example_invoices") is not None
    for name in ("airflow-critical", "airflow-nightly", "other"):
        client.tags.delete(held[name])


def test_first(run: Run, client: ServiceClient) -> None:
    hook = {
        "name": "Webhook",
        "type": "n8n-nodes-base.webhook",
        "typeVersion": 2,
        "position": [0, 0],
        "webhookId": "7a0e1c5e-6a52-4d0e-9a55-0f1e7a3c2b11",
        "parameters": {"httpMethod": "POST", "path": "nightly-sync", "options": {}},
    }
    workflow = client.workflows.create("Nightly sync", [hook], {}, {})
    client.workflows.activate(workflow.id)
    state, tasks = run("example_service_first")
    assert (state, tasks) == ("success", {"run": {"success"}})
    assert [one.status for one in client.executions.list(workflow_id=workflow.id)] == ["success"]


def test_activate_and_wait_twice(run: Run, client: ServiceClient) -> None:
    for count in (1, 2):
        state, tasks = run("example_service_activate_and_wait")
        assert (state, set().union(*tasks.values())) == ("success", {"success"})
        workflow = find_workflow(client, "Airflow example: activate and wait")
        assert workflow is not None
        assert [one.status for one in client.executions.list(workflow_id=workflow.id)] == ["success"] * count


def test_run_and_wait(run: Run, client: ServiceClient) -> None:
    state, tasks = run("example_service_run_and_wait")
    assert (state, set().union(*tasks.values())) == ("success", {"success"})
    workflow = find_workflow(client, "Airflow example: run and wait")
    assert workflow is not None
    (execution,) = client.executions.list(workflow_id=workflow.id, include_data=True)
    assert last_output(execution) == [{"day": "2026-01-31", "orders": 3}]


def test_fan_out(run: Run, client: ServiceClient) -> None:
    state, tasks = run("example_service_fan_out", parts=3)
    assert (state, set().union(*tasks.values())) == ("success", {"success"})
    workflow = find_workflow(client, "Airflow example: fan out")
    assert workflow is not None
    assert [one.status for one in client.executions.list(workflow_id=workflow.id)] == ["success"] * 3


def test_sub_workflow_twice(run: Run, client: ServiceClient) -> None:
    for count in (1, 2):
        state, tasks = run("example_service_sub_workflow")
        assert (state, set().union(*tasks.values())) == ("success", {"success"})
        workflow = find_workflow(client, "Airflow example: sub-workflow")
        assert workflow is not None
        executions = list(client.executions.list(workflow_id=workflow.id, include_data=True))
        assert [(one.mode, one.status) for one in executions] == [("integrated", "success")] * count
        assert last_output(executions[0]) == [{"region": "north", "done": True}, {"region": "south", "done": True}]
    assert len(list(client.workflows.list(tags="airflow-bridge"))) == 1


def test_upsert_rows_twice_and_export_them(run: Run, client: ServiceClient, tmp_path: Path) -> None:
    for _ in range(2):
        assert run("example_service_upsert_rows")[0] == "success"
        table = find_data_table(client, "airflow_example_orders")
        assert table is not None
        assert len(list(client.data_table_rows.list(table.id))) == 15

    assert run("example_service_export_table", folder=str(tmp_path))[0] == "success"
    lines = (tmp_path / "airflow_example_orders.csv").read_text().splitlines()
    assert len(lines) == 16

    assert run("example_service_wait_for_rows") == ("success", {"paid": {"success"}, "ship": {"success"}})
    assert run("example_service_table_to_parquet", folder=str(tmp_path))[0] == "success"
    assert parquet.read_table(tmp_path / "airflow_example_orders.parquet").num_rows == 15


def test_query_to_table_twice(run: Run, client: ServiceClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for sales in (SALES, SALES[:2]):
        monkeypatch.setenv(CONNECTION, shop(tmp_path / "shop.sqlite", sales))
        assert run("example_service_query_to_table") == ("success", {"load": {"success"}})
        table = find_data_table(client, "airflow_example_sales")
        assert table is not None
        held = {row["sale_id"]: (row["amount"], row["paid"]) for row in client.data_table_rows.list(table.id)}
        assert held == {sale[0]: (sale[2], None if sale[3] is None else bool(sale[3])) for sale in sales}


def test_housekeeping(run: Run) -> None:
    state, tasks = run("example_service_housekeeping")
    assert (state, set().union(*tasks.values())) == ("success", {"success"})


def test_main_job_without_source_control(run: Run, client: ServiceClient) -> None:
    state, tasks = run("example_service_main_job", pull=False)
    assert state == "success", tasks
    assert tasks.pop("pull_source_control") == {"skipped"}
    assert set().union(*tasks.values()) == {"success"}
    table = find_data_table(client, "airflow_example_stock")
    assert table is not None
    assert sum(1 for _ in client.data_table_rows.list(table.id)) == 100
    workflow = find_workflow(client, "Airflow example: main job")
    assert workflow is not None
    assert [one.status for one in client.executions.list(workflow_id=workflow.id)] == ["success"]


def test_alert(run: Run, client: ServiceClient) -> None:
    state, tasks = run("example_service_alert")

    assert (state, tasks["load"]) == ("failed", {"failed"})
    workflow = find_workflow(client, "Airflow example: alert")
    assert workflow is not None

    def notices() -> list[dict[str, Any]]:
        found = client.executions.list(workflow_id=workflow.id, include_data=True)
        return [item["body"] for one in found for item in starting_items(one)]

    wait_until(notices, seconds=120, what="the alert's execution")
    [notice] = notices()
    assert notice["message"] == "load of example_service_alert has failed"
    assert (notice["task_id"], notice["exception"]) == ("load", "there is nothing to load")


def test_a_nightly_workflow_by_name(
    run: Run, client: ServiceClient, live_server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.allow_mcp(monkeypatch, live_server)
    workflow_id = running.put(client, SCHEDULE, puts_out('{"articles": 7}'), name="Nightly inventory", active=True)

    state, tasks = run("example_service_nightly")

    assert (state, set().union(*tasks.values())) == ("success", {"success"})
    [execution] = client.executions.list(workflow_id=workflow_id)
    assert (execution.mode, execution.status) == ("trigger", "success")


def test_a_form_that_decides(
    run: Run, client: ServiceClient, live_server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.allow_mcp(monkeypatch, live_server)
    decides = puts_out('={{ {"approved": Number($json.amount) < 500} }}')
    running.put(client, FORM, decides, name="Approve an order", active=True, availableInMCP=True)

    state, tasks = run("example_service_approval")

    assert (state, set().union(*tasks.values())) == ("success", {"success"})


def test_taskflow(run: Run, client: ServiceClient) -> None:
    workflow_id = running.put(client, webhook(running.path()), puts_out('{"rows": 3}'), name="Sync region", active=True)

    state, tasks = run("example_service_taskflow")

    assert (state, set().union(*tasks.values())) == ("success", {"success"})
    assert [one.status for one in client.executions.list(workflow_id=workflow_id)] == ["success"] * 2


def test_send_file(
    run: Run, client: ServiceClient, live_server: LiveServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = "the passphrase of the webhook that takes invoices"
    fields = {"conn_type": "generic", "password": secret, "extra": {"algorithm": "HS256"}}
    monkeypatch.setenv("AIRFLOW_CONN_INVOICES_WEBHOOK", json.dumps(fields))
    data = {"keyType": "passphrase", "secret": secret, "algorithm": "HS256"}
    credential = client.credentials.create("invoices", "jwtAuth", data)
    node = webhook("invoices/:customer", authentication="jwtAuth")
    own = {"jwtAuth": {"id": credential.id, "name": "invoices"}}
    workflow_id = running.put(client, {**node, "credentials": own}, name="Book invoice", active=True)
    (tmp_path / "invoice.pdf").write_bytes(b"%PDF-")

    state, tasks = run("example_service_send_file", invoice=str(tmp_path / "invoice.pdf"))

    assert (state, tasks) == ("success", {"send": {"success"}})
    assert [one.status for one in client.executions.list(workflow_id=workflow_id)] == ["success"]


def test_a_health_check(run: Run, client: ServiceClient) -> None:
    assert run("example_service_activate_and_wait")[0] == "success"
    workflow = find_workflow(client, "Airflow example: activate and wait")
    assert workflow is not None
    client.workflows.update_tags(workflow.id, [client.tags.create("critical").id])

    state, tasks = run("example_service_health_check")

    assert (state, set().union(*tasks.values())) == ("success", {"success"})


def test_deploy_folder_twice(run: Run, client: ServiceClient, tmp_path: Path) -> None:
    seen = []
    for _ in range(2):
        state, tasks = run("example_service_deploy_folder", copies=str(tmp_path))
        assert (state, tasks) == ("success", {"deploy": {"success"}, "export": {"success"}})
        listed = (one for one in client.workflows.list() if not is_deployment_record(one))
        seen.append({one.name: (one.id, one.active, one.updated_at) for one in listed})
    assert seen[1] == seen[0]
    assert {name: active for name, (_, active, _) in seen[0].items()} == {
        "Airflow example: price of a product": True,
        "Airflow example: quote": True,
    }
    quote = client.workflows.get(seen[0]["Airflow example: quote"][0])
    assert client.webhooks.call(client.webhooks.find(quote), {"product": "pear"}).body == {"price": 1.5}
    file = "Airflow example_ quote.json"
    copy = json.loads((tmp_path / file).read_text())
    assert copy.pop("id") == quote.id
    assert copy == json.loads((EXAMPLE_DAGS / "workflows" / file).read_text())


def test_promote_twice(
    run: Run,
    client: ServiceClient,
    live_server: LiveServer,
    make_server: MakeServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running.deploy(client, [running.called(live_server, tags=["release"]), parent(tags=["release"])])
    running.connect(monkeypatch, live_server, "service_staging").close()
    with make_server() as production, running.connect(monkeypatch, production, "service_production") as there:
        state, tasks = run("example_service_promote", most=1)
        assert (state, tasks["is_small"], list(there.workflows.list())) == ("failed", {"failed"}, [])

        seen = []
        for most in (2, 0):  # the second time, nothing is left to change
            state, tasks = run("example_service_promote", most=most)
            assert (state, set().union(*tasks.values())) == ("success", {"success"})
            seen.append({one.name: (one.id, one.active, one.updated_at) for one in there.workflows.list()})
        assert seen[1] == seen[0]
        assert {name: active for name, (_, active, _) in seen[0].items()} == {
            one.name: one.active for one in client.workflows.list(tags="release")
        }
        caller = there.workflows.get(seen[0]["parent"][0])
        assert (caller.nodes or [])[1]["parameters"]["workflowId"]["value"] == seen[0]["child"][0]


def test_weekly_backup(run: Run, client: ServiceClient, tmp_path: Path) -> None:
    running.put(client, webhook("weekly-backup"), name="weekly backup")
    state, tasks = run("example_service_weekly_backup", folder=str(tmp_path))
    assert (state, tasks) == ("success", {"back_up": {"success"}, "check": {"success"}})
    [archive] = tmp_path.glob("*.zip")
    with ZipFile(archive) as file:
        assert "workflows/weekly backup.json" in file.namelist()
    assert "secrets of credentials" in (tmp_path / "service-backup.md").read_text()


def test_asset_event(run: Run, client: ServiceClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("example_service_activate_and_wait")[0] == "success"
    workflow = find_workflow(client, "Airflow example: activate and wait")
    assert workflow is not None
    monkeypatch.setenv("AIRFLOW_EXAMPLE_WORKFLOW_NAME", workflow.name)
    # A run by hand has nothing to report; what starts a run otherwise is the trigger's event.
    assert run("example_service_asset_event")[0] == "success"

    payload = asyncio.run(event_of(ServiceExecutionEventTrigger(workflow_id=workflow.id, poll_interval=0.5), client))

    executions = {one.id: one.status for one in client.executions.list(workflow_id=workflow.id)}
    assert len(executions) == 2
    assert payload["execution_id"] == max(executions, key=int)
    assert (payload["workflow_id"], payload["status"]) == (workflow.id, "success")


async def event_of(trigger: ServiceExecutionEventTrigger, client: ServiceClient) -> dict[str, Any]:
    """What the trigger fires after the workflow's webhook was called."""
    events = trigger.run()
    first = asyncio.ensure_future(anext(events))
    await asyncio.sleep(2)
    assert not first.done()
    path = "airflow-example-activate-and-wait"
    await asyncio.to_thread(client.transport.call_webhook, "POST", path, headers={}, payload={}, timeout=60)
    event = await asyncio.wait_for(first, 120)
    await events.aclose()
    return event.payload


@pytest.mark.parametrize("path", sorted(EXAMPLE_DAGS.glob("example_*.py")), ids=lambda path: path.stem)
def test_every_example_is_run(path: Path) -> None:
    assert f'run("{path.stem}"' in Path(__file__).read_text()
