"""A PostgreSQL server with an Airflow connection, for transfers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.operators.conftest import execute as execute
from tests.operators.conftest import task_instance as task_instance
from tests.operators.conftest import writes as writes

from . import Postgres

Query = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A server whose sessions have a time zone far from UTC."""
    with Postgres() as server:
        server.create_database("shop")
        server.run_sql("ALTER DATABASE shop SET timezone = 'Asia/Kolkata'")
        yield server


@pytest.fixture
def connection_fields(postgres: Postgres) -> dict[str, Any]:
    """The fields of the Airflow connection ``shop``."""
    address = {"host": postgres.host, "port": postgres.port, "login": postgres.user, "password": postgres.password}
    return {"conn_type": "postgres", "schema": "shop", **address}


@pytest.fixture
def query(postgres: Postgres, connection_fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Query]:
    """``query(sql, rows)`` runs a statement in the empty database of ``shop``, for each row if given."""
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps(connection_fields))
    with psycopg.connect(postgres.url("shop"), autocommit=True) as database, database.cursor() as cursor:

        def run(sql: Any, rows: Any = None) -> list[tuple[Any, ...]]:
            cursor.execute(sql) if rows is None else cursor.executemany(sql, rows)
            return cursor.fetchall() if cursor.description else []

        run("DROP SCHEMA public CASCADE")
        run("CREATE SCHEMA public")
        yield run
