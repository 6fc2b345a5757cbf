"""The trigger that starts a DAG when an execution ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.providers.common.compat.triggers import BaseEventTrigger
from airflow.triggers.base import TriggerEvent

from airflow_provider_service.client.statuses import ENDED_STATUSES
from airflow_provider_service.triggers.endings import Cursor, Snapshot, look
from airflow_provider_service.waiting import judge

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceConfig

log = logging.getLogger(__name__)

T = TypeVar("T")


class ServiceExecutionEventTrigger(BaseEventTrigger):
    """Fires whenever an execution of a workflow has ended; for an ``AssetWatcher``.

    The watch begins with its first look: what ended before is not told. On Airflow 3.3 and newer a restart goes on
    where it was, and watchers of the same connection and interval share one poll; before, it begins anew. So it does
    where several assets have the same watcher, since Airflow keeps no state for those. An event is told once, unless
    the triggerer dies in the moment between an event and the note of it.

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
        statuses: Sequence[str] = ENDED_STATUSES,
        service_conn_id: str = "service_default",
        poll_interval: float = 30.0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        unknown = set(statuses).difference(ENDED_STATUSES)
        if unknown or not statuses or isinstance(statuses, str):
            raise ValueError(f"statuses must be a list of {', '.join(ENDED_STATUSES)}, not {statuses!r}")
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
            snapshot = await _until_it_works(partial(_look, kwargs["service_conn_id"], cursor), kwargs["poll_interval"])
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
        store = _CursorStore(getattr(self, "asset_state_store", None), self._cursor_key, self.poll_interval)
        cursor, is_caught_up = await store.read(), False
        async for everything in shared_stream:
            snapshot = everything.of_workflow(self.workflow_id)
            if cursor is None:
                cursor = Cursor.beginning(snapshot)
            elif not is_caught_up:
                # The shared poll began with its own first subscriber, which may be later than the kept cursor.
                own_look = partial(_look, self.service_conn_id, cursor, self.workflow_id)
                snapshot = await _until_it_works(own_look, self.poll_interval)
            is_caught_up = True
            for execution in cursor.untold(snapshot):
                wanted = judge(execution, snapshot.base_url) if execution.status in self.statuses else None
                if wanted:
                    yield TriggerEvent(wanted.to_xcom())
                cursor.tell(execution)
                if wanted:
                    await store.write(cursor)
            cursor.advance(snapshot)
            await store.write(cursor)

    @property
    def _cursor_key(self) -> str:
        # Several watchers of one asset keep their cursors apart.
        return f"service_executions:{self.service_conn_id}:{self.workflow_id}:{','.join(self.statuses)}"


class _CursorStore:
    """Keeps a cursor where Airflow keeps the state of an asset, if it does."""

    def __init__(self, store: Any, key: str, pause: float) -> None:
        self._store, self._key, self._pause = store, key, pause
        self._kept: Any = None

    async def read(self) -> Cursor | None:
        """The cursor that was written last, also by an earlier triggerer."""
        self._kept = await _until_it_works(self._read, self._pause)
        return Cursor.from_json(self._kept)

    async def write(self, cursor: Cursor) -> None:
        """Write a cursor, unless it is what is there."""
        state = cursor.to_json()
        if self._store is not None and state != self._kept:
            await _until_it_works(partial(self._store.aset, self._key, state), self._pause)
            self._kept = state

    async def _read(self) -> Any:
        try:
            return await self._store.aget(self._key) if self._store is not None else None
        except ValueError as error:  # several assets have this watcher
            log.warning("Airflow keeps no state for this watcher, so a restart begins anew: %s", error)
            self._store = None


async def _until_it_works(action: Callable[[], Awaitable[T]], pause: float) -> T:
    """Do something again and again: a watcher has no end that it could fail with, it says what is wrong instead."""
    while True:
        try:
            return await action()
        except Exception as error:  # noqa: BLE001 - whatever it is, it may be mended
            log.error("The watch of executions is interrupted, trying again in %g s: %s", pause, error)
            await asyncio.sleep(pause)


async def _look(service_conn_id: str, cursor: Cursor | None, workflow_id: str | None = None) -> Snapshot:
    from airflow_provider_service.hooks.connection import config_for

    # The connection is read anew each time, so that a changed key is picked up.
    config = await config_for(service_conn_id)
    return await asyncio.to_thread(_look_with, config, cursor, workflow_id)


def _look_with(config: ServiceConfig, cursor: Cursor | None, workflow_id: str | None) -> Snapshot:
    # Loaded here since DAG files import this module, and in a thread since that would stall the event loop.
    from airflow_provider_service.client import ServiceClient

    with ServiceClient(config.one_try()) as client:
        return look(client, cursor, workflow_id)
