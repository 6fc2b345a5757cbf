"""Workflows removed from a deployed folder are archived: only those that the folder deployed, all or none."""

from __future__ import annotations

import json

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.instances.apply import apply_plan
from airflow_provider_service._core.instances.plan import DeploymentTarget, make_plan
from airflow_provider_service._core.instances.source import read_source
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.client._lookup import get_workflow
from airflow_provider_service.client.errors import ServiceDeploymentError, ServiceError, ServiceInputError
from airflow_provider_service.operators.instances import ServiceDeployWorkflowsOperator

from .conftest import moments
from .test_rollback import REFUSED, state_of
from .workflows import child, parent, webhook, workflow

RECORD = "Airflow: deployment of orders"
OWNED = {"deployment_name": "orders", "archive_missing": True}


def source(*names):
    """Active workflows with a webhook of their own."""
    return [workflow(name, webhook(name), active=True) for name in names]


def held(client, *, archived=False):
    """The ids of the workflows by name, without the record."""
    listed = (one for one in client.workflows.list() if bool(one.is_archived) == archived)
    return {one.name: one.id for one in listed if one.name != RECORD}


def record(client):
    """The workflow that is the record."""
    [found] = [one for one in client.workflows.list() if one.name == RECORD]
    return found


def recorded(client):
    return json.loads(record(client).nodes[0]["parameters"]["content"].partition("\n\n")[2])["workflows"]


def test_removed_workflows_are_archived_and_no_others(client, deploy, writes):
    client.workflows.create("by hand", [webhook("hand")], {}, {})
    assert deploy(source("a", "b", "c"), **OWNED)["create"] == ["a", "b", "c"]
    before = held(client)
    assert recorded(client) == sorted(before[name] for name in "abc")
    assert deploy(source("a"), **OWNED) == {"archive": ["b", "c"], "unchanged": ["a"]}
    assert held(client) == {"a": before["a"], "by hand": before["by hand"]}
    assert held(client, archived=True) == {"b": before["b"], "c": before["c"]}
    assert recorded(client) == [before["a"]]
    writes()
    assert deploy(source("a"), **OWNED) == {"unchanged": ["a"]}
    assert writes() == []


def test_the_plan_says_what_is_archived_and_why(client, execute, deploy, caplog, writes):
    deploy([*source("a", "b"), workflow("idle", webhook("idle"))], **OWNED)
    writes()
    with caplog.at_level("INFO"):
        done = execute(ServiceDeployWorkflowsOperator, source=source("a"), preview=True, **OWNED)
    assert (done["outcome"], done["archived"], list(done["workflow_ids"])) == ("planned", ["b", "idle"], ["a"])
    for line in (
        "Plan: archive 2, unchanged 1",
        f"{RECORD}: update",
        "b: archive",
        "    it has left the source, and it is active",
        "idle: archive",
    ):
        assert line in caplog.messages
    assert writes() == []


def test_without_the_opt_in_removed_workflows_stay_and_stay_on_record(client, deploy):
    deploy(source("a", "b"), deployment_name="orders")
    assert deploy(source("a"), deployment_name="orders") == {"unchanged": ["a"]}
    assert deploy(source("a")) == {"unchanged": ["a"]}
    assert held(client).keys() == {"a", "b"}
    assert deploy(source("a"), **OWNED)["archive"] == ["b"]


def test_what_was_deployed_before_the_first_record_is_not_archived(client, deploy):
    deploy(source("a", "b"))
    assert deploy(source("a"), **OWNED) == {"unchanged": ["a"]}
    assert held(client).keys() == {"a", "b"}


def test_a_copy_that_somebody_made_is_not_archived(client, deploy):
    deploy([{**source("a")[0], "tags": ["orders"]}, *source("b")], **OWNED)
    one = client.workflows.get(held(client)["a"])
    copy = client.workflows.create("a copy", one.nodes, one.connections, {})
    client.workflows.update_tags(copy.id, [tag.id for tag in one.tags])
    assert deploy(source("b"), **OWNED)["archive"] == ["a"]
    assert held(client).keys() == {"b", "a copy"}


def test_a_record_that_somebody_else_wrote_is_ignored(client, deploy, caplog):
    victim = client.workflows.create("victim", [webhook("victim")], {}, {}).id
    deploy(source("a", "b"), **OWNED)
    note = record(client).nodes
    forged = note[0]["parameters"]["content"].replace('"workflows": [', f'"workflows": ["{victim}", ')
    client.workflows.create(RECORD, [{**note[0], "parameters": {"content": forged}}], {}, {})
    assert deploy(source("a"), **OWNED)["archive"] == ["b"]
    assert victim in held(client).values()
    assert "was not written with this API key" in caplog.text


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"workflows": 7, "signature": "é"}', "[" * 100_000])
def test_a_record_that_somebody_changed_archives_nothing(client, deploy, content):
    deploy(source("a", "b"), **OWNED)
    one = record(client)
    nodes = [{**one.nodes[0], "parameters": {"content": content}}] if content else []
    client.workflows.update(one.id, RECORD, nodes, {}, {})
    assert deploy(source("a"), **OWNED) == {"unchanged": ["a"]}
    assert held(client).keys() == {"a", "b"}


