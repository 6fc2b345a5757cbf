"""Workflows are followed by their ids: renamed in a folder, swapped, copied, and where ids and names disagree."""

from __future__ import annotations

import json

import pytest

from airflow_provider_service._core.instances.plan import DeploymentTarget, make_plan
from airflow_provider_service._core.instances.source import read_source
from airflow_provider_service.client.errors import ServiceDeploymentError, ServiceInputError
from airflow_provider_service.operators.instances import ServiceDeployWorkflowsOperator

from .test_rollback import REFUSED, state_of
from .workflows import calling, child, parent, webhook, workflow


@pytest.fixture
def folder(client, deploy, files, tmp_path):
    """The export of two active workflows, of which one calls the other."""
    deploy([child(), parent(), workflow("idle", webhook("idle"))])
    files()
    return tmp_path / "export"


def ids_of(client):
    return {one.name: one.id for one in client.workflows.list() if not one.is_archived}


def rename(folder, old, new, *, in_file=True):
    """Give a workflow another name and its file another path."""
    definition = json.loads((folder / f"{old}.json").read_text())
    (folder / f"{old}.json").unlink()
    (folder / f"{new}.json").write_text(json.dumps({**definition, **({"name": new} if in_file else {})}))


def test_a_file_with_another_name_is_the_same_workflow(client, deploy, folder, writes):
    rename(folder, "parent", "elsewhere", in_file=False)
    writes()
    assert deploy(str(folder)) == {"unchanged": ["child", "idle", "parent"]}
    assert writes() == []


def test_a_workflow_with_another_name_is_renamed_and_keeps_its_webhook(client, execute, deploy, folder, caplog):
    before = ids_of(client)
    rename(folder, "parent", "orders")
    with caplog.at_level("INFO"):
        done = execute(ServiceDeployWorkflowsOperator, source=str(folder))
    assert (done["renamed"], done["created"], done["updated"]) == (["orders"], [], [])
    assert "orders: rename" in caplog.messages
    assert "    renamed 'parent' to 'orders'" in caplog.messages
    after = ids_of(client)
    assert after == {"child": before["child"], "idle": before["idle"], "orders": before["parent"]}
    held = client.workflows.get(after["orders"])
    assert (held.active, held.active_version.nodes[0]["parameters"]["path"]) == (True, "parent")
    assert deploy(str(folder)) == {"unchanged": ["child", "idle", "orders"]}


def test_an_id_that_is_a_number_may_be_that_of_another_workflow(client, simulator, deploy, writes):
    payroll = workflow("Payroll", webhook("payroll"))
    simulator.in_loop(lambda: simulator.state.workflows.create(payroll, workflow_id="5"))
    deploy([{**payroll, "id": "5"}])
    writes()
    with pytest.raises(
        ServiceInputError, match=r"its id 5 belongs to workflow 'Payroll'\. Ids that are numbers do not"
    ):
        deploy([{**workflow("Orders", webhook("orders")), "id": "5"}])
    assert writes() == []


def test_renamed_and_changed(client, folder):
    rename(folder, "idle", "busy")
    path = folder / "busy.json"
    path.write_text(path.read_text().replace('"path": "idle"', '"path": "busy"'))
    [change] = make_plan(read_source(str(folder)), DeploymentTarget(client)).changed
    assert change.actions == ("rename", "update")
    assert list(change.diff) == [
        "renamed 'idle' to 'busy'",
        'node \'Webhook\': parameters.path: "idle" -> "busy"',
    ]


def test_a_renaming_that_fails_is_rolled_back(client, deploy, folder):
    before = state_of(client)
    rename(folder, "parent", "orders")
    with pytest.raises(ServiceDeploymentError, match="was rolled back"):
        deploy([str(folder), REFUSED])
    assert state_of(client) == before


def test_names_that_are_swapped(client, deploy, folder):
    before = ids_of(client)
    rename(folder, "idle", "x")
    rename(folder, "parent", "idle")
    rename(folder, "x", "parent")
    assert deploy(str(folder))["rename"] == ["idle", "parent"]
    assert ids_of(client) == {"child": before["child"], "idle": before["parent"], "parent": before["idle"]}


