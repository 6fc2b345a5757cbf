"""Rows of data tables, and the answers to writing them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from pydantic import AfterValidator

from airflow_provider_service.client.models._base import ServiceModel

#: A row: its columns by name, and ``id``, ``createdAt`` and ``updatedAt``.
Row = dict[str, Any]

#: Ids of rows are 64-bit numbers in every database that the service uses.
_MAX_ROW_ID = 2**63 - 1


def _require_id(row: Row) -> Row:
    row_id = row.get("id")
    if isinstance(row_id, bool) or not isinstance(row_id, int) or not 0 < row_id <= _MAX_ROW_ID:
        raise ValueError("the id of a row is not a whole number from 1")
    return row


# A row in a list of rows, where each has an id.
StoredRow = Annotated[Row, AfterValidator(_require_id)]

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
