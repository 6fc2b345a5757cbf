"""Operators on workflows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client import errors
from airflow_provider_service.operators.workflows import (
    ServiceActivateWorkflowOperator,
    ServiceArchiveWorkflowOperator,
    ServiceCreateOrUpdateWorkflowOperator,
    ServiceDeactivateWorkflowOperator,
    ServiceSetWorkflowTagsOperator,
    ServiceUnarchiveWorkflowOperator,
)
from airflow_provider_service.simulator.samples import webhook_workflow


@pytest.fixture
def workflow_id(simulator) -> str:
    return simulator.create_webhook_workflow("orders", path="orders", active=False)["id"]


@pytest.fixture
def definition() -> dict[str, Any]:
    return webhook_workflow("nightly", "nightly", "immediate")


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
    assert task_instance.pushed == {}
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


# ---------------------------------------------------------------- deployment to production


@pytest.fixture
def deployed(execute, simulator, definition) -> dict[str, Any]:
    """The result of deploying an active workflow."""
    return execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition, activate=True)


@pytest.fixture
def without_trigger(definition) -> dict[str, Any]:
    """The same workflow as a definition that cannot be published."""
    return {**definition, "nodes": definition["nodes"][1:], "connections": {}}


def live_nodes(client, workflow_id: str) -> list[str]:
    return [node["name"] for node in client.workflows.get(workflow_id).active_version.nodes]


@pytest.mark.parametrize("activate", [None, True])
def test_a_deployment_that_is_refused_fails_in_every_attempt(
    execute, client, caplog, definition, deployed, without_trigger, activate
):
    for _ in range(3):
        caplog.clear()
        with pytest.raises(AirflowFailException, match="it has no trigger node"):
            execute(ServiceCreateOrUpdateWorkflowOperator, definition=without_trigger, activate=activate)
        assert f"Workflow {deployed['workflow_id']} still runs version {deployed['version_id']}" in caplog.text
        assert live_nodes(client, deployed["workflow_id"]) == [node["name"] for node in definition["nodes"]]


def test_a_deployment_whose_webhook_is_taken_fails_in_every_attempt(execute, client, simulator, definition, deployed):
    rival = simulator.create_webhook_workflow("rival", path="taken")["id"]
    definition["nodes"][0]["parameters"]["path"] = "taken"
    for _ in range(2):
        with pytest.raises(AirflowFailException, match=rf"POST 'taken' by 'rival' \({rival}\)"):
            execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition)
    assert client.workflows.get(deployed["workflow_id"]).active_version_id == deployed["version_id"]


def test_an_activation_says_which_workflow_holds_its_webhook(execute, client, simulator):
    rival, other = (simulator.create_webhook_workflow(name, path="taken", active=False)["id"] for name in ("A", "B"))
    client.workflows.activate(rival)
    simulator.clock.advance(1)
    message = (
        rf"holds a webhook of workflow {other}: POST 'taken' by 'A' \({rival}\).*Deactivate that workflow, or give"
    )
    with pytest.raises(AirflowFailException, match=message):
        execute(ServiceActivateWorkflowOperator, workflow_id=other)
    version = client.workflows.get(other).version_id
    with pytest.raises(AirflowFailException, match=message):
        execute(ServiceActivateWorkflowOperator, workflow_id=other, version_id=version)


def test_a_webhook_that_is_being_released_is_worth_another_attempt(execute, client, simulator):
    rival, other = (simulator.create_webhook_workflow(name, path="taken", active=False)["id"] for name in ("A", "B"))
    client.workflows.activate(rival)
    simulator.clock.advance(1)
    simulator.state.publish_delay = 600
    client.workflows.deactivate(rival)
    with pytest.raises(errors.ServiceConflictError, match="Its webhooks are POST 'taken'; no active workflow"):
        execute(ServiceActivateWorkflowOperator, workflow_id=other)
    simulator.clock.advance(601)
    assert execute(ServiceActivateWorkflowOperator, workflow_id=other)["active"]


def test_a_deployment_without_the_scope_to_publish_fails_in_every_attempt(
    execute, client, simulator, monkeypatch, definition, deployed
):
    key = simulator.create_key(["workflow:list", "workflow:read", "workflow:update"])
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", simulator.connection_json().replace(simulator.api_key, key))
    definition["nodes"][0]["parameters"]["path"] = "elsewhere"
    with pytest.raises(AirflowFailException, match="Your change was saved as a draft"):
        execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition)
    for _ in range(2):
        with pytest.raises(AirflowFailException, match="lacks the scope 'workflow:activate'"):
            execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition)
    assert client.workflows.get(deployed["workflow_id"]).active_version_id == deployed["version_id"]


def test_a_refused_deployment_is_published_as_soon_as_possible(
    execute, client, simulator, definition, deployed, writes
):
    rival = simulator.create_webhook_workflow("rival", path="taken")["id"]
    definition["nodes"][0]["parameters"]["path"] = "taken"
    with pytest.raises(AirflowFailException, match="by 'rival'"):
        execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition)
    client.workflows.deactivate(rival)
    simulator.clock.advance(1)
    writes()
    done = execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition)
    assert (done["outcome"], writes()) == ("updated", [f"POST /workflows/{deployed['workflow_id']}/activate"])
    held = client.workflows.get(deployed["workflow_id"])
    assert held.active_version_id == done["version_id"] != deployed["version_id"]


@pytest.mark.parametrize("activate", [None, True])
def test_after_a_rollback_a_deployment_publishes_again(execute, client, writes, definition, deployed, activate):
    definition["nodes"][0]["parameters"]["path"] = "elsewhere"
    newer = execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition)
    client.workflows.activate(deployed["workflow_id"], version_id=deployed["version_id"])
    writes()
    again = [execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition, activate=activate) for _ in range(2)]
    assert [one["outcome"] for one in again] == ["updated", "unchanged"]
    assert {one["version_id"] for one in again} == {newer["version_id"]}
    assert writes() == [f"POST /workflows/{deployed['workflow_id']}/activate"]


@pytest.mark.parametrize("activate", [None, True])
def test_a_draft_that_waits_is_left_alone_when_the_definition_runs(
    execute, client, writes, definition, deployed, activate
):
    held = client.workflows.get(deployed["workflow_id"])
    client.workflows.update(held.id, held.name, held.nodes[:1], {}, {}, publish_if_active=False)
    writes()
    done = execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition, activate=activate)
    assert (done["outcome"], done["version_id"], writes()) == ("unchanged", deployed["version_id"], [])
    assert len(client.workflows.get(held.id).nodes) == 1


def test_a_setting_is_changed_although_another_draft_waits(execute, client, definition, deployed):
    held = client.workflows.get(deployed["workflow_id"])
    client.workflows.update(held.id, held.name, held.nodes[:1], {}, {}, publish_if_active=False)
    wanted = {**definition, "settings": {"executionTimeout": 60}}
    assert execute(ServiceCreateOrUpdateWorkflowOperator, definition=wanted)["outcome"] == "updated"
    held = client.workflows.get(held.id)
    assert held.settings["executionTimeout"] == 60
    assert (held.active_version_id, len(held.active_version.nodes)) == (held.version_id, len(definition["nodes"]))


def test_a_workflow_is_deactivated_before_it_changes(execute, client, writes, definition, deployed):
    definition["nodes"][0]["parameters"]["path"] = "elsewhere"
    writes()
    done = execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition, activate=False)
    assert (done["outcome"], done["active"], done["version_id"]) == ("updated", False, None)
    assert writes() == [
        f"POST /workflows/{deployed['workflow_id']}/deactivate",
        f"PUT /workflows/{deployed['workflow_id']}",
    ]


def test_the_outcome_says_what_changed(execute, definition):
    outcomes = [
        execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition, activate=activate)["outcome"]
        for activate in (True, True, False, False, None, True)
    ]
    assert outcomes == ["created", "unchanged", "deactivated", "unchanged", "unchanged", "activated"]


def test_tags_of_a_definition_are_reported_as_left_out(execute, client, caplog, definition):
    tagged = {**definition, "tags": [{"id": "1", "name": "prod"}, {"id": "2", "name": "billing"}]}
    workflow_id = execute(ServiceCreateOrUpdateWorkflowOperator, definition=tagged)["workflow_id"]
    assert "The definition's tags 'billing', 'prod' were not set" in caplog.text
    assert "set them with ServiceSetWorkflowTagsOperator" in caplog.text
    assert client.workflows.list_tags(workflow_id) == []

    caplog.clear()
    execute(ServiceSetWorkflowTagsOperator, workflow_id=workflow_id, tags=["prod", "billing"])
    execute(ServiceCreateOrUpdateWorkflowOperator, definition=tagged)
    assert "were not set" not in caplog.text


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


def test_missing_tags_can_fail_instead(execute, client, writes, workflow_id):
    with pytest.raises(AirflowFailException, match="these tags do not exist: 'a', 'b'; create_missing=True"):
        execute(ServiceSetWorkflowTagsOperator, workflow_id=workflow_id, tags=["b", "a"], create_missing=False)
    assert writes() == []
    with pytest.raises(AirflowFailException, match="tags must be a list, not str"):
        execute(ServiceSetWorkflowTagsOperator, workflow_id=workflow_id, tags="a")
