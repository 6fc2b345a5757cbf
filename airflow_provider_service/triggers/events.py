"""The trigger that starts a DAG when an execution ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.triggers import BaseEventTrigger
from airflow.triggers.base import TriggerEvent

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.errors import ServiceApiError
from airflow_provider_service.links import execution_url
from airflow_provider_service.triggers.endings import Cursor, Snapshot, look
from airflow_provider_service.triggers.polling import config_for
from airflow_provider_service.waiting import ENDED_STATUSES

if TYPE_CHECKING:
    from airflow_provider_service.client.models.executions import Execution

log = logging.getLogger(__name__)


class ServiceExecutionEventTrigger(BaseEventTrigger):
    """Fires whenever an execution of a workflow has ended; for an ``AssetWatcher``.

    The watch begins with its first look: what ended before is not told. On Airflow 3.3 and newer a restart goes on
    where it was, and watchers of the same connection and interval share one poll; before, it begins anew. An event is
    told once, unless the triggerer dies in the moment between an event and the note of it.

    The event is ``{"execution_id", "workflow_id", "status", "started_at", "stopped_at", "url"}``.

    :param workflow_id: the workflow.
    :param statuses: ends that fire, all by default: of ``"success"``, ``"error"``, ``"canceled"``, ``"crashed"``.
    :param service_conn_id: Airflow connection of type ``service``.
    :param poll_interval: seconds between two looks; 30 by default.
    """

    def __init__(
        self,
        *,
        workflow_id: str,
        statuses: Sequence[str] = ("success", "error", "canceled", "crashed"),
        service_conn_id: str = "service_default",
        poll_interval: float = 30.0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        unknown = set(statuses) - ENDED_STATUSES
        if unknown or not statuses or isinstance(statuses, str):
            raise ValueError(f"statuses must be a list of {', '.join(sorted(ENDED_STATUSES))}, not {statuses!r}")
        self.workflow_id = workflow_id
        self.statuses = sorted(statuses)
        self.service_conn_id = service_conn_id
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and arguments that make this trigger again."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "workflow_id": self.workflow_id,
                "statuses": self.statuses,
                "service_conn_id": self.service_conn_id,
                "poll_interval": self.poll_interval,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Poll alone, where Airflow shares no streams."""
        async for event in self.filter_shared_stream(self.open_shared_stream(self.serialize()[1])):
            yield event

    def shared_stream_key(self) -> Hashable:
        """Watchers of the same connection and interval share one poll."""
        return (type(self).__qualname__, self.service_conn_id, self.poll_interval)

    @classmethod
    async def open_shared_stream(cls, kwargs: dict[str, Any]) -> AsyncIterator[Snapshot]:
        """Look at the executions of all workflows, again and again."""
        cursor = None
        while True:
            try:
                snapshot = await _look(kwargs["service_conn_id"], cursor)
            except ServiceApiError as error:
                # A watcher has no end that it could fail with; it says what is wrong until that is mended.
                log.error("Executions could not be read, trying again in %g s: %s", kwargs["poll_interval"], error)
            else:
                yield snapshot
                if cursor is None:
                    cursor = Cursor.beginning(snapshot)
                else:
                    for execution in snapshot.ended:
                        cursor.tell(execution)
                    cursor.advance(snapshot)
            await asyncio.sleep(kwargs["poll_interval"])

    async def filter_shared_stream(self, shared_stream: AsyncIterator[Snapshot]) -> AsyncIterator[TriggerEvent]:
        """Tell the endings of this trigger's workflow."""
        cursor, is_caught_up = await self._kept_cursor(), False
        async for everything in shared_stream:
            snapshot = everything.of_workflow(self.workflow_id)
            if cursor is None:
                cursor = Cursor.beginning(snapshot)
            elif not is_caught_up:
                # The shared poll began with its own first subscriber, which may be later than the kept cursor.
                snapshot = await self._caught_up(cursor)
            is_caught_up = True
            for execution in cursor.untold(snapshot):
                if execution.status in self.statuses:
                    yield TriggerEvent(await self._payload(execution))
                cursor.tell(execution)
                await self._keep(cursor)
            cursor.advance(snapshot)
            await self._keep(cursor)

    async def _kept_cursor(self) -> Cursor | None:
        store = getattr(self, "asset_state_store", None)
        return Cursor.from_json(await store.aget(self._cursor_key)) if store is not None else None

    async def _keep(self, cursor: Cursor) -> None:
        store = getattr(self, "asset_state_store", None)
        if store is not None:
            await store.aset(self._cursor_key, cursor.to_json())

    @property
    def _cursor_key(self) -> str:
        # Several watchers of one asset keep their cursors apart.
        return f"service_executions:{self.service_conn_id}:{self.workflow_id}:{','.join(self.statuses)}"

    async def _caught_up(self, cursor: Cursor) -> Snapshot:
        while True:
            try:
                return await _look(self.service_conn_id, cursor, self.workflow_id)
            except ServiceApiError as error:
                log.error("Executions could not be read, trying again in %g s: %s", self.poll_interval, error)
                await asyncio.sleep(self.poll_interval)

    async def _payload(self, execution: Execution) -> dict[str, Any]:
        config = await config_for(self.service_conn_id)
        wire = execution.to_wire()
        return {
            "execution_id": execution.id,
            "workflow_id": execution.workflow_id,
            "status": execution.status,
            "started_at": wire.get("startedAt"),
            "stopped_at": wire.get("stoppedAt"),
            "url": execution_url(config.base_url, self.workflow_id, execution.id),
        }


async def _look(service_conn_id: str, cursor: Cursor | None, workflow_id: str | None = None) -> Snapshot:
    # The connection is read anew each time, so that a changed key is picked up.
    config = await config_for(service_conn_id)
    with ServiceClient(config.model_copy(update={"retry_deadline": 0.0})) as client:
        return await asyncio.to_thread(look, client, cursor, workflow_id)
