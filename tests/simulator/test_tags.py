from __future__ import annotations

import pytest

from .api_client import Api

EXISTS = {"message": "Tag already exists"}


def test_a_tag_lives_from_creation_to_deletion(api: Api) -> None:
    created = api.post("/tags", {"name": " spaced "})
    assert created.status_code == 201
    tag = created.json()
    assert list(tag) == ["id", "name", "createdAt", "updatedAt"]
    assert tag["name"] == "spaced"
    assert api.get(f"/tags/{tag['id']}").json() == tag

    renamed = api.put(f"/tags/{tag['id']}", {"name": "other"})
    assert renamed.status_code == 200
    assert set(renamed.json()) == {"id", "name", "updatedAt"}
    assert api.put(f"/tags/{tag['id']}", {"name": "other"}).json() == {"id": tag["id"], "name": "other"}

    deleted = api.delete(f"/tags/{tag['id']}")
    assert (deleted.status_code, deleted.json()["name"]) == (200, "other")
    assert api.get("/tags").json() == {"data": [], "nextCursor": None}


@pytest.mark.parametrize("name", ["taken", "", "   ", "x" * 25])
def test_taken_empty_and_long_names_are_all_called_existing(api: Api, name: str) -> None:
    api.post("/tags", {"name": "taken"})
    other = api.post("/tags", {"name": "y" * 24}).json()
    for answer in (api.post("/tags", {"name": name}), api.put(f"/tags/{other['id']}", {"name": name})):
        assert (answer.status_code, answer.json()) == (409, EXISTS)


def test_names_are_case_sensitive(api: Api) -> None:
    assert [api.post("/tags", {"name": name}).status_code for name in ("a", "A")] == [201, 201]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "request/body must have required property 'name'"),
        ({"name": 5}, "request/body/name Expected string, received number"),
        ({"name": "x", "foo": 1}, "request/body Unrecognized key(s) in object: 'foo'"),
        ({"name": "x", "id": "1"}, "request/body/id is read-only"),
    ],
)
def test_bodies_that_do_not_fit(api: Api, body: object, message: str) -> None:
    answer = api.post("/tags", body)
    assert (answer.status_code, answer.json()) == (400, {"message": message})


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_an_unknown_tag(api: Api, method: str) -> None:
    answer = api.request(method, "/tags/nope")
    assert (answer.status_code, answer.json()) == (404, {"message": "Not Found"})
    assert api.put("/tags/nope", {"name": "x"}).status_code == 404


def test_pages_follow_the_cursor(api: Api) -> None:
    for number in range(5):
        api.post("/tags", {"name": f"t{number}"})
    first = api.get("/tags", params={"limit": 3}).json()
    second = api.get("/tags", params={"cursor": first["nextCursor"]}).json()
    assert [tag["name"] for tag in first["data"] + second["data"]] == ["t0", "t1", "t2", "t3", "t4"]
    assert second["nextCursor"] is None


def test_a_deleted_tag_leaves_its_workflows(api: Api) -> None:
    tag = api.post("/tags", {"name": "gone"}).json()
    workflow = api.simulator.create_webhook_workflow(path="p", active=False)
    api.put(f"/workflows/{workflow['id']}/tags", [{"id": tag["id"]}])
    api.delete(f"/tags/{tag['id']}")
    assert api.get(f"/workflows/{workflow['id']}/tags").json() == []
