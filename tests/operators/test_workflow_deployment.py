"""Deployments of workflows that run in production: what is published, and what a refusal leaves."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client import errors
from airflow_provider_service.operators.deployment import ServiceCreateOrUpdateWorkflowOperator
from airflow_provider_service.operators.workflows import ServiceActivateWorkflowOperator, ServiceSetWorkflowTagsOperator


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
    with pytest.raises(errors.ServiceConflictError, match="POST 'taken'; the key sees no active workflow"):
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
