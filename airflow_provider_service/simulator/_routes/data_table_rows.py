"""Rows of data tables: ``/data-tables/{dataTableId}/rows``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from airflow_provider_service.simulator._gateway import Call, operation
from airflow_provider_service.simulator._paging import page
from airflow_provider_service.simulator._tables import Table
from airflow_provider_service.simulator._tables.filters import BODY_CONDITIONS, FILTER, Row
from airflow_provider_service.simulator._validation import (
    PAGING,
    Any_,
    ApiError,
    Array,
    Body,
    Boolean,
    Enum,
    Object,
    Param,
    Text,
)

_ROWS = "/data-tables/{dataTableId}/rows"
_CONDITION = Object(required={"columnName": Text(), "condition": Enum(BODY_CONDITIONS), "value": Any_()})
_FILTER = Object(
    required={"filters": Array(items=_CONDITION, min=1)},
    optional={"type": Enum(("and", "or"))},
)
_INSERT = Body(
    required={"data": Array(items=Object(), min=1)},
    optional={"returnType": Enum(("count", "id", "all"))},
)
_CHANGE = Body(
    required={"filter": _FILTER, "data": Object()},
    optional={"returnData": Boolean(), "dryRun": Boolean()},
)
_LIST_QUERY = (*PAGING, FILTER, Param("sortBy"), Param("search"))
_DELETE_QUERY = (replace(FILTER, required=True), Param("returnData", "boolean"), Param("dryRun", "boolean"))
_operation = partial(operation, family="strict")


def _table(call: Call) -> Table:
    return call.state.data_tables.get(call.path["dataTableId"])


def _check_values(rows: Iterable[Mapping[str, Any]]) -> None:
    if any(isinstance(value, (dict, list)) for row in rows for value in row.values()):
        raise ApiError(400, "Invalid input")


def _answer(table: Table, rows: list[Row], options: Mapping[str, Any]) -> Any:
    if options.get("dryRun"):
        return rows
    return [table.show(row) for row in rows] if options.get("returnData") else True


@_operation("list_data_table_rows", "GET", _ROWS, scope="dataTableRow:read", query=_LIST_QUERY)
def list_data_table_rows(call: Call) -> Any:
    query = call.query
    table = _table(call)
    rows = table.select(query.get("filter", {}), sort_by=query.get("sortBy"), search=query.get("search"))
    return page(call, rows, over="refuse", shape=table.show)


@_operation("insert_data_table_rows", "POST", _ROWS, scope="dataTableRow:create", body=_INSERT)
def insert_data_table_rows(call: Call) -> Any:
    _check_values(call.body["data"])
    table = _table(call)
    rows = table.insert(call.body["data"])
    wanted = call.body.get("returnType", "count")
    if wanted == "count":
        return {"success": True, "insertedRows": len(rows)}
    return [{"id": row["id"]} for row in rows] if wanted == "id" else [table.show(row) for row in rows]


@_operation("update_data_table_rows", "PATCH", f"{_ROWS}/update", scope="dataTableRow:update", body=_CHANGE)
def update_data_table_rows(call: Call) -> Any:
    _check_values([call.body["data"]])
    table = _table(call)
    rows = table.update(call.body["filter"], call.body["data"], dry_run=call.body.get("dryRun", False))
    return _answer(table, rows, call.body)


@_operation("upsert_data_table_rows", "POST", f"{_ROWS}/upsert", scope="dataTableRow:upsert", body=_CHANGE)
def upsert_data_table_rows(call: Call) -> Any:
    _check_values([call.body["data"]])
    table = _table(call)
    rows = table.upsert(call.body["filter"], call.body["data"], dry_run=call.body.get("dryRun", False))
    return _answer(table, rows, call.body)


@_operation("delete_data_table_rows", "DELETE", f"{_ROWS}/delete", scope="dataTableRow:delete", query=_DELETE_QUERY)
def delete_data_table_rows(call: Call) -> Any:
    table = _table(call)
    return _answer(table, table.delete(call.query["filter"], dry_run=call.query.get("dryRun", False)), call.query)


@_operation("clear_data_table_rows", "DELETE", f"{_ROWS}/clear", scope="dataTableRow:delete")
def clear_data_table_rows(call: Call) -> Any:
    return {"deletedCount": _table(call).clear()}
