"""The machine's MariaDB, PostgreSQL and Redis for the tests: on loopback ports, with temporary folders."""

from __future__ import annotations

from .mariadb import MariaDb
from .postgres import Postgres
from .redis import Redis

__all__ = ["MariaDb", "Postgres", "Redis"]
