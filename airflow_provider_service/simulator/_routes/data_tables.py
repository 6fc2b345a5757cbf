"""Data tables, their columns and their rows: ``/data-tables``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from airflow_provider_service.simulator._gateway import Call, operation, page
from airflow_provider_service.simulator._tables import BODY_CONDITIONS, COLUMN_TYPES, FILTER, Row, Table
from airflow_provider_service.simulator._validation import (
    PAGING,
    ApiError,
    Array,
    Body,
    Boolean,
    Enum,
    Field,
    Integer,
    Object,
    Param,
    Text,
)

_NAME = Text(min=1, max=128)
# The published contract lists json, but the service refuses it.
_COLUMN = Object(required={"name": Text(min=1), "type": Enum((*COLUMN_TYPES, "json"))})
_CREATE = Body(required={"name": _NAME, "columns": Array(items=_COLUMN)}, optional={"projectId": Text()})
_UPDATE = Body(required={"name": _NAME})
_QUERY = (*PAGING, FILTER, Param("sortBy"))
_TABLE = "/data-tables/{dataTableId}"
_operation = partial(operation, family="strict")


def _table(call: Call) -> Table:
    return call.state.data_tables.get(call.path["dataTableId"])


@_operation("GET", "/data-tables", scope="dataTable:list", query=_QUERY)
def list_data_tables(call: Call) -> Any:
    tables = call.state.data_tables.find(call.query.get("filter", {}), call.query.get("sortBy"))

    def shape(table: Table) -> dict[str, Any]:
        described = table.describe()
        for column in described["columns"]:
            del column["dataTableId"]
        return described

    return page(call, tables, over="refuse", shape=shape)


@_operation("POST", "/data-tables", scope="dataTable:create", status=201, body=_CREATE)
def create_data_table(call: Call) -> Any:
    project_id = call.body.get("projectId", call.state.personal_project_id)
    if call.state.projects.find(project_id) is None:
        raise ApiError(400, f'Project with ID "{project_id}" not found')
    return call.state.data_tables.create(call.body["name"], call.body["columns"], project_id).describe()


@_operation("GET", _TABLE, scope="dataTable:read")
def get_data_table(call: Call) -> Any:
    return _table(call).describe()


@_operation("PATCH", _TABLE, scope="dataTable:update", body=_UPDATE)
def update_data_table(call: Call) -> Any:
    return call.state.data_tables.rename(call.path["dataTableId"], call.body["name"]).describe()


@_operation("DELETE", _TABLE, scope="dataTable:delete", status=204)
def delete_data_table(call: Call) -> None:
    call.state.data_tables.delete(call.path["dataTableId"])


# ---------------------------------------------------------------- columns

_COLUMNS = f"{_TABLE}/columns"
_COLUMN_PATH = f"{_COLUMNS}/{{columnId}}"
_PARAMS = {"columnId": "nanoid"}
_COLUMN_NAME = Text(min=1, max=63, pattern="[a-zA-Z][a-zA-Z0-9_]*")
_INDEX = Integer(min=0)
_ADD_COLUMN = Body(required={"name": _COLUMN_NAME, "type": Enum(COLUMN_TYPES)}, optional={"index": _INDEX})
_UPDATE_COLUMN = Body(optional={"name": _COLUMN_NAME, "index": _INDEX})


@_operation("GET", _COLUMNS, scope="dataTableColumn:read")
def list_data_table_columns(call: Call) -> Any:
    return _table(call).list_columns()


@_operation("POST", _COLUMNS, scope="dataTableColumn:create", status=201, body=_ADD_COLUMN)
def create_data_table_column(call: Call) -> Any:
    return _table(call).add_column(call.body["name"], call.body["type"], call.body.get("index"))


@_operation("PATCH", _COLUMN_PATH, scope="dataTableColumn:update", params=_PARAMS, body=_UPDATE_COLUMN)
def update_data_table_column(call: Call) -> Any:
    if "name" not in call.body and "index" not in call.body:
        missing = ", ".join(f"request/body must have required property '{name}'" for name in ("name", "index"))
        raise ApiError(400, f"{missing}, request/body must match a schema in anyOf")
    if not call.body.keys() <= {"name", "index"}:
        raise ApiError(400, "request/body must NOT have additional properties")
    return _table(call).change_column(call.path["columnId"], name=call.body.get("name"), index=call.body.get("index"))


@_operation("DELETE", _COLUMN_PATH, scope="dataTableColumn:delete", status=204, params=_PARAMS)
def delete_data_table_column(call: Call) -> None:
    _table(call).delete_column(call.path["columnId"])


# ---------------------------------------------------------------- rows

_ROWS = f"{_TABLE}/rows"
_CONDITION = Object(required={"columnName": Text(), "condition": Enum(BODY_CONDITIONS), "value": Field()})
_FILTER = Object(required={"filters": Array(items=_CONDITION, min=1)}, optional={"type": Enum(("and", "or"))})
_RETURN_TYPE = Enum(("count", "id", "all"))
_INSERT = Body(required={"data": Array(items=Object(), min=1)}, optional={"returnType": _RETURN_TYPE})
_OPTIONS = {"returnData": Boolean(), "dryRun": Boolean()}
_CHANGE = Body(required={"filter": _FILTER, "data": Object()}, optional=_OPTIONS)
_LIST_QUERY = (*PAGING, FILTER, Param("sortBy"), Param("search"))
_DELETE_QUERY = (replace(FILTER, required=True), Param("returnData", "boolean"), Param("dryRun", "boolean"))


def _check_values(rows: Iterable[Mapping[str, Any]]) -> None:
    if any(isinstance(value, (dict, list)) for row in rows for value in row.values()):
        raise ApiError(400, "Invalid input")


def _answer(table: Table, rows: list[Row], options: Mapping[str, Any]) -> Any:
    if options.get("dryRun"):
        return rows
    return [table.show(row) for row in rows] if options.get("returnData") else True


@_operation("GET", _ROWS, scope="dataTableRow:read", query=_LIST_QUERY)
def list_data_table_rows(call: Call) -> Any:
    query = call.query
    table = _table(call)
    rows = table.select(query.get("filter", {}), sort_by=query.get("sortBy"), search=query.get("search"))
    return page(call, rows, over="refuse", shape=table.show)


@_operation("POST", _ROWS, scope="dataTableRow:create", body=_INSERT)
def insert_data_table_rows(call: Call) -> Any:
    _check_values(call.body["data"])
    table = _table(call)
    rows = table.insert(call.body["data"])
    return_type = call.body.get("returnType", "count")
    if return_type == "count":
        return {"success": True, "insertedRows": len(rows)}
    return [{"id": row["id"]} for row in rows] if return_type == "id" else [table.show(row) for row in rows]


@_operation("PATCH", f"{_ROWS}/update", scope="dataTableRow:update", body=_CHANGE)
def update_data_table_rows(call: Call) -> Any:
    return _change(call, Table.update)


@_operation("POST", f"{_ROWS}/upsert", scope="dataTableRow:upsert", body=_CHANGE)
def upsert_data_table_rows(call: Call) -> Any:
    return _change(call, Table.upsert)


def _change(call: Call, change: Callable[..., list[Row]]) -> Any:
    _check_values([call.body["data"]])
    table = _table(call)
    rows = change(table, call.body["filter"], call.body["data"], dry_run=call.body.get("dryRun", False))
    return _answer(table, rows, call.body)


@_operation("DELETE", f"{_ROWS}/delete", scope="dataTableRow:delete", query=_DELETE_QUERY)
def delete_data_table_rows(call: Call) -> Any:
    table = _table(call)
    return _answer(table, table.delete(call.query["filter"], dry_run=call.query.get("dryRun", False)), call.query)


@_operation("DELETE", f"{_ROWS}/clear", scope="dataTableRow:delete")
def clear_data_table_rows(call: Call) -> Any:
    return {"deletedCount": _table(call).clear()}
