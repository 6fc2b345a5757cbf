"""Community packages: node packages that may be installed if they are vetted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_service.simulator._host import Host
from airflow_provider_service.simulator._validation import ApiError

_NAME = re.compile(r"(@[^/@\s]+/)?n8n-nodes-\S+")


@dataclass(frozen=True)
class VettedPackage:
    """A package that can be installed: its versions (newest last) and the node types in it."""

    versions: tuple[str, ...] = ("1.0.0",)
    nodes: tuple[str, ...] = ("Example",)
    author_name: str = "Example Author"
    author_email: str = "author@example.com"


class CommunityPackageStore:
    """Installed packages; ``vetted`` maps names to the packages that may be installed, and tests may change it."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._installed: dict[str, dict[str, Any]] = {}
        self.vetted = {
            "n8n-nodes-example": VettedPackage(versions=("0.9.0", "1.0.0")),
            "@example/n8n-nodes-scoped": VettedPackage(nodes=("Scoped",)),
        }

    def all(self) -> Sequence[dict[str, Any]]:
        """The installed packages, with ``updateAvailable`` where a newer version is known."""
        return [self._describe(package) for package in self._installed.values()]

    def _describe(self, package: dict[str, Any]) -> dict[str, Any]:
        vetted = self.vetted.get(package["packageName"])
        if vetted is None or vetted.versions[-1] == package["installedVersion"]:
            return package
        return {**package, "updateAvailable": vetted.versions[-1]}

    def install(self, name: str, version: str | None = None, *, verify: bool = True) -> dict[str, Any]:
        """Install a package (default: its newest version).

        :raises ApiError: 400 no name, not vetted, already installed; 500 an unknown package or version
        """
        if not name:
            raise ApiError(400, "Package name is required")
        vetted = self._find(name, version, verify=verify)
        if name in self._installed:
            raise ApiError(400, f'Package "{name}" is already installed')
        now = self._host.stamp()
        self._installed[name] = package = {
            "packageName": name,
            "installedVersion": version or vetted.versions[-1],
            "authorName": vetted.author_name,
            "authorEmail": vetted.author_email,
            "installedNodes": [
                {"name": node, "type": f"{name}.{node[0].lower()}{node[1:]}", "latestVersion": 1}
                for node in vetted.nodes
            ],
            "createdAt": now,
            "updatedAt": now,
        }
        return self._describe(package)

    def update(self, name: str, version: str | None = None, *, verify: bool = True) -> dict[str, Any]:
        """Bring an installed package to a version (default: the newest).

        :raises ApiError: 400 not vetted, 404 not installed, 500 unknown version
        """
        vetted = self._find(name, version, verify=verify)
        package = self._package(name)
        package.update(installedVersion=version or vetted.versions[-1], updatedAt=self._host.stamp())
        return self._describe(package)

    def uninstall(self, name: str) -> None:
        """Remove an installed package.

        :raises ApiError: 400 not a package's name, 404 not installed
        """
        if not _NAME.fullmatch(name):
            raise ApiError(400, "Package name must start with n8n-nodes-")
        del self._installed[self._package(name)["packageName"]]

    def _package(self, name: str) -> dict[str, Any]:
        if name not in self._installed:
            raise ApiError(404, "This package is not installed - you must install it first")
        return self._installed[name]

    def _find(self, name: str, version: str | None, *, verify: bool) -> VettedPackage:
        vetted = self.vetted.get(name)
        if vetted is None and verify:
            raise ApiError(400, f"Package {name} is not vetted for installation")
        if vetted is None or (version is not None and version not in vetted.versions):
            raise ApiError(500, f'Error loading package "{name}" :Package version does not exist')
        return vetted
