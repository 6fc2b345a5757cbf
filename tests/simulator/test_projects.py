from __future__ import annotations

from typing import Any

import pytest

from .api_client import Api

LICENSE = (
    "Your license does not allow for feat:projectRole:admin. To enable feat:projectRole:admin, "
    "please upgrade to a license that supports this feature."
)


@pytest.fixture
def project(api: Api) -> dict[str, Any]:
    created: dict[str, Any] = api.post("/projects", {"name": "team"}).json()
    return created


def roles(api: Api, project: dict[str, Any]) -> dict[str, str]:
    members = api.get(f"/projects/{project['id']}/users").json()["data"]
    return {member["email"]: member["role"] for member in members}


def test_a_deleted_project_takes_its_contents_along(api: Api, project: dict[str, Any]) -> None:
    data = {"name": "cred", "type": "httpBasicAuth", "data": {}, "projectId": project["id"]}
    credential = api.post("/credentials", data).json()
    api.post("/variables", {"key": "k", "value": "v", "projectId": project["id"]})
    api.delete(f"/projects/{project['id']}")
    assert api.get(f"/credentials/{credential['id']}").status_code == 404
    assert api.get("/variables").json()["data"] == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"name": ""}, "request/body/name String must contain at least 1 character(s)"),
        ({"name": "x" * 256}, "request/body/name String must contain at most 255 character(s)"),
    ],
)
def test_bodies_that_do_not_fit(api: Api, project: dict[str, Any], body: object, message: str) -> None:
    for answer in (api.post("/projects", body), api.put(f"/projects/{project['id']}", body)):
        assert (answer.status_code, answer.json()) == (400, {"message": message})


def test_a_personal_project_takes_no_members(api: Api) -> None:
    path = f"/projects/{api.simulator.state.personal_project_id}/users"
    relation = {"userId": api.simulator.state.add_user("a@example.com")["id"], "role": "project:viewer"}
    assert api.post(path, {"relations": [relation]}).status_code == 403
    assert api.get("/projects").json()["data"][0]["name"] == "Olivia Owner <owner@example.com>"


def test_relations_are_added_all_or_none(api: Api, project: dict[str, Any]) -> None:
    user = api.simulator.state.add_user("member@example.com")
    relations = [{"userId": user["id"], "role": "project:viewer"}, {"userId": user["id"], "role": "nope"}]
    answer = api.post(f"/projects/{project['id']}/users", {"relations": relations})
    assert (answer.status_code, answer.json()) == (400, {"message": "Role nope does not exist"})
    assert list(roles(api, project)) == ["owner@example.com"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/projects/nope", {"name": "x"}),
        ("DELETE", "/projects/nope", None),
        ("GET", "/projects/nope/users", None),
        ("POST", "/projects/nope/users", {"relations": [{"userId": "u", "role": "project:viewer"}]}),
        ("PATCH", "/projects/nope/users/u", {"role": "project:viewer"}),
        ("DELETE", "/projects/nope/users/u", None),
    ],
)
def test_everything_needs_a_license(api: Api, method: str, path: str, body: object) -> None:
    api.simulator.state.licensed = False
    unlicensed = api.request(method, path, json=body)
    assert (unlicensed.status_code, unlicensed.json()) == (403, {"message": LICENSE})
