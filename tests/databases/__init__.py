"""PostgreSQL and Redis of the machine for the tests: on loopback ports, with folders of their own, gone afterwards."""

from __future__ import annotations

from .postgres import Postgres
from .redis import Redis

__all__ = ["Postgres", "Redis"]
