"""What the parts of the simulated service may ask of the whole: clock, ids, license, address, schedule."""

from __future__ import annotations

from typing import Protocol

from airflow_provider_service.simulator.clock import Clock
from airflow_provider_service.simulator.schedule import Schedule


class Host(Protocol):
    """The service that stores and tables are part of. Other stores are arguments of their own."""

    clock: Clock
    schedule: Schedule
    licensed: bool
    publish_delay: float
    base_url: str
    owner_id: str
    personal_project_id: str

    def new_id(self) -> str:
        """A fresh id as the service makes them."""
        ...

    def stamp(self) -> str:
        """The clock's date and time, as the service writes them."""
        ...

    def settle(self) -> None:
        """Let everything happen that has fallen due on the clock."""
        ...
