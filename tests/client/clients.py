"""Clients for tests, whose pauses take no time."""

from __future__ import annotations

from typing import Any

from airflow_provider_service.client import ServiceConfig
from airflow_provider_service.client._client import Resources
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._http.transport import Transport
from tests.set_clock import SetClock

BASE = "https://service.example.com"
ROOT = f"{BASE}/api/v1"
KEY = "eyJhbGciOi.secret-key.of-a-test"


def make_config(**settings: Any) -> ServiceConfig:
    return ServiceConfig(**{"base_url": BASE, "api_key": KEY, **settings})


class Client(Resources):
    """The resources over a transport."""

    def __init__(self, **settings: Any) -> None:
        self.transport = Transport(make_config(**settings))

    @property
    def pauses(self) -> list[float]:
        """How long it has paused."""
        current = clock()
        assert isinstance(current, SetClock)
        return current.pauses
