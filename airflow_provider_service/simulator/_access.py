"""What a caller needs to reach a simulated service: its addresses and keys, and a connection for Airflow."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, urlencode

from airflow_provider_service.simulator._app import API_ROOT
from airflow_provider_service.simulator._clock import Clock
from airflow_provider_service.simulator._state import State

DEFAULT_KEY_HEADER = "X-SERVICE-API-KEY"


class Access:
    """Addresses and keys of a simulated service.

    - ``state``: the state of the service.
    - ``api_key``: a key with every scope.
    """

    state: State
    api_key: str

    @property
    def base_url(self) -> str:
        """Address of the service, without a path."""
        return self.state.base_url

    @property
    def api_url(self) -> str:
        """Address that every path of the API is relative to."""
        return f"{self.base_url}{API_ROOT}"

    @property
    def clock(self) -> Clock:
        """The service's clock; ``advance(seconds)`` lets time pass, ``shift(seconds)`` makes it wrong."""
        return self.state.clock

    def connection_json(self, header: str = DEFAULT_KEY_HEADER) -> str:
        """The connection as JSON, for ``AIRFLOW_CONN_SERVICE_DEFAULT``.

        :param header: header that carries the key; ``X-N8N-API-KEY`` is accepted too
        """
        fields: dict[str, Any] = {"conn_type": "service", "host": self.base_url, "password": self.api_key}
        if header != DEFAULT_KEY_HEADER:
            fields["extra"] = {"key_header": header}
        return json.dumps(fields)

    def connection_uri(self, header: str = DEFAULT_KEY_HEADER) -> str:
        """The connection as a URI, for ``AIRFLOW_CONN_SERVICE_DEFAULT``."""
        extra = "" if header == DEFAULT_KEY_HEADER else f"?{urlencode({'key_header': header})}"
        return f"service://:{quote(self.api_key, safe='')}@{quote(self.base_url, safe='')}/{extra}"

    def create_key(self, scopes: Iterable[str] | None = None) -> str:
        """Create another key.

        :param scopes: scopes of the key, e.g. ``["workflow:read"]``; None for all
        """
        return self.state.add_key(scopes).secret

    def revoke_key(self, key: str) -> None:
        """Make a key invalid."""
        self.state.keys.pop(key, None)

    @property
    def version(self) -> str:
        """The version that the service claims to have; can be set.

        An older version lacks the operations and query parameters that its published contract lacks. One before 2.30
        also expects the data of credentials in another form. Otherwise, it behaves like the newest version.
        """
        return self.state.version

    @version.setter
    def version(self, version: str) -> None:
        self.state.version = version

    @property
    def mcp_api_key(self) -> str:
        """Key of the MCP endpoint, for the connection's extra of this name."""
        return self.state.mcp_key

    @property
    def mcp_enabled(self) -> bool:
        """Whether MCP access is switched on; True at first, and can be set."""
        return self.state.mcp_enabled

    @mcp_enabled.setter
    def mcp_enabled(self, enabled: bool) -> None:
        self.state.mcp_enabled = enabled
