"""Operators that pull and push source control."""

from __future__ import annotations

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client.errors import ServiceError
from airflow_provider_service.operators.source_control import (
    ServicePullSourceControlOperator,
    ServicePushSourceControlOperator,
)


def test_pulling_twice(execute, client, link):
    first = execute(ServicePullSourceControlOperator)
    assert (first["count"], first["by_type"]) == (3, {"workflow": 1, "variables": 1, "tags": 1})
    assert first["by_status"] == {"new": 3}
    assert {"file", "type", "id", "name", "status", "conflict"} == first["files"][0].keys()
    assert first["changes"] == {"tags": {"new": 1}, "variables": {"new": 1}, "workflow": {"new": 1}}
    assert [one.name for one in client.workflows.list(name="Pulled workflow")] == ["Pulled workflow"]
    assert not next(client.workflows.list(name="Pulled workflow")).active
    assert execute(ServicePullSourceControlOperator)["count"] == 0
    assert link() == "/settings/environments"


def test_pulled_workflows_are_published(execute, client):
    execute(ServicePullSourceControlOperator, auto_publish="all")
    assert next(client.workflows.list(name="Pulled workflow")).active


def test_a_preview_of_a_pull_changes_nothing(execute, client, writes):
    done = execute(ServicePullSourceControlOperator, preview=True)
    assert (done["count"], done["preview"], writes()) == (3, True, [])
    assert list(client.workflows.list()) == []


def test_conflicts_fail_with_the_files_unless_forced(execute, simulator, task_instance):
    files = [
        {
            "id": f"Workflow{number:08}",
            "name": f"Orders {number}",
            "type": "workflow",
            "conflict": True,
            "content": None,
        }
        for number in range(20)
    ]
    simulator.state.source_control.connect(
        [*files[:-1], {"id": "variables", "name": "variables", "type": "variables", "content": []}]
    )
    with pytest.raises(AirflowFailException, match=r"local changes conflict with the pull: workflow 'Orders 0' ") as e:
        execute(ServicePullSourceControlOperator)
    assert "'Orders 18' (workflow/Workflow00000018.json); force=True discards them" in str(e.value)
    assert "variables" not in str(e.value)
    assert [one["name"] for one in task_instance.pushed["conflicts"]] == [f"Orders {n}" for n in range(19)]
    simulator.inject("status", status=400, path="/status$")
    with pytest.raises(AirflowFailException, match="their names could not be read"):
        execute(ServicePullSourceControlOperator)
    simulator.state.source_control.connect([{**files[0], "type": "file"}])
    assert execute(ServicePullSourceControlOperator, force=True)["count"] == 1


def test_a_failed_pull_says_what_is_wrong(execute, simulator):
    with pytest.raises(AirflowFailException, match="auto_publish must be one of none, all, published"):
        execute(ServicePullSourceControlOperator, auto_publish="some")
    simulator.state.source_control.disconnect()
    with pytest.raises(AirflowFailException, match="not connected to a repository"):
        execute(ServicePullSourceControlOperator)


def test_a_workflow_that_was_not_published_causes_a_warning(execute, simulator, caplog):
    no_trigger = {"name": "No trigger", "nodes": [], "connections": {}, "settings": {}}
    simulator.state.source_control.connect(
        [{"id": "NoTrigger0000001", "name": "No trigger", "type": "workflow", "content": no_trigger}]
    )
    with caplog.at_level("WARNING"):
        execute(ServicePullSourceControlOperator, auto_publish="all")
    assert "'No trigger' was pulled, but not published" in caplog.text


@pytest.fixture
def two_workflows(simulator):
    """A connected branch without changes of its own, and two workflows that it does not hold."""
    simulator.state.source_control.connect()
    return [simulator.create_webhook_workflow(name, path=name)["id"] for name in ("one", "two")]


def test_pushing_twice_makes_one_commit(execute, simulator, two_workflows, link):
    first = execute(ServicePushSourceControlOperator, commit_message="Nightly")
    assert (first["count"], first["changes"]) == (2, {"workflow": {"created": 2}})
    assert {one["id"] for one in first["files"]} == set(two_workflows)
    assert link() == "/settings/environments"
    again = execute(ServicePushSourceControlOperator, commit_message="Nightly")
    assert (again["count"], again["changes"], again["files"]) == (0, {}, [])
    [commit] = simulator.state.source_control.commits
    assert (commit["message"], len(commit["files"])) == ("Nightly", 2)


def test_an_attempt_after_a_lost_answer_commits_nothing_again(execute, simulator, two_workflows):
    simulator.inject("drop", path="/push$", after_processing=True)
    with pytest.raises(ServiceError):
        execute(ServicePushSourceControlOperator, commit_message="Nightly")
    assert execute(ServicePushSourceControlOperator, commit_message="Nightly")["count"] == 0
    assert len(simulator.state.source_control.commits) == 1


def test_only_what_is_chosen_is_pushed(execute, simulator, two_workflows, writes):
    simulator.state.source_control.change_locally([{"id": "variables", "name": "variables", "type": "variables"}])
    chosen = {"types": ["workflow"], "object_ids": [two_workflows[1], "variables"]}
    writes()
    preview = execute(ServicePushSourceControlOperator, commit_message="Two", preview=True, **chosen)
    assert ([one["name"] for one in preview["files"]], preview["preview"], writes()) == (["two"], True, [])
    done = execute(ServicePushSourceControlOperator, commit_message="Two", **chosen)
    assert [one["name"] for one in done["files"]] == ["two"]
    left = execute(ServicePushSourceControlOperator, commit_message="Rest", preview=True)
    assert left["by_type"] == {"workflow": 1, "variables": 1}


def test_a_push_that_conflicts_fails_with_the_files_unless_forced(execute, simulator, two_workflows, task_instance):
    content = {"name": "theirs", "nodes": [], "connections": {}, "settings": {}}
    theirs = {"id": two_workflows[0], "name": "theirs", "type": "workflow", "status": "modified", "content": content}
    simulator.state.source_control.connect([theirs])
    with pytest.raises(AirflowFailException, match=r"conflict with the push: workflow 'one' \(workflow/.*force=True"):
        execute(ServicePushSourceControlOperator, commit_message="Mine")
    assert [one["id"] for one in task_instance.pushed["conflicts"]] == [two_workflows[0]]
    assert simulator.state.source_control.commits == []
    assert execute(ServicePushSourceControlOperator, commit_message="Mine", preview=True)["count"] == 2
    assert execute(ServicePushSourceControlOperator, commit_message="Mine", force=True)["count"] == 2
    assert len(simulator.state.source_control.commits) == 1


def test_a_conflict_that_appears_while_pushing_fails_with_the_files(execute, simulator, two_workflows):
    simulator.inject("status", status=409, path="/push$", method="POST")
    with pytest.raises(
        AirflowFailException, match=r"changes in the branch conflict with the push: workflow '(one|two)'"
    ):
        execute(ServicePushSourceControlOperator, commit_message="Mine")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"commit_message": "x" * 1001}, "commit_message must be text of 1 to 1000 characters"),
        ({"types": "workflow"}, "types must be a list, not str"),
        ({"types": []}, "types is empty; leave it out for all types"),
        ({"types": ["tags", "workflows"]}, "each of types must be one of credential, workflow, tags, .*, not 'workflo"),
        ({"object_ids": [""]}, "each of object_ids must be text that is not empty"),
    ],
)
def test_a_push_refuses(execute, simulator, arguments, message):
    with pytest.raises(AirflowFailException, match=message):
        execute(ServicePushSourceControlOperator, **{"commit_message": "m", **arguments})
    assert not simulator.requests
