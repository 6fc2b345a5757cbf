"""Projects, their members and their folders: ``/projects``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from airflow_provider_service.simulator._gateway import Call, operation, page, skip_take
from airflow_provider_service.simulator._stores.folders import FIELDS, ROOT
from airflow_provider_service.simulator._stores.projects import ADMIN_ROLE, ADMIN_SCOPES
from airflow_provider_service.simulator._validation import PAGING, Array, Body, Object, Param, Text, refuse

_USERS = "/projects/{projectId}/users"
_MEMBER = f"{_USERS}/{{userId}}"
_BODY = Body(required={"name": Text(min=1, max=255)}, closed=True, read_only=("id", "type"))
_RELATION = Object(required={"userId": Text(min=1), "role": Text(min=1)})
_ROLE = Body(required={"role": Text(min=1)})
_RELATIONS = Body(required={"relations": Array(items=_RELATION, min=1)})
_project_operation = partial(operation, family="lenient", feature="feat:projectRole:admin")


@_project_operation("GET", "/projects", scope="project:list", query=PAGING)
def list_projects(call: Call) -> Any:
    return page(call, call.state.projects.all())


@_project_operation("POST", "/projects", scope="project:create", status=201, body=_BODY)
def create_project(call: Call) -> Any:
    project = call.state.projects.create(call.body["name"], call.key.owner_id)
    return {**project, "role": ADMIN_ROLE, "scopes": list(ADMIN_SCOPES)}


@_project_operation("PUT", "/projects/{projectId}", scope="project:update", status=204, body=_BODY)
def update_project(call: Call) -> None:
    call.state.projects.rename(call.path["projectId"], call.body["name"])


@_project_operation("DELETE", "/projects/{projectId}", scope="project:delete", status=204)
def delete_project(call: Call) -> None:
    call.state.delete_project(call.path["projectId"])


@_project_operation("GET", _USERS, scope="user:list", query=PAGING)
def list_project_users(call: Call) -> Any:
    return page(call, call.state.projects.members(call.path["projectId"]))


@_project_operation("POST", _USERS, scope="project:manageMembers", status=201, body=_RELATIONS)
def add_project_users(call: Call) -> None:
    relations = [(relation["userId"], relation["role"]) for relation in call.body["relations"]]
    call.state.projects.add_members(call.path["projectId"], relations)


@_project_operation("PATCH", _MEMBER, scope="project:manageMembers", status=204, body=_ROLE)
def change_project_user_role(call: Call) -> None:
    call.state.projects.change_role(call.path["projectId"], call.path["userId"], call.body["role"])


@_project_operation("DELETE", _MEMBER, scope="project:manageMembers", status=204)
def delete_project_user(call: Call) -> None:
    call.state.projects.remove_member(call.path["projectId"], call.path["userId"])


# ---------------------------------------------------------------- folders

_FOLDERS = "/projects/{projectId}/folders"
_FOLDER = f"{_FOLDERS}/{{folderId}}"
_SORTS = tuple(f"{name}:{order}" for name in ("name", "createdAt", "updatedAt") for order in ("asc", "desc"))
_NOT_A_SORT = f"request/query/sortBy must be equal to one of the allowed values: {', '.join(_SORTS)}"
_LIST_QUERY = (
    Param("filter"),
    Param("select"),
    Param("sortBy", "enum", enum=_SORTS, message=_NOT_A_SORT),
    Param("skip", "integer", min=0, message="request/query/skip Skip must be a valid number"),
    Param("take", "integer", min=0, message="request/query/take Take must be a valid number"),
)
_CREATE = Body(required={"name": Text()}, optional={"parentFolderId": Text()}, closed=True)
_UPDATE = Body(optional={"name": Text(), "parentFolderId": Text()}, closed=True, min_properties=1)
_folder_operation = partial(operation, feature="feat:folders")


@_folder_operation("GET", _FOLDERS, scope="folder:list", family="lenient", query=_LIST_QUERY)
def list_folders(call: Call) -> Any:
    known = {param.name for param in _LIST_QUERY}
    if unknown := [name for name in call.request.query_params if name not in known]:
        raise refuse("request/query", f"Unrecognized key(s) in object: {', '.join(map(repr, unknown))}")
    project_id = call.state.projects.get(call.path["projectId"])["id"]
    chosen = _filtered(call, call.state.folders.of_project(project_id), _decode(call, "filter", dict))
    selected = _decode(call, "select", list)
    if "sortBy" in call.query:
        name, _, order = call.query["sortBy"].partition(":")
        chosen = sorted(chosen, key=lambda folder: str(folder[name]), reverse=order == "desc")
    names = [name for name in FIELDS if selected is None or name in ("id", *selected)]
    return skip_take(call, chosen, shape=lambda folder: {name: folder[name] for name in names})


def _decode(call: Call, name: str, kind: type) -> Any:
    if name not in call.query:
        return None
    try:
        value = json.loads(call.query[name])
    except ValueError:
        value = None
    if not isinstance(value, kind):
        raise refuse(f"request/query/{name}", f"Invalid {name} format")
    return value


def _filtered(
    call: Call, folders: Sequence[Mapping[str, Any]], wanted: Mapping[str, Any] | None
) -> Sequence[Mapping[str, Any]]:
    if not wanted:
        return folders
    if not wanted.keys() <= {"parentFolderId", "name", "tags", "excludeFolderIdAndDescendants"}:
        raise refuse("request/query/filter", "Invalid filter fields")
    hidden: set[str] = set()
    if "excludeFolderIdAndDescendants" in wanted:
        top = str(wanted["excludeFolderIdAndDescendants"])
        hidden = {top, *call.state.folders.descendants(top)}
    # Folders have no tags here, so a filter by tags finds nothing.
    return [
        folder
        for folder in folders
        if folder["id"] not in hidden
        and not wanted.get("tags")
        and str(wanted.get("name", "")).lower() in folder["name"].lower()
        and ("parentFolderId" not in wanted or (folder["parentFolderId"] or ROOT) == (wanted["parentFolderId"] or ROOT))
    ]


@_folder_operation("POST", _FOLDERS, scope="folder:create", family="strict", status=201, body=_CREATE)
def create_folder(call: Call) -> Any:
    project_id = call.path["projectId"]
    if project_id == "personal":
        project_id = call.state.personal_project_id
    folder = call.state.folders.create(project_id, call.body["name"], call.body.get("parentFolderId"))
    return call.state.folders.describe(folder)


@_folder_operation("GET", _FOLDER, scope="folder:read", family="lenient")
def get_folder(call: Call) -> Any:
    store = call.state.folders
    folder = store.get(call.path["projectId"], call.path["folderId"])
    folders, workflows = store.totals(folder["id"])
    return {**store.describe(folder), "totalSubFolders": folders, "totalWorkflows": workflows}


@_folder_operation("PATCH", _FOLDER, scope="folder:update", family="strict", body=_UPDATE)
def update_folder(call: Call) -> Any:
    store = call.state.folders
    return store.describe(store.update(call.path["projectId"], call.path["folderId"], call.body))


@_folder_operation(
    "DELETE", _FOLDER, scope="folder:delete", family="strict", status=204, query=(Param("transferToFolderId"),)
)
def delete_folder(call: Call) -> None:
    transfer_to = call.query.get("transferToFolderId")
    call.state.folders.delete(call.path["projectId"], call.path["folderId"], transfer_to)
