"""Projects that are declared get their members; what holds something is not deleted."""

from __future__ import annotations

from typing import Any

import pytest
import requests_mock
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client._lookup import get_project
from airflow_provider_service.operators.desired_state import ServiceEnsureProjectsOperator

from .conftest import counts


def members(client: Any, name: str) -> dict[str, str]:
    return {one.email: one.role for one in client.projects.list_users(get_project(client, name).id)}


@pytest.fixture
def people(simulator):
    for name in ("ana", "bob", "eve"):
        simulator.state.add_user(f"{name}@example.com")


@pytest.mark.usefixtures("people")
def test_projects_get_their_members(execute, client, writes):
    desired = {"Sales": {"ana@example.com": "project:editor"}, "Empty": None}
    first = execute(ServiceEnsureProjectsOperator, projects=desired)
    assert counts(first) == (2, 0, 0, 0)
    assert members(client, "Sales").items() >= {"ana@example.com": "project:editor"}.items()
    again = execute(ServiceEnsureProjectsOperator, projects=desired)
    assert counts(again) == (0, 0, 0, 2)

    project = get_project(client, "Sales").id
    users = {one.email: one.id for one in client.users.list()}
    client.projects.add_users(project, [{"userId": users["eve@example.com"], "role": "project:viewer"}])
    before = members(client, "Sales")
    writes()
    changed = {"Sales": {"Ana@Example.com": "project:viewer", "bob@example.com": "project:editor"}}
    done = execute(ServiceEnsureProjectsOperator, projects=changed)
    assert done["changes"] == [
        {
            "action": "update",
            "name": "Sales",
            "added_members": {"bob@example.com": "project:editor"},
            "changed_members": {"ana@example.com": "project:viewer"},
        }
    ]
    assert members(client, "Sales") == before | {
        "ana@example.com": "project:viewer",
        "bob@example.com": "project:editor",
    }
    execute(ServiceEnsureProjectsOperator, projects="Sales: {ana@example.com: null, nobody@example.com: null}")
    assert members(client, "Sales").keys() == before.keys() - {"ana@example.com"} | {"bob@example.com"}


@pytest.mark.usefixtures("people")
def test_a_creation_that_was_cut_off_is_completed(execute, client, simulator):
    desired = {"Sales": {"ana@example.com": "project:editor"}}
    simulator.inject("status", status=400, path="/users$", method="POST")
    with pytest.raises(AirflowFailException):
        execute(ServiceEnsureProjectsOperator, projects=desired)
    assert "ana@example.com" not in members(client, "Sales")
    assert counts(execute(ServiceEnsureProjectsOperator, projects=desired)) == (0, 1, 0, 0)
    assert "ana@example.com" in members(client, "Sales")


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize("role", [None, "project:viewer"])
def test_the_creator_of_a_project_has_the_declared_role_too(execute, client, role):
    client.projects.create("Other")
    [creator] = members(client, "Other")
    desired = {"Sales": {creator: role, "ana@example.com": "project:admin"}}
    execute(ServiceEnsureProjectsOperator, projects=desired)
    expected = {"ana@example.com": "project:admin", creator: role}
    assert members(client, "Sales") == {email: one for email, one in expected.items() if one}
    assert counts(execute(ServiceEnsureProjectsOperator, projects=desired)) == (0, 0, 0, 1)


@pytest.mark.parametrize(
    ("projects", "message"),
    [
        ({"New": {"no@example.com": "project:editor"}}, "there is no user with the email address no@example.com"),
        ({"New": {"ana@example.com": 1}}, "the role of ana@example.com in project 'New' must be text such as"),
        ({"New": ["ana@example.com"]}, "the members of project 'New' must be a mapping of names, not list"),
        (
            {"New": {"Ana@example.com": "project:editor", "ana@example.com": None}},
            "project 'New' has ana@example.com more than once, regardless of case",
        ),
        ({"New": {}, "x" * 256: {}}, "the name of a project has at most 255 characters"),
        (["New"], "projects must be a mapping of names, not list"),
    ],
)
@pytest.mark.usefixtures("people")
def test_invalid_members_are_refused(execute, writes, projects, message):
    with pytest.raises(AirflowFailException, match=message):
        execute(ServiceEnsureProjectsOperator, projects=projects)
    assert writes() == []


def test_personal_projects_are_left_alone(execute, client, writes):
    personal = next(one.name for one in client.projects.list() if one.type == "personal")
    with pytest.raises(AirflowFailException, match="is a personal project, whose members cannot be changed"):
        execute(ServiceEnsureProjectsOperator, projects={personal: None})
    assert counts(execute(ServiceEnsureProjectsOperator, projects={}, prune=True, prune_names=[personal]))[2] == 0
    assert writes() == []


def test_a_project_that_holds_something_is_not_deleted(execute, client, writes):
    for name in ("Empty", "Full", "Tables", "Secrets", "Values"):
        client.projects.create(name)
    data = {"name": "X-Token", "value": "one"}
    client.credentials.create("c", "httpHeaderAuth", data, project_id=get_project(client, "Secrets").id)
    client.variables.create("KEY", "value", project_id=get_project(client, "Values").id)
    workflow = client.workflows.create("w", [], {}, {})
    client.workflows.transfer(workflow.id, get_project(client, "Full").id)
    client.data_tables.create("t", [], project_id=get_project(client, "Tables").id)
    writes()
    prune = {"projects": {}, "prune": True}
    full = {"Full", "Tables", "Secrets", "Values"}
    with pytest.raises(AirflowFailException, match="'Full', 'Tables', 'Secrets', 'Values' hold workflows"):
        execute(ServiceEnsureProjectsOperator, **prune, prune_names=["Empty", *full])
    assert writes() == []
    assert execute(ServiceEnsureProjectsOperator, **prune, prune_prefix="Emp", allow_empty=True)["deleted"] == 1
    assert {one.name for one in client.projects.list() if one.type == "team"} == full


def test_a_plan_without_variables_does_not_keep_empty_projects_from_being_deleted(execute, client, simulator):
    client.projects.create("Empty")
    refusal = {"message": "Your license does not allow for feat:variables. To enable feat:variables, please upgrade."}
    with requests_mock.Mocker(real_http=True) as mocked:
        mocked.get(f"{simulator.base_url}/api/v1/variables", status_code=403, json=refusal)
        done = execute(ServiceEnsureProjectsOperator, projects={}, prune=True, prune_names=["Empty"])
    assert done["deleted"] == 1
