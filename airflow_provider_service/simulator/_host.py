"""What the whole simulated service offers its parts: clock, ids, license, address and schedule."""

from __future__ import annotations

from typing import Protocol

from airflow_provider_service.simulator._clock import Clock, Schedule


class Host(Protocol):
    """The service that stores and tables are part of. Other stores are passed as separate arguments."""

    clock: Clock
    schedule: Schedule
    licensed: bool
    version: str
    publish_delay: float
    base_url: str
    owner_id: str
    personal_project_id: str

    def new_id(self) -> str:
        """A new id in the service's format."""

    def stamp(self) -> str:
        """The clock's date and time, in the service's format."""

    def settle(self) -> None:
        """Carry out everything that is due according to the clock."""
