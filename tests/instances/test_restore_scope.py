"""A part of a backup is restored, or all of it under other names."""

from __future__ import annotations

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client.errors import ServiceError
from airflow_provider_service.operators.backups import ServiceBackupOperator, ServiceRestoreOperator

from .contents import fill
from .workflows import child, node, webhook, workflow

NOTHING = {"workflows": [], "tags": [], "tables": [], "credentials": [], "variables": []}


@pytest.fixture
def filled(client):
    fill(client)
    client.variables.create("REGION", "eu")


@pytest.fixture
def restore(execute, tmp_path, second):
    """``restore()`` backs up the first instance, and restores it into the second one."""
    path = str(tmp_path / "backup.zip")

    def run(**arguments):
        execute(ServiceBackupOperator, path=path)
        return execute(ServiceRestoreOperator, path=path, **{"service_conn_id": "production", **arguments})

    return run


def held(client):
    return {
        "workflows": sorted(one.name for one in client.workflows.list()),
        "tags": sorted(one.name for one in client.tags.list()),
        "tables": sorted(one.name for one in client.data_tables.list()),
        "credentials": sorted(one.name for one in client.credentials.list()),
        "variables": sorted(one.key for one in client.variables.list()),
    }


def written(simulator):
    return [one for one in simulator.requests if one.method != "GET"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"kinds": ["tags"]}, {"tags": ["b", "nightly", "unused"]}),
        ({"kinds": ["data_tables", "variables"]}, {"tables": ["empty", "stock"], "variables": ["REGION"]}),
        ({"kinds": ["credentials"]}, {"credentials": ["mail"]}),
        ({"names": ["child"]}, {"workflows": ["child"], "tags": ["nightly"]}),
        (
            {"names": ["empty", "REGION", "mail"]},
            {"tables": ["empty"], "variables": ["REGION"], "credentials": ["mail"]},
        ),
        ({"kinds": ["data_tables"], "names": ["stock"]}, {"tables": ["stock"]}),
    ],
)
def test_a_part_is_restored_and_nothing_else(filled, restore, second_client, arguments, expected):
    assert restore(**arguments)["outcome"] == "restored"
    assert held(second_client) == {**NOTHING, **expected}
    assert restore(**arguments)["outcome"] == "unchanged"


def test_one_workflow_is_made_as_it_was(filled, restore, client):
    before = {one.name: one.id for one in client.workflows.list()}
    client.workflows.update(before["child"], "child", [webhook("theirs")], {}, {})
    path_of_both = {"service_conn_id": "service_default", "on_conflict": "update"}
    kept = {name: client.workflows.get(one).updated_at for name, one in before.items() if name != "child"}
    restored = restore(**path_of_both, kinds=["workflows"], names=["child"])
    assert restored["counts"]["workflows"] == {"created": 0, "updated": 0, "unchanged": 1, "left": 0}
    assert {name: client.workflows.get(before[name]).updated_at for name in kept} == kept


def test_all_workflows_of_a_name(client, restore, second_client):
    for number in range(2):
        client.workflows.create("same", [webhook(f"same-{number}")], {}, {})
    client.workflows.create("other", [webhook("other")], {}, {})
    assert restore(names=["same"])["counts"]["workflows"]["created"] == 2
    one = next(iter(client.workflows.list(name="same")))
    assert restore(names=[f"same ({one.id})"])["outcome"] == "unchanged"
    assert "other" not in held(second_client)["workflows"]


def test_the_dependencies_of_the_part_must_exist(filled, restore, second):
    second.clear_requests()
    with pytest.raises(AirflowFailException) as caught:
        restore(kinds=["workflows"], names=["orders"])
    for words in ("no credential of type httpHeaderAuth 'mail'", "no data table 'stock'", "no workflow 'child'"):
        assert words in str(caught.value)
    assert written(second) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"kinds": ["folders"]}, "each of kinds must be one of tags, projects, variables"),
        ({"kinds": "tags"}, "kinds must be a list"),
        ({"kinds": []}, "kinds must not be an empty list"),
        ({"names": []}, "names must not be an empty list"),
        ({"names": [""]}, "each of names must be text that is not empty"),
        ({"names": ["child", "chidl", "mial"]}, "the backup holds no 'chidl', 'mial' of the kinds tags, projects"),
        ({"kinds": ["tags"], "names": ["child"]}, "the backup holds no 'child' of the kinds tags; nothing was written"),
        ({"mapping": {"tag": {}}}, "mapping: 'tag' is none of"),
        ({"mapping": {}, "mapping_path": "x"}, "give either mapping or mapping_path"),
        (
            {"mapping": {"data_tables": {"empty": "stock"}, "workflows": {"idle": "child"}}},
            "several data tables of the backup would be named 'stock'; several workflows of the backup would be named",
        ),
        (
            {"mapping": {"values": {"orders": {"Get": {"uri": "x"}}}}},
            "'orders', node 'Get': there is no single value at 'uri'",
        ),
    ],
)
def test_a_wrong_part_or_name_is_refused_and_nothing_is_written(filled, restore, second, arguments, words):
    second.clear_requests()
    with pytest.raises(AirflowFailException) as caught:
        restore(**arguments)
    assert words in str(caught.value)
    assert written(second) == []


