from __future__ import annotations

from collections.abc import Callable
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


def test_a_project_lives_from_creation_to_deletion(api: Api) -> None:
    created = api.post("/projects", {"name": "team"})
    assert created.status_code == 201
    project = created.json()
    assert (project["type"], project["role"]) == ("team", "project:admin")
    assert "workflow:read" in project["scopes"]
    renamed = api.put(f"/projects/{project['id']}", {"name": "other"})
    assert (renamed.status_code, renamed.content) == (204, b"")
    personal, listed = api.get("/projects").json()["data"]
    assert (personal["type"], personal["name"]) == ("personal", "Olivia Owner <owner@example.com>")
    assert listed["name"] == "other"
    assert set(project) - set(listed) == {"role", "scopes"}
    deleted = api.delete(f"/projects/{project['id']}")
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert len(api.get("/projects").json()["data"]) == 1


def test_a_deleted_project_takes_its_content_along(api: Api, project: dict[str, Any]) -> None:
    table = api.post("/data-tables", {"name": "t", "columns": [], "projectId": project["id"]}).json()
    data = {"name": "cred", "type": "httpBasicAuth", "data": {}, "projectId": project["id"]}
    credential = api.post("/credentials", data).json()
    api.post("/variables", {"key": "k", "value": "v", "projectId": project["id"]})
    api.delete(f"/projects/{project['id']}")
    assert api.get(f"/data-tables/{table['id']}").status_code == 404
    assert api.get(f"/credentials/{credential['id']}").status_code == 404
    assert api.get("/variables").json()["data"] == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "request/body must have required property 'name'"),
        ({"name": ""}, "request/body/name String must contain at least 1 character(s)"),
        ({"name": "x" * 256}, "request/body/name String must contain at most 255 character(s)"),
        ({"name": "x", "type": "team"}, "request/body/type is read-only"),
        ({"name": "x", "foo": 1}, "request/body Unrecognized key(s) in object: 'foo'"),
    ],
)
def test_bodies_that_do_not_fit(api: Api, project: dict[str, Any], body: object, message: str) -> None:
    for answer in (api.post("/projects", body), api.put(f"/projects/{project['id']}", body)):
        assert (answer.status_code, answer.json()) == (400, {"message": message})


def test_personal_projects_stay(api: Api) -> None:
    path = f"/projects/{api.simulator.state.personal_project_id}"
    relation = {"userId": api.simulator.state.add_user("a@example.com")["id"], "role": "project:viewer"}
    answers = [
        api.put(path, {"name": "x"}),
        api.delete(path),
        api.post(f"{path}/users", {"relations": [relation]}),
    ]
    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert api.get("/projects").json()["data"][0]["name"] == "Olivia Owner <owner@example.com>"


def test_members_come_change_and_go(api: Api, project: dict[str, Any]) -> None:
    user = api.simulator.state.add_user("member@example.com", first_name="Mia", last_name="Member")
    path = f"/projects/{project['id']}/users"
    added = api.post(path, {"relations": [{"userId": user["id"], "role": "project:viewer"}]})
    assert (added.status_code, added.content) == (201, b"")
    assert roles(api, project) == {"owner@example.com": "project:admin", "member@example.com": "project:viewer"}
    member = api.get(path).json()["data"][1]
    assert list(member) == ["id", "email", "firstName", "lastName", "createdAt", "updatedAt", "role"]
    changed = api.patch(f"{path}/{user['id']}", {"role": "project:editor"})
    assert (changed.status_code, changed.content) == (204, b"")
    assert roles(api, project)["member@example.com"] == "project:editor"
    removed = api.delete(f"{path}/{user['id']}")
    assert (removed.status_code, removed.content) == (204, b"")
    assert list(roles(api, project)) == ["owner@example.com"]
    assert api.delete(f"{path}/{user['id']}").status_code == 404


@pytest.mark.parametrize(
    ("relations", "status"),
    [([], 400), ([{"userId": "nobody", "role": "project:viewer"}], 404), ([{"role": "project:viewer"}], 400)],
)
def test_relations_that_are_refused(api: Api, project: dict[str, Any], relations: object, status: int) -> None:
    assert api.post(f"/projects/{project['id']}/users", {"relations": relations}).status_code == status


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
def test_unknown_projects_and_missing_licenses(
    api: Api, build: Callable[..., Api], method: str, path: str, body: object
) -> None:
    unknown = api.request(method, path, json=body)
    assert (unknown.status_code, unknown.json()) == (404, {"message": "Project not found"})
    api.simulator.state.licensed = False
    unlicensed = api.request(method, path, json=body)
    assert (unlicensed.status_code, unlicensed.json()) == (403, {"message": LICENSE})
