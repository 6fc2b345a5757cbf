"""Whether a connection reaches the service: the cheapest request that shows address and key to be right."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_service.client import errors
from airflow_provider_service.client._http.answers import IF_TLS

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client._client import Resources

# The API does not report the version of the server, but the start page does, for the reports that browsers send.
_REPORTING = re.compile(r'<meta name="n8n:config:sentry" content="([A-Za-z0-9+/=]{1,4000})"')
_RELEASE = re.compile(r'"release":"n8n@(\d{1,5}\.\d{1,5}\.\d{1,5}[\w.+-]{0,30})"', re.ASCII)
_HOST = "The connection's host ends with the path prefix of the service, if it has one, not with the path of a page"


class ConnectionCheck(NamedTuple):
    is_good: bool
    message: str
    scopes: frozenset[str] | None = None  # those of the key; None where the server does not report them
    is_key_refused: bool = False


def check_connection(client: ServiceClient) -> ConnectionCheck:
    """Try the address and the key: ``GET /discover``. Safe to repeat."""
    try:
        scopes = _scopes(client)
    except errors.ServiceStartingError:
        if client.transport.probe("/healthz/readiness") == 503:
            return ConnectionCheck(False, f"The service at {client.base_url} is still starting; try again in a minute")
        api = client.transport.config.api_root
        return ConnectionCheck(False, f"{api} is not the service's API: it answered with an HTML page. {_HOST}")
    except (errors.ServiceUnauthorizedError, errors.ServiceMissingScopeError) as error:
        return ConnectionCheck(False, str(error), is_key_refused=True)
    except errors.ServiceError as error:
        is_tls = client.base_url.startswith("http:") and isinstance(error, errors.ServiceConnectionLostError)
        return ConnectionCheck(False, f"{error}. {IF_TLS}" if is_tls else str(error))
    may = "may list workflows (scopes are not reported)" if scopes is None else f"holds {len(scopes)} scopes"
    return ConnectionCheck(True, f"Connected to {client.base_url}; the key {may}", scopes)


def server_version(client: Resources) -> str | None:
    """The version of the server, as its start page tells it: ``GET /``, without the key; None if it does not."""
    page = client.transport.page("/")
    reporting = _REPORTING.search(page.text) if page is not None and page.status_code == 200 else None
    try:
        release = _RELEASE.search(base64.b64decode(reporting[1]).decode()) if reporting else None
    except ValueError:
        return None
    return release[1] if release else None


def _scopes(client: ServiceClient) -> frozenset[str] | None:
    try:
        return frozenset(client.discovery.discover().scopes)
    except errors.ServiceNotOfferedError:
        next(client.workflows.list(limit=1), None)
        return None
