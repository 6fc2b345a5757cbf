"""The operator that installs the bridge."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.runs import bridge
from airflow_provider_service._core.runs.bridge import SCOPES
from airflow_provider_service.operators.bridge import ServiceInstallBridgeOperator

PEM = ("privateKey", "publicKey")


def bridges(client):
    return [one.id for one in client.workflows.list(tags="airflow-bridge")]


def test_installing_twice_leaves_one(execute, client, writes, link):
    first = execute(ServiceInstallBridgeOperator)
    assert (first["outcome"], first["name"], first["version"]) == ("created", "Airflow bridge", bridge.VERSION)
    assert link() == f"/workflow/{first['workflow_id']}"
    assert writes() == [
        "POST /credentials",
        "POST /workflows",
        "POST /tags",
        f"PUT /workflows/{first['workflow_id']}/tags",
        f"POST /workflows/{first['workflow_id']}/activate",
    ]
    assert execute(ServiceInstallBridgeOperator) == {**first, "outcome": "unchanged"}
    assert (writes(), bridges(client)) == ([], [first["workflow_id"]])


def test_it_is_active_and_asks_for_a_token(execute, client, simulator):
    made = execute(ServiceInstallBridgeOperator, name="Mine")
    workflow = client.workflows.get(made["workflow_id"])
    assert (workflow.active, workflow.name) == (True, "Mine")
    trigger = client.webhooks.find(workflow)
    assert (trigger.authentication, trigger.method) == ("jwtAuth", "POST")
    held = bridge.credential_of(workflow)
    secret = simulator.state.credentials.data(held.id)["secret"]
    assert secret not in json.dumps(workflow.to_wire())
    assert len(secret) == 64


def as_version(client, workflow_id, version):
    """Make a bridge one of another version, with one node less."""
    workflow = client.workflows.get(workflow_id)
    nodes = [one for one in workflow.nodes if one["name"] != "Start"]
    note = next(one for one in nodes if one["name"] == "About")["parameters"]
    note["content"] = note["content"].replace(f"Version {bridge.VERSION}", f"Version {version}")
    links = {name: link for name, link in workflow.connections.items() if name != "Items"}
    client.workflows.update(workflow.id, workflow.name, nodes, links, {})


def test_an_older_one_is_updated(execute, client):
    made = execute(ServiceInstallBridgeOperator)
    before = client.workflows.get(made["workflow_id"])
    as_version(client, before.id, 0)
    again = execute(ServiceInstallBridgeOperator)
    after = client.workflows.get(made["workflow_id"])
    assert again == {**made, "outcome": "updated"}
    assert after.connections == before.connections
    assert [{**one, "id": ""} for one in after.nodes] == [{**one, "id": ""} for one in before.nodes]
    assert (after.active, after.active_version_id) == (True, after.version_id)


def test_a_newer_one_is_left_as_it_is(execute, client, writes):
    made = execute(ServiceInstallBridgeOperator)
    as_version(client, made["workflow_id"], 99)
    writes()
    again = execute(ServiceInstallBridgeOperator)
    assert (again["outcome"], again["version"], writes()) == ("unchanged", 99, [])


def test_an_installation_that_was_cut_short_is_completed(execute, client, simulator):
    simulator.inject("status", status=500, path="/tags$", method="POST", times=20)
    with pytest.raises(Exception, match="500"):
        execute(ServiceInstallBridgeOperator)
    simulator.clear_faults()
    made = execute(ServiceInstallBridgeOperator)
    assert (made["outcome"], bridges(client)) == ("updated", [made["workflow_id"]])
    assert client.workflows.get(made["workflow_id"]).active


def test_of_two_installations_at_once_one_remains(execute, client, simulator):
    simulator.inject("latency", seconds=0.5, method="POST", path="/workflows$", times=2, after_processing=True)
    with ThreadPoolExecutor(2) as threads:
        made = [one.result() for one in [threads.submit(execute, ServiceInstallBridgeOperator) for _ in range(2)]]
    assert {one["workflow_id"] for one in made} == set(bridges(client))
    assert sum(one["outcome"] == "created" for one in made) == 1
    assert [one.id for one in client.workflows.list()] == bridges(client)


def test_a_bridge_that_was_archived_is_replaced(execute, client):
    first = execute(ServiceInstallBridgeOperator)["workflow_id"]
    client.workflows.archive(first)
    second = execute(ServiceInstallBridgeOperator)
    assert second["outcome"] == "created"
    assert second["workflow_id"] != first


def test_a_bridge_that_was_deactivated_is_activated(execute, client):
    first = execute(ServiceInstallBridgeOperator)["workflow_id"]
    client.workflows.deactivate(first)
    assert execute(ServiceInstallBridgeOperator)["outcome"] == "updated"
    assert client.workflows.get(first).active


def test_a_deleted_credential_is_replaced(execute, client):
    made = execute(ServiceInstallBridgeOperator)
    held = bridge.credential_of(client.workflows.get(made["workflow_id"]))
    client.credentials.delete(held.id)
    assert execute(ServiceInstallBridgeOperator)["outcome"] == "updated"
    renewed = bridge.credential_of(client.workflows.get(made["workflow_id"]))
    assert renewed.id != held.id
    assert client.credentials.get(renewed.id).name == held.name


@pytest.mark.parametrize(("version", "more"), [("2.41.1", ()), ("2.20.12", ()), ("1.123.81", PEM)])
def test_the_credential_has_the_data_that_the_server_takes(execute, simulator, version, more):
    simulator.version = version

    execute(ServiceInstallBridgeOperator)

    [made] = simulator.state.credentials.all()
    assert simulator.state.credentials.data(made["id"]).keys() == {"keyType", "secret", "algorithm", *more}


def test_a_credential_that_the_server_refuses_in_every_form_is_an_error(execute, client, simulator):
    simulator.state.credentials.types["jwtAuth"]["required"] = ["something new"]

    with pytest.raises(AirflowFailException, match="something new"):
        execute(ServiceInstallBridgeOperator)
    assert bridges(client) == []


def test_a_project_has_its_own(execute, client):
    project = client.projects.create("Analytics")
    first = execute(ServiceInstallBridgeOperator)
    second = execute(ServiceInstallBridgeOperator, project_id=project.id)
    assert (second["outcome"], len(bridges(client))) == ("created", 2)
    assert client.workflows.get(second["workflow_id"]).shared[0]["projectId"] == project.id
    assert execute(ServiceInstallBridgeOperator, project_id=project.id)["workflow_id"] == second["workflow_id"]
    assert execute(ServiceInstallBridgeOperator)["workflow_id"] == first["workflow_id"]


@pytest.mark.parametrize("missing", SCOPES)
def test_missing_scopes_are_named_before_anything_is_changed(execute, simulator, monkeypatch, writes, missing):
    key = simulator.create_key(scopes=[one for one in SCOPES if one != missing])
    connection = {"conn_type": "service", "host": simulator.base_url, "password": key, "extra": EXTRA}
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps(connection))
    with pytest.raises(
        AirflowFailException, match=f"the API key lacks scopes .* needs: {missing}; nothing was changed"
    ):
        execute(ServiceInstallBridgeOperator)
    assert writes() == []


EXTRA = {"key_header": "X-N8N-API-KEY"}


def test_these_scopes_are_enough_for_every_installation(execute, client, simulator, monkeypatch):
    key = simulator.create_key(scopes=SCOPES)
    connection = {"conn_type": "service", "host": simulator.base_url, "password": key, "extra": EXTRA}
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps(connection))
    made = execute(ServiceInstallBridgeOperator)
    assert made["outcome"] == "created"
    assert execute(ServiceInstallBridgeOperator) == {**made, "outcome": "unchanged"}
    client.workflows.deactivate(made["workflow_id"])
    assert execute(ServiceInstallBridgeOperator) == {**made, "outcome": "updated"}
    assert client.workflows.get(made["workflow_id"]).active


@pytest.mark.parametrize("extra", [{"bridge_secret": "long enough to share"}, {}], ids=["shared", "of the key"])
def test_whose_bridge_it_is(execute, simulator, monkeypatch, extra):
    found = []
    for _ in range(2):
        connection = {
            "conn_type": "service",
            "host": simulator.base_url,
            "password": simulator.create_key(),
            "extra": {**EXTRA, **extra},
        }
        monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps(connection))
        found.append(execute(ServiceInstallBridgeOperator)["workflow_id"])
    assert (found[0] == found[1]) is bool(extra)
