from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .api_client import Api

NOBODY = "00000000-0000-4000-8000-000000000000"


def invite(api: Api, *users: dict[str, Any]) -> list[dict[str, Any]]:
    answer = api.post("/users", list(users))
    assert answer.status_code == 201, answer.text
    return [invited["user"] for invited in answer.json()]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ([{"email": 5}], 400, "request/body/0/email must be string"),
        ([{"email": "a@example.com", "role": "project:admin"}], 400, "Role project:admin does not exist"),
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


def test_the_case_of_an_address_does_not_matter(api: Api) -> None:
    (owner,) = api.get("/users").json()["data"]
    assert api.get(f"/users/{owner['email'].upper()}").json() == owner


def test_pages_by_offset_and_limit(api: Api) -> None:
    invite(api, *({"email": f"u{number}@example.com"} for number in range(4)))
    everyone = [user["id"] for user in api.get("/users").json()["data"]]
    assert [user["id"] for user in api.get("/users?offset=2&limit=2").json()["data"]] == everyone[2:4]
    assert api.get("/users?offset=-1").json() == {"message": "request/query/offset must be >= 0"}


def test_a_deleted_user_takes_the_personal_project_along(api: Api) -> None:
    user = api.simulator.state.add_user("gone@example.com")
    assert len(api.get("/projects").json()["data"]) == 2
    assert api.delete(f"/users/{user['id']}").status_code == 204
    assert len(api.get("/projects").json()["data"]) == 1


def test_changing_a_role_needs_a_license(build: Callable[..., Api]) -> None:
    refused = build(licensed=False).patch(f"/users/{NOBODY}/role", {"newRoleName": "global:admin"})
    assert refused.status_code == 403
    assert refused.json()["message"].startswith("Your license does not allow for feat:advancedPermissions. ")
