"""A client of the service's public REST API, independent of Airflow."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["ServiceClient", "ServiceConfig"]

if TYPE_CHECKING:
    from airflow_provider_service.client._client import ServiceClient
    from airflow_provider_service.client._config import ServiceConfig
else:

    def __getattr__(name: str) -> object:
        """Load a class late: importing a sibling such as ``client.errors`` needs neither requests nor pydantic."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = "_client" if name == "ServiceClient" else "_config"
        return getattr(import_module(f"{__name__}.{module}"), name)
