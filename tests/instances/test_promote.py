"""From one instance to another: what workflows name is found by its name."""

from __future__ import annotations

import json

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.operators.instances import ServicePromoteWorkflowsOperator

from .workflows import address, child, node, parent, webhook, workflow


@pytest.fixture
def staging(client, deploy):
    """Workflows that name a credential, a table, each other and a tag."""
    credential = client.credentials.create("mail", "httpHeaderAuth", {"name": "X", "value": "y"})
    table = client.data_tables.create("stock", [{"name": "n", "type": "number"}])
    held = {"httpHeaderAuth": {"id": credential.id, "name": "mail"}}
    rows = node("Rows", "dataTable", {"dataTableId": address(table.id)}, credentials=held)
    stock = workflow("stock", webhook("stock"), rows, active=True, settings={"errorWorkflow": {"name": "child"}})
    deploy([child(tags=["release"]), parent(tags=["release"]), {**stock, "tags": ["release"]}, workflow("other")])


def without_ids(files):
    """The definitions by file, without the ids of the workflows, which each instance has its own of."""
    return {name: {**json.loads(text), "id": None} for name, text in files.items()}


def test_everything_is_found_by_its_name(execute, client, staging, second_client, files):
    credential = second_client.credentials.create("mail", "httpHeaderAuth", {"name": "X", "value": "z"})
    table = second_client.data_tables.create("stock", [{"name": "n", "type": "number"}])
    promote = {"source_conn_id": "service_default", "service_conn_id": "production", "tag_name": "release"}
    done = execute(ServicePromoteWorkflowsOperator, **promote)
    assert (done["outcome"], done["created"]) == ("deployed", ["child", "parent", "stock"])
    held = {one.name: one for one in second_client.workflows.list()}
    assert all(one.active for one in held.values())
    rows = held["stock"].nodes[1]
    assert rows["credentials"] == {"httpHeaderAuth": {"id": credential.id, "name": "mail"}}
    assert rows["parameters"]["dataTableId"] == {**address(table.id), "cachedResultName": "stock"}
    assert held["stock"].settings["errorWorkflow"] == held["child"].id
    assert held["parent"].nodes[1]["parameters"]["workflowId"]["value"] == held["child"].id
    assert execute(ServicePromoteWorkflowsOperator, **promote)["outcome"] == "unchanged"
    here, there = without_ids(files(folder="here")), without_ids(files(second_client, folder="there"))
    assert there == {name: definition for name, definition in here.items() if name != "other.json"}


def test_a_description_that_was_removed_in_the_source_is_removed_in_the_target(execute, client, deploy, second_client):
    deploy([workflow("one", webhook("one"), description="old", active=True)])
    promote = {"source_conn_id": "service_default", "service_conn_id": "production", "workflow_names": ["one"]}
    execute(ServicePromoteWorkflowsOperator, **promote)
    # A definition without it leaves it, and an empty text removes it.
    assert deploy([workflow("one", webhook("one"))]) == {"unchanged": ["one"]}
    assert deploy([workflow("one", webhook("one"), description="")]) == {"update": ["one"]}
    assert execute(ServicePromoteWorkflowsOperator, **promote)["updated"] == ["one"]
    [held] = second_client.workflows.list()
    assert not second_client.workflows.get(held.id).description
    assert execute(ServicePromoteWorkflowsOperator, **promote)["outcome"] == "unchanged"


def test_from_a_project_to_a_project_by_their_names(execute, client, staging, second_client):
    source, target = client.projects.create("Sales"), second_client.projects.create("Production")
    [moved] = [one for one in client.workflows.list() if one.name == "other"]
    client.workflows.transfer(moved.id, source.id)
    done = execute(
        ServicePromoteWorkflowsOperator,
        source_conn_id="service_default",
        service_conn_id="production",
        project_name="Sales",
        destination_project_name="Production",
    )
    assert done["created"] == ["other"]
    assert [one.name for one in second_client.workflows.list(project_id=target.id)] == ["other"]


