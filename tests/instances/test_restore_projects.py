"""Objects of team projects, in a backup and in instances that hide projects or hold equal names."""

from __future__ import annotations

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.operators.backups import ServiceBackupOperator, ServiceRestoreOperator

from .workflows import address, node


@pytest.fixture
def back_up(execute, path):
    return lambda: execute(ServiceBackupOperator, path=path)


@pytest.fixture
def restore(execute, path, second):
    """``restore()`` restores into the second instance."""
    return lambda **arguments: execute(
        ServiceRestoreOperator, path=path, **{"service_conn_id": "production", **arguments}
    )


@pytest.fixture
def tokens(client):
    """A variable of the whole instance, and one of the same key in a project."""
    client.variables.create("TOKEN", "global")
    client.variables.create("TOKEN", "sales only", project_id=client.projects.create("Sales").id)


@pytest.mark.parametrize("on_conflict", ["fail", "skip", "update"])
def test_a_key_that_may_not_list_projects_writes_no_variables_of_projects(
    tokens, back_up, restore, second, second_client, on_conflict
):
    back_up()
    second_client.variables.create("TOKEN", "global")
    second.inject("status", status=403, path="/projects$", times=None)
    assert [one["what"] for one in restore(on_conflict=on_conflict)["not_restored"]] == [
        "1 projects",
        "1 variables of projects",
    ]
    assert [(one.key, one.value) for one in second_client.variables.list()] == [("TOKEN", "global")]


def test_variables_of_projects_that_the_key_may_not_list_are_left_out(
    tokens, simulator, back_up, restore, second_client
):
    simulator.inject("status", status=403, path="/projects$", times=None)
    left_out = {one["what"]: one["why"] for one in back_up()["left_out"]}
    assert left_out["variable 'TOKEN' of a project"] == "its project is not in the backup"
    restore()
    assert [(one.key, one.value) for one in second_client.variables.list()] == [("TOKEN", "global")]


def test_names_need_not_look_like_ids(client, back_up, restore, second_client):
    project = client.projects.create("Sales & Marketing")
    credential = client.credentials.create("Header Auth account", "httpHeaderAuth", {"name": "x", "value": "y"})
    table = client.data_tables.create("stock", [{"name": "n", "type": "number"}], project_id=project.id)
    held = {"httpHeaderAuth": {"id": credential.id, "name": credential.name}}
    get = node("Get", "httpRequest", {"url": "http://127.0.0.1:9"}, typeVersion=4.2, credentials=held)
    rows = node("Rows", "dataTable", {"dataTableId": address(table.id)}, typeVersion=1.1)
    client.workflows.create("orders", [get, rows], {}, {})
    back_up()
    assert restore()["counts"]["workflows"]["created"] == 1
    [made] = second_client.workflows.list()
    assert made.nodes[0]["credentials"]["httpHeaderAuth"]["id"] == next(second_client.credentials.list()).id
    assert made.nodes[1]["parameters"]["dataTableId"]["value"] == next(second_client.data_tables.list()).id


def test_equal_credentials_of_other_projects_are_listed_as_not_restored(client, back_up, restore, second_client):
    for name in ("A", "B"):
        data, project = {"name": "x", "value": "y"}, client.projects.create(name)
        client.credentials.create("mail", "httpHeaderAuth", data, project_id=project.id)
    back_up()
    for outcome in ("restored", "unchanged"):
        done = restore()
        assert (done["outcome"], [one["what"] for one in done["not_restored"]]) == (
            outcome,
            ["credential 'mail' of project 'A'"],
        )
    assert len(list(second_client.credentials.list())) == 1
    assert restore(service_conn_id="service_default")["not_restored"] == []


def test_projects_that_share_a_name_are_told_apart(client, back_up, restore, second_client):
    client.users.create([{"email": "a@example.com", "role": "global:member"}])
    second_client.users.create([{"email": "a@example.com", "role": "global:member"}])
    member = next(one.id for one in client.users.list() if one.email == "a@example.com")
    ids = [client.projects.create("Sales").id for _ in range(2)]
    for one in ids:
        client.projects.add_users(one, [{"userId": member, "role": "project:editor"}])
        client.variables.create("TOKEN", f"of {one}", project_id=one)
        client.data_tables.create("stock", [{"name": "s", "type": "string"}], project_id=one)
        client.folders.create(one, "Reports")
    back_up()
    assert restore(service_conn_id="service_default")["outcome"] == "unchanged"
    assert restore()["outcome"] == "restored"
    assert {(one.project.name, one.value) for one in second_client.variables.list()} == {
        (f"Sales ({one})", f"of {one}") for one in ids
    }
    assert len(list(second_client.data_tables.list())) == 2
    assert restore()["outcome"] == "unchanged"


def test_variables_of_the_same_key_cannot_be_mapped_to_one_project(client, back_up, restore, second_client):
    for name in ("A", "B"):
        client.variables.create("TOKEN", f"of {name}", project_id=client.projects.create(name).id)
    back_up()
    second_client.projects.create("B")
    with pytest.raises(AirflowFailException, match="several variables of the backup would be named 'TOKEN'"):
        restore(kinds=["variables"], mapping={"projects": {"A": "B"}})
    assert list(second_client.variables.list()) == []


def test_tables_of_one_name_are_refused_where_there_are_no_projects(client, back_up, restore, second, second_client):
    for name in ("A", "B"):
        project = client.projects.create(name).id
        client.data_tables.create("stock", [{"name": "s", "type": "string"}], project_id=project)
    back_up()
    second.inject("status", status=403, path="/projects$", times=None)
    second.clear_requests()
    with pytest.raises(AirflowFailException, match="several data tables of the backup would be named 'stock'"):
        restore()
    assert [one for one in second.requests if one.method != "GET"] == []
    assert restore(kinds=["projects", "variables", "tags"])["counts"]["data_tables"]["created"] == 0