def test_a_new_workflow_takes_the_name_of_a_renamed_one(client, deploy, folder, simulator):
    before = ids_of(client)
    rename(folder, "idle", "busy")
    new = workflow("idle", webhook("new"))
    # The answer to the creation is lost, so the rollback looks for the new one by its name, and finds two.
    simulator.inject("drop", method="POST", path="/workflows$", after_processing=True)
    with pytest.raises(ServiceDeploymentError, match="while creating 'idle'"):
        deploy([str(folder), new])
    assert ids_of(client) == before
    assert deploy([str(folder), new]) == {"create": ["idle"], "rename": ["busy"], "unchanged": ["child", "parent"]}
    assert ids_of(client)["busy"] == before["idle"]


def test_an_older_workflow_that_equals_a_new_one_of_its_name_stays(client, deploy, simulator):
    # A deployment creates workflows without nodes, and fills them once all have their ids.
    older = client.workflows.create("idle", [], {}, {})
    renamed = {**workflow("busy", webhook("busy")), "id": older.id}
    simulator.inject("drop", method="POST", path="/workflows$", after_processing=True)
    with pytest.raises(ServiceDeploymentError, match="while creating 'idle'"):
        deploy([renamed, workflow("idle", webhook("idle"))])
    assert ids_of(client) == {"idle": older.id}


def test_references_to_a_renamed_workflow_must_use_its_new_name(client, deploy, folder, writes):
    rename(folder, "child", "kid")
    writes()
    with pytest.raises(
        ServiceInputError, match=r"'parent' \(parent.json\), node 'Call': workflow 'child' gets the name 'kid'"
    ):
        deploy(str(folder))
    assert writes() == []
    path = folder / "parent.json"
    path.write_text(path.read_text().replace('"name": "child"', '"name": "kid"'))
    before = ids_of(client)
    assert deploy(str(folder)) == {"rename": ["kid"], "unchanged": ["idle", "parent"]}
    assert ids_of(client)["kid"] == before["child"]


def test_two_definitions_with_one_id_are_refused(deploy, folder, writes):
    definition = json.loads((folder / "idle.json").read_text())
    (folder / "copy.json").write_text(json.dumps({**definition, "name": "copy"}))
    writes()
    words = rf"has the id '{definition['id']}': 'copy' \(copy.json\), 'idle' \(idle.json\)\. Remove it from those that"
    with pytest.raises(ServiceInputError, match=words):
        deploy(str(folder))
    assert writes() == []
    del definition["id"]
    (folder / "copy.json").write_text(json.dumps({**definition, "name": "copy"}))
    assert deploy(str(folder))["create"] == ["copy"]


def test_an_id_and_a_name_of_different_workflows_are_refused(client, deploy, folder, writes):
    taken = client.workflows.create("taken", [webhook("t")], {}, {}).id
    rename(folder, "idle", "taken")
    held = ids_of(client)["idle"]
    writes()
    with pytest.raises(ServiceInputError, match=rf"its id {held} belongs to workflow 'idle', but its name.* {taken}"):
        deploy(str(folder))
    assert writes() == []


def test_an_id_tells_workflows_of_one_name_apart(client, deploy, folder):
    other = client.workflows.create("idle", [webhook("other")], {}, {}).id
    path = folder / "idle.json"
    path.write_text(path.read_text().replace('"path": "idle"', '"path": "changed"'))
    assert deploy(str(folder))["update"] == ["idle"]
    assert client.workflows.get(other).nodes[0]["parameters"]["path"] == "other"


@pytest.mark.parametrize("value", [None, "", 0, True, [], "../x", "not-there"])
def test_an_id_that_does_not_exist_is_ignored(client, deploy, folder, value):
    path = folder / "idle.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "id": value}))
    assert deploy(str(folder)) == {"unchanged": ["child", "idle", "parent"]}


def test_on_another_instance_the_ids_are_ignored(deploy, folder, second_client):
    assert deploy(str(folder), to=second_client)["create"] == ["child", "idle", "parent"]
    assert deploy(str(folder), to=second_client) == {"unchanged": ["child", "idle", "parent"]}


def test_a_workflow_that_was_archived_is_created_again(client, deploy, folder):
    client.workflows.archive(ids_of(client)["idle"])
    assert deploy(str(folder))["create"] == ["idle"]
    assert deploy(str(folder)) == {"unchanged": ["child", "idle", "parent"]}


def test_a_call_by_id_reaches_a_renamed_workflow(client, deploy, folder):
    raw = [client.workflows.get(one.id).to_wire() for one in client.workflows.list()]
    for one in raw:
        one["name"] = {"child": "kid"}.get(one["name"], one["name"])
    assert deploy(raw)["rename"] == ["kid"]
    assert deploy([*raw, workflow("more", calling("kid"))])["create"] == ["more"]
