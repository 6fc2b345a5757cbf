"""Columns of data tables: ``/data-tables/{dataTableId}/columns``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from airflow_provider_service.simulator._gateway import Call, operation
from airflow_provider_service.simulator._tables.types import COLUMN_TYPES
from airflow_provider_service.simulator._validation import ApiError, Body, Enum, Integer, Text

_COLUMNS = "/data-tables/{dataTableId}/columns"
_COLUMN = "/data-tables/{dataTableId}/columns/{columnId}"
_PARAMS = {"columnId": "nanoid"}
_NAME = Text(min=1, max=63, pattern="[a-zA-Z][a-zA-Z0-9_]*")
_INDEX = Integer(min=0)
_CREATE = Body(required={"name": _NAME, "type": Enum(COLUMN_TYPES)}, optional={"index": _INDEX})
_UPDATE = Body(optional={"name": _NAME, "index": _INDEX})
_operation = partial(operation, family="strict")


@_operation("list_data_table_columns", "GET", _COLUMNS, scope="dataTableColumn:read")
def list_data_table_columns(call: Call) -> Any:
    return call.state.data_tables.get(call.path["dataTableId"]).list_columns()


@_operation("create_data_table_column", "POST", _COLUMNS, scope="dataTableColumn:create", status=201, body=_CREATE)
def create_data_table_column(call: Call) -> Any:
    table = call.state.data_tables.get(call.path["dataTableId"])
    return table.add_column(call.body["name"], call.body["type"], call.body.get("index"))


@_operation("update_data_table_column", "PATCH", _COLUMN, scope="dataTableColumn:update", params=_PARAMS, body=_UPDATE)
def update_data_table_column(call: Call) -> Any:
    _check_change(call.body)
    table = call.state.data_tables.get(call.path["dataTableId"])
    return table.change_column(call.path["columnId"], name=call.body.get("name"), index=call.body.get("index"))


def _check_change(given: Mapping[str, Any]) -> None:
    if "name" not in given and "index" not in given:
        missing = ", ".join(f"request/body must have required property '{name}'" for name in ("name", "index"))
        raise ApiError(400, f"{missing}, request/body must match a schema in anyOf")
    if any(key not in ("name", "index") for key in given):
        raise ApiError(400, "request/body must NOT have additional properties")


@_operation("delete_data_table_column", "DELETE", _COLUMN, scope="dataTableColumn:delete", status=204, params=_PARAMS)
def delete_data_table_column(call: Call) -> None:
    call.state.data_tables.get(call.path["dataTableId"]).delete_column(call.path["columnId"])