def test_with_another_key_nothing_is_archived(simulator, client, deploy):
    deploy(source("a", "b"), **OWNED)
    config = ServiceConfig(base_url=simulator.base_url, api_key=simulator.state.add_key().secret)
    with ServiceClient(config) as rotated:
        assert deploy(source("a"), to=rotated, **OWNED) == {"unchanged": ["a"]}
    assert held(client).keys() == {"a", "b"}


def test_a_workflow_moved_to_another_folder_stays(client, deploy):
    deploy(source("a", "b"), **OWNED)
    deploy(source("b"), deployment_name="billing", archive_missing=True)
    assert deploy(source("a"), **OWNED) == {"unchanged": ["a"]}
    assert "b" in held(client)
    assert deploy(source("c"), deployment_name="billing", archive_missing=True)["archive"] == ["b"]


def test_what_others_start_is_not_archived(client, deploy, writes):
    failing = workflow("failing", webhook("failing"), settings={"errorWorkflow": {"name": "child"}})
    deploy([child(), parent(), failing], **OWNED)
    writes()
    for rest, name in (([parent()], "parent"), ([failing], "failing")):
        with pytest.raises(ServiceInputError, match=rf"'child' \(.+\) has left the source.*, but '{name}'"):
            deploy(rest, **OWNED)
    assert writes() == []
    assert deploy([workflow("failing", webhook("failing"))], **OWNED)["archive"] == ["parent", "child"]


def test_what_somebody_elses_active_workflow_starts_is_not_archived(client, deploy):
    deploy([child(), *source("a")], **OWNED)
    deploy([parent()])
    with pytest.raises(ServiceInputError, match=r"'child'.*, but 'parent' would still start it"):
        deploy(source("a"), **OWNED)
    client.workflows.deactivate(held(client)["parent"])
    assert deploy(source("a"), **OWNED)["archive"] == ["child"]


def test_a_new_workflow_takes_over_the_webhook_of_one_that_is_archived(client, deploy, simulator):
    deploy(source("a", "b"), **OWNED)
    renamed = workflow("new", webhook("b"), active=True)
    assert deploy([*source("a"), renamed], **OWNED) == {
        **{"create": ["new"], "activate": ["new"], "archive": ["b"], "unchanged": ["a"]}
    }


def test_a_workflow_that_lost_its_webhook_to_a_new_one_is_restored(client, deploy, simulator, monkeypatch):
    monkeypatch.setattr(simulator.state, "publish_delay", 0)  # the new workflow has the webhook before the failure
    deploy(source("a", "b"), **OWNED)
    before = state_of(client)
    successor = workflow("new", webhook("b"), active=True)
    with pytest.raises(ServiceDeploymentError, match="Everything that it had changed was rolled back"):
        deploy([*source("a"), REFUSED, successor], **OWNED)
    assert state_of(client) == before


@pytest.fixture
def family(client, deploy):
    """Deployed and recorded: a caller and what it calls, an idle one and one that stays, of which two have a draft."""
    deploy([child(), parent(tags=["t"]), workflow("idle", webhook("idle")), *source("stays")], **OWNED)
    for name in ("parent", "stays"):
        client.workflows.update(held(client)[name], name, [webhook("draft")], {}, {}, publish_if_active=False)
    return state_of(client)


def test_all_archived_workflows_are_restored(client, deploy, family):
    versions = {one.name: one.active_version_id for one in client.workflows.list()}
    with pytest.raises(ServiceDeploymentError, match="Everything that it had changed was rolled back: 'parent'"):
        deploy([*source("stays"), REFUSED], **OWNED)
    assert state_of(client) == family
    assert {one.name: one.active_version_id for one in client.workflows.list()} == versions
    assert held(client, archived=True) == {}


def test_a_workflow_is_restored_after_the_archived_one_that_it_called(client, deploy, family):
    alone = workflow("parent", webhook("parent"), active=True)
    with pytest.raises(ServiceDeploymentError, match="Everything that it had changed was rolled back"):
        deploy([alone, *source("stays"), REFUSED], **OWNED)
    assert state_of(client) == family


WRITES = [("POST", "/archive$"), ("PUT", "/record$"), ("POST", "/new/activate$"), ("POST", "/workflows$")]


