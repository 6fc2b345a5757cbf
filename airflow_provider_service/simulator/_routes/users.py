"""Users: ``/users``."""

from __future__ import annotations

import re
from typing import Any

from airflow_provider_service.simulator._gateway import Call, operation
from airflow_provider_service.simulator._paging import page
from airflow_provider_service.simulator._stores.users import MEMBER_ROLE
from airflow_provider_service.simulator._validation import PAGING, ApiError, Body, Param, Text

_PARAMS = {"id": "identifier"}
_INCLUDE_ROLE = Param("includeRole", "boolean")
_LIST_QUERY = (*PAGING, Param("offset", "integer", min=0), _INCLUDE_ROLE, Param("projectId"))
_INVITE = Body(array=True, required={"email": Text()}, optional={"role": Text()})
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")


def _describe(call: Call, user: dict[str, Any]) -> dict[str, Any]:
    hidden = () if call.query.get("includeRole") else ("role",)
    return {name: value for name, value in user.items() if name not in hidden}


@operation("list_users", "GET", "/users", scope="user:list", family="strict", query=_LIST_QUERY)
def list_users(call: Call) -> Any:
    users = call.state.users.all()
    if "projectId" in call.query:
        project_id = call.state.projects.get(call.query["projectId"])["id"]
        users = [user for user in users if call.state.projects.is_member(project_id, user["id"])]
    return page(call, users, over="refuse", shape=lambda user: _describe(call, user))


@operation("create_users", "POST", "/users", scope="user:create", family="strict", status=201, body=_INVITE)
def create_users(call: Call) -> Any:
    for index, invitation in enumerate(call.body):
        if not _EMAIL.fullmatch(invitation["email"]):
            raise ApiError(400, f'request/body/{index}/email must match format "email"')
    return call.state.invite_users([(given["email"], given.get("role", MEMBER_ROLE)) for given in call.body])


@operation("get_user", "GET", "/users/{id}", scope="user:read", family="strict", params=_PARAMS, query=(_INCLUDE_ROLE,))
def get_user(call: Call) -> Any:
    return _describe(call, call.state.users.get(call.path["id"]))


@operation("delete_user", "DELETE", "/users/{id}", scope="user:delete", family="strict", status=204, params=_PARAMS)
def delete_user(call: Call) -> None:
    call.state.delete_user(call.path["id"], by=call.key.owner_id)


@operation(
    "change_user_role",
    "PATCH",
    "/users/{id}/role",
    scope="user:changeRole",
    family="strict",
    feature="feat:advancedPermissions",
    status=204,
    params=_PARAMS,
    body=Body(required={"newRoleName": Text()}),
)
def change_user_role(call: Call) -> None:
    call.state.users.change_role(call.path["id"], call.body["newRoleName"])
