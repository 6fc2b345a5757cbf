"""Users, variables and tags: ``/users``, ``/variables`` and ``/tags``."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from airflow_provider_service.simulator._gateway import Call, operation, page
from airflow_provider_service.simulator._stores.projects import MEMBER_ROLE
from airflow_provider_service.simulator._validation import PAGING, ApiError, Body, Param, Text

_PARAMS = {"id": "identifier"}
_INCLUDE_ROLE = Param("includeRole", "boolean")
_LIST_QUERY = (*PAGING, Param("offset", "integer", min=0), _INCLUDE_ROLE, Param("projectId"))
_INVITE = Body(array=True, required={"email": Text()}, optional={"role": Text()})
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")


def _describe(call: Call, user: dict[str, Any]) -> dict[str, Any]:
    hidden = () if call.query.get("includeRole") else ("role",)
    return {name: value for name, value in user.items() if name not in hidden}


@operation("GET", "/users", scope="user:list", family="strict", query=_LIST_QUERY)
def list_users(call: Call) -> Any:
    users = call.state.users.all()
    if "projectId" in call.query:
        project_id = call.state.projects.get(call.query["projectId"])["id"]
        users = [user for user in users if call.state.projects.is_member(project_id, user["id"])]
    return page(call, users, over="refuse", shape=lambda user: _describe(call, user))


@operation("POST", "/users", scope="user:create", family="strict", status=201, body=_INVITE)
def create_users(call: Call) -> Any:
    for index, invitation in enumerate(call.body):
        if not _EMAIL.fullmatch(invitation["email"]):
            raise ApiError(400, f'request/body/{index}/email must match format "email"')
    return call.state.invite_users([(given["email"], given.get("role", MEMBER_ROLE)) for given in call.body])


@operation("GET", "/users/{id}", scope="user:read", family="strict", params=_PARAMS, query=(_INCLUDE_ROLE,))
def get_user(call: Call) -> Any:
    return _describe(call, call.state.users.get(call.path["id"]))


@operation("DELETE", "/users/{id}", scope="user:delete", family="strict", status=204, params=_PARAMS)
def delete_user(call: Call) -> None:
    call.state.delete_user(call.path["id"], by=call.key.owner_id)


@operation(
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


# ---------------------------------------------------------------- variables

_variable = partial(Body, closed=True, read_only=("id", "type"))
_CREATE = _variable(
    required={"key": Text(min=1, max=50, pattern="[A-Za-z_][A-Za-z0-9_]*"), "value": Text(max=1000)},
    optional={"projectId": Text(max=36)},
)
_UPDATE = _variable(
    required={"key": Text(min=1, max=50, pattern="[A-Za-z0-9_]+"), "value": Text(max=1000)},
    optional={"projectId": Text(max=36, nullable=True)},
)
_QUERY = (*PAGING, Param("projectId"), Param("state", "enum", enum=("empty",)))
_operation = partial(operation, family="lenient", feature="feat:variables")


@_operation("GET", "/variables", scope="variable:list", query=_QUERY)
def list_variables(call: Call) -> Any:
    store = call.state.variables
    variables = store.all(project_id=call.query.get("projectId"), empty=call.query.get("state") == "empty")
    return page(call, variables, shape=store.describe)


@_operation("POST", "/variables", scope="variable:create", status=201, body=_CREATE)
def create_variable(call: Call) -> None:
    call.state.variables.create(call.body["key"], call.body["value"], call.body.get("projectId"))


@_operation("PUT", "/variables/{id}", scope="variable:update", status=204, body=_UPDATE)
def update_variable(call: Call) -> None:
    place = call.body.get("projectId", call.state.variables.get(call.path["id"])["projectId"])
    call.state.variables.update(call.path["id"], call.body["key"], call.body["value"], place)


@_operation("DELETE", "/variables/{id}", scope="variable:delete", status=204)
def delete_variable(call: Call) -> None:
    call.state.variables.delete(call.path["id"])


# ---------------------------------------------------------------- tags

_BODY = Body(required={"name": Text()}, closed=True, read_only=("id", "createdAt", "updatedAt"))


@operation("GET", "/tags", scope="tag:list", family="lenient", query=PAGING)
def list_tags(call: Call) -> Any:
    return page(call, call.state.tags.all())


@operation("POST", "/tags", scope="tag:create", family="lenient", status=201, body=_BODY)
def create_tag(call: Call) -> Any:
    return call.state.tags.create(call.body["name"])


@operation("GET", "/tags/{tagId}", scope="tag:read", family="lenient")
def get_tag(call: Call) -> Any:
    return call.state.tags.get(call.path["tagId"])


@operation("PUT", "/tags/{tagId}", scope="tag:update", family="lenient", body=_BODY)
def update_tag(call: Call) -> Any:
    changed = call.state.tags.rename(call.path["tagId"], call.body["name"])
    tag = call.state.tags.get(call.path["tagId"])
    return {name: tag[name] for name in ("id", "name", *(("updatedAt",) if changed else ()))}


@operation("DELETE", "/tags/{tagId}", scope="tag:delete", family="lenient")
def delete_tag(call: Call) -> Any:
    return call.state.tags.delete(call.path["tagId"])
