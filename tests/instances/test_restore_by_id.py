"""A backup restored into its own instance: workflows are found by their ids, whatever their names are."""

from __future__ import annotations

import re

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.instances.rollback import Writer
from airflow_provider_service.client.errors import ServiceDeploymentError, ServiceError
from airflow_provider_service.operators.backups import ServiceBackupOperator, ServiceRestoreOperator

from .contents import fill
from .workflows import node, webhook, workflow


def schedule(minutes):
    rule = {"interval": [{"field": "minutes", "minutesInterval": minutes}]}
    return node("Schedule", "scheduleTrigger", {"rule": rule}, typeVersion=1.2)


@pytest.fixture
def same(client):
    """The ids of two active workflows of one name, of which a third one calls the second."""
    fill(client)
    ids = [client.workflows.create("same", [schedule(5 + number)], {}, {}).id for number in range(2)]
    for one in ids:
        client.workflows.activate(one)
    call = {"__rl": True, "mode": "list", "value": ids[1], "cachedResultName": "same"}
    client.workflows.create("caller", [node("Call", "executeWorkflow", {"workflowId": call}, typeVersion=1.2)], {}, {})
    return ids


@pytest.fixture
def restore(execute, tmp_path, same):
    """``restore()`` restores the backup that was made when there were two workflows of one name."""
    path = str(tmp_path / "backup.zip")
    execute(ServiceBackupOperator, path=path)
    return lambda **arguments: execute(ServiceRestoreOperator, path=path, **arguments)


def workflows(client):
    return {one.id: (one.name, one.active) for one in client.workflows.list() if not one.is_archived}


@pytest.fixture
def changes(simulator):
    """``changes()`` lists the requests that are no GET since it was last called."""

    def listed():
        seen = [f"{one.method} {re.sub('^/api/v1', '', one.path)}" for one in simulator.requests if one.method != "GET"]
        simulator.clear_requests()
        return seen

    return listed


@pytest.mark.parametrize("on_conflict", ["fail", "skip", "update"])
def test_a_restore_into_the_unchanged_instance_writes_nothing(client, restore, changes, on_conflict):
    before = workflows(client)
    assert sum(active for _, active in before.values()) == 4
    changes()
    done = restore(on_conflict=on_conflict)
    assert (done["outcome"], done["left"], changes()) == ("unchanged", {}, [])
    assert done["counts"]["workflows"] == {"created": 0, "updated": 0, "unchanged": 6, "left": 0}
    assert workflows(client) == before


def test_a_change_of_one_of_them_is_found_by_its_id(client, restore, same, changes):
    client.workflows.update(same[0], "same", [schedule(55)], {}, {})
    with pytest.raises(AirflowFailException, match=rf"workflows: 'same \({same[0]}\)'; on_conflict"):
        restore()
    changes()
    restore(on_conflict="update")
    assert changes() != []
    assert client.workflows.get(same[0]).nodes[0]["parameters"] == schedule(5)["parameters"]
    assert restore()["outcome"] == "unchanged"


@pytest.mark.parametrize("on_conflict", ["fail", "skip"])
def test_what_others_change_during_the_restore_stays(client, restore, before_request, on_conflict):
    [empty] = client.data_tables.list(filter={"name": "empty"})
    client.data_tables.delete(empty.id)
    [child] = client.workflows.list(name="child")

    def edit(other):
        other.workflows.update(child.id, "child", child.nodes, child.connections, {"timezone": "UTC"})

    before_request("POST", "/data-tables$", edit)
    with pytest.raises(ServiceError, match=r"others changed workflows during the restore, .*: 'child'; run the task"):
        restore(on_conflict=on_conflict)
    assert client.workflows.get(child.id).settings["timezone"] == "UTC"


def test_what_the_backup_lacks_is_removed(client, execute, tmp_path, deploy):
    deploy([workflow("idle", webhook("idle")), workflow("active", webhook("active"), active=True)])
    path = str(tmp_path / "backup.zip")
    execute(ServiceBackupOperator, path=path)
    pinned = {"Webhook": [{"json": {"a": 1}}]}
    for one in client.workflows.list():
        client.workflows.update(one.id, one.name, one.nodes, {}, {}, description="new", pin_data=pinned)
    with pytest.raises(AirflowFailException, match="workflows: 'active', 'idle'"):
        execute(ServiceRestoreOperator, path=path)
    execute(ServiceRestoreOperator, path=path, on_conflict="update")
    held = [client.workflows.get(one.id) for one in client.workflows.list()]
    assert [(one.description or "", one.pin_data or {}) for one in held] == [("", {})] * 2
    assert execute(ServiceRestoreOperator, path=path)["outcome"] == "unchanged"


