"""Every data table of the service."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from airflow_provider_service.simulator._host import Host
from airflow_provider_service.simulator._tables.table import Table, check_column_name
from airflow_provider_service.simulator._tables.types import COLUMN_TYPES
from airflow_provider_service.simulator._validation import ApiError

_SORT_KEYS: dict[str, Callable[[Table], Any]] = {
    "name": lambda table: table.name.lower(),
    "createdAt": lambda table: table.created_at,
    "updatedAt": lambda table: table.updated_at,
    "size": lambda table: table.size_bytes,
}
_SORTS = tuple(f"{key}:{direction}" for key in _SORT_KEYS for direction in ("asc", "desc"))


class TableStore:
    """Data tables by id, oldest first."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._tables: dict[str, Table] = {}

    def __len__(self) -> int:
        return len(self._tables)

    def get(self, table_id: str) -> Table:
        """One table.

        :raises ApiError: 404
        """
        table = self._tables.get(table_id)
        if table is None:
            raise ApiError(404, f"Could not find the data table: '{table_id}'")
        return table

    def find(self, filter_: Any, sort_by: str | None = None) -> Sequence[Table]:
        """The matching tables, sorted; without ``sort_by``, the most recently updated first.

        :raises ApiError: 400
        """
        wanted = _check_filter(filter_)
        if sort_by is not None and sort_by not in _SORTS:
            raise ApiError(400, f"sortBy must be one of: {', '.join(_SORTS)}")
        key, _, direction = (sort_by or "updatedAt:desc").partition(":")
        newest_first = reversed(self._tables.values())
        found = [table for table in newest_first if _matches(table, wanted)]
        return sorted(found, key=_SORT_KEYS[key], reverse=direction == "desc")

    def create(self, name: str, columns: Sequence[Mapping[str, str]], project_id: str) -> Table:
        """Create a table.

        :raises ApiError: 400 bad name or column, 409 taken name, 500 a column twice
        """
        name = _check_name(name)
        for column in columns:
            check_column_name(column["name"])
            if column["type"] not in COLUMN_TYPES:
                expected = " | ".join(f"'{known}'" for known in COLUMN_TYPES)
                raise ApiError(400, f"Invalid enum value. Expected {expected}, received '{column['type']}'")
        self._check_free(name, project_id)
        if len({column["name"].lower() for column in columns}) < len(columns):
            raise ApiError(500, "Internal server error")
        table = Table(self._host, name, project_id)
        for column in columns:
            table.add_column(column["name"], column["type"])
        self._tables[table.id] = table
        return table

    def rename(self, table_id: str, name: str) -> Table:
        """Rename a table; its own name counts as taken.

        :raises ApiError: 400, 404, 409
        """
        table = self.get(table_id)
        name = _check_name(name)
        self._check_free(name, table.project_id)
        table.rename(name)
        return table

    def delete(self, table_id: str) -> None:
        """Delete a table with its rows.

        :raises ApiError: 404
        """
        del self._tables[self.get(table_id).id]

    def delete_project(self, project_id: str) -> None:
        """Delete every table of a project."""
        self._tables = {table.id: table for table in self._tables.values() if table.project_id != project_id}

    def _check_free(self, name: str, project_id: str) -> None:
        if any(table.name == name and table.project_id == project_id for table in self._tables.values()):
            raise ApiError(409, f"Data table with name '{name}' already exists in this project")


def _check_name(name: str) -> str:
    name = name.strip()
    if not name:
        raise ApiError(400, "String must contain at least 1 character(s)")
    return name


def _check_filter(value: Any) -> Mapping[str, list[str]]:
    """Read a list filter: ``id`` and ``name`` are a text or a list of them, ``projectId`` a text."""
    refused = ApiError(400, "Invalid filter fields")
    if not isinstance(value, dict):
        raise refused
    wanted: dict[str, list[str]] = {}
    for key, given in value.items():
        texts = given if isinstance(given, list) and key != "projectId" else [given]
        if key not in ("id", "name", "projectId") or not all(isinstance(text, str) for text in texts):
            raise refused
        wanted[key] = texts
    return wanted


def _matches(table: Table, wanted: Mapping[str, list[str]]) -> bool:
    if "id" in wanted and table.id not in wanted["id"]:
        return False
    if "projectId" in wanted and table.project_id not in wanted["projectId"]:
        return False
    # Several names must all occur in one name, which is a quirk of the service.
    return all(text.lower() in table.name.lower() for text in wanted.get("name", ()))
