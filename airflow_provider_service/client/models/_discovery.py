"""The capabilities of a key on a server."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from airflow_provider_service.client.models._base import ServiceModel


class DiscoveredEndpoint(ServiceModel):
    """An endpoint; the schema of its body is present if it was requested."""

    method: str
    path: str
    operation_id: str | None = None
    request_schema: dict[str, Any] | None = None


class DiscoveredResource(ServiceModel):
    """The operations that the key may use on one kind of resource."""

    operations: list[str]
    endpoints: list[DiscoveredEndpoint]


class DiscoveredFilter(ServiceModel):
    """A filter of the discovery itself and its possible values."""

    description: str | None = None
    values: list[str] | None = None


class Capabilities(ServiceModel):
    """The scopes of the key and the resources that they give access to, by the service's names."""

    scopes: list[str]
    resources: dict[str, DiscoveredResource]
    filters: dict[str, DiscoveredFilter] = Field(default_factory=dict)
    spec_url: str | None = None


class DiscoveryAnswer(ServiceModel):
    """The envelope of the capabilities."""

    data: Capabilities
