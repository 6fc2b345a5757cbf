"""Transfers executed as Airflow executes them, against the simulator and an SQLite database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.operators.conftest import execute as execute
from tests.operators.conftest import held as held
from tests.operators.conftest import table as table
from tests.operators.conftest import task_instance as task_instance
from tests.operators.conftest import writes as writes

Query = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Query:
    """``query(sql, rows)`` runs a statement in the database of the connection ``shop``, for each row if given."""
    path = tmp_path / "shop.sqlite"
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps({"conn_type": "sqlite", "host": str(path)}))

    def run(sql: str, rows: Any = None) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(path)) as database, database:
            return database.execute(sql).fetchall() if rows is None else database.executemany(sql, rows).fetchall()

    return run
