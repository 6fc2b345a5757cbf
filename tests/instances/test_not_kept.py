"""What a file says and the service keeps in another form, or not at all: the second deployment finds no change."""

from __future__ import annotations

import pytest

from airflow_provider_service._core.instances.plan import DeploymentTarget, make_plan
from airflow_provider_service._core.instances.source import read_source
from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.operators.deployment import ServiceCreateOrUpdateWorkflowOperator
from airflow_provider_service.operators.instances import ServiceDeployWorkflowsOperator

from .workflows import node, webhook, workflow


def request(reference, name="Request"):
    parameters = {"url": "http://127.0.0.1:9", "authentication": "basicAuth"}
    return node(name, "httpRequest", parameters, typeVersion=1, credentials={"httpBasicAuth": reference})


def put_credential(client, name="Basic account", kind="httpBasicAuth"):
    data = {"user": "u", "password": "p"} if kind == "httpBasicAuth" else {"name": "X-Key", "value": "one"}
    return client.credentials.create(name, kind, data)


def stored(client, name="one"):
    [held] = [one for one in client.workflows.list() if one.name == name]
    return client.workflows.get(held.id)


def test_a_credential_as_text_is_found_by_name_and_type(client, deploy):
    put_credential(client, kind="httpHeaderAuth")
    made = put_credential(client)
    source = [workflow("one", webhook("one"), request("Basic account"), request("Basic account", "Again"), active=True)]
    assert deploy(source)["create"] == ["one"]
    found = {"id": made.id, "name": "Basic account"}
    assert [one.get("credentials") for one in stored(client).nodes[1:]] == [{"httpBasicAuth": found}] * 2
    version = stored(client).active_version_id
    assert deploy(source) == {"unchanged": ["one"]}
    assert stored(client).active_version_id == version


def test_a_missing_credential_as_text_is_reported_like_any_other(execute, client):
    put_credential(client, "Another")
    source = [workflow("one", request("Basic account"))]
    for preview in (True, False):
        with pytest.raises(Exception, match=r"node 'Request': there is no credential of type httpBasicAuth 'Basic acc"):
            execute(ServiceDeployWorkflowsOperator, source=source, preview=preview)
    assert list(client.workflows.list()) == []


def test_a_credential_as_text_is_mapped(execute, client):
    made = put_credential(client, "Live")
    arguments = {"source": [workflow("one", request("Test"))], "mapping": {"credentials": {"Test": "Live"}}}
    assert execute(ServiceDeployWorkflowsOperator, **arguments)["created"] == ["one"]
    assert stored(client).nodes[0]["credentials"] == {"httpBasicAuth": {"id": made.id, "name": "Live"}}
    assert execute(ServiceDeployWorkflowsOperator, **arguments)["outcome"] == "unchanged"


def test_a_workflow_that_holds_the_text_gets_the_credential_once_there_is_one(client, deploy, files):
    client.workflows.create("one", [request("Basic account")], {}, {})
    source = [workflow("one", request("Basic account"))]
    assert deploy(source) == {"unchanged": ["one"]}  # as with an id whose credential was deleted
    assert '"name": "Basic account"' in next(text for path, text in files().items() if path.startswith("one"))
    made = put_credential(client)
    assert deploy(source) == {"update": ["one"]}
    assert stored(client).nodes[0]["credentials"]["httpBasicAuth"]["id"] == made.id


@pytest.mark.parametrize("empty", ["", None, {}, {"id": None, "name": ""}, {"id": "", "name": None}], ids=repr)
def test_a_credential_without_a_name_is_none_and_never_any_of_its_type(client, deploy, empty):
    put_credential(client)
    source = [workflow("one", request(empty), request(empty, "Again"))]
    deploy(source)
    assert not any((one["credentials"]["httpBasicAuth"] or {}).get("id") for one in stored(client).nodes)
    assert deploy(source) == {"unchanged": ["one"]}


@pytest.mark.parametrize("wrong", [["Basic account"], 5, True], ids=repr)
def test_a_credential_of_another_kind_is_refused(deploy, wrong):
    with pytest.raises(ServiceInputError, match=r"credentials.httpBasicAuth of nodes\[0\] of .* must be a mapping"):
        deploy([workflow("one", request(wrong))])


