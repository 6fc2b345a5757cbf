"""Loads in small chunks, so that a few rows take many requests."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow_provider_service._core.rows.source_rows import CheckedRows
from airflow_provider_service._core.rows.spool import Spool
from airflow_provider_service._core.rows.target import append_rows, replace_rows
from airflow_provider_service._core.rows.upsert import LoadResult, upsert_rows
from airflow_provider_service._core.rows.values import column_types
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.client.models import DataTable


def load(
    client: ServiceClient,
    table: DataTable,
    rows: Iterable[Mapping[str, Any]],
    mode: str,
    keys: Sequence[str] = (),
    *,
    chunk_rows: int = 3,
    **options: Any,
) -> LoadResult:
    """Check rows on disk and load them into a table.

    :param options: of an upsert.
    """
    types = column_types(table)
    with Spool(chunk_rows=chunk_rows) as spool:
        checked = CheckedRows(types, keys, "last", spool.requested, spool.rounded_keys)
        for number, row in enumerate(rows, start=1):
            checked.add(number, row)
        if mode == "upsert":
            return upsert_rows(client, table.id, spool, types, keys, **options)
        return {"append": append_rows, "replace": replace_rows}[mode](client, table.id, spool)


def load_in_a_process(config: ServiceConfig, table_id: str, *arguments: Any, **options: Any) -> None:
    """Load rows as a worker does that may be killed."""
    logging.disable()
    with ServiceClient(config) as client:
        load(client, client.data_tables.get(table_id), *arguments, **options)
