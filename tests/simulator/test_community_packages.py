from __future__ import annotations

import pytest

from .api_client import Api

NAME = "n8n-nodes-example"
MISSING = {"message": "This package is not installed - you must install it first"}


def test_a_package_is_installed_updated_and_removed(api: Api) -> None:
    assert api.get("/community-packages").json() == []
    installed = api.post("/community-packages", {"name": NAME, "version": "0.9.0"})
    assert installed.status_code == 200
    assert set(installed.json()) == {
        "packageName",
        "installedVersion",
        "authorName",
        "authorEmail",
        "installedNodes",
        "createdAt",
        "updatedAt",
        "updateAvailable",
    }
    assert api.get("/community-packages").json() == [installed.json()]
    assert installed.json()["updateAvailable"] == "1.0.0"
    updated = api.patch(f"/community-packages/{NAME}").json()
    assert updated["installedVersion"] == "1.0.0"
    assert "updateAvailable" not in updated
    removed = api.delete(f"/community-packages/{NAME}")
    assert (removed.status_code, removed.content) == (204, b"")
    assert api.get("/community-packages").json() == []


def test_a_scoped_name_is_one_encoded_segment(api: Api) -> None:
    name = "@example/n8n-nodes-scoped"
    assert api.post("/community-packages", {"name": name}).status_code == 200
    assert api.patch("/community-packages/%40example%2Fn8n-nodes-scoped", {}).json()["packageName"] == name
    assert api.delete("/community-packages/@example/n8n-nodes-scoped").status_code == 404
    assert api.delete("/community-packages/%40example%2Fn8n-nodes-scoped").status_code == 204


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({}, 400, "request/body must have required property 'name'"),
        ({"name": ""}, 400, "Package name is required"),
        ({"name": 5}, 400, "request/body/name must be string"),
        ({"name": "n8n-nodes-x"}, 400, "Package n8n-nodes-x is not vetted for installation"),
        ({"name": "n8n-nodes-x", "verify": True}, 400, "Package n8n-nodes-x is not vetted for installation"),
        (
            {"name": "n8n-nodes-x", "verify": False},
            500,
            'Error loading package "n8n-nodes-x" :Package version does not exist',
        ),
        ({"name": NAME, "version": "9"}, 500, f'Error loading package "{NAME}" :Package version does not exist'),
    ],
)
def test_installations_that_are_refused(api: Api, body: object, status: int, message: str) -> None:
    answer = api.post("/community-packages", body)
    assert (answer.status_code, answer.json()) == (status, {"message": message})
    assert api.get("/community-packages").json() == []


def test_a_package_is_installed_once(api: Api) -> None:
    assert api.post("/community-packages", {"name": NAME}).status_code == 200
    assert api.post("/community-packages", {"name": NAME}).status_code == 400


def test_unknown_packages(api: Api) -> None:
    update = api.patch(f"/community-packages/{NAME}")
    assert (update.status_code, update.json()) == (404, MISSING)
    unvetted = api.patch("/community-packages/n8n-nodes-x")
    assert (unvetted.status_code, unvetted.json()["message"]) == (
        400,
        "Package n8n-nodes-x is not vetted for installation",
    )
    removal = api.delete("/community-packages/n8n-nodes-x")
    assert (removal.status_code, removal.json()) == (404, MISSING)
    other = api.delete("/community-packages/foo")
    assert (other.status_code, other.json()) == (400, {"message": "Package name must start with n8n-nodes-"})
