"""Whether a connection reaches the service: the cheapest request that shows address and key to be right."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_service.client.errors import ServiceError, ServiceNotOfferedError, ServiceStartingError

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceClient


class Reach(NamedTuple):
    """How an attempt to reach the service went.

    :param is_good: whether address and key are right.
    :param message: says what is wrong if not.
    :param scopes: those that the key holds; None where the server does not report them.
    """

    is_good: bool
    message: str
    scopes: frozenset[str] | None = None


def reach(client: ServiceClient) -> Reach:
    """Try the address and the key: ``GET /discover``. Safe to repeat."""
    base_url = client.base_url
    try:
        scopes = _scopes(client)
    except ServiceStartingError as error:
        return Reach(False, _starting_or_elsewhere(client, error))
    except ServiceError as error:
        return Reach(False, str(error))
    if scopes is None:
        may = "the key may list workflows (this server does not report the key's scopes)"
        return Reach(True, f"Connected to {base_url}; {may}")
    return Reach(True, f"Connected to {base_url}; the key holds {len(scopes)} scopes", scopes)


def _scopes(client: ServiceClient) -> frozenset[str] | None:
    try:
        return frozenset(client.discovery.discover().scopes)
    except ServiceNotOfferedError:
        next(client.workflows.list(limit=1), None)
        return None


def _starting_or_elsewhere(client: ServiceClient, error: ServiceStartingError) -> str:
    if client.transport.probe("/healthz/readiness") == 503:
        return f"The service at {client.base_url} is still starting; try again in a minute"
    return f"{client.transport.config.api_root} is not the service's API: it answered with an HTML page. {error.hint}"
