"""Data tables: types, filters, rows and the store of all tables."""

from __future__ import annotations

from airflow_provider_service.simulator._tables.store import TableStore
from airflow_provider_service.simulator._tables.table import Table

__all__ = ["Table", "TableStore"]
