from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from .api_client import Api


@pytest.fixture
def folders(api: Api) -> str:
    return f"/projects/{api.simulator.state.personal_project_id}/folders"


def create(api: Api, folders: str, name: str, parent: str | None = None) -> str:
    answer = api.post(folders, {"name": name, **({"parentFolderId": parent} if parent else {})})
    assert answer.status_code == 201, answer.text
    folder_id: str = answer.json()["id"]
    return folder_id


def workflow_in(api: Api, folder_id: str, path: str) -> Any:
    created = api.simulator.create_webhook_workflow(path=path)
    workflow = api.simulator.state.workflows.get(created["id"])
    workflow.parent_folder_id = folder_id
    return workflow


def names(api: Api, folders: str, **query: Any) -> list[str]:
    encoded = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
    return [folder["name"] for folder in api.get(f"{folders}?{encoded}").json()["data"]]


def test_a_folder_moves_but_not_below_itself(api: Api, folders: str) -> None:
    top, other = create(api, folders, "top"), create(api, folders, "other")
    child = create(api, folders, "child", top)
    assert api.patch(f"{folders}/{child}", {"parentFolderId": other}).json()["parentFolderId"] == other
    assert api.patch(f"{folders}/{child}", {"name": "renamed"}).json()["parentFolderId"] == other
    assert api.patch(f"{folders}/{child}", {"parentFolderId": "0"}).json()["parentFolderId"] is None
    assert api.patch(f"{folders}/{child}", {"parentFolderId": top}).status_code == 200
    assert api.patch(f"{folders}/{top}", {"parentFolderId": child}).status_code == 400
    assert api.patch(f"{folders}/{top}", {"parentFolderId": top}).status_code == 400
    assert api.patch(f"{folders}/{top}", {"parentFolderId": "nope"}).status_code == 404


def test_deleting_with_a_target_moves_the_content(api: Api, folders: str) -> None:
    doomed, target = create(api, folders, "doomed"), create(api, folders, "target")
    child = create(api, folders, "child", doomed)
    workflow = workflow_in(api, doomed, "one")
    assert api.delete(f"{folders}/{doomed}?transferToFolderId={target}").status_code == 204
    assert (workflow.parent_folder_id, workflow.is_archived) == (target, False)
    assert api.get(f"{folders}/{child}").json()["parentFolderId"] == target


def test_deleting_without_a_target_archives_the_workflows(api: Api, folders: str) -> None:
    doomed = create(api, folders, "doomed")
    child = create(api, folders, "child", doomed)
    workflow = workflow_in(api, child, "one")
    assert api.delete(f"{folders}/{doomed}?transferToFolderId={child}").status_code == 400
    assert api.delete(f"{folders}/{doomed}").status_code == 204
    assert (workflow.parent_folder_id, workflow.is_archived, workflow.active) == (None, True, False)
    assert api.get(folders).json() == {"count": 0, "data": []}


def test_the_list_is_sliced_by_skip_and_take(api: Api, folders: str) -> None:
    for number in range(12):
        create(api, folders, f"f{number:02d}")
    listed = api.get(folders).json()
    assert (listed["count"], len(listed["data"])) == (12, 10)
    assert names(api, folders, skip="10", take="5") == ["f10", "f11"]
    assert names(api, folders, sortBy="name:desc", take="2") == ["f11", "f10"]


def test_no_folder_has_a_tag(api: Api, folders: str) -> None:
    create(api, folders, "one")
    assert names(api, folders, filter=json.dumps({"tags": ["x"]})) == []


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "sortBy=zz",
            "request/query/sortBy must be equal to one of the allowed values: "
            "name:asc, name:desc, createdAt:asc, createdAt:desc, updatedAt:asc, updatedAt:desc",
        ),
        ("foo=1", "request/query Unrecognized key(s) in object: 'foo'"),
        ("filter=zz", "request/query/filter Invalid filter format"),
        ("filter=%7B%22foo%22%3A1%7D", "request/query/filter Invalid filter fields"),
    ],
)
def test_lists_that_are_refused(api: Api, folders: str, query: str, message: str) -> None:
    answer = api.get(f"{folders}?{query}")
    assert (answer.status_code, answer.json()) == (400, {"message": message})


def test_bodies_projects_and_licenses(api: Api, folders: str) -> None:
    assert api.post(folders, {}).json() == {"message": "request/body must have required property 'name'"}
    assert api.post(folders, {"name": " "}).status_code == 400
    empty = api.patch(f"{folders}/x", {})
    assert empty.json() == {"message": "request/body must NOT have fewer than 1 properties"}
    unknown = api.get("/projects/nope/folders")
    assert (unknown.status_code, unknown.json()) == (404, {"message": "Project not found"})
    api.simulator.state.licensed = False
    refused = api.get(folders)
    assert refused.status_code == 403
    assert refused.json()["message"].startswith("Your license does not allow for feat:folders. ")
    assert api.post(folders, {}).status_code == 400
