"""The first user of a fresh server, who makes API keys through the internal API that the server's own pages use."""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Iterable, Mapping
from typing import Any

import requests
from requests.cookies import RequestsCookieJar

from .errors import LiveServerError

REQUEST_SECONDS = 30.0
_KEY_LIFETIME_SECONDS = 10 * 365 * 24 * 3600


def local_request(
    method: str,
    url: str,
    *,
    timeout: float = REQUEST_SECONDS,
    body: dict[str, Any] | None = None,
    cookies: RequestsCookieJar | None = None,
) -> requests.Response:
    """One request that ignores the proxy settings of the caller."""
    with requests.Session() as session:
        session.trust_env = False
        return session.request(method, url, json=body, cookies=cookies, timeout=timeout)


class Owner:
    """A signed-in owner. Its cookie stays good when the server is restarted."""

    def __init__(self, base_url: str) -> None:
        """Set up the owner of a server that has none yet."""
        self._base_url = base_url
        self._cookies = RequestsCookieJar()
        # The older generation derives a key from the second and the expiry, and refuses to make the same one twice.
        self._expiries = itertools.count(int(time.time()) + _KEY_LIFETIME_SECONDS)
        self.email = "owner@example.com"
        self.password = f"aA1-{secrets.token_urlsafe(16)}"
        names = {"firstName": "Olive", "lastName": "Owner"}
        self._call("POST", "/rest/owner/setup", {"email": self.email, "password": self.password, **names})

    def scopes(self) -> list[str]:
        """Every scope that a key of the owner can hold, sorted."""
        return sorted(self._call("GET", "/rest/api-keys/scopes"))

    def create_key(self, scopes: Iterable[str]) -> str:
        """Create an API key that is valid for years, and return it."""
        label = f"test-{secrets.token_hex(8)}"
        body = {"label": label, "expiresAt": next(self._expiries), "scopes": sorted(scopes)}
        return str(self._call("POST", "/rest/api-keys", body)["rawApiKey"])

    def settings(self) -> dict[str, Any]:
        """What the server tells its own pages about itself."""
        return dict(self._call("GET", "/rest/settings"))

    def node_types(self) -> list[dict[str, Any]]:
        """Its own description of its node types, as its editor reads it: 18 MB."""
        answer = local_request("GET", f"{self._base_url}/types/nodes.json", cookies=self._cookies)
        answer.raise_for_status()
        return list(answer.json())

    def projects(self) -> list[dict[str, Any]]:
        """Every project, the personal ones of other users too; the public API tells of none without a license."""
        return list(self._call("GET", "/rest/projects"))

    def create_workflow(self, definition: Mapping[str, Any]) -> dict[str, Any]:
        """Create a workflow as the editor does, which may choose its id."""
        return dict(self._call("POST", "/rest/workflows", dict(definition)))

    def switch_mcp(self, on: bool) -> None:
        """Switch MCP access on or off for everybody."""
        self._call("PATCH", "/rest/mcp/settings", {"mcpAccessEnabled": on})

    def new_mcp_key(self) -> str:
        """Make a key of the MCP endpoint, in place of an earlier one, and return it."""
        return str(self._call("POST", "/rest/mcp/api-key/rotate", {})["apiKey"])

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = local_request(method, self._base_url + path, body=body, cookies=self._cookies)
        if not answer.ok:
            raise LiveServerError(f"{method} {path} answered {answer.status_code}: {answer.text[:500]}")
        self._cookies.update(answer.cookies)
        return answer.json()["data"]
