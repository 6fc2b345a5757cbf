"""The operator for any method of the hook."""

from __future__ import annotations

import json

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException, literal

from airflow_provider_service.client import errors
from airflow_provider_service.operators.generic import ServiceOperator
from airflow_provider_service.simulator._samples import webhook_workflow
from airflow_provider_service.testing import run_task


def test_an_object_is_returned_by_the_names_of_the_service(execute, client, link):
    created = execute(ServiceOperator, resource="tags", action="create", arguments={"name": "billing"})
    assert created.keys() == {"id", "name", "createdAt", "updatedAt"}
    assert next(client.tags.list()).to_wire() == created
    assert link() == "/home/workflows"


def test_a_list_is_consumed_up_to_the_limit(execute, client):
    for number in range(3):
        client.tags.create(f"tag {number}")
    names = [tag["name"] for tag in execute(ServiceOperator, resource="tags", action="list", limit=3)]
    assert names == ["tag 0", "tag 1", "tag 2"]
    with pytest.raises(AirflowFailException, match=r"tags\.list has more than limit=2 items; raise limit"):
        execute(ServiceOperator, resource="tags", action="list", limit=2)
    first = execute(ServiceOperator, resource="tags", action="list", arguments={"limit": 2}, limit=2)
    assert len(first) == 2


def test_nested_models_plain_lists_and_nothing(execute, simulator, client):
    reports = execute(ServiceOperator, resource="audit", action="generate")
    assert reports["Instance Risk Report"]["sections"]
    assert json.dumps(reports)
    workflow_id = simulator.create_webhook_workflow("orders", path="orders")["id"]
    tag = client.tags.create("billing")
    arguments = {"workflow_id": workflow_id, "tag_ids": [tag.id]}
    [updated] = execute(ServiceOperator, resource="workflows", action="update_tags", arguments=arguments)
    assert updated["name"] == "billing"
    variable = {"key": "STAGE", "value": "test"}
    assert execute(ServiceOperator, resource="variables", action="create", arguments=variable) is None
    assert next(client.variables.list()).value == "test"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"resource": "tag", "action": "list"},
            "there is no resource 'tag'; the resources are audit, community_packages, ",
        ),
        ({"resource": "transport", "action": "call"}, "there is no resource 'transport'"),
        ({"resource": "request", "action": "__call__"}, "there is no resource 'request'"),
        (
            {"resource": "tags", "action": "remove"},
            "tags has no action 'remove'; its actions are create, delete, get, ",
        ),
        ({"resource": "tags", "action": "_call"}, "tags has no action '_call'"),
        ({"resource": "tags", "action": "create"}, "missing a required argument: 'name'; its arguments are name$"),
        (
            {"resource": "tags", "action": "create", "arguments": {"name": "a", "colour": "red"}},
            "tags.create: got an unexpected keyword argument 'colour'; its arguments are name$",
        ),
        (
            {"resource": "variables", "action": "create", "arguments": {}},
            r"its arguments are key, value, project_id \(optional\)$",
        ),
        ({"resource": "tags", "action": "list", "arguments": ["a"]}, "arguments must be a mapping, not list"),
    ],
)
def test_wrong_names_are_refused_with_the_right_ones(execute, simulator, arguments, message):
    with pytest.raises(AirflowFailException, match=message):
        execute(ServiceOperator, **arguments)
    assert not simulator.requests


def test_secrets_stay_out_of_what_is_returned(execute, simulator):
    users = [{"email": "new@example.com"}]
    [invitation] = execute(ServiceOperator, resource="users", action="create", arguments={"users": users})
    assert invitation["user"].keys() == {"id", "email", "emailSent", "role"}
    assert invitation["error"] == ""


def test_braces_are_kept_as_literals(execute, client, simulator, task_instance):
    expression = "={{ $json.body.id }}"
    node = {**webhook_workflow("w", "w", "immediate")["nodes"][0], "notes": "={{ now }}"}
    arguments = {
        "name": "{{ task.task_id }}",
        "nodes": [literal(node)],
        "connections": {},
        "settings": {"timezone": literal(expression)},
    }
    created = execute(ServiceOperator, resource="workflows", action="create", arguments=arguments)
    held = client.workflows.get(created["id"])
    assert (held.name, held.nodes[0]["notes"], held.settings["timezone"]) == ("task", "={{ now }}", expression)


def test_an_argument_that_renders_to_none_is_not_left_out(client, simulator):
    running = simulator.start_execution(simulator.create_webhook_workflow("orders", path="orders")["id"])
    with DAG("dag", schedule=None):
        before = ServiceOperator(task_id="before", resource="tags", action="list")
        task = ServiceOperator(
            task_id="task",
            resource="executions",
            action="stop_many",
            arguments={"status": ["running"], "workflow_id": before.output, "started_before": None},
        )
    with pytest.raises(AirflowFailException, match=r"^arguments: workflow_id is None; give a value, or"):
        run_task(task, upstream={"before": None})
    assert client.executions.get(running).status == "running"


def test_errors_of_the_service_pass(execute):
    with pytest.raises(errors.ServiceNotFoundError):
        execute(ServiceOperator, resource="tags", action="get", arguments={"tag_id": "nope"})
