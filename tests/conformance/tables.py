"""Data tables for one test, which are deleted afterwards."""

from __future__ import annotations

from typing import Any

from airflow_provider_service.client.models import DataTable

from .expecting import unique
from .target import Target

#: One column of each type.
COLUMNS = {"text": "string", "number": "number", "flag": "boolean", "day": "date"}


class Tables:
    """Makes tables on a target."""

    def __init__(self, service: Target) -> None:
        self.service = service
        self._made: list[str] = []

    def create(self, columns: dict[str, str] | None = None, *, name: str | None = None) -> DataTable:
        """Create a table with columns of these types by name; by default one of each type."""
        described = [
            {"name": column, "type": kind} for column, kind in (COLUMNS if columns is None else columns).items()
        ]
        table = self.service.client.data_tables.create(name or unique("table"), described)
        self._made.append(table.id)
        return table

    def filled(self, rows: list[dict[str, Any]], columns: dict[str, str] | None = None) -> str:
        """Create a table with rows and return its id."""
        table_id = self.create(columns).id
        self.service.client.data_table_rows.insert(table_id, rows)
        return table_id

    def rows(self, table_id: str, **options: Any) -> list[dict[str, Any]]:
        """The rows of a table without the columns that every table has."""
        listed = self.service.client.data_table_rows.list(table_id, **options)
        return [user_columns(row) for row in listed]

    def clean(self) -> None:
        """Delete every table that was made here."""
        for table_id in self._made:
            self.service.raw("DELETE", f"/data-tables/{table_id}")


def user_columns(row: Any) -> dict[str, Any]:
    """A row without the columns that every table has."""
    return {name: value for name, value in row.items() if name not in ("id", "createdAt", "updatedAt")}


def where(*conditions: tuple[str, str, Any], type: str = "and") -> dict[str, Any]:
    """A filter of (column, condition, value)."""
    return {
        "type": type,
        "filters": [
            {"columnName": name, "condition": condition, "value": value} for name, condition, value in conditions
        ],
    }
