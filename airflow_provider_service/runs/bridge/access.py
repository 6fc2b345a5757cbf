"""Who may call the bridge: the secret that it shares with Airflow, and the short-lived tokens that are made from it."""

from __future__ import annotations

import base64
import hmac
import json
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_provider_service.client.http.redaction import HiddenText

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceClient, ServiceConfig

# Long enough for clocks that differ and for a queue in front of the webhook.
LIFETIME_SECONDS = 900.0
_HEADER = {"alg": "HS256", "typ": "JWT"}


class BridgeSecret:
    """What tokens are signed with: made of the connection's ``bridge_secret``, or else of its API key.

    :param config: the connection.
    """

    def __init__(self, config: ServiceConfig) -> None:
        self._seed = (config.bridge_secret or config.api_key).get_secret_value().encode()

    @property
    def fingerprint(self) -> str:
        """Tells one secret from another, and does not show it."""
        return self._derived("fingerprint")[:12]

    def data(self) -> dict[str, str]:
        """The data of the credential that checks the tokens."""
        # Older servers refuse data that lacks a field, even one that this kind of key does not use.
        unused = {"privateKey": "", "publicKey": ""}
        return {"keyType": "passphrase", "secret": self._derived("tokens"), "algorithm": _HEADER["alg"], **unused}

    def headers(self, client: ServiceClient, *, lifetime: float = LIFETIME_SECONDS) -> dict[str, str]:
        """The header of a call, a token.

        :param lifetime: seconds for which the token is valid, by the service's clock.
        """
        ends = time.time() + (client.transport.clock_offset or timedelta()).total_seconds() + lifetime
        signed = b".".join(_encoded(json.dumps(part).encode()) for part in (_HEADER, {"exp": int(ends)}))
        signature = hmac.digest(self._derived("tokens").encode(), signed, "sha256")
        return {"Authorization": HiddenText(f"Bearer {(signed + b'.' + _encoded(signature)).decode()}")}

    def _derived(self, purpose: str) -> str:
        return hmac.digest(self._seed, f"airflow-provider-service bridge {purpose}".encode(), "sha256").hex()


def _encoded(part: bytes) -> bytes:
    return base64.urlsafe_b64encode(part).rstrip(b"=")
