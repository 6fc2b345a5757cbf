"""Columns of data tables."""

from __future__ import annotations

import builtins

from airflow_provider_service.client.models._data_tables import Column, ColumnType
from airflow_provider_service.client.resources._base import Resource, without_none


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
