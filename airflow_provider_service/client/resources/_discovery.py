"""The capabilities of a key on a server."""

from __future__ import annotations

from typing import Literal

from airflow_provider_service.client.models._discovery import Capabilities, DiscoveryAnswer
from airflow_provider_service.client.resources._base import Resource


class Discovery(Resource):
    """The capabilities of the key: the cheapest way to test a connection, because it requires no scope."""

    def discover(
        self,
        *,
        include: Literal["schemas"] | None = None,
        resource: str | None = None,
        operation: str | None = None,
    ) -> Capabilities:
        """Read the key's scopes and the endpoints that they give access to: ``GET /discover``.

        :param include: ``"schemas"`` to add the schema of each endpoint's body.
        :param resource: only this kind of resource, e.g. ``"workflow"``.
        :param operation: only this operation, e.g. ``"read"``.
        """
        query = {"include": include, "resource": resource, "operation": operation}
        return self._call(DiscoveryAnswer, "GET", "/discover", query=query).data
