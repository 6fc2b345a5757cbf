"""The databases start, serve, and leave nothing behind."""

from __future__ import annotations

import socket

import pytest

from tests.live.servers import LiveServerError

from . import MariaDb, Postgres, Redis


def test_postgres_serves_and_leaves_nothing_behind() -> None:
    with Postgres() as server:
        address = server.create_database("orders")
        server.run_sql("CREATE TABLE t (n int); INSERT INTO t VALUES (7)", database="orders")
        assert server.run_sql("SELECT n FROM t", database="orders").strip() == "7"
        assert address == f"postgresql://tester:{server.password}@127.0.0.1:{server.port}/orders"
        with pytest.raises(LiveServerError, match='relation "missing" does not exist'):
            server.run_sql("SELECT 1 FROM missing")

    assert not server.folder.exists()
    assert_refused(server.port)


def test_mariadb_serves_and_leaves_nothing_behind() -> None:
    with MariaDb() as server:
        connection = server.connect()
        cursor = connection.cursor()
        cursor.execute("SELECT @@port, @@time_zone")
        assert cursor.fetchall() == [(server.port, "+05:30")]
        connection.close()

    assert not server.folder.exists()
    assert_refused(server.port)


def test_redis_serves_and_leaves_nothing_behind() -> None:
    with Redis() as server:
        assert server.url(2) == f"redis://127.0.0.1:{server.port}/2"

    assert not server.folder.exists()
    assert_refused(server.port)


def assert_refused(port: int) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=60)
