"""Types of the results of tasks on data tables and rows. In XCom, each is a plain mapping of JSON values."""

from typing import Any, NotRequired, TypedDict

from airflow_provider_service._core.rows.options import LoadedRows

__all__ = [
    "DataTableResult",
    "DeleteRowsResult",
    "InsertRowsResult",
    "LoadTableResult",
    "ReadRowsResult",
    "TableToFileResult",
    "TableToSqlResult",
    "UpdateRowsResult",
    "UpsertRowsResult",
]


class DataTableResult(TypedDict):
    """A data table, the columns that were added, and the outcome: created, extended or unchanged."""

    data_table_id: str
    name: str
    project_id: str | None
    outcome: str
    added_columns: list[str]
    url: str


class InsertRowsResult(TypedDict):
    """The number of rows that were inserted."""

    data_table_id: str
    inserted: int
    url: str


class UpsertRowsResult(TypedDict):
    """The numbers of rows by outcome; ``deleted`` counts rows that had the same key as another."""

    data_table_id: str
    inserted: int
    updated: int
    unchanged: int
    deleted: int
    url: str


class UpdateRowsResult(TypedDict):
    """The number of rows that were updated, or with ``preview`` would be; None if they could not be counted."""

    data_table_id: str
    updated: int | None
    preview: bool
    url: str


class DeleteRowsResult(TypedDict):
    """The number of rows that were deleted, or with ``preview`` would be; None if they could not be counted."""

    data_table_id: str
    deleted: int | None
    preview: bool
    url: str


class ReadRowsResult(TypedDict):
    """The number of rows, and the rows themselves or, with a path, the address of the file."""

    data_table_id: str
    count: int
    rows: NotRequired[list[dict[str, Any]]]
    path: NotRequired[str]
    url: str


class LoadTableResult(LoadedRows):
    """What a load did, and the address of the table's page."""

    url: str


class TableToFileResult(TypedDict):
    """The number of rows and the address of the file."""

    data_table_id: str
    count: int
    path: str
    url: str


class TableToSqlResult(TypedDict):
    """The numbers of rows written, and deleted before by ``mode="replace"``; None if the driver does not count."""

    data_table_id: str
    count: int
    deleted: int | None
    url: str
