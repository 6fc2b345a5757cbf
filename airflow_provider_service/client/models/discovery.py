"""What a key may do on a server."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from airflow_provider_service.client.models._base import ServiceModel


class DiscoveredEndpoint(ServiceModel):
    """An endpoint; the schema of its body is there when it was asked for."""

    method: str
    path: str
    operation_id: str | None = None
    request_schema: dict[str, Any] | None = None


class DiscoveredResource(ServiceModel):
    """What the key may do with one kind of resource."""

    operations: list[str]
    endpoints: list[DiscoveredEndpoint]


class DiscoveredFilter(ServiceModel):
    """A filter of the discovery itself and its possible values."""

    description: str | None = None
    values: list[str] | None = None


class Capabilities(ServiceModel):
    """The scopes of the key and the resources they open, by the service's name."""

    scopes: list[str]
    resources: dict[str, DiscoveredResource]
    filters: dict[str, DiscoveredFilter] = Field(default_factory=dict)
    spec_url: str | None = None


class DiscoveryAnswer(ServiceModel):
    """The envelope of the capabilities."""

    data: Capabilities
