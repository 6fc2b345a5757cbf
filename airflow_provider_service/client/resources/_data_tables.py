"""Data tables and their columns."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from airflow_provider_service.client._models import Number, ServiceModel, Timestamp
from airflow_provider_service.client.resources._base import Resource, json_text, without_none

ColumnType = Literal["string", "number", "boolean", "date"]


class Column(ServiceModel):
    """A column; it lacks ``data_table_id`` inside an item of the list of tables."""

    id: str
    name: str
    type: ColumnType | str
    index: int
    data_table_id: str | None = None
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None


class DataTable(ServiceModel):
    """A data table. ``columns`` are unordered: sort them by ``index``. ``size_bytes`` is approximate."""

    id: str
    name: str
    project_id: str | None = None
    columns: list[Column] | None = None
    size_bytes: Number | None = None
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None


class DataTables(Resource):
    """Data tables; their columns and rows are separate resources."""

    def list(
        self, *, filter: Mapping[str, Any] | None = None, sort_by: str | None = None, limit: int | None = None
    ) -> Iterator[DataTable]:
        """Iterate over data tables: ``GET /data-tables``.

        :param filter: ``id`` (one or a list), ``name`` (ignoring case: compare names yourself), ``projectId``.
        :param sort_by: name, createdAt, updatedAt or size, then ``:asc`` or ``:desc``.
        :param limit: maximum number of tables; None for all.
        :raises ServiceInvalidRequestError: the filter has an unknown key.
        """
        query = {"filter": json_text(filter), "sortBy": sort_by}
        return self._pages(DataTable, "/data-tables", scope="dataTable:list", query=query, limit=limit)

    def create(self, name: str, columns: Sequence[Mapping[str, Any]], *, project_id: str | None = None) -> DataTable:
        """Create a data table: ``POST /data-tables``. Not safe to repeat: a second call is a conflict.

        :param name: 1 to 128 characters, unique in the project.
        :param columns: ``{"name": ..., "type": "string" | "number" | "boolean" | "date"}`` each; may be empty.
        :param project_id: project to create it in, by default the personal project of the key's user.
        :raises ServiceConflictError: the name exists in the project.
        :raises ServiceInvalidRequestError: a column name is reserved, or a type or the project is unknown.
        """
        body = without_none(name=name, columns=columns, projectId=project_id)
        return self._call(DataTable, "POST", "/data-tables", scope="dataTable:create", body=body)

    def get(self, data_table_id: str) -> DataTable:
        """Read a data table with its columns: ``GET /data-tables/{dataTableId}``.

        :raises ServiceNotFoundError: no such table.
        """
        return self._call(DataTable, "GET", "/data-tables/{}", data_table_id, scope="dataTable:read")

    def update(self, data_table_id: str, name: str) -> DataTable:
        """Rename a data table: ``PATCH /data-tables/{dataTableId}``.

        Not safe to repeat: the service refuses the table's own name, too, as a conflict.

        :raises ServiceConflictError: the name exists in the project, or is already the table's own.
        :raises ServiceNotFoundError: no such table.
        """
        body = {"name": name}
        return self._call(DataTable, "PATCH", "/data-tables/{}", data_table_id, scope="dataTable:update", body=body)

    def delete(self, data_table_id: str) -> None:
        """Delete a data table with its rows: ``DELETE /data-tables/{dataTableId}``.

        Safe to repeat, but if an answer is lost, the automatic repeat raises ``ServiceNotFoundError`` although the
        object has been deleted.

        :raises ServiceNotFoundError: no such table.
        """
        self._run("DELETE", "/data-tables/{}", data_table_id, scope="dataTable:delete")


class DataTableColumns(Resource):
    """Columns of data tables."""

    def list(self, data_table_id: str) -> builtins.list[Column]:
        """Read the columns in their order: ``GET /data-tables/{dataTableId}/columns``.

        :raises ServiceNotFoundError: no such table.
        """
        return self._call(
            builtins.list[Column], "GET", "/data-tables/{}/columns", data_table_id, scope="dataTableColumn:read"
        )

    def create(self, data_table_id: str, name: str, type: ColumnType, *, index: int | None = None) -> Column:
        """Add a column, which is null in existing rows: ``POST /data-tables/{dataTableId}/columns``.

        Not safe to repeat: a second call is a conflict.

        :param name: a letter, then up to 62 letters, digits and underscores.
        :param type: string, number, boolean or date.
        :param index: position of the column, counted from 0; by default the last.
        :raises ServiceConflictError: the name exists or is that of a system column.
        :raises ServiceNotFoundError: no such table.
        """
        body = without_none(name=name, type=type, index=index)
        return self._call(
            Column, "POST", "/data-tables/{}/columns", data_table_id, scope="dataTableColumn:create", body=body
        )

    def update(
        self, data_table_id: str, column_id: str, *, name: str | None = None, index: int | None = None
    ) -> Column:
        """Rename or move a column: ``PATCH /data-tables/{dataTableId}/columns/{columnId}``. Its type stays.

        Not safe to repeat: the service can refuse the column's own name as a conflict.

        :param name: the new name.
        :param index: the new position, counted from 0.
        :raises ServiceConflictError: the name exists.
        :raises ServiceInvalidRequestError: neither is given, or the position is beyond the last.
        :raises ServiceNotFoundError: no such table or column.
        """
        return self._call(
            Column,
            "PATCH",
            "/data-tables/{}/columns/{}",
            data_table_id,
            column_id,
            scope="dataTableColumn:update",
            body=without_none(name=name, index=index),
        )

    def delete(self, data_table_id: str, column_id: str) -> None:
        """Delete a column and its values: ``DELETE /data-tables/{dataTableId}/columns/{columnId}``.

        Safe to repeat, but if an answer is lost, the automatic repeat raises ``ServiceNotFoundError`` although the
        object has been deleted.

        :raises ServiceNotFoundError: no such table or column.
        """
        self._run("DELETE", "/data-tables/{}/columns/{}", data_table_id, column_id, scope="dataTableColumn:delete")
