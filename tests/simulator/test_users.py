from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .api_client import Api

NOBODY = "00000000-0000-4000-8000-000000000000"
SHOWN = ["id", "email", "firstName", "lastName", "createdAt", "updatedAt", "isPending", "mfaEnabled"]


def invite(api: Api, *users: dict[str, Any]) -> list[dict[str, Any]]:
    answer = api.post("/users", list(users))
    assert answer.status_code == 201, answer.text
    return [invited["user"] for invited in answer.json()]


def test_an_invitation_answers_an_array(api: Api) -> None:
    answer = api.post("/users", [{"email": "a@example.com"}, {"email": "b@example.com", "role": "global:admin"}])
    assert answer.status_code == 201
    first, second = answer.json()
    assert set(first) == {"user", "error"}
    assert first["error"] == ""
    assert set(first["user"]) == {"id", "email", "emailSent", "role", "inviteAcceptUrl"}
    assert [invited["user"]["role"] for invited in (first, second)] == ["global:member", "global:admin"]
    assert first["user"]["inviteAcceptUrl"].startswith(f"{api.simulator.base_url}/signup?token=")


def test_pending_users_are_invited_again_and_active_ones_omitted(api: Api) -> None:
    pending = invite(api, {"email": "pending@example.com"})
    api.simulator.state.add_user("active@example.com")
    again = invite(api, {"email": "pending@example.com"}, {"email": "active@example.com"})
    assert again == pending
    assert invite(api, {"email": "active@example.com"}) == []


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({}, 400, "request/body must be array"),
        ([{}], 400, "request/body/0 must have required property 'email'"),
        ([{"email": 5}], 400, "request/body/0/email must be string"),
        ([{"email": "nope"}], 400, 'request/body/0/email must match format "email"'),
        ([{"email": "a@example.com", "role": "nope"}], 400, "Role nope does not exist"),
        ([{"email": "a@example.com", "role": "project:admin"}], 400, "Role project:admin does not exist"),
        ([{"email": "a@example.com", "role": "global:owner"}], 400, "This global role value is not assignable"),
        ([{"email": "a@example.com"}, {"email": "A@example.com"}], 500, "An error occurred during user creation"),
    ],
)
def test_invitations_that_are_refused(api: Api, body: object, status: int, message: str) -> None:
    answer = api.post("/users", body)
    assert (answer.status_code, answer.json()) == (status, {"message": message})
    assert len(api.get("/users").json()["data"]) == 1


def test_inviting_an_admin_needs_a_license(build: Callable[..., Api]) -> None:
    answer = build(licensed=False).post("/users", [{"email": "a@example.com", "role": "global:admin"}])
    assert answer.status_code == 403
    assert answer.json()["message"].startswith("Cannot invite admin user without advanced permissions. ")


@pytest.mark.parametrize("included", [True, False])
def test_the_role_is_shown_when_asked_for(api: Api, included: bool) -> None:
    params = {"includeRole": str(included).lower()}
    (owner,) = api.get("/users", params=params).json()["data"]
    assert list(owner) == [*SHOWN, *(["role"] if included else [])]
    assert api.get(f"/users/{owner['id']}", params=params).json() == owner


def test_a_user_is_found_by_id_or_address(api: Api) -> None:
    (owner,) = api.get("/users").json()["data"]
    assert api.get(f"/users/{owner['email'].upper()}").json() == owner
    for unknown in (NOBODY, "no@example.com"):
        answer = api.get(f"/users/{unknown}")
        assert (answer.status_code, answer.json()) == (404, {"message": f"Could not find user with id: {unknown}"})
    malformed = api.get("/users/nope")
    assert malformed.json() == {"message": 'request/params/id must match format "identifier"'}


def test_the_list_can_be_limited_to_a_project(api: Api) -> None:
    user = api.simulator.state.add_user("member@example.com")
    project = api.post("/projects", {"name": "team"}).json()
    assert len(api.get("/users", params={"projectId": project["id"]}).json()["data"]) == 1
    api.post(f"/projects/{project['id']}/users", {"relations": [{"userId": user["id"], "role": "project:viewer"}]})
    assert len(api.get("/users", params={"projectId": project["id"]}).json()["data"]) == 2
    answer = api.get("/users", params={"projectId": "nope"})
    assert (answer.status_code, answer.json()) == (404, {"message": "Project not found"})


def test_pages_by_offset_and_limit(api: Api) -> None:
    invite(api, *({"email": f"u{number}@example.com"} for number in range(4)))
    everyone = [user["id"] for user in api.get("/users").json()["data"]]
    assert [user["id"] for user in api.get("/users?offset=2&limit=2").json()["data"]] == everyone[2:4]
    assert api.get("/users?offset=-1").json() == {"message": "request/query/offset must be >= 0"}
    assert api.get("/users?limit=251").json() == {"message": "request/query/limit must be <= 250"}


def test_a_deleted_user_takes_the_personal_project_along(api: Api) -> None:
    user = api.simulator.state.add_user("gone@example.com")
    assert len(api.get("/projects").json()["data"]) == 2
    missing = {"message": "Request to delete a user failed because the user to delete was not found in DB"}
    by_address = api.delete("/users/gone@example.com")
    assert (by_address.status_code, by_address.json()) == (404, missing)
    assert api.delete(f"/users/{user['id']}?transferId=1").json() == {"message": "Unknown query parameter 'transferId'"}
    deleted = api.delete(f"/users/{user['id']}")
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert api.delete(f"/users/{user['id']}").json() == missing
    assert len(api.get("/projects").json()["data"]) == 1


def test_nobody_deletes_themselves(api: Api) -> None:
    answer = api.delete(f"/users/{api.simulator.state.owner_id}")
    assert (answer.status_code, answer.json()) == (400, {"message": "Cannot delete your own user"})


def test_the_global_role_changes(api: Api, build: Callable[..., Api]) -> None:
    user = api.simulator.state.add_user("member@example.com")
    answer = api.patch(f"/users/{user['id']}/role", {"newRoleName": "global:admin"})
    assert (answer.status_code, answer.content) == (204, b"")
    assert api.get(f"/users/{user['id']}?includeRole=true").json()["role"] == "global:admin"
    assert api.patch(f"/users/{user['id']}/role", {"newRoleName": "nope"}).status_code == 400
    assert api.patch(f"/users/{api.simulator.state.owner_id}/role", {"newRoleName": "global:admin"}).status_code == 403
    refused = build(licensed=False).patch(f"/users/{NOBODY}/role", {"newRoleName": "global:admin"})
    assert refused.status_code == 403
    assert refused.json()["message"].startswith("Your license does not allow for feat:advancedPermissions. ")
