"""Data tables and their columns."""

from __future__ import annotations

from typing import Literal

from airflow_provider_service.client.models._base import Number, ServiceModel, Timestamp

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