def test_a_kind_that_the_backup_lacks_is_refused(simulator, restore, second):
    simulator.state.licensed = False
    second.clear_requests()
    try:
        with pytest.raises(AirflowFailException, match="the backup holds none of the kinds variables"):
            restore(kinds=["tags", "variables"])
    finally:
        simulator.state.licensed = True
    assert written(second) == []


def test_objects_come_with_their_project_or_to_another_one(client, restore, second, second_client):
    project = client.projects.create("Sales (test)")
    client.data_tables.create("stock", [{"name": "n", "type": "number"}], project_id=project.id)
    client.workflows.create("orders", [webhook("orders")], {}, {}, project_id=project.id)
    second.clear_requests()
    with pytest.raises(
        AirflowFailException, match=r"the instance has no project 'Sales \(test\)'.*select the projects"
    ):
        restore(names=["stock", "orders"])
    assert written(second) == []
    there = second_client.projects.create("Sales")
    mapping = {"projects": {"Sales (test)": "Sales"}}
    assert restore(names=["stock", "orders"], mapping=mapping)["outcome"] == "restored"
    assert [one.project_id for one in second_client.data_tables.list()] == [there.id]
    assert [one.name for one in second_client.workflows.list(project_id=there.id)] == ["orders"]
    assert restore(mapping=mapping)["outcome"] == "unchanged"
    assert [one.name for one in second_client.projects.list() if one.type == "team"] == ["Sales"]


def test_everything_gets_the_names_of_the_instance(filled, restore, client, second_client):
    credential = second_client.credentials.create("post", "httpHeaderAuth", {"name": "X", "value": "theirs"})
    mapping = {
        "credentials": {"mail": "post"},
        "data_tables": {"stock": "store"},
        "tags": {"nightly": "hourly"},
        "workflows": {"child": "kid", "orders": "buys"},
        "values": {"orders": {"Get": {"url": "http://live.example.com"}}},
    }
    done = restore(mapping=mapping)
    assert (done["outcome"], done["credentials_without_secrets"]) == ("restored", [])
    assert held(second_client) == {
        "workflows": ["buys", "idle", "kid"],
        "tags": ["b", "hourly", "unused"],
        "tables": ["empty", "store"],
        "credentials": ["post"],
        "variables": ["REGION"],
    }
    there = {one.name: one for one in second_client.workflows.list()}
    nodes = {one["name"]: one for one in there["buys"].nodes}
    assert nodes["Get"]["parameters"]["url"] == "http://live.example.com"
    assert nodes["Get"]["credentials"]["httpHeaderAuth"]["id"] == credential.id
    assert nodes["Call"]["parameters"]["workflowId"]["value"] == there["kid"].id
    assert there["idle"].settings["errorWorkflow"] == there["kid"].id
    assert restore(mapping=mapping)["outcome"] == "unchanged"


def test_a_workflow_beside_the_one_that_it_was(client, deploy, restore):
    deploy([child()])
    [before] = client.workflows.list()
    arguments = {"service_conn_id": "service_default", "names": ["child"], "mapping": {"workflows": {"child": "old"}}}
    assert restore(**arguments)["counts"]["workflows"]["created"] == 1
    assert held(client)["workflows"] == ["child", "old"]
    assert client.workflows.get(before.id).name == "child"
    assert restore(**{**arguments, "kinds": ["workflows"]})["outcome"] == "unchanged"


def test_a_draft_may_lack_what_gets_a_value(client, deploy, restore, second_client):
    deploy([workflow("one", webhook("one"), node("Get", "httpRequest", {"url": "x"}), active=True)])
    [one] = client.workflows.list()
    client.workflows.update(one.id, "one", [webhook("draft")], {}, {}, publish_if_active=False)
    restore(mapping={"values": {"one": {"Webhook": {"path": "live"}, "Get": {"url": "y"}}}})
    [there] = second_client.workflows.list()
    there = second_client.workflows.get(there.id)
    assert [one["parameters"]["path"] for one in there.active_version.nodes if one["name"] == "Webhook"] == ["live"]
    assert [one["parameters"]["path"] for one in there.nodes] == ["live"]


def test_a_restore_that_was_begun_is_only_finished_by_the_same_part(client, deploy, restore, second, second_client):
    deploy([child()])
    second.inject("status", status=500, method="POST", path="/activate", times=None)
    with pytest.raises(ServiceError):
        restore(names=["child"])
    [record] = held(second_client)["workflows"]
    second.clear_faults()
    assert restore()["outcome"] == "restored"
    assert held(second_client)["workflows"] == [record, "child"]
    assert restore(names=["child"])["outcome"] == "unchanged"
    assert held(second_client)["workflows"] == ["child"]
