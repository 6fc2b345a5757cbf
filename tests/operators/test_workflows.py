"""Operators on workflows."""

from __future__ import annotations

import json

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client import errors
from airflow_provider_service.operators.deployment import ServiceCreateOrUpdateWorkflowOperator
from airflow_provider_service.operators.workflows import (
    ServiceActivateWorkflowOperator,
    ServiceArchiveWorkflowOperator,
    ServiceDeactivateWorkflowOperator,
    ServiceSetWorkflowTagsOperator,
    ServiceUnarchiveWorkflowOperator,
)


@pytest.fixture
def workflow_id(simulator) -> str:
    return simulator.create_webhook_workflow("orders", path="orders", active=False)["id"]


def test_activating_twice_leaves_it_active(execute, client, link, workflow_id):
    first = execute(ServiceActivateWorkflowOperator, workflow_id=workflow_id)
    second = execute(ServiceActivateWorkflowOperator, workflow_id=workflow_id)
    assert first == second
    assert first["active"] is True
    held = client.workflows.get(workflow_id)
    assert (held.active, held.active_version_id) == (True, first["version_id"])
    assert link() == f"/workflow/{workflow_id}"
    assert first["url"].endswith(link())


def test_the_result_is_logged_with_the_link(execute, caplog, workflow_id):
    with caplog.at_level("INFO"):
        url = execute(ServiceActivateWorkflowOperator, workflow_id=workflow_id)["url"]
    assert f"Workflow {workflow_id} (orders) is active: {url}" in caplog.messages


def test_deactivating_twice_leaves_it_inactive(execute, client, link, workflow_id):
    execute(ServiceActivateWorkflowOperator, workflow_id=workflow_id)
    for _ in range(2):
        assert execute(ServiceDeactivateWorkflowOperator, workflow_id=workflow_id)["active"] is False
    assert not client.workflows.get(workflow_id).active
    assert link() == f"/workflow/{workflow_id}"


def test_archiving_and_unarchiving_are_idempotent(execute, client, workflow_id):
    for _ in range(2):
        assert execute(ServiceArchiveWorkflowOperator, workflow_id=workflow_id)["archived"] is True
    assert client.workflows.get(workflow_id).is_archived
    for _ in range(2):
        assert execute(ServiceUnarchiveWorkflowOperator, workflow_id=workflow_id)["archived"] is False
    assert not client.workflows.get(workflow_id).is_archived


@pytest.mark.parametrize(
    "operator",
    [
        ServiceActivateWorkflowOperator,
        ServiceDeactivateWorkflowOperator,
        ServiceArchiveWorkflowOperator,
        ServiceUnarchiveWorkflowOperator,
    ],
)
def test_the_button_leads_to_a_workflow_that_exists(execute, simulator, link, task_instance, workflow_id, operator):
    with pytest.raises(errors.ServiceNotFoundError, match="/workflows/nope"):
        execute(operator, workflow_id="nope")
    assert task_instance.pushed.keys() == {"service_failure"}
    simulator.state.workflows.get(workflow_id).is_archived = True
    simulator.inject("status", status=400, path=f"/{workflow_id}/")
    with pytest.raises(AirflowFailException):
        execute(operator, workflow_id=workflow_id)
    assert link() == f"/workflow/{workflow_id}"


def test_unarchiving_passes_on_a_refusal_that_means_something_else(execute, client, simulator, workflow_id):
    client.workflows.archive(workflow_id)
    simulator.inject("status", status=400, path="/unarchive$")
    with pytest.raises(AirflowFailException):
        execute(ServiceUnarchiveWorkflowOperator, workflow_id=workflow_id)


# ---------------------------------------------------------------- create or update


def test_create_update_and_leave_alone(execute, client, writes, link, definition):
    created = execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition)
    assert (created["outcome"], created["active"], writes()) == ("created", False, ["POST /workflows"])
    unchanged = execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition)
    assert (unchanged["outcome"], unchanged["workflow_id"], writes()) == ("unchanged", created["workflow_id"], [])
    definition["nodes"][0]["parameters"]["path"] = "elsewhere"
    updated = execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition)
    assert (updated["outcome"], writes()) == ("updated", [f"PUT /workflows/{created['workflow_id']}"])
    assert client.workflows.get(created["workflow_id"]).nodes[0]["parameters"]["path"] == "elsewhere"
    assert link() == f"/workflow/{created['workflow_id']}"


