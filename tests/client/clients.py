"""Clients for tests, which do not pause but record how long they would have paused."""

from __future__ import annotations

from typing import Any

from airflow_provider_service.client._client import Resources
from airflow_provider_service.client.config import ServiceConfig
from airflow_provider_service.client.http.transport import Transport

BASE = "https://service.example.com"
ROOT = f"{BASE}/api/v1"
KEY = "eyJhbGciOi.secret-key.of-a-test"
MANY = 50


def make_config(**settings: Any) -> ServiceConfig:
    return ServiceConfig(**{"base_url": BASE, "api_key": KEY, **settings})


class Client(Resources):
    """The resources over a transport whose pauses are listed in ``pauses``."""

    def __init__(self, **settings: Any) -> None:
        self.pauses: list[float] = []
        self.transport = Transport(make_config(**settings), sleep=self._pause)

    def _pause(self, seconds: float) -> None:
        assert len(self.pauses) < MANY, "retries without end"
        self.pauses.append(seconds)
