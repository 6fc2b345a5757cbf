"""Watchers of executions, and the state that Airflow keeps for them."""

from __future__ import annotations

import json
from typing import Any

from airflow_provider_service.client._clock import clock
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing._service import revived
from airflow_provider_service.triggers.events import ServiceExecutionEventTrigger
from tests.waits.driving import until

INTERVAL = 0.05


class AssetState:
    """Where Airflow keeps the state of one asset."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
        self.writes = 0
        self.faults = 0

    async def aget(self, key: str, default: Any = None) -> Any:
        self._fail_maybe()
        return json.loads(self.kept[key]) if key in self.kept else default

    async def aset(self, key: str, value: Any) -> None:
        self._fail_maybe()
        self.kept[key] = json.dumps(value)
        self.writes += 1

    def _fail_maybe(self) -> None:
        if self.faults:
            self.faults -= 1
            raise RuntimeError("the state cannot be reached")


class StateOfManyAssets(AssetState):
    """What Airflow gives to a trigger that several assets share."""

    async def aget(self, key: str, default: Any = None) -> Any:
        raise ValueError("Task has 2 concrete inlets and outlets")


def watcher(workflow_id: str, state: AssetState | None = None, **changes: Any) -> ServiceExecutionEventTrigger:
    trigger = revived(ServiceExecutionEventTrigger(workflow_id=workflow_id, poll_interval=INTERVAL, **changes))
    assert isinstance(trigger, ServiceExecutionEventTrigger)
    trigger.asset_state_store = state  # type: ignore[assignment]
    return trigger


def polls(simulator: ServiceSimulator) -> int:
    """How many polls have been completed: the list of running executions is read once in each, before the last list."""
    return sum("status=running" in one.query for one in simulator.requests)


async def polled(simulator: ServiceSimulator, times: int = 2) -> None:
    """Return when a poll has begun and ended from now on."""
    seen = polls(simulator)
    await until(lambda: polls(simulator) >= seen + times)
    await clock().async_sleep(INTERVAL / 2)


def ids(events: list[Any]) -> list[str]:
    return [event["execution_id"] for event in events]
