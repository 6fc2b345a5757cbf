"""Variables: ``/variables``."""

from __future__ import annotations

from functools import partial
from typing import Any

from airflow_provider_service.simulator._gateway import Call, operation
from airflow_provider_service.simulator._paging import page
from airflow_provider_service.simulator._validation import PAGING, Body, Param, Text

_VALUE = Text(max=1000)
_READ_ONLY = ("id", "type")
_CREATE = Body(
    required={"key": Text(min=1, max=50, pattern="[A-Za-z_][A-Za-z0-9_]*"), "value": _VALUE},
    optional={"projectId": Text(max=36)},
    closed=True,
    read_only=_READ_ONLY,
)
_UPDATE = Body(
    required={"key": Text(min=1, max=50, pattern="[A-Za-z0-9_]+"), "value": _VALUE},
    optional={"projectId": Text(max=36, nullable=True)},
    closed=True,
    read_only=_READ_ONLY,
)
_QUERY = (*PAGING, Param("projectId"), Param("state", "enum", enum=("empty",)))
_operation = partial(operation, family="lenient", feature="feat:variables")


@_operation("list_variables", "GET", "/variables", scope="variable:list", query=_QUERY)
def list_variables(call: Call) -> Any:
    store = call.state.variables
    found = store.all(project_id=call.query.get("projectId"), empty=call.query.get("state") == "empty")
    return page(call, found, shape=store.describe)


@_operation("create_variable", "POST", "/variables", scope="variable:create", status=201, body=_CREATE)
def create_variable(call: Call) -> None:
    call.state.variables.create(call.body["key"], call.body["value"], call.body.get("projectId"))


@_operation("update_variable", "PUT", "/variables/{id}", scope="variable:update", status=204, body=_UPDATE)
def update_variable(call: Call) -> None:
    place = call.state.variables.get(call.path["id"])["projectId"]
    given = call.body
    call.state.variables.update(call.path["id"], given["key"], given["value"], given.get("projectId", place))


@_operation("delete_variable", "DELETE", "/variables/{id}", scope="variable:delete", status=204)
def delete_variable(call: Call) -> None:
    call.state.variables.delete(call.path["id"])
