"""A stateful simulation of the workflow service in one process, including its quirks, for tests and demos.

Needs the extra ``simulator``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_service.simulator._server import ServiceSimulator

__all__ = ["ServiceSimulator"]


def __getattr__(name: str) -> Any:
    if name == "ServiceSimulator":
        try:
            from airflow_provider_service.simulator._server import ServiceSimulator
        except ModuleNotFoundError as error:
            missing = str(error.name).partition(".")[0]
            text = f"the simulator needs {missing}: pip install 'airflow-provider-service[simulator]'"
            raise ModuleNotFoundError(text, name=error.name) from None

        return ServiceSimulator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
