"""A poll of the health of workflows, which a sensor repeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.waits.conditions import PollResult

if TYPE_CHECKING:
    from airflow_provider_service._core.health.check import HealthCheck
    from airflow_provider_service.client import ServiceClient


@dataclass(frozen=True)
class HealthPoll:
    """A poll of the health of workflows.

    :param check: what to read and how to judge it.
    """

    check: HealthCheck
    subject: str = "the health of workflows"
    unmet: str = "the workflows were not healthy"

    def poll(self, client: ServiceClient) -> PollResult:
        """Read the statistics once."""
        from airflow_provider_service._core.health.reading import perform

        health = perform(self.check, client)
        return PollResult(health.is_healthy, health.message, health.to_xcom())

    def to_arguments(self) -> dict[str, Any]:
        """The arguments of the sensor and the trigger that describe it."""
        return self.check.to_arguments()
