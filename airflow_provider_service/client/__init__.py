"""A client of the service's public REST API that knows nothing of Airflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_service.client._client import ServiceClient as ServiceClient
    from airflow_provider_service.client.config import ServiceConfig as ServiceConfig

__all__ = ["ServiceClient", "ServiceConfig"]


def __getattr__(name: str) -> object:
    # Imported late, so that importing a sibling such as ``client.errors`` loads neither requests nor pydantic.
    if name == "ServiceClient":
        from airflow_provider_service.client._client import ServiceClient

        return ServiceClient
    if name == "ServiceConfig":
        from airflow_provider_service.client.config import ServiceConfig

        return ServiceConfig
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