def test_what_is_missing_there_is_named_and_nothing_is_written(execute, staging, second, second_client):
    second.clear_requests()
    with pytest.raises(AirflowFailException) as caught:
        execute(
            ServicePromoteWorkflowsOperator,
            source_conn_id="service_default",
            service_conn_id="production",
            workflow_names=["parent", "stock"],
        )
    for words in ("no workflow 'child'", "no credential of type httpHeaderAuth 'mail'", "no data table 'stock'"):
        assert words in str(caught.value)
    assert {request.method for request in second.requests} == {"GET"}


def test_a_selection_is_required_and_must_find_something(execute, staging, second):
    promote = {"source_conn_id": "service_default", "service_conn_id": "production"}
    with pytest.raises(AirflowFailException, match="give workflow_names, a tag or a project of the source"):
        execute(ServicePromoteWorkflowsOperator, **promote)
    with pytest.raises(AirflowFailException, match="the source has no workflow to promote"):
        execute(ServicePromoteWorkflowsOperator, **promote, project_id="nope")


def test_workflows_removed_from_the_source_are_archived_if_they_were_promoted(
    execute, client, deploy, second_client, writes
):
    deploy([workflow(name, webhook(name), active=True, tags=["release"]) for name in ("a", "b", "c")])
    second_client.workflows.create("by hand", [webhook("hand")], {}, {})
    promote = {"source_conn_id": "service_default", "service_conn_id": "production", "tag_name": "release"}
    owned = {**promote, "deployment_name": "release", "archive_missing": True}
    execute(ServicePromoteWorkflowsOperator, **owned)
    held = {one.name: one for one in client.workflows.list()}
    client.workflows.update_tags(held["a"].id, [])  # no longer selected
    client.workflows.archive(held["b"].id)
    c = client.workflows.get(held["c"].id)
    client.workflows.update(c.id, "renamed", c.nodes, c.connections, {})

    assert execute(ServicePromoteWorkflowsOperator, **promote, preview=True)["archived"] == []
    done = execute(ServicePromoteWorkflowsOperator, **owned)

    assert (done["created"], done["archived"]) == (["renamed"], ["a", "b", "c"])
    there = {one.name: one for one in second_client.workflows.list() if not one.name.startswith("Airflow: ")}
    assert {name for name, one in there.items() if one.is_archived} == {"a", "b", "c"}
    assert there.keys() == {"a", "b", "c", "renamed", "by hand"}
    assert there["renamed"].active  # it has taken over the webhook
    writes()
    assert execute(ServicePromoteWorkflowsOperator, **owned)["outcome"] == "unchanged"
    assert writes() == []


def test_nothing_is_archived_if_the_promotion_fails(execute, client, deploy, second, second_client):
    deploy([workflow(name, webhook(name), active=True, tags=["release"]) for name in ("a", "b")])
    promote = {"source_conn_id": "service_default", "service_conn_id": "production", "tag_name": "release"}
    owned = {**promote, "deployment_name": "release", "archive_missing": True}
    execute(ServicePromoteWorkflowsOperator, **owned)
    [gone] = [one for one in client.workflows.list() if one.name == "b"]
    client.workflows.archive(gone.id)
    deploy([workflow("new", webhook("new"), active=True, tags=["release"])])
    second.inject("status", status=400, method="POST", path="/activate$", times=1)

    with pytest.raises(AirflowFailException, match="Everything that it had changed was rolled back"):
        execute(ServicePromoteWorkflowsOperator, **owned)

    there = {one.name: one for one in second_client.workflows.list() if not one.name.startswith("Airflow: ")}
    assert {name: bool(one.is_archived) for name, one in there.items()} == {"a": False, "b": False}


def test_without_a_name_nothing_is_known_to_archive(execute, staging, second):
    promote = {"source_conn_id": "service_default", "service_conn_id": "production", "tag_name": "release"}
    second.clear_requests()
    with pytest.raises(AirflowFailException, match="archive_missing=True needs deployment_name"):
        execute(ServicePromoteWorkflowsOperator, **promote, archive_missing=True)
    assert not second.requests
