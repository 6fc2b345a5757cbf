from __future__ import annotations

from typing import Any

import pytest

from .api_client import Api


def create(api: Api, key: str, value: str = "v", **more: Any) -> dict[str, Any]:
    answer = api.post("/variables", {"key": key, "value": value, **more})
    assert (answer.status_code, answer.content) == (201, b"")
    return next(v for v in api.get("/variables?limit=250").json()["data"] if v["key"] == key)


def test_variables_belong_to_the_instance_or_a_project(api: Api) -> None:
    project = api.post("/projects", {"name": "team"}).json()
    create(api, "everywhere")
    mine = create(api, "mine", projectId=project["id"])
    assert mine["project"]["name"] == "team"
    assert [v["key"] for v in api.get(f"/variables?projectId={project['id']}").json()["data"]] == ["mine"]
    assert api.post("/variables", {"key": "everywhere", "value": "", "projectId": project["id"]}).status_code == 201
    api.put(f"/variables/{mine['id']}", {"key": "mine", "value": "x", "projectId": None})
    assert [v["project"] for v in api.get("/variables").json()["data"] if v["key"] == "mine"] == [None]
    assert api.post("/variables", {"key": "k", "value": "", "projectId": "nope"}).status_code == 404


def test_only_empty_ones_can_be_requested(api: Api) -> None:
    assert api.get("/variables?state=full").status_code == 400


def test_keys_are_unique(api: Api) -> None:
    create(api, "one")
    two = create(api, "two")
    assert api.post("/variables", {"key": "one", "value": ""}).status_code == 400
    assert api.put(f"/variables/{two['id']}", {"key": "one", "value": ""}).status_code == 400
    assert api.put(f"/variables/{two['id']}", {"key": "two", "value": "new"}).status_code == 204


@pytest.mark.parametrize(
    "body",
    [
        {"key": "k"},
        {"value": "v"},
        {"key": "k", "value": "v", "foo": 1},
        {"key": "k", "value": "v", "id": "1"},
    ],
)
def test_bodies_that_do_not_fit(api: Api, body: object) -> None:
    answer = api.post("/variables", body)
    assert answer.status_code == 400
    assert answer.json()["message"].startswith("request/body")
    assert api.get("/variables").json()["data"] == []


def test_everything_needs_a_license(api: Api) -> None:
    api.simulator.state.licensed = False
    answers = [
        api.get("/variables"),
        api.post("/variables", {}),
        api.put("/variables/x", {}),
        api.delete("/variables/x"),
    ]
    assert {answer.status_code for answer in answers} == {403}
    assert answers[0].json()["message"].startswith("Your license does not allow for feat:variables. ")
