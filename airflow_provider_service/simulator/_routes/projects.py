"""Projects and their members: ``/projects``."""

from __future__ import annotations

from functools import partial
from typing import Any

from airflow_provider_service.simulator._gateway import Call, operation
from airflow_provider_service.simulator._paging import page
from airflow_provider_service.simulator._stores.projects import ADMIN_ROLE, ADMIN_SCOPES
from airflow_provider_service.simulator._validation import PAGING, Array, Body, Object, Text

_USERS = "/projects/{projectId}/users"
_MEMBER = "/projects/{projectId}/users/{userId}"
_BODY = Body(required={"name": Text(min=1, max=255)}, closed=True, read_only=("id", "type"))
_RELATION = Object(required={"userId": Text(min=1), "role": Text(min=1)})
_ROLE = Body(required={"role": Text(min=1)})
_RELATIONS = Body(required={"relations": Array(items=_RELATION, min=1)})
_operation = partial(operation, family="lenient", feature="feat:projectRole:admin")


@_operation("list_projects", "GET", "/projects", scope="project:list", query=PAGING)
def list_projects(call: Call) -> Any:
    return page(call, call.state.projects.all())


@_operation("create_project", "POST", "/projects", scope="project:create", status=201, body=_BODY)
def create_project(call: Call) -> Any:
    project = call.state.projects.create(call.body["name"], call.key.owner_id)
    return {**project, "role": ADMIN_ROLE, "scopes": list(ADMIN_SCOPES)}


@_operation("update_project", "PUT", "/projects/{projectId}", scope="project:update", status=204, body=_BODY)
def update_project(call: Call) -> None:
    call.state.projects.rename(call.path["projectId"], call.body["name"])


@_operation("delete_project", "DELETE", "/projects/{projectId}", scope="project:delete", status=204)
def delete_project(call: Call) -> None:
    call.state.delete_project(call.path["projectId"])


@_operation("list_project_users", "GET", _USERS, scope="user:list", query=PAGING)
def list_project_users(call: Call) -> Any:
    return page(call, call.state.projects.members(call.path["projectId"]))


@_operation("add_project_users", "POST", _USERS, scope="project:manageMembers", status=201, body=_RELATIONS)
def add_project_users(call: Call) -> None:
    relations = [(relation["userId"], relation["role"]) for relation in call.body["relations"]]
    call.state.projects.add_members(call.path["projectId"], relations)


@_operation("change_project_user_role", "PATCH", _MEMBER, scope="project:manageMembers", status=204, body=_ROLE)
def change_project_user_role(call: Call) -> None:
    call.state.projects.change_role(call.path["projectId"], call.path["userId"], call.body["role"])


@_operation("delete_project_user", "DELETE", _MEMBER, scope="project:manageMembers", status=204)
def delete_project_user(call: Call) -> None:
    call.state.projects.remove_member(call.path["projectId"], call.path["userId"])
