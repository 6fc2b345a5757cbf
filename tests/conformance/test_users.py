"""Users of the instance and invitations."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_service.client.errors import (
    ServiceApiError,
    ServiceForbiddenError,
    ServiceInputError,
    ServiceInvalidRequestError,
    ServiceNotFoundError,
    ServiceNotLicensedError,
    ServiceNotOfferedError,
)
from airflow_provider_service.client.models import InvitedUser

from .expecting import NO_ID, NO_UUID, refused, unique
from .target import Target
from .workbench import Workbench

OWNER = "owner@example.com"
ADMIN_REFUSED = (
    "Cannot invite admin user without advanced permissions. Please upgrade to a license that includes this feature."
)
NOT_IN_DATABASE = "Request to delete a user failed because the user to delete was not found in DB"


def address() -> str:
    return f"{unique()}@example.com"


def error_of_unknown_user(service: Target) -> type[ServiceApiError]:
    return ServiceInvalidRequestError if service.differs("deleting unknown users") else ServiceNotFoundError


@pytest.fixture
def invited(service: Target) -> Iterator[InvitedUser]:
    """A user who has not signed up yet."""
    (invitation,) = service.client.users.create([{"email": address()}])
    yield invitation.user
    service.raw("DELETE", f"/users/{invitation.user.id}")


@pytest.mark.covers("create_users")
def test_an_invitation_contains_the_address_to_accept_it_at(service: Target, invited: InvitedUser) -> None:
    assert (invited.role, invited.email_sent) == ("global:member", False)
    port = service.base_url.rpartition(":")[2]
    assert f":{port}/signup?" in str(invited.invite_accept_url)


@pytest.mark.covers("create_users", needs=("delete_user",))
def test_invitations_are_answered_with_created_and_as_a_list(service: Target) -> None:
    answer = service.raw("POST", "/users", json=[{"email": address()}, {"email": address()}])

    invitations = answer.json()
    assert (answer.status_code, len(invitations)) == (201, 2)
    assert set(invitations[0]) == {"user", "error"}
    assert set(invitations[0]["user"]) == {"id", "email", "emailSent", "role", "inviteAcceptUrl"}
    for invitation in invitations:
        service.client.users.delete(invitation["user"]["id"], delete_workflows=True)


@pytest.mark.covers("create_users")
def test_a_pending_user_is_invited_again_and_an_active_one_left_out(service: Target, invited: InvitedUser) -> None:
    again = service.client.users.create([{"email": invited.email}, {"email": OWNER}])
    assert [invitation.user.id for invitation in again] == [invited.id]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "request/body must be array"),
        ([{}], "request/body/0 must have required property 'email'"),
        ([{"email": "nobody"}], 'request/body/0/email must match format "email"'),
        ([{"email": "a@example.com", "role": "x"}], "Role x does not exist"),
        ([{"email": "a@example.com", "role": "global:owner"}], "This global role value is not assignable"),
    ],
    ids=str,
)
@pytest.mark.covers("create_users")
def test_an_invitation_that_does_not_fit_is_refused(service: Target, body: object, message: str) -> None:
    with refused(ServiceInvalidRequestError, message, 400):
        service.client.request("POST", "/users", body=body)


@pytest.mark.covers("create_users")
def test_inviting_an_administrator_depends_on_the_plan(service: Target) -> None:
    invitation = [{"email": address(), "role": "global:admin"}]
    if service.free_edition:
        error = ServiceInvalidRequestError if service.differs("inviting administrators") else ServiceNotLicensedError
        with refused(error, ADMIN_REFUSED):
            service.client.users.create(invitation)
        return
    (made,) = service.client.users.create(invitation)
    service.client.users.delete(str(made.user.id), delete_workflows=True)
    assert made.user.role == "global:admin"


@pytest.mark.covers("get_user", needs=("create_users",))
def test_a_user_is_found_by_id_and_by_address(service: Target, invited: InvitedUser) -> None:
    user = service.client.users.get(str(invited.id))

    assert service.client.users.get(invited.email) == user
    assert (user.email, user.is_pending, user.first_name, user.last_name) == (invited.email, True, None, None)
    always = {"id", "email", "firstName", "lastName", "createdAt", "updatedAt", "isPending"}
    assert set(user.to_wire()) == (always if service.differs("fields of users") else always | {"mfaEnabled"})


@pytest.mark.covers("get_user", "list_users", needs=("create_users",))
def test_the_role_is_present_when_it_is_requested(service: Target, invited: InvitedUser) -> None:
    users = service.client.users

    assert users.get(OWNER, include_role=True).role == "global:owner"
    assert users.get(OWNER, include_role=False).role is None
    assert {user.email: user.role for user in users.list(include_role=True)}[invited.email] == "global:member"
    assert {user.role for user in users.list()} == {None}


@pytest.mark.covers("list_users", needs=("create_users",))
def test_users_are_listed_in_pages(service: Target, invited: InvitedUser) -> None:
    everyone = [user.id for user in service.client.users.list()]
    first = service.raw("GET", "/users?limit=1").json()

    assert {invited.id, service.client.users.get(OWNER).id} <= set(everyone)
    assert ([user["id"] for user in first["data"]], bool(first["nextCursor"])) == (everyone[:1], True)
    if service.differs("offsets"):
        with refused(ServiceNotOfferedError, "Unknown query parameter 'offset'", 400):
            list(service.client.users.list(offset=1))
    else:
        assert [user.id for user in service.client.users.list(offset=1)] == everyone[1:]


@pytest.mark.covers("list_users", needs=("create_users",))
def test_users_of_a_project(service: Target, other_project: str, invited: InvitedUser) -> None:
    (member,) = service.client.users.list(project_id=other_project)

    assert member.id != invited.id
    if service.differs("users of unknown projects"):
        assert list(service.client.users.list(project_id=NO_ID)) == []
        return
    with refused(ServiceNotFoundError, "Project not found"):
        list(service.client.users.list(project_id=NO_ID))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=251", "request/query/limit must be <= 250"),
        ("includeRole=yes", "request/query/includeRole must be boolean"),
        ("foo=1", "Unknown query parameter 'foo'"),
        ("cursor=x", "An invalid cursor was provided"),
    ],
)
@pytest.mark.covers("list_users")
def test_a_bad_query_is_refused(service: Target, query: str, message: str) -> None:
    answer = service.raw("GET", f"/users?{query}")
    assert (answer.status_code, answer.json()) == (400, {"message": message})


@pytest.mark.covers("get_user")
def test_an_unknown_user_is_not_found(service: Target) -> None:
    for name in (NO_UUID, address()):
        with refused(ServiceNotFoundError, f"Could not find user with id: {name}"):
            service.client.users.get(name)


@pytest.mark.covers("get_user", "delete_user")
def test_what_is_neither_an_id_nor_an_address_is_refused(service: Target) -> None:
    for call in (service.client.users.get, service.client.users.delete):
        with refused(ServiceInvalidRequestError, 'request/params/id must match format "identifier"', 400):
            call("nobody")


@pytest.mark.covers("delete_user", needs=("create_users", "get_user"))
def test_a_deleted_user_is_gone(service: Target, invited: InvitedUser) -> None:
    service.client.users.delete(str(invited.id), delete_workflows=True)

    with refused(ServiceNotFoundError, f"Could not find user with id: {invited.id}"):
        service.client.users.get(str(invited.id))
    with refused(error_of_unknown_user(service), NOT_IN_DATABASE):
        service.client.users.delete(str(invited.id), delete_workflows=True)


@pytest.mark.covers("delete_user", needs=("create_users",))
def test_a_user_is_deleted_by_id_only_and_without_conditions(service: Target, invited: InvitedUser) -> None:
    with refused(error_of_unknown_user(service), NOT_IN_DATABASE):
        service.client.request("DELETE", "/users/{}", invited.email)
    answer = service.raw("DELETE", f"/users/{invited.id}?transferId={NO_ID}")
    assert (answer.status_code, answer.json()) == (400, {"message": "Unknown query parameter 'transferId'"})


@pytest.mark.covers(
    "delete_user", needs=("create_users", "list_credentials", "transfer_workflow", "transfer_credential")
)
def test_the_content_of_a_personal_project_is_deleted_with_its_user(
    service: Target, invited: InvitedUser, bench: Workbench
) -> None:
    project_id, client = service.personal_project(invited.email), service.client
    flow = bench.create()
    credential = client.credentials.create(unique(), "httpHeaderAuth", {"name": "X", "value": "s"})
    client.workflows.transfer(flow.id, project_id)
    client.credentials.transfer(credential.id, project_id)

    with pytest.raises(ServiceInputError, match=rf"the credential '{credential.name}', the workflow '{flow.name}'"):
        client.users.delete(str(invited.id))
    client.users.delete(str(invited.id), delete_workflows=True)

    for get, one in ((client.workflows.get, flow), (client.credentials.get, credential)):
        with pytest.raises(ServiceNotFoundError):
            get(one.id)


@pytest.mark.covers("delete_user", needs=("create_users", "create_data_table", "get_data_table", "list_data_tables"))
def test_the_data_tables_of_a_personal_project_are_deleted_with_its_user(service: Target, invited: InvitedUser) -> None:
    columns, tables = [{"name": "a", "type": "string"}], service.client.data_tables
    table = tables.create(unique(), columns, project_id=service.personal_project(invited.email))

    with pytest.raises(ServiceInputError, match=f"the data table '{table.name}'"):
        service.client.users.delete(str(invited.id))
    service.client.users.delete(str(invited.id), delete_workflows=True)

    with pytest.raises(ServiceNotFoundError):
        tables.get(table.id)


@pytest.mark.covers("delete_user")
def test_nobody_deletes_themselves(service: Target) -> None:
    owner = service.client.users.get(OWNER)
    with refused(ServiceInvalidRequestError, "Cannot delete your own user", 400):
        service.client.users.delete(owner.id, delete_workflows=True)


@pytest.mark.covers("change_user_role", needs=("create_users", "get_user"))
def test_a_user_is_given_another_role(service: Target, invited: InvitedUser) -> None:
    users = service.client.users

    users.change_role(str(invited.id), "global:admin")

    assert users.get(str(invited.id), include_role=True).role == "global:admin"
    with refused(ServiceInvalidRequestError, "Role x does not exist", 400):
        users.change_role(str(invited.id), "x")
    with refused(ServiceNotFoundError, f"Could not find user with id: {NO_UUID}"):
        users.change_role(NO_UUID, "global:member")
    with refused(ServiceForbiddenError, "Owner cannot change role on global owner"):
        users.change_role(users.get(OWNER).id, "global:member")
