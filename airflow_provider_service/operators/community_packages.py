"""Operator for community node packages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_provider_service._core.arguments import LONG_CALL_SECONDS, as_rendered, read_seconds
from airflow_provider_service.links.service import COMMUNITY_PACKAGES_PAGE
from airflow_provider_service.operators._base import ServiceBaseOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated, TemplatedDuration
    from airflow_provider_service.client.models import CommunityPackage
    from airflow_provider_service.operators.results import CommunityPackageResult

__all__ = ["ServiceInstallCommunityPackageOperator"]


class ServiceInstallCommunityPackageOperator(ServiceBaseOperator):
    """Make sure that a community node package is installed. Safe to repeat.

    If another version is installed, it is updated. Without ``version``, any installed version is accepted.

    :param name: package name, ``n8n-nodes-...`` with or without an ``@scope/``.
    :param version: required version; None (the default) for any installed version, or the latest if none is installed.
    :param verify: True to install only packages that the vendor of the service has vetted; None (the default) for the
        server's default.
    :param timeout: seconds, or a timedelta, to wait for the installation; 300 seconds by default.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`CommunityPackageResult`; the outcome is ``"installed"``, ``"updated"`` or ``"skipped"``.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (*ServiceBaseOperator.template_fields, "name", "version", "timeout")

    def __init__(
        self,
        *,
        name: Templated[str],
        version: Templated[str | None] = None,
        verify: bool | None = None,
        timeout: TemplatedDuration = LONG_CALL_SECONDS,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.name = as_rendered(name)
        self.version = as_rendered(version)
        self.verify = verify
        self.timeout = timeout
        self.check_arguments()

    def perform(self, context: Context) -> CommunityPackageResult:
        url = self.link_page(context, COMMUNITY_PACKAGES_PAGE)
        packages = self.hook.community_packages
        existing = next((package for package in packages.list() if package.package_name == self.name), None)
        package, outcome = self._ensure(existing)
        self.log.info("Community package %s %s is %s: %s", self.name, package.installed_version, outcome, url)
        return {
            "name": self.name,
            "version": package.installed_version,
            "previous_version": existing.installed_version if existing else None,
            "outcome": outcome,
            "url": url,
        }

    def _ensure(self, existing: CommunityPackage | None) -> tuple[CommunityPackage, str]:
        packages, timeout = self.hook.community_packages, read_seconds("timeout", self.timeout)
        if existing is None:
            package = packages.install(self.name, version=self.version, verify=self.verify, timeout=timeout)
            return package, "installed"
        if self.version in (None, existing.installed_version):
            return existing, "skipped"
        package = packages.update(self.name, version=self.version, verify=self.verify, timeout=timeout)
        return package, "updated"
