"""Projects and their members; the free edition refuses them all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_service.client.errors import (
    ServiceInvalidRequestError,
    ServiceMissingScopeError,
    ServiceNotFoundError,
)
from airflow_provider_service.client.models import InvitedUser, Project

from .expecting import NO_ID, NO_UUID, refused, unique
from .target import Target

NO_PROJECT = "Project not found"


@pytest.fixture
def project(service: Target) -> Iterator[Project]:
    made = service.client.projects.create(unique())
    yield made
    service.raw("DELETE", f"/projects/{made.id}")


@pytest.fixture
def user(service: Target) -> Iterator[InvitedUser]:
    (invitation,) = service.client.users.create([{"email": f"{unique()}@example.com"}])
    yield invitation.user
    service.client.users.delete(str(invitation.user.id), delete_workflows=True)


@pytest.mark.covers("create_project", "list_projects")
def test_a_project_is_made_and_listed(service: Target, project: Project) -> None:
    listed = {one.id: one for one in service.client.projects.list()}

    assert (project.type, project.role) == ("team", "project:admin")
    assert project.scopes
    assert listed[project.id].name == project.name
    assert {one.type for one in listed.values()} == {"personal", "team"}


@pytest.mark.covers("update_project", needs=("create_project", "list_projects"))
def test_a_project_is_renamed(service: Target, project: Project) -> None:
    name = unique()

    service.client.projects.update(project.id, name)

    assert {one.id: one.name for one in service.client.projects.list()}[project.id] == name


@pytest.mark.covers("delete_project", needs=("create_project", "create_data_table"))
def test_a_deleted_project_takes_its_contents_along(service: Target, project: Project) -> None:
    table = service.client.data_tables.create(unique(), [], project_id=project.id)

    service.client.projects.delete(project.id)

    with refused(ServiceNotFoundError, f"Could not find the data table: '{table.id}'"):
        service.client.data_tables.get(table.id)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "request/body must have required property 'name'"),
        ({"name": "x", "type": "team"}, "request/body/type is read-only"),
        ({"name": "x", "foo": 1}, "request/body Unrecognized key(s) in object: 'foo'"),
    ],
    ids=str,
)
@pytest.mark.covers("create_project", "update_project")
def test_a_project_that_does_not_fit_is_refused(
    service: Target, project: Project, body: dict[str, object], message: str
) -> None:
    for method, path in (("POST", "/projects"), ("PUT", f"/projects/{project.id}")):
        with refused(ServiceInvalidRequestError, message, 400):
            service.client.request(method, path, body=body)


@pytest.mark.covers("update_project", "delete_project", "list_projects")
def test_a_personal_project_stays_as_it_is(service: Target) -> None:
    personal = next(one for one in service.client.projects.list() if one.type == "personal")
    with refused(ServiceMissingScopeError, "Forbidden"):
        service.client.projects.update(personal.id, unique())
    with refused(ServiceMissingScopeError, "Forbidden"):
        service.client.projects.delete(personal.id)


@pytest.mark.covers(
    "add_project_users",
    "list_project_users",
    "change_project_user_role",
    "delete_project_user",
    needs=("create_project",),
)
def test_a_member_is_added_changed_and_removed(service: Target, project: Project, user: InvitedUser) -> None:
    projects, user_id = service.client.projects, str(user.id)

    def roles() -> dict[str, str | None]:
        return {member.id: member.role for member in projects.list_users(project.id)}

    (creator,) = roles()
    projects.add_users(project.id, [{"userId": user_id, "role": "project:viewer"}])
    assert roles() == {creator: "project:admin", user_id: "project:viewer"}
    projects.change_user_role(project.id, user_id, "project:editor")
    assert roles()[user_id] == "project:editor"
    projects.delete_user(project.id, user_id)
    assert roles() == {creator: "project:admin"}


@pytest.mark.covers("add_project_users", "change_project_user_role", "delete_project_user", needs=("create_project",))
def test_invalid_members_are_refused(service: Target, project: Project, user: InvitedUser) -> None:
    projects, user_id = service.client.projects, str(user.id)
    unknown = f"Could not find user with id: {NO_UUID}"

    with refused(ServiceInvalidRequestError, "Role x does not exist", 400):
        projects.add_users(project.id, [{"userId": user_id, "role": "x"}])
    with refused(ServiceNotFoundError, unknown):
        projects.add_users(project.id, [{"userId": NO_UUID, "role": "project:viewer"}])
    with refused(ServiceNotFoundError, unknown):
        projects.change_user_role(project.id, NO_UUID, "project:viewer")
    with refused(ServiceNotFoundError, f"Could not find user with id: {user_id}"):
        projects.delete_user(project.id, user_id)
    for body in ({}, {"relations": []}):
        with pytest.raises(ServiceInvalidRequestError):
            service.client.request("POST", "/projects/{}/users", project.id, body=body)


@pytest.mark.covers(
    "update_project",
    "delete_project",
    "list_project_users",
    "add_project_users",
    "change_project_user_role",
    "delete_project_user",
)
def test_an_unknown_project_is_not_found(service: Target, user: InvitedUser) -> None:
    projects, user_id = service.client.projects, str(user.id)
    calls = (
        lambda: projects.update(NO_ID, "x"),
        lambda: projects.delete(NO_ID),
        lambda: list(projects.list_users(NO_ID)),
        lambda: projects.add_users(NO_ID, [{"userId": user_id, "role": "project:viewer"}]),
        lambda: projects.change_user_role(NO_ID, user_id, "project:viewer"),
        lambda: projects.delete_user(NO_ID, user_id),
    )
    for call in calls:
        with refused(ServiceNotFoundError, NO_PROJECT):
            call()
