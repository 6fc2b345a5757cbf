"""A bare HTTP helper that knows nothing of the provider."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

import pytest
import requests

from airflow_provider_service.simulator import ServiceSimulator


class Api:
    """Sends requests below ``/api/v1`` with a key; paths of webhooks and health go through :meth:`raw`."""

    def __init__(self, simulator: ServiceSimulator, key: str | None = None) -> None:
        self.simulator = simulator
        self.session = requests.Session()
        self._key = key or simulator.api_key
        self.session.headers["X-SERVICE-API-KEY"] = self._key

    def raw(self, method: str, path: str, **options: Any) -> requests.Response:
        return self.session.request(method, self.simulator.base_url + path, **{"timeout": 10, **options})

    def request(self, method: str, path: str, **options: Any) -> requests.Response:
        return self.raw(method, f"/api/v1{path}", **options)

    @contextmanager
    def unanswered(self, path: str, body: Any) -> Iterator[None]:
        """Send a POST, and assert that it has no answer when the block has ended; then its caller goes away.

        Wait in the block for the arrival of the call: if its caller is gone before that, the server does nothing.
        """
        connection = HTTPConnection(self.simulator.base_url.removeprefix("http://"), timeout=60)
        headers = {"X-SERVICE-API-KEY": self._key, "Content-Type": "application/json"}
        try:
            connection.request("POST", path, json.dumps(body), headers)
            yield
            connection.sock.settimeout(0.2)
            with pytest.raises(TimeoutError):
                connection.getresponse()
        finally:
            connection.close()

    def get(self, path: str, **options: Any) -> requests.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, json: Any = None, **options: Any) -> requests.Response:
        return self.request("POST", path, json=json, **options)

    def put(self, path: str, json: Any = None, **options: Any) -> requests.Response:
        return self.request("PUT", path, json=json, **options)

    def patch(self, path: str, json: Any = None, **options: Any) -> requests.Response:
        return self.request("PATCH", path, json=json, **options)

    def delete(self, path: str, **options: Any) -> requests.Response:
        return self.request("DELETE", path, **options)

    def hook(self, path: str, json: Any = None, method: str = "POST", **options: Any) -> requests.Response:
        return self.raw(method, f"/webhook/{path}", json=json, **options)
