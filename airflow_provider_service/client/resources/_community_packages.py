"""Community node packages."""

from __future__ import annotations

import builtins

from airflow_provider_service.client._models import Number, ServiceModel, Timestamp
from airflow_provider_service.client.resources._base import Resource, without_none


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


class CommunityPackages(Resource):
    """Community node packages. Installing takes as long as the download does."""

    def list(self) -> builtins.list[CommunityPackage]:
        """Read the installed packages: ``GET /community-packages``."""
        return self._call(builtins.list[CommunityPackage], "GET", "/community-packages", scope="communityPackage:list")

    def install(
        self, name: str, *, version: str | None = None, verify: bool | None = None, timeout: float | None = None
    ) -> CommunityPackage:
        """Install a package: ``POST /community-packages``. Not safe to repeat: a second call is refused.

        :param name: package name, ``n8n-nodes-...`` with or without an ``@scope/``.
        :param version: version to install, by default the latest.
        :param verify: install only what the service's makers have vetted.
        :param timeout: seconds to wait for the answer instead of the connection's setting.
        :raises ServiceInvalidRequestError: it is not vetted, is already installed or does not exist.
        """
        body = without_none(name=name, version=version, verify=verify)
        return self._call(
            CommunityPackage,
            "POST",
            "/community-packages",
            scope="communityPackage:install",
            body=body,
            timeout=timeout,
        )

    def update(
        self, name: str, *, version: str | None = None, verify: bool | None = None, timeout: float | None = None
    ) -> CommunityPackage:
        """Update a package: ``PATCH /community-packages/{name}``.

        Not safe to repeat: the first call may still be running.

        :param version: version to update to, by default the latest.
        :param verify: update only to what the service's makers have vetted.
        :param timeout: seconds to wait for the answer instead of the connection's setting.
        :raises ServiceInvalidRequestError: the version is not vetted.
        :raises ServiceNotFoundError: it is not installed.
        """
        body = without_none(version=version, verify=verify) or None
        return self._call(
            CommunityPackage,
            "PATCH",
            "/community-packages/{}",
            name,
            scope="communityPackage:update",
            body=body,
            timeout=timeout,
        )

    def uninstall(self, name: str) -> None:
        """Uninstall a package: ``DELETE /community-packages/{name}``.

        Safe to repeat, but if an answer is lost, the automatic repeat raises ``ServiceNotFoundError`` although the
        object has been deleted.

        :raises ServiceNotFoundError: it is not installed.
        """
        self._run("DELETE", "/community-packages/{}", name, scope="communityPackage:uninstall")