@pytest.mark.parametrize("reference", ["Basic account", {"name": "Basic account"}], ids=repr)
@pytest.mark.parametrize("exists", [True, False], ids=["there", "missing"])
def test_a_single_workflow_never_gets_another_credential_of_the_type(execute, client, reference, exists):
    put_credential(client, "Another")
    if exists:
        put_credential(client)
    arguments = {"definition": workflow("one", request(reference)), "activate": False}
    assert execute(ServiceCreateOrUpdateWorkflowOperator, **arguments)["outcome"] == "created"
    held = stored(client).nodes[0]["credentials"]["httpBasicAuth"]
    assert (held["name"], bool(held["id"])) == ("Basic account", exists)
    assert execute(ServiceCreateOrUpdateWorkflowOperator, **arguments)["outcome"] == "unchanged"


@pytest.mark.parametrize("empty", [{}, {"id": "", "webhookId": ""}, {"webhookId": None}], ids=repr)
def test_empty_ids_of_nodes_are_none(execute, client, empty):
    hooks = [
        webhook("one", **empty),
        {**node("Form", "formTrigger", {"formTitle": "Form", "path": "form"}), **empty},
        {**node("Pushed", "githubTrigger", typeVersion=1, disabled=True), **empty},
        {**node("Done", "noOp"), **empty},
    ]
    definition = {**workflow("one", active=True), "nodes": hooks}
    assert execute(ServiceDeployWorkflowsOperator, source=[definition])["created"] == ["one"]
    before = stored(client)
    assert all(one["id"] for one in before.nodes)
    assert [bool(one.get("webhookId")) for one in before.nodes] == [True, True, True, False]
    assert execute(ServiceDeployWorkflowsOperator, source=[definition])["outcome"] == "unchanged"
    again = execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition)
    assert again["outcome"] == "unchanged"
    changed = {**definition, "nodes": [*hooks[:3], {**hooks[3], "notes": "new"}]}
    assert execute(ServiceDeployWorkflowsOperator, source=[changed])["updated"] == ["one"]
    assert execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition)["outcome"] == "updated"
    assert [one.get("webhookId") for one in stored(client).nodes] == [one.get("webhookId") for one in before.nodes]


SETTINGS = {"executionOrder": "v1", "binaryMode": "separate", "redactionPolicy": "none", "credentialResolverId": "x"}
NOTE = (
    "settings that are not compared, since the service does not keep them, or keeps them only with a license: "
    "binaryMode (workflows: 2), credentialResolverId (workflows: 2), redactionPolicy (workflows: 2)"
)


def test_settings_that_the_service_does_not_keep_are_named_once_and_are_no_change(
    execute, client, simulator, tmp_path, monkeypatch
):
    monkeypatch.setattr(simulator.state, "licensed", False)
    source = [workflow(name, webhook(name), settings=SETTINGS, active=True) for name in ("one", "two")]
    report = tmp_path / "plan.md"
    for outcome in ("deployed", "unchanged", "unchanged"):
        done = execute(ServiceDeployWorkflowsOperator, source=source, report_path=str(report))
        assert done["outcome"] == outcome
        assert report.read_text().count("binaryMode") == 1
    assert stored(client).settings == {"executionOrder": "v1"}
    plan = make_plan(read_source(source), DeploymentTarget(client))
    assert [*plan.lines()] == ["Plan: unchanged 2", NOTE]
    changed = make_plan(read_source([{**source[0], "nodes": [webhook("other")]}]), DeploymentTarget(client))
    assert not any("setting " in line for line in changed.changes[0].diff)


def test_a_service_that_keeps_a_setting_has_it_compared(client, deploy):
    def source(policy):
        return [workflow("one", webhook("one"), settings={"redactionPolicy": policy})]

    deploy(source("none"))
    assert deploy(source("all")) == {"update": ["one"]}
    assert stored(client).settings == {"redactionPolicy": "all"}
    assert deploy(source("all")) == {"unchanged": ["one"]}
