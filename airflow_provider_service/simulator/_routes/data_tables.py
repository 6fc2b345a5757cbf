"""Data tables: ``/data-tables``."""

from __future__ import annotations

from functools import partial
from typing import Any

from airflow_provider_service.simulator._gateway import Call, operation
from airflow_provider_service.simulator._paging import page
from airflow_provider_service.simulator._tables import Table
from airflow_provider_service.simulator._tables.filters import FILTER
from airflow_provider_service.simulator._tables.types import COLUMN_TYPES
from airflow_provider_service.simulator._validation import PAGING, ApiError, Array, Body, Enum, Object, Param, Text

_NAME = Text(min=1, max=128)
# The published contract lists json, but the service refuses it.
_COLUMN = Object(required={"name": Text(min=1), "type": Enum((*COLUMN_TYPES, "json"))})
_CREATE = Body(required={"name": _NAME, "columns": Array(items=_COLUMN)}, optional={"projectId": Text()})
_UPDATE = Body(required={"name": _NAME})
_QUERY = (*PAGING, FILTER, Param("sortBy"))
_operation = partial(operation, family="strict")


@_operation("list_data_tables", "GET", "/data-tables", scope="dataTable:list", query=_QUERY)
def list_data_tables(call: Call) -> Any:
    tables = call.state.data_tables.find(call.query.get("filter", {}), call.query.get("sortBy"))
    return page(call, tables, over="refuse", shape=_list_item)


def _list_item(table: Table) -> dict[str, Any]:
    described = table.describe()
    for column in described["columns"]:
        del column["dataTableId"]
    return described


@_operation("create_data_table", "POST", "/data-tables", scope="dataTable:create", status=201, body=_CREATE)
def create_data_table(call: Call) -> Any:
    project_id = call.body.get("projectId", call.state.personal_project_id)
    if call.state.projects.find(project_id) is None:
        raise ApiError(400, f'Project with ID "{project_id}" not found')
    return call.state.data_tables.create(call.body["name"], call.body["columns"], project_id).describe()


@_operation("get_data_table", "GET", "/data-tables/{dataTableId}", scope="dataTable:read")
def get_data_table(call: Call) -> Any:
    return call.state.data_tables.get(call.path["dataTableId"]).describe()


@_operation("update_data_table", "PATCH", "/data-tables/{dataTableId}", scope="dataTable:update", body=_UPDATE)
def update_data_table(call: Call) -> Any:
    return call.state.data_tables.rename(call.path["dataTableId"], call.body["name"]).describe()


@_operation("delete_data_table", "DELETE", "/data-tables/{dataTableId}", scope="dataTable:delete", status=204)
def delete_data_table(call: Call) -> None:
    call.state.data_tables.delete(call.path["dataTableId"])
