"""Data tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from airflow_provider_service.client.models._data_tables import DataTable
from airflow_provider_service.client.resources._base import Resource, json_text, without_none


class DataTables(Resource):
    """Data tables; their columns and rows are separate resources."""

    def list(
        self,
        *,
        filter: Mapping[str, Any] | None = None,
        sort_by: str | None = None,
        limit: int | None = None,
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
