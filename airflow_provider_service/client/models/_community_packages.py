"""Community node packages."""

from __future__ import annotations

from airflow_provider_service.client.models._base import Number, ServiceModel, Timestamp


class InstalledNode(ServiceModel):
    """A node type that a package provides."""

    name: str
    type: str
    latest_version: Number | None = None


class CommunityPackage(ServiceModel):
    """An installed package; ``update_available`` is the newer version, if any."""

    package_name: str
    installed_version: str
    author_name: str | None = None
    author_email: str | None = None
    installed_nodes: list[InstalledNode] | None = None
    update_available: str | None = None
    failed_loading: bool | None = None
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None
