"""Operator on community node packages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_service.arguments import read_seconds, require_flag
from airflow_provider_service.links import COMMUNITY_PACKAGES_PAGE, ServicePageLink
from airflow_provider_service.operators._base import ServiceBaseOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_service.client.models.community_packages import CommunityPackage


class ServiceInstallCommunityPackageOperator(ServiceBaseOperator):
    """Make sure that a community node package is installed. Safe to repeat.

    A package of another version is updated; without ``version`` any installed one will do.

    :param name: package name, ``n8n-nodes-...`` with or without an ``@scope/``.
    :param version: version to have; None for any, and for the latest when it is not installed.
    :param verify: install only what the service's makers have vetted; None for the server's default.
    :param timeout: seconds to wait for the installation.
    :returns: ``{"name", "version", "previous_version", "outcome", "url"}``; the outcome is ``"installed"``,
        ``"updated"`` or ``"skipped"``.
    """

    template_fields: Sequence[str] = (*ServiceBaseOperator.template_fields, "name", "version")
    operator_extra_links = (ServicePageLink(),)

    def __init__(
        self,
        *,
        name: str,
        version: str | None = None,
        verify: bool | None = None,
        timeout: float = 300.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.name = name
        self.version = version
        self.verify = verify
        self.timeout = timeout

    def perform(self, context: Context) -> dict[str, Any]:
        """Install, update or leave the package."""
        require_flag("verify", self.verify, optional=True)
        self.timeout = read_seconds("timeout", self.timeout)
        url = self.link_to(context, ServicePageLink(), COMMUNITY_PACKAGES_PAGE)
        packages = self.hook.community_packages
        held = next((one for one in packages.list() if one.package_name == self.name), None)
        package, outcome = self._see_to(held)
        self.log.info("Community package %s %s is %s: %s", self.name, package.installed_version, outcome, url)
        return {
            "name": self.name,
            "version": package.installed_version,
            "previous_version": held.installed_version if held else None,
            "outcome": outcome,
            "url": url,
        }

    def _see_to(self, held: CommunityPackage | None) -> tuple[CommunityPackage, str]:
        packages = self.hook.community_packages
        if held is None:
            package = packages.install(self.name, version=self.version, verify=self.verify, timeout=self.timeout)
            return package, "installed"
        if self.version in (None, held.installed_version):
            return held, "skipped"
        package = packages.update(self.name, version=self.version, verify=self.verify, timeout=self.timeout)
        return package, "updated"
