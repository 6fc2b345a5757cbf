"""The database that an example reads."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

#: The environment variable of its Airflow connection.
CONNECTION = "AIRFLOW_CONN_AIRFLOW_EXAMPLE_SHOP"
SALES: list[tuple[Any, ...]] = [
    ("a-1", "north", 10.5, 1, "2026-01-02 03:04:05+02:00"),
    ("a-2", "süd", None, 0, None),
    ("a-3", "", 0.1, None, "2026-01-02"),
]


def shop(path: Path, sales: Iterable[tuple[Any, ...]] = SALES) -> str:
    """Make an SQLite database hold these sales, and return its Airflow connection."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DROP TABLE IF EXISTS sales")
        database.execute("CREATE TABLE sales (sale_id TEXT, region TEXT, amount REAL, paid INTEGER, sold_at TEXT)")
        database.executemany("INSERT INTO sales VALUES (?, ?, ?, ?, ?)", sales)
    return json.dumps({"conn_type": "sqlite", "host": str(path)})
