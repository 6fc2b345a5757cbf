"""Rows of data tables, and the answers to writing them."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from typing_extensions import NotRequired

from airflow_provider_service.client.models._base import ServiceModel

#: A row: its columns by name, and ``id``, ``createdAt`` and ``updatedAt``.
Row = dict[str, Any]

Comparison = Literal["eq", "neq", "like", "ilike", "gt", "gte", "lt", "lte", "isEmpty", "isNotEmpty"]


class Condition(TypedDict):
    """One condition of a filter; ``value`` is required, and None means null."""

    columnName: str
    condition: NotRequired[Comparison]
    value: Any


class RowFilter(TypedDict):
    """Conditions that rows must meet: all of them, unless ``type`` is ``"or"``."""

    type: NotRequired[Literal["and", "or"]]
    filters: list[Condition]


class InsertedRows(ServiceModel):
    """How many rows were inserted."""

    success: bool
    inserted_rows: int


class ClearedRows(ServiceModel):
    """How many rows were deleted by a clear."""

    deleted_count: int