def test_one_that_was_renamed_gets_its_name_back(client, restore, same, changes):
    before = workflows(client)
    client.workflows.update(same[0], "other", [schedule(5)], {}, {})
    changes()
    with pytest.raises(AirflowFailException, match=rf"workflows: 'same \({same[0]}\)'; on_conflict"):
        restore()
    assert changes() == []
    assert restore(on_conflict="skip")["left"] == {"workflows": [f"same ({same[0]})"]}
    assert workflows(client)[same[0]] == ("other", True)
    done = restore(on_conflict="update")["counts"]["workflows"]
    assert (done["created"], done["updated"], workflows(client)) == (0, 1, before)


@pytest.mark.parametrize("gone", ["deleted", "archived"])
def test_a_deleted_one_is_created_once(client, simulator, restore, same, changes, gone):
    Writer(client).delete(same[1]) if gone == "deleted" else client.workflows.archive(same[1])
    [caller] = client.workflows.list(name="caller")
    # It calls the one that is gone, and would call the new one.
    assert restore(on_conflict="update")["counts"]["workflows"] == {
        **{"created": 1, "updated": 1, "unchanged": 4, "left": 0}
    }
    held = workflows(client)
    [made] = [one for one, (name, active) in held.items() if (name, active) == (f"same ({same[1]})", True)]
    called = client.workflows.get(caller.id).nodes[0]["parameters"]["workflowId"]["value"]
    assert (held[same[0]], called) == (("same", True), made)
    changes()
    assert (restore()["outcome"], changes()) == ("unchanged", [])


@pytest.fixture
def swapped(client, restore, same):
    """One has taken the name of another that was deleted: the ids of both."""
    [idle] = client.workflows.list(name="idle")
    client.workflows.delete(idle.id)
    client.workflows.update(same[0], "idle", [schedule(5)], {}, {})
    return same[0], idle.id


def test_one_with_the_name_of_another_is_not_mistaken_for_it(client, restore, swapped):
    renamed, deleted = swapped
    restore(on_conflict="update")
    held = workflows(client)
    [idle] = [one for one, (name, _) in held.items() if name == "idle"]
    assert held[renamed] == ("same", True)
    assert idle not in (renamed, deleted)
    assert client.workflows.get(idle).nodes[0]["type"] == webhook("idle")["type"]
    assert restore()["outcome"] == "unchanged"


def test_the_rollback_deletes_nothing_that_was_there(client, simulator, restore, swapped):
    before = workflows(client)
    simulator.inject("drop", method="POST", path="/workflows$", body='"idle"', times=None, after_processing=True)
    with pytest.raises(ServiceDeploymentError, match="the deployment failed while creating 'idle'"):
        restore(on_conflict="skip")
    simulator.clear_faults()
    after = {one: held for one, held in workflows(client).items() if not held[0].startswith("Airflow: restore")}
    assert after == before


def test_another_of_the_same_name_is_left_alone(client, restore, changes):
    more = client.workflows.create("orders", [webhook("more")], {}, {}).id
    changes()
    assert (restore()["outcome"], changes()) == ("unchanged", [])
    assert workflows(client)[more] == ("orders", False)


def test_names_that_look_like_those_with_ids_are_told_apart(client, execute, tmp_path, changes, second, second_client):
    ids = [client.workflows.create("same", [webhook(f"same-{number}")], {}, {}).id for number in range(2)]
    client.workflows.create(f"same ({ids[0]})", [webhook("third")], {}, {})
    path = str(tmp_path / "backup.zip")
    execute(ServiceBackupOperator, path=path)
    changes()
    assert (execute(ServiceRestoreOperator, path=path)["outcome"], changes()) == ("unchanged", [])
    for outcome in ("restored", "unchanged"):
        second.clear_requests()
        assert execute(ServiceRestoreOperator, path=path, service_conn_id="production")["outcome"] == outcome
    assert [one for one in second.requests if one.method != "GET"] == []
    paths = {one.nodes[0]["parameters"]["path"] for one in second_client.workflows.list()}
    assert paths == {"same-0", "same-1", "third"}


def test_the_second_restore_into_another_instance_writes_nothing(restore, second, second_client):
    for outcome in ("restored", "unchanged"):
        second.clear_requests()
        assert restore(service_conn_id="production")["outcome"] == outcome
    assert [one for one in second.requests if one.method != "GET"] == []
    assert len(workflows(second_client)) == 6
