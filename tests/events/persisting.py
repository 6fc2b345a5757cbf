"""A triggerer whose events reach Airflow's database as in Airflow: sync by sync, and confirmed one sync later."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import Any, cast

from airflow.jobs import triggerer_job_runner
from airflow.triggers.base import BaseTrigger

from airflow_provider_service.client._clock import clock
from tests.waits.driving import Triggerer, payloads

SYNC_SECONDS = 0.02


class Supervisor:
    """Stores events, and confirms at the next message what it has stored since the last."""

    def __init__(self, *, stores: bool = True, confirms: bool = True) -> None:
        self.stored: list[Any] = []
        self.stores, self.confirms = stores, confirms
        self._unconfirmed: list[int] = []

    async def asend(self, message: Any) -> Any:
        confirmed, self._unconfirmed = self._unconfirmed if self.confirms else [], []
        if self.stores:
            self.stored += message.events or ()
            numbers = [getattr(one, "persist_seq", None) for one in message.events or ()]  # none before Airflow 3.3
            self._unconfirmed = [one for one in numbers if one is not None]
        sync = triggerer_job_runner.messages.TriggerStateSync(to_create=[], to_cancel=set())
        if confirmed:
            sync.events_persisted = confirmed
        return sync


class PersistingTriggerer(Triggerer):
    """Airflow's own runner of triggers, in sync with a supervisor.

    :param syncs: whether the runner reaches its supervisor at all.
    :param supervisor: what to change about the supervisor.
    """

    def __init__(self, *, syncs: bool = True, **supervisor: bool) -> None:
        super().__init__()
        self._supervisor = Supervisor(**supervisor)
        self._runner.comms_decoder = cast(Any, self._supervisor)
        self._syncs, self._syncing = syncs, cast("asyncio.Task[None] | None", None)

    def start(self, trigger: BaseTrigger) -> int:
        if self._syncs and self._syncing is None:
            self._syncing = asyncio.create_task(self._sync())
        return super().start(trigger)

    async def _sync(self) -> None:
        while True:
            await self._runner.sync_state_to_supervisor([])
            await clock().async_sleep(SYNC_SECONDS)

    def events(self, number: int) -> list[Any]:
        """The payloads of a trigger that are in the database."""
        return payloads(self._supervisor.stored, number)

    def fired(self, number: int) -> list[Any]:
        """The payloads of a trigger that are on their way to the database."""
        return super().events(number)

    async def shut_down(self) -> None:
        if self._syncing:
            self._syncing.cancel()
        await super().shut_down()

    async def die(self, state: Any) -> Any:
        """End at once, and return a copy of a state at that moment."""
        kept = deepcopy(state)
        await self.shut_down()
        return kept
