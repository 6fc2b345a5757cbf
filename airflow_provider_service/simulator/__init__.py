"""A workflow service in one process, stateful and with the service's quirks, for tests and demos.

Needs the extra ``simulator``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_service.simulator.server import ServiceSimulator

__all__ = ["ServiceSimulator"]


def __getattr__(name: str) -> Any:
    if name == "ServiceSimulator":
        from airflow_provider_service.simulator.server import ServiceSimulator

        return ServiceSimulator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
