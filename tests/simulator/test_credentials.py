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


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        ({"data": []}, 400, "request/body/data Expected object, received array"),
        ({"isResolvable": True}, 403, "End-user credentials are not available in personal projects"),
    ],
)
def test_creations_that_are_refused(api: Api, changes: dict[str, Any], status: int, message: str) -> None:
    body = {"name": "cred", "type": "httpHeaderAuth", "data": {}, **changes}
    answer = api.post("/credentials", body)
    assert (answer.status_code, answer.json()) == (status, {"message": message})
    assert api.get("/credentials").json()["data"] == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "nope", "data": {}}, "req.body.type is not a known type"),
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


def test_sharing_with_everyone_needs_a_license(build: Callable[..., Api]) -> None:
    unlicensed = build(licensed=False)
    answer = unlicensed.patch(f"/credentials/{create(unlicensed)['id']}", {"isGlobal": True})
    assert (answer.status_code, answer.json()["message"]) == (403, "You are not licensed for sharing credentials")


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
