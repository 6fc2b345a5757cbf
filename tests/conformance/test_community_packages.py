"""Community packages."""

from __future__ import annotations

import pytest

from airflow_provider_service.client.errors import ServiceInvalidRequestError, ServiceNotFoundError

from .expecting import refused
from .target import Target

NOT_INSTALLED = "This package is not installed - you must install it first"
# Only the simulator knows packages that can be installed; a server asks its maker's registry, which is out of reach.
VETTED, SCOPED = "n8n-nodes-example", "@example/n8n-nodes-scoped"


@pytest.mark.covers("list_community_packages")
def test_no_packages_are_installed_at_first(service: Target) -> None:
    assert service.client.community_packages.list() == []


@pytest.mark.covers("install_community_package", "update_community_package")
def test_a_package_must_be_vetted(service: Target) -> None:
    packages, name = service.client.community_packages, "n8n-nodes-nobody-vetted"
    for call in (packages.install, packages.update):
        with refused(ServiceInvalidRequestError, f"Package {name} is not vetted for installation", 400):
            call(name, version="1.0.0", verify=True)


@pytest.mark.covers("uninstall_community_package")
def test_a_package_that_is_not_installed_is_not_found(service: Target) -> None:
    for name in (VETTED, SCOPED):
        with refused(ServiceNotFoundError, NOT_INSTALLED):
            service.client.community_packages.uninstall(name)


@pytest.mark.covers("install_community_package")
def test_a_request_that_does_not_fit_is_refused(service: Target) -> None:
    for body, message in (
        ({}, "request/body must have required property 'name'"),
        ({"name": VETTED, "verify": "yes"}, "request/body/verify must be boolean"),
    ):
        with refused(ServiceInvalidRequestError, message, 400):
            service.client.request("POST", "/community-packages", body=body)


@pytest.mark.covers("install_community_package", "update_community_package", "uninstall_community_package")
def test_a_vetted_package_is_installed_updated_and_removed(service: Target) -> None:
    packages = service.client.community_packages
    if [service.differs(f"{verb}_community_package") for verb in ("install", "update", "uninstall")] == [True] * 3:
        return

    old = packages.install(VETTED, version="0.9.0")
    assert (old.installed_version, old.update_available) == ("0.9.0", "1.0.0")
    assert [package.package_name for package in packages.list()] == [VETTED]
    assert packages.update(VETTED).installed_version == "1.0.0"
    packages.uninstall(VETTED)
    packages.install(SCOPED)
    packages.uninstall(SCOPED)
    assert packages.list() == []