def test_an_export_of_the_service_is_accepted_as_it_is(execute, client, writes, simulator):
    exported = client.workflows.get(simulator.create_webhook_workflow("live", path="live")["id"])
    same = execute(
        ServiceCreateOrUpdateWorkflowOperator, definition=exported.to_wire(), workflow_id=exported.id, activate=True
    )
    assert (same["outcome"], same["active"], writes()) == ("unchanged", True, [])


@pytest.mark.parametrize(
    "change",
    [
        {"connections": {}},
        {"settings": {"executionTimeout": 60}},
        {"description": "what it is for"},
        {"pinData": {"Webhook": [{"json": {"n": 1}}]}},
        {"name": "nightly"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_each_part_that_differs_is_updated_once(execute, client, definition, change, writes):
    workflow_id = client.workflows.create("old", definition["nodes"], definition["connections"], {}).id
    writes()
    wanted = {**definition, "name": "old", **change}
    for outcome in ("updated", "unchanged"):
        done = execute(ServiceCreateOrUpdateWorkflowOperator, definition=wanted, workflow_id=workflow_id)
        assert done["outcome"] == outcome
    assert writes() == [f"PUT /workflows/{workflow_id}"]
    held = client.workflows.get(workflow_id).to_wire()
    assert {name: held[name] for name in change} == change


def test_a_removed_field_of_a_node_is_a_change(execute, client, definition):
    nodes = [{**node, "disabled": True} for node in definition["nodes"]]
    workflow_id = client.workflows.create("nightly", nodes, definition["connections"], {}).id
    outcomes = [execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition)["outcome"] for _ in range(2)]
    assert outcomes == ["updated", "unchanged"]
    assert not any("disabled" in node for node in client.workflows.get(workflow_id).nodes)


def test_other_static_data_is_not_a_change(execute, writes, definition):
    execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition)
    writes()
    again = execute(ServiceCreateOrUpdateWorkflowOperator, definition={**definition, "staticData": {"cursor": 1}})
    assert (again["outcome"], writes()) == ("unchanged", [])


def test_a_description_is_set_on_creation_too(execute, client, definition):
    created = execute(ServiceCreateOrUpdateWorkflowOperator, definition={**definition, "description": "why"})
    assert created["outcome"] == "created"
    assert client.workflows.get(created["workflow_id"]).description == "why"


def test_other_settings_and_static_data_stay(execute, client, definition):
    workflow = client.workflows.create(
        "nightly", definition["nodes"], definition["connections"], {"timezone": "UTC"}, static_data={"cursor": 7}
    )
    wanted = {**definition, "settings": {"executionTimeout": 60}, "staticData": {"cursor": 0}}
    execute(ServiceCreateOrUpdateWorkflowOperator, definition=wanted)
    held = client.workflows.get(workflow.id)
    assert held.settings == {"timezone": "UTC", "executionTimeout": 60}
    assert held.static_data == {"cursor": 7}


def test_activation_follows_the_argument(execute, client, definition, writes):
    def run(activate: bool | None) -> bool:
        return execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition, activate=activate)["active"]

    assert [run(None), run(True), run(True), run(None), run(False), run(False)] == [
        False,
        True,
        True,
        True,
        False,
        False,
    ]
    assert [one.rpartition("/")[2] for one in writes()] == ["workflows", "activate", "deactivate"]


def test_only_an_unarchived_workflow_of_the_exact_name_counts(execute, client, definition):
    others = [
        client.workflows.create(name, definition["nodes"], definition["connections"], {}).id
        for name in ("Nightly", "nightly run", "nightly")
    ]
    client.workflows.archive(others[-1])
    created = execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition)
    assert created["outcome"] == "created"
    assert created["workflow_id"] not in others


def test_two_workflows_of_the_name_are_ambiguous(execute, client, definition):
    ids = [client.workflows.create(**definition).id for _ in range(2)]
    with pytest.raises(AirflowFailException, match="more than one workflow named 'nightly'") as caught:
        execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition)
    assert all(one in str(caught.value) for one in ids)


