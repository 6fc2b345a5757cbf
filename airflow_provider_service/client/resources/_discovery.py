"""The capabilities of a key on a server."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from airflow_provider_service.client._models import ServiceModel
from airflow_provider_service.client.resources._base import Resource


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


class Discovery(Resource):
    """The capabilities of the key: the cheapest way to test a connection, because it requires no scope."""

    def discover(
        self, *, include: Literal["schemas"] | None = None, resource: str | None = None, operation: str | None = None
    ) -> Capabilities:
        """Read the key's scopes and the endpoints that they give access to: ``GET /discover``.

        :param include: ``"schemas"`` to add the schema of each endpoint's body.
        :param resource: only this kind of resource, e.g. ``"workflow"``.
        :param operation: only this operation, e.g. ``"read"``.
        """
        query = {"include": include, "resource": resource, "operation": operation}
        return self._call(DiscoveryAnswer, "GET", "/discover", query=query).data
