"""Authenticate calls of the bridge: the secret that it shares with Airflow, and short-lived tokens signed with it."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from airflow_provider_service.client._http.redaction import HiddenText
from airflow_provider_service.client.resources._webhooks import signed_token

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceClient, ServiceConfig

# Long enough for different clocks and for a queue in front of the webhook.
LIFETIME_SECONDS = 900.0
_ALGORITHM = "HS256"


class BridgeSecret:
    """The secret that signs tokens, derived from the connection's ``bridge_secret`` or else from its API key.

    :param config: the connection.
    """

    def __init__(self, config: ServiceConfig) -> None:
        self._seed = (config.bridge_secret or config.api_key).get_secret_value().encode()

    @property
    def fingerprint(self) -> str:
        """A text that identifies the secret without showing it."""
        return self._derived("fingerprint")[:12]

    def data(self) -> dict[str, str]:
        """The data of the credential that checks the tokens."""
        return {"keyType": "passphrase", "secret": self._derived("tokens"), "algorithm": _ALGORITHM}

    def headers(self, client: ServiceClient, *, lifetime: float = LIFETIME_SECONDS) -> dict[str, str]:
        """Make the header of a call, which holds a token.

        :param lifetime: seconds for which the token is valid, by the service's clock.
        """
        offset = client.transport.clock_offset
        token = signed_token(self._derived("tokens"), _ALGORITHM, offset=offset, seconds=lifetime)
        return {"Authorization": HiddenText(f"Bearer {token}")}

    def _derived(self, purpose: str) -> str:
        return hmac.digest(self._seed, f"airflow-provider-service bridge {purpose}".encode(), "sha256").hex()
