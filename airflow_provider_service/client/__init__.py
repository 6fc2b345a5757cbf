"""A client of the service's public REST API, independent of Airflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_service.client._lazy import lazy_names

if TYPE_CHECKING:
    from airflow_provider_service.client._client import ServiceClient as ServiceClient
    from airflow_provider_service.client._config import ServiceConfig as ServiceConfig

# Loaded late, so that importing a sibling such as ``client.errors`` loads neither requests nor pydantic.
__all__, __getattr__ = lazy_names(__name__, {"_client": ["ServiceClient"], "_config": ["ServiceConfig"]})
