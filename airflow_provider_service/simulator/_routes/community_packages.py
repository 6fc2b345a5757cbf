"""Community packages: ``/community-packages``."""

from __future__ import annotations

from typing import Any

from airflow_provider_service.simulator._gateway import Call, operation
from airflow_provider_service.simulator._validation import Body, Boolean, Text

_OPTIONS = {"version": Text(), "verify": Boolean()}


def _options(call: Call) -> dict[str, Any]:
    return {name: call.body[name] for name in _OPTIONS if name in call.body}


@operation("list_community_packages", "GET", "/community-packages", scope="communityPackage:list", family="strict")
def list_community_packages(call: Call) -> Any:
    return list(call.state.community_packages.all())


@operation(
    "install_community_package",
    "POST",
    "/community-packages",
    scope="communityPackage:install",
    family="strict",
    body=Body(required={"name": Text()}, optional=_OPTIONS),
)
def install_community_package(call: Call) -> Any:
    return call.state.community_packages.install(call.body["name"], **_options(call))


@operation(
    "update_community_package",
    "PATCH",
    "/community-packages/{name}",
    scope="communityPackage:update",
    family="strict",
    body=Body(optional=_OPTIONS, required_body=False),
)
def update_community_package(call: Call) -> Any:
    return call.state.community_packages.update(call.path["name"], **_options(call))


@operation(
    "uninstall_community_package",
    "DELETE",
    "/community-packages/{name}",
    scope="communityPackage:uninstall",
    family="strict",
    status=204,
)
def uninstall_community_package(call: Call) -> None:
    call.state.community_packages.uninstall(call.path["name"])
