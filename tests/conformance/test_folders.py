"""Folders of a project; the free edition refuses them all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_service.client.errors import ServiceInvalidRequestError, ServiceNotFoundError
from airflow_provider_service.client.models import Folder
from airflow_provider_service.client.resources._folders import ROOT

from .expecting import NO_ID, refused, unique
from .target import Target

NO_FOLDER = f"Could not find the folder: {NO_ID}"


@pytest.fixture
def project_id(service: Target) -> Iterator[str]:
    project = service.client.projects.create(unique())
    yield project.id
    service.client.projects.delete(project.id)


@pytest.fixture
def tree(service: Target, project_id: str) -> list[Folder]:
    """Three folders, each in the one before."""
    folders: list[Folder] = []
    for name in ("top", "middle", "leaf"):
        parent_id = folders[-1].id if folders else None
        folders.append(service.client.folders.create(project_id, name, parent_folder_id=parent_id))
    return folders


@pytest.mark.covers("create_folder", "get_folder", needs=("create_project",))
def test_a_folder_is_made_and_counts_what_is_below_it(service: Target, project_id: str, tree: list[Folder]) -> None:
    top, middle, _ = tree
    graph = {"nodes": [], "connections": {}, "settings": {}}
    service.client.workflows.create(unique(), **graph, project_id=project_id, parent_folder_id=middle.id)

    read = service.client.folders.get(project_id, top.id)

    assert (middle.name, middle.parent_folder_id) == ("middle", top.id)
    assert (read.name, read.parent_folder_id, read.total_sub_folders, read.total_workflows) == ("top", None, 2, 1)


@pytest.mark.covers("create_folder", "delete_folder")
def test_a_folder_of_the_personal_project(service: Target) -> None:
    folder = service.client.folders.create("personal", unique())
    personal = next(project for project in service.projects() if project["type"] == "personal")
    service.client.folders.delete(personal["id"], folder.id)
    assert folder.parent_folder_id is None


@pytest.mark.covers("list_folders", needs=("create_project", "create_folder"))
def test_folders_are_filtered_sorted_and_selected(service: Target, project_id: str, tree: list[Folder]) -> None:
    def names(**options: object) -> list[str | None]:
        return [folder.name for folder in service.client.folders.list(project_id, **options)]  # type: ignore[arg-type]

    assert sorted(map(str, names())) == ["leaf", "middle", "top"]
    assert names(sort_by="name:asc") == ["leaf", "middle", "top"]
    assert names(sort_by="name:desc", limit=2) == ["top", "middle"]
    assert names(filter={"name": "EA"}) == ["leaf"]
    assert names(filter={"parentFolderId": tree[0].id}) == ["middle"]
    assert names(filter={"parentFolderId": ROOT}) == ["top"]
    assert names(filter={"excludeFolderIdAndDescendants": tree[1].id}) == ["top"]
    (selected,) = service.client.folders.list(project_id, select=["name"], filter={"name": "top"})
    assert set(selected.to_wire()) == {"id", "name"}


@pytest.mark.covers("list_folders", needs=("create_project", "create_folder"))
def test_folders_come_in_pages_with_their_count(service: Target, project_id: str, tree: list[Folder]) -> None:
    page = service.raw("GET", f"/projects/{project_id}/folders?skip=1&take=1&sortBy=name%3Aasc").json()
    assert (page["count"], [folder["name"] for folder in page["data"]]) == (3, ["middle"])


@pytest.mark.covers("update_folder", needs=("create_project", "create_folder", "get_folder"))
def test_a_folder_is_renamed_and_moved(service: Target, project_id: str, tree: list[Folder]) -> None:
    _, middle, leaf = tree
    folders = service.client.folders

    assert folders.update(project_id, leaf.id, name="flat", parent_folder_id=ROOT).parent_folder_id is None
    assert folders.get(project_id, leaf.id).name == "flat"
    assert folders.get(project_id, middle.id).total_sub_folders == 0


@pytest.mark.covers("delete_folder", needs=("create_project", "create_folder", "list_folders"))
def test_a_deleted_folder_can_hand_over_its_content(service: Target, project_id: str, tree: list[Folder]) -> None:
    top, middle, leaf = tree
    folders = service.client.folders

    folders.delete(project_id, middle.id, transfer_to_folder_id=top.id)
    assert folders.get(project_id, leaf.id).parent_folder_id == top.id

    folders.delete(project_id, top.id)
    assert list(folders.list(project_id)) == []


@pytest.mark.covers(
    "create_folder", "get_folder", "list_folders", "update_folder", "delete_folder", needs=("create_project",)
)
def test_unknown_folders_and_projects_are_not_found(service: Target, project_id: str) -> None:
    folders = service.client.folders
    calls = (
        lambda project: folders.create(project, "x", parent_folder_id=NO_ID),
        lambda project: folders.get(project, NO_ID),
        lambda project: folders.update(project, NO_ID, name="x"),
        lambda project: folders.delete(project, NO_ID),
    )
    for call in calls:
        with refused(ServiceNotFoundError, NO_FOLDER):
            call(project_id)
        with refused(ServiceNotFoundError, "Project not found"):
            call(NO_ID)
    with refused(ServiceNotFoundError, "Project not found"):
        list(folders.list(NO_ID))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "request/body must NOT have fewer than 1 properties"),
        ({"name": 5}, "request/body/name must be string"),
        ({"foo": 1}, "request/body must NOT have additional properties"),
    ],
    ids=str,
)
@pytest.mark.covers("update_folder")
def test_a_change_that_does_not_fit_is_refused(service: Target, body: dict[str, object], message: str) -> None:
    with refused(ServiceInvalidRequestError, message, 400):
        service.client.request("PATCH", "/projects/{}/folders/{}", NO_ID, NO_ID, body=body)