def test_a_bad_definition_is_refused_before_anything_is_sent(execute, simulator):
    with pytest.raises(AirflowFailException, match="definition lacks nodes, connections; nothing was sent"):
        execute(ServiceCreateOrUpdateWorkflowOperator, definition={"name": "x"})
    with pytest.raises(AirflowFailException, match="must be a mapping, not list"):
        execute(ServiceCreateOrUpdateWorkflowOperator, definition="[]")
    with pytest.raises(AirflowFailException, match="definition is text that is not JSON: Expecting"):
        execute(ServiceCreateOrUpdateWorkflowOperator, definition="{'name': 'x'}")
    assert not simulator.requests


def test_expressions_of_the_service_are_left_as_they_are(execute, client, writes, definition):
    definition["nodes"][0]["parameters"]["options"] = {"responseData": "={{ $json.body.id }}", "at": ["={{ now }}"]}
    definition["nodes"][0]["notes"] = "{% raw %} {{ task.task_id }} {# kept #}"
    outcomes = []
    for given in (definition, definition, json.dumps(definition)):
        done = execute(ServiceCreateOrUpdateWorkflowOperator, definition=given, project_id=None)
        outcomes.append(done["outcome"])
    assert outcomes == ["created", "unchanged", "unchanged"]
    assert writes() == ["POST /workflows"]
    assert client.workflows.get(done["workflow_id"]).nodes[0].items() >= definition["nodes"][0].items()


# ---------------------------------------------------------------- tags


def test_tags_are_set_by_name_and_created(execute, client, writes, link, workflow_id):
    client.tags.create("known")
    writes()
    done = execute(ServiceSetWorkflowTagsOperator, workflow_id=workflow_id, tags=["new", "known", "new"])
    assert (done["tags"], done["changed"]) == (["known", "new"], True)
    assert {tag.name for tag in client.workflows.list_tags(workflow_id)} == {"known", "new"}
    assert writes() == ["POST /tags", f"PUT /workflows/{workflow_id}/tags"]
    again = execute(ServiceSetWorkflowTagsOperator, workflow_id=workflow_id, tags=("known", "new"))
    assert (again["changed"], writes()) == (False, [])
    assert link() == f"/workflow/{workflow_id}"


def test_tags_are_replaced_and_removed(execute, client, workflow_id):
    for tags in (["a", "b"], ["b"], []):
        execute(ServiceSetWorkflowTagsOperator, workflow_id=workflow_id, tags=tags)
        assert {tag.name for tag in client.workflows.list_tags(workflow_id)} == set(tags)


def test_tags_are_added_and_removed(execute, client, writes, workflow_id):
    def change(mode, *tags, **arguments):
        done = execute(ServiceSetWorkflowTagsOperator, workflow_id=workflow_id, tags=tags, mode=mode, **arguments)
        assert {tag.name for tag in client.workflows.list_tags(workflow_id)} == set(done["tags"])
        return done["tags"], done["changed"], len(writes())

    writes()
    assert change("add", "a", "b") == (["a", "b"], True, 3)
    assert change("add", "b") == (["a", "b"], False, 0)
    assert change("add") == (["a", "b"], False, 0)
    assert change("remove", "unknown", create_missing=False) == (["a", "b"], False, 0)
    assert change("remove", "a", "unknown") == (["b"], True, 1)
    assert change("remove") == (["b"], False, 0)
    ids = [tag.id for tag in client.tags.list() if tag.name == "a"]
    added = execute(ServiceSetWorkflowTagsOperator, workflow_id=workflow_id, tag_ids=ids, mode="add")
    removed = execute(ServiceSetWorkflowTagsOperator, workflow_id=workflow_id, tag_ids=ids, mode="remove")
    assert (added["tags"], removed["tags"]) == (["a", "b"], ["b"])


def test_missing_tags_can_fail_instead(execute, client, writes, workflow_id):
    with pytest.raises(AirflowFailException, match="these tags do not exist: 'a', 'b'; create_missing=True"):
        execute(ServiceSetWorkflowTagsOperator, workflow_id=workflow_id, tags=["b", "a"], create_missing=False)
    assert writes() == []
    with pytest.raises(AirflowFailException, match="tags must be a list, not str"):
        execute(ServiceSetWorkflowTagsOperator, workflow_id=workflow_id, tags="a")
