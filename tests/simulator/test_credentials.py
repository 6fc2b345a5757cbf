from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .api_client import Api

SHOWN = {
    "id",
    "name",
    "type",
    "isManaged",
    "isGlobal",
    "isResolvable",
    "resolvableAllowFallback",
    "resolverId",
    "createdAt",
    "updatedAt",
}
SECRET = "s3cret-value"


def create(api: Api, **changes: Any) -> dict[str, Any]:
    body = {"name": "cred", "type": "httpHeaderAuth", "data": {"name": "X", "value": SECRET}, **changes}
    answer = api.post("/credentials", body)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


def test_secrets_are_kept_and_never_answered(api: Api) -> None:
    credential = create(api)
    assert set(credential) == SHOWN
    answers = [
        api.get("/credentials"),
        api.get(f"/credentials/{credential['id']}"),
        api.patch(f"/credentials/{credential['id']}", {"name": "new"}),
    ]
    assert all(SECRET not in answer.text for answer in answers)
    assert api.simulator.state.credentials.data(credential["id"])["value"] == SECRET
    deleted = api.delete(f"/credentials/{credential['id']}")
    assert deleted.json()["usageScope"] == "project"
    assert SECRET not in deleted.text


def test_the_list_shows_newest_first_with_the_owning_project(api: Api) -> None:
    create(api, name="one")
    create(api, name="two")
    listed = api.get("/credentials").json()["data"]
    assert [item["name"] for item in listed] == ["two", "one"]
    assert set(listed[0]) == {"id", "name", "type", "createdAt", "updatedAt", "shared"}
    owner = listed[0]["shared"][0]
    assert (owner["id"], owner["role"]) == (api.simulator.state.personal_project_id, "credential:owner")


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        ({"type": "nope"}, 400, "req.body.type is not a known type"),
        ({"data": {"zz": 1}}, 400, 'request.body.data is not allowed to have the additional property "zz"'),
        ({"data": {"name": 5}}, 400, "request.body.data is not of a type(s) string"),
        ({"type": "slackApi", "data": {}}, 400, 'request.body.data requires property "accessToken"'),
        ({"data": []}, 400, "request/body/data Expected object, received array"),
        ({"projectId": "nope"}, 404, "Project not found"),
        ({"isResolvable": True}, 403, "End-user credentials are not available in personal projects"),
    ],
)
def test_creations_that_are_refused(api: Api, changes: dict[str, Any], status: int, message: str) -> None:
    body = {"name": "cred", "type": "httpHeaderAuth", "data": {}, **changes}
    answer = api.post("/credentials", body)
    assert (answer.status_code, answer.json()) == (status, {"message": message})
    assert api.get("/credentials").json()["data"] == []


def test_an_empty_name_and_a_used_name_are_accepted(api: Api) -> None:
    assert [create(api, name=name)["name"] for name in ("", "a", "a")] == ["", "a", "a"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"type": "httpBasicAuth"},
            "req.body.data is required when changing credential type. "
            "The existing data cannot be used with the new type.",
        ),
        ({"type": "nope", "data": {}}, "req.body.type is not a known type"),
        ({"data": {"zz": 1}}, 'request.body.data is not allowed to have the additional property "zz"'),
        ({"name": "ab", "data": {}}, "Credential name must be 3 to 128 characters long."),
    ],
)
def test_updates_that_are_refused(api: Api, change: dict[str, Any], message: str) -> None:
    credential = create(api)
    answer = api.patch(f"/credentials/{credential['id']}", change)
    assert (answer.status_code, answer.json()) == (400, {"message": message})
    assert api.get(f"/credentials/{credential['id']}").json() == credential


@pytest.mark.parametrize(
    ("partial", "data"), [(True, {"name": "X", "value": "new"}), (False, {"value": "new"})], ids=["merged", "replaced"]
)
def test_data_is_replaced_unless_partial(api: Api, partial: bool, data: dict[str, str]) -> None:
    credential = create(api)
    answer = api.patch(f"/credentials/{credential['id']}", {"data": {"value": "new"}, "isPartialData": partial})
    assert answer.status_code == 200
    assert api.simulator.state.credentials.data(credential["id"]) == data


def test_type_and_data_change_together(api: Api) -> None:
    credential = create(api)
    change = {"type": "httpBasicAuth", "data": {"user": "u", "password": "p"}}
    assert api.patch(f"/credentials/{credential['id']}", change).json()["type"] == "httpBasicAuth"
    assert api.patch(f"/credentials/{credential['id']}", {}).status_code == 200


def test_sharing_with_everyone_needs_a_license(api: Api, build: Callable[..., Api]) -> None:
    assert api.patch(f"/credentials/{create(api)['id']}", {"isGlobal": True}).json()["isGlobal"] is True
    unlicensed = build(licensed=False)
    answer = unlicensed.patch(f"/credentials/{create(unlicensed)['id']}", {"isGlobal": True})
    assert (answer.status_code, answer.json()["message"]) == (403, "You are not licensed for sharing credentials")


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("GET", "", "Credential not found"),
        ("PATCH", "", "Credential not found"),
        ("DELETE", "", "Not Found"),
        ("POST", "/test", 'Credential with ID "nope" was not found.'),
    ],
)
def test_an_unknown_credential(api: Api, method: str, path: str, message: str) -> None:
    answer = api.request(method, f"/credentials/nope{path}", json={} if method == "PATCH" else None)
    assert (answer.status_code, answer.json()) == (404, {"message": message})


def test_schemas_need_no_scope(api: Api, connect: Callable[..., Api]) -> None:
    bare = connect(api.simulator, api.simulator.create_key([]))
    schema = bare.get("/credentials/schema/httpBasicAuth").json()
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) >= {"user", "password"}
    answer = bare.get("/credentials/schema/nope")
    assert (answer.status_code, answer.json()) == (404, {"message": "Not Found"})


def test_tests_answer_200_whatever_comes_out(api: Api) -> None:
    untestable, good = create(api), create(api, type="slackApi", data={"accessToken": "t"})
    api.simulator.state.credentials.test_outcomes["githubApi"] = ("Error", "ENOTFOUND")
    bad = create(api, type="githubApi", data={})
    outcomes = [api.post(f"/credentials/{known['id']}/test") for known in (untestable, good, bad)]
    assert [answer.status_code for answer in outcomes] == [200, 200, 200]
    assert [answer.json() for answer in outcomes] == [
        {"status": "Error", "message": "No testing function found for this credential."},
        {"status": "OK", "message": "Connection successful!"},
        {"status": "Error", "message": "ENOTFOUND"},
    ]


def test_transfer_moves_between_projects(api: Api) -> None:
    credential = create(api)
    path = f"/credentials/{credential['id']}/transfer"
    own = api.put(path, {"destinationProjectId": api.simulator.state.personal_project_id})
    assert (own.status_code, own.json()["message"]) == (
        400,
        "You can't transfer a credential into the project that's already owning it.",
    )
    assert api.put(path, {"destinationProjectId": "nope"}).status_code == 404
    project = api.post("/projects", {"name": "team"}).json()
    moved = api.put(path, {"destinationProjectId": project["id"]})
    assert (moved.status_code, moved.content) == (204, b"")
    assert api.get("/credentials").json()["data"][0]["shared"][0]["name"] == "team"
    assert api.put("/credentials/nope/transfer", {"destinationProjectId": project["id"]}).status_code == 404