@pytest.mark.parametrize("is_done", [False, True], ids=["refused", "refused but done"])
@pytest.mark.parametrize(("method", "path"), WRITES)
def test_a_failure_of_any_write_is_rolled_back(client, simulator, deploy, family, method, path, is_done):
    path = path.replace("/record", f"/{record(client).id}").replace("/new/", "/[^/]+/")
    simulator.inject("status", status=400, method=method, path=path, after_processing=is_done)
    with pytest.raises(ServiceDeploymentError, match="HTTP 400"):
        deploy([*source("stays"), *source("new")], **OWNED)
    if (method, path, is_done) == ("POST", "/workflows$", True):
        client.workflows.delete(get_workflow(client, "new").id)
    assert state_of(client) == family


@pytest.mark.parametrize("is_done", [False, True])
def test_a_lost_answer_during_the_rollback(client, simulator, deploy, family, is_done):
    simulator.inject("drop", method="POST", path="/unarchive$", after_processing=is_done)
    with pytest.raises(ServiceDeploymentError) as caught:
        deploy([*source("stays"), REFUSED], **OWNED)
    assert ("Not everything could be rolled back" in str(caught.value)) != is_done
    assert (held(client, archived=True) == {}) == is_done


def test_a_server_that_cannot_archive(client, simulator, deploy, family):
    simulator.inject("status", status=404, method="POST", path="/archive$", times=None)
    with pytest.raises(ServiceDeploymentError, match="while archiving 'parent'"):
        deploy(source("stays"), **OWNED)
    assert state_of(client) == family


@pytest.mark.slow
def test_the_next_attempt_finishes_whatever_the_last_request_was(simulator, client, deploy):
    def begin():
        simulator.reset()
        deploy(source("a", "b", "c"), **OWNED)
        simulator.clear_requests()

    after = [*source("a"), workflow("d", webhook("b"), active=True)]
    begin()
    deploy(after, **OWNED)
    last_requests = moments(simulator)
    assert len(last_requests) > 4
    for last in last_requests:
        begin()
        simulator.inject("status", status=403, times=None, skip=last)
        with pytest.raises(ServiceError):
            deploy(after, **OWNED)
        simulator.clear_faults()
        simulator.clock.advance(1)  # the next attempt comes later, when the service has released the webhook
        deploy(after, **OWNED)
        assert (held(client).keys(), held(client, archived=True).keys()) == ({"a", "d"}, {"b", "c"}), last
        assert recorded(client) == sorted(held(client).values())
        assert deploy(after, **OWNED) == {"unchanged": ["a", "d"]}


def test_the_record_is_neither_exported_nor_backed_up(deploy, files):
    deploy(source("a"), **OWNED)
    assert files().keys() == {"a.json"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"archive_missing": True}, "archive_missing=True needs deployment_name"),
        ({"deployment_name": " "}, "deployment_name is empty"),
        ({"deployment_name": "x" * 101}, "deployment_name must be text of 1 to 100 characters"),
        ({"deployment_name": 7}, "deployment_name must be text of 1 to 100 characters"),
    ],
)
def test_unclear_arguments_are_refused(execute, writes, arguments, words):
    with pytest.raises(AirflowFailException, match=words):
        execute(ServiceDeployWorkflowsOperator, source=source("a"), **arguments)
    assert writes() == []


def test_a_record_in_a_project_is_of_that_project(client, deploy):
    project = client.projects.create("Sales").id
    target = DeploymentTarget(client, project, deployment_name="orders", archive_missing=True)
    apply_plan(make_plan(read_source(source("a", "b")), target), target)
    assert {one.name for one in client.workflows.list(project_id=project)} == {"a", "b", RECORD}
    assert make_plan(read_source(source("a")), target).by_action()["archive"] == ["b"]


@pytest.fixture
def in_sales(client):
    """Deploys to a project, as the deployment ``sales``."""
    target = DeploymentTarget(client, client.projects.create("Sales").id, deployment_name="sales", archive_missing=True)
    return lambda given: apply_plan(make_plan(read_source(given), target), target)


def test_what_a_workflow_of_another_project_starts_is_not_archived(client, deploy, in_sales):
    in_sales([child(), *source("a")])
    deploy([parent()])
    with pytest.raises(ServiceInputError, match=r"'child'.*, but 'parent' would still start it"):
        in_sales(source("a"))
    client.workflows.deactivate(held(client)["parent"])
    in_sales(source("a"))
    assert "child" in held(client, archived=True)


def test_a_workflow_that_a_record_of_another_project_lists_stays(client, deploy, in_sales):
    in_sales(source("a", "b"))
    deploy(source("b"), **OWNED)
    in_sales(source("a"))
    assert "b" in held(client)
