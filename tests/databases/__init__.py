"""The machine's PostgreSQL and Redis for the tests: on loopback ports, with temporary folders."""

from __future__ import annotations

from .postgres import Postgres
from .redis import Redis

__all__ = ["Postgres", "Redis"]
