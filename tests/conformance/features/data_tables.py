"""Features of data tables: their columns and rows, and transfers of rows."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

from airflow_provider_service.operators.data_tables import ServiceCreateDataTableOperator
from airflow_provider_service.operators.desired_state import (
    ServiceEnsureDataTablesOperator,
)
from airflow_provider_service.operators.row_reads import ServiceReadRowsOperator
from airflow_provider_service.operators.rows import (
    ServiceDeleteRowsOperator,
    ServiceInsertRowsOperator,
    ServiceUpdateRowsOperator,
    ServiceUpsertRowsOperator,
)
from airflow_provider_service.sensors.rows import ServiceRowSensor
from airflow_provider_service.transfers.data_table_to_object_storage import ServiceDataTableToObjectStorageOperator
from airflow_provider_service.transfers.data_table_to_sql import ServiceDataTableToSqlOperator
from airflow_provider_service.transfers.object_storage_to_data_table import ObjectStorageToServiceDataTableOperator
from airflow_provider_service.transfers.sql_to_data_table import SqlToServiceDataTableOperator
from tests.conformance.expecting import unique
from tests.conformance.tables import where

from .kit import DATABASE, OPERATOR, OTHER, TRANSFER, Kit, feature

COLUMNS = [{"name": "sku", "type": "string"}, {"name": "stock", "type": "number"}]
ROWS = [{"sku": "a", "stock": 1}, {"sku": "b", "stock": 2}]
A = where(("sku", "eq", "a"))


@feature(OPERATOR, ServiceCreateDataTableOperator, "create_data_table")
def _create_table(kit: Kit) -> None:
    made = kit.run(ServiceCreateDataTableOperator, name=unique("table"), columns=COLUMNS)
    kit.service.client.data_tables.delete(made["data_table_id"])


@feature(
    OPERATOR, "`ServiceCreateDataTableOperator` that adds columns", "create_data_table", "create_data_table_column"
)
def _add_columns(kit: Kit) -> None:
    table = kit.tables.create({"sku": "string"})
    kit.run(ServiceCreateDataTableOperator, name=table.name, columns=COLUMNS)
    assert {column.name for column in kit.service.client.data_tables.get(table.id).columns or ()} >= {"sku", "stock"}


def _table(kit: Kit, rows: list[dict[str, Any]] | None = None) -> str:
    table_id = kit.tables.create({"sku": "string", "stock": "number"}).id
    if rows:
        kit.service.client.data_table_rows.insert(table_id, rows)
    return table_id


@feature(OPERATOR, ServiceInsertRowsOperator, "insert_data_table_rows")
def _insert(kit: Kit) -> None:
    table_id = _table(kit)
    kit.run(ServiceInsertRowsOperator, data_table_id=table_id, rows=ROWS)
    assert kit.tables.rows(table_id) == ROWS


@feature(OPERATOR, ServiceUpsertRowsOperator, "upsert_data_table_rows")
def _upsert(kit: Kit) -> None:
    table_id = _table(kit, ROWS[:1])
    kit.run(ServiceUpsertRowsOperator, data_table_id=table_id, rows=ROWS, key_columns=["sku"])
    assert kit.tables.rows(table_id) == ROWS


@feature(OPERATOR, ServiceUpdateRowsOperator, "update_data_table_rows")
def _update(kit: Kit) -> None:
    table_id = _table(kit, ROWS)
    kit.run(ServiceUpdateRowsOperator, data_table_id=table_id, filter=A, data={"stock": 9})
    assert kit.tables.rows(table_id) == [{"sku": "a", "stock": 9}, ROWS[1]]


@feature(OPERATOR, ServiceDeleteRowsOperator, "delete_data_table_rows")
def _delete_rows(kit: Kit) -> None:
    table_id = _table(kit, ROWS)
    kit.run(ServiceDeleteRowsOperator, data_table_id=table_id, filter=A)
    assert kit.tables.rows(table_id) == ROWS[1:]


@feature(OPERATOR, ServiceReadRowsOperator, "list_data_table_rows")
def _read(kit: Kit) -> None:
    found = kit.run(ServiceReadRowsOperator, data_table_id=_table(kit, ROWS), filter=A)
    assert found["count"] == 1


@feature(OTHER, ServiceRowSensor, "list_data_table_rows")
def _wait_for_rows(kit: Kit) -> None:
    table_id = _table(kit, ROWS)
    for deferrable in (False, True):
        found = kit.run(ServiceRowSensor, data_table_id=table_id, filter=A, poke_interval=0.5, deferrable=deferrable)
        assert found["count"] == 1


@feature(OPERATOR, ServiceEnsureDataTablesOperator, "create_data_table")
def _ensure_tables(kit: Kit) -> None:
    name = unique("table")
    for _ in range(2):
        kit.run(ServiceEnsureDataTablesOperator, data_tables={name: {"sku": "string"}})
    [table] = [one for one in kit.service.client.data_tables.list() if one.name == name]
    kit.service.client.data_tables.delete(table.id)


@feature(TRANSFER, SqlToServiceDataTableOperator, "list_data_table_rows")
def _from_sql(kit: Kit) -> None:
    table_id = _table(kit)
    kit.run(
        SqlToServiceDataTableOperator,
        sql="SELECT 'a' AS sku, 1 AS stock",
        sql_conn_id=DATABASE,
        data_table_id=table_id,
        mode="append",
    )
    assert kit.tables.rows(table_id) == ROWS[:1]


@feature(TRANSFER, ObjectStorageToServiceDataTableOperator, "list_data_table_rows")
def _from_file(kit: Kit) -> None:
    table_id = _table(kit)
    path = kit.folder / "rows.csv"
    path.write_text("sku,stock\na,1\nb,2\n")
    kit.run(
        ObjectStorageToServiceDataTableOperator,
        path=str(path),
        data_table_id=table_id,
        mode="upsert",
        key_columns=["sku"],
    )
    assert kit.tables.rows(table_id) == ROWS


@feature(TRANSFER, ServiceDataTableToObjectStorageOperator, "list_data_table_rows")
def _to_file(kit: Kit) -> None:
    path = kit.folder / "rows.csv"
    kit.run(ServiceDataTableToObjectStorageOperator, data_table_id=_table(kit, ROWS), path=str(path))
    assert len(path.read_text().splitlines()) == 3


@feature(TRANSFER, ServiceDataTableToSqlOperator, "list_data_table_rows")
def _to_sql(kit: Kit) -> None:
    with closing(sqlite3.connect(kit.folder / "features.sqlite")) as database, database:
        database.execute("CREATE TABLE stock (sku TEXT, stock REAL)")
    kit.run(
        ServiceDataTableToSqlOperator,
        data_table_id=_table(kit, ROWS),
        sql_table="stock",
        sql_conn_id=DATABASE,
        mode="append",
        columns=["sku", "stock"],
    )
    with closing(sqlite3.connect(kit.folder / "features.sqlite")) as database:
        assert database.execute("SELECT * FROM stock ORDER BY sku").fetchall() == [("a", 1.0), ("b", 2.0)]
