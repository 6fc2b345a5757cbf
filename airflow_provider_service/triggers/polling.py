"""The shared poller: all waits of an event loop on one server, key and interval are served by one loop of requests.

A round lists the active executions, newest first, 250 a page, and reads by id only those that are no longer among
them. While the waits are few, it reads each by id: whatever needs fewer requests.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from airflow_provider_service.client import ServiceClient, ServiceConfig, errors

# Loaded here, in a thread: at its first use it would stall the event loop for 100 ms.
from airflow_provider_service.client.resources import executions as _executions  # noqa: F401
from airflow_provider_service.client.statuses import ACTIVE_STATUSES
from airflow_provider_service.hooks.connection import config_for
from airflow_provider_service.waiting import Outcome, Watch

if TYPE_CHECKING:
    from airflow_provider_service.client.models.executions import Execution
    from airflow_provider_service.client.statuses import ExecutionStatus

log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_REQUESTS_AT_ONCE = 8
# A new poller gathers waits this long before its first round, so that they share it.
GATHERING_SECONDS = 0.2
# Single reads were fewer requests than lists; after so many rounds lists are tried again, they may have become short.
ROUNDS_BEFORE_LISTING_AGAIN = 10
# From so many ended executions on, they are looked up in lists too.
ENDED_WORTH_LISTING = 5
CONNECTION_CHECK_SECONDS = 60.0
# Waits are judged and woken in groups with a pause between, so that the event loop stays responsive.
HANDLE_TOGETHER = 50

# Lists that this key or server refuses; reading by id works, or says for each wait what is wrong.
_NO_LISTS = (
    errors.ServiceForbiddenError,
    errors.ServiceInvalidRequestError,
    errors.ServiceNotOfferedError,
    errors.ServiceConfigError,
)


@dataclass(eq=False)
class Subscription:
    """One wait at a poller; its future ends with the outcome, or None when the connection has changed."""

    watch: Watch
    service_conn_id: str
    future: asyncio.Future[Outcome | None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def number(self) -> int:
        """The execution's id as a number; 0 for one that is none."""
        return int(self.watch.execution_id) if self.watch.execution_id.isdecimal() else 0

    def end(self, outcome: Outcome | None) -> None:
        """Wake the wait, unless it has gone."""
        if not self.future.done():
            self.future.set_result(outcome)


class Poller:
    """Serves the waits of one server, key and interval within one event loop.

    :param config: the server; its retries are off here, since the next round is the retry.
    :param interval: seconds between two rounds.
    """

    def __init__(self, config: ServiceConfig, interval: float) -> None:
        self.config, self.interval = config, interval
        self._client = ServiceClient(config.one_try())
        self._subscriptions: set[Subscription] = set()
        self._task: asyncio.Task[None] | None = None
        self._threads = ThreadPoolExecutor(MAX_REQUESTS_AT_ONCE, thread_name_prefix="service-poller")
        self._list_requests = len(ACTIVE_STATUSES)
        self._may_list = True
        self._rounds_since_listing = 0
        self._connections_checked_at = time.monotonic()
        self._moved: dict[str, bool] = {}

    @contextmanager
    def subscription(self, watch: Watch, service_conn_id: str) -> Iterator[asyncio.Future[Outcome | None]]:
        """Have an execution watched, and keep the poller alive meanwhile.

        :returns: a future that ends with the outcome, or with None when the connection has changed.
        """
        one = Subscription(watch, service_conn_id)
        self._subscriptions.add(one)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        try:
            yield one.future
        finally:
            self._subscriptions.discard(one)

    async def look(self, watch: Watch) -> Outcome | None:
        """Look once, outside the rounds; only while a subscription is held."""
        return await self._in_thread(watch.look, self._client)

    async def _in_thread(self, call: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)

    async def _run(self) -> None:
        try:
            await asyncio.sleep(min(GATHERING_SECONDS, self.interval))
            while self._subscriptions:
                started = time.monotonic()
                await self._guarded_round()
                await asyncio.sleep(max(0.0, started + self.interval - time.monotonic()))
        finally:
            _forget(self)
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._client.close()

    async def _guarded_round(self) -> None:
        self._moved.clear()
        try:
            if time.monotonic() - self._connections_checked_at >= CONNECTION_CHECK_SECONDS:
                await self._follow_connections()
            await self._round(list(self._subscriptions))
        except Exception:
            # Nobody awaits this task: an error that ended it would leave every wait hanging.
            log.exception("A round of polling failed; the next begins in %g s", self.interval)

    async def _round(self, subscriptions: list[Subscription]) -> None:
        if self._lists_are_worth_it(len(subscriptions)):
            try:
                subscriptions = await self._without_active(subscriptions)
                subscriptions = await self._without_succeeded(subscriptions)
            except _NO_LISTS as error:
                log.info("Executions can not be listed, so each is read by id: %s", error)
                self._may_list = False
            except errors.ServiceUnexpectedResponseError as error:
                # One odd execution spoils a list for all; by id it spoils only its own wait.
                log.warning("A list of executions can not be read, so each is read by id: %s", error)
            except errors.ServiceApiError as error:
                log.warning("Executions could not be listed: %s", error)
                await self._deliver((one, one.watch.failed_to_look(error)) for one in subscriptions)
                return
            except Exception:
                log.exception("A list of executions can not be read, so each is read by id")
        await self._look_at_each(subscriptions)

    def _lists_are_worth_it(self, waits: int) -> bool:
        self._rounds_since_listing += 1
        is_stale = self._rounds_since_listing > ROUNDS_BEFORE_LISTING_AGAIN
        is_wanted = waits > (len(ACTIVE_STATUSES) if is_stale else self._list_requests)
        if is_wanted and self._may_list:
            self._rounds_since_listing = 0
            return True
        return False

    async def _without_active(self, subscriptions: list[Subscription]) -> list[Subscription]:
        # Lists longer than this cost more than reading each wait's execution by id.
        limit = self.config.page_size * len(subscriptions)
        oldest = min(one.number for one in subscriptions)
        answers = await asyncio.gather(
            *(self._in_thread(self._active_ids, status, oldest, limit) for status in ACTIVE_STATUSES),
            return_exceptions=True,  # so that the next round begins when all of this one's requests have ended
        )
        lists = [_raised(answer) for answer in answers]
        self._list_requests = sum(1 + len(ids) // self.config.page_size for ids in lists)
        active = {id_ for ids in lists for id_ in ids}
        rest = []
        for one in subscriptions:
            if one.watch.execution_id in active:
                one.watch.saw_active()
            else:
                rest.append(one)
        return rest

    async def _without_succeeded(self, subscriptions: list[Subscription]) -> list[Subscription]:
        if len(subscriptions) < ENDED_WORTH_LISTING:
            return subscriptions
        oldest = min(one.number for one in subscriptions)
        wanted = {one.watch.execution_id for one in subscriptions}
        found = await self._in_thread(self._succeeded, oldest, 10 * len(subscriptions), wanted)
        await self._deliver(
            (one, one.watch.saw(execution, self._client))
            for one in subscriptions
            if (execution := found.get(one.watch.execution_id)) is not None
        )
        return [one for one in subscriptions if one.watch.execution_id not in found]

    def _active_ids(self, status: ExecutionStatus, oldest: int, limit: int) -> list[str]:
        # Ids alone: thousands of objects that live through a round would set off the garbage collector, which
        # stops the event loop.
        return [execution.id for execution in self._list(status, oldest, limit)]

    def _succeeded(self, oldest: int, limit: int, wanted: set[str]) -> dict[str, Execution]:
        return {execution.id: execution for execution in self._list("success", oldest, limit) if execution.id in wanted}

    def _list(self, status: ExecutionStatus, oldest: int, limit: int) -> Iterator[Execution]:
        for execution in self._client.executions.list(status=status, limit=limit):
            if execution.id.isdecimal() and int(execution.id) < oldest:
                return
            if execution.status == status:
                yield execution

    async def _look_at_each(self, subscriptions: list[Subscription]) -> None:
        queue = iter(subscriptions)

        async def look_at_next() -> None:
            for one in queue:
                if not one.future.done():
                    await self._deliver([(one, await self.look(one.watch))])

        await asyncio.gather(*(look_at_next() for _ in range(min(MAX_REQUESTS_AT_ONCE, len(subscriptions)))))

    async def _deliver(self, outcomes: Iterable[tuple[Subscription, Outcome | None]]) -> None:
        for count, (one, outcome) in enumerate(outcomes, 1):
            if outcome is not None:
                is_stale = outcome.verdict == "unobservable" and await self._has_moved(one.service_conn_id)
                one.end(None if is_stale else outcome)
            if count % HANDLE_TOGETHER == 0:
                await asyncio.sleep(0)

    async def _follow_connections(self) -> None:
        self._connections_checked_at = time.monotonic()
        for service_conn_id in {one.service_conn_id for one in self._subscriptions}:
            if await self._has_moved(service_conn_id):
                log.info("Connection '%s' has changed; its waits move to the new settings", service_conn_id)
                for one in [one for one in self._subscriptions if one.service_conn_id == service_conn_id]:
                    one.end(None)

    async def _has_moved(self, service_conn_id: str) -> bool:
        """Whether a connection has changed, read once a round."""
        if service_conn_id not in self._moved:
            try:
                self._moved[service_conn_id] = await config_for(service_conn_id) != self.config
            except Exception:
                log.warning("Connection '%s' could not be read again; its waits go on", service_conn_id, exc_info=True)
                self._moved[service_conn_id] = False
        return self._moved[service_conn_id]


def _raised(answer: T | BaseException) -> T:
    if isinstance(answer, BaseException):
        raise answer
    return answer


_pollers: WeakKeyDictionary[asyncio.AbstractEventLoop, list[Poller]] = WeakKeyDictionary()


def poller_for(config: ServiceConfig, interval: float) -> Poller:
    """The poller of the running event loop for a server and interval; made when there is none."""
    pollers = _pollers.setdefault(asyncio.get_running_loop(), [])
    for poller in pollers:
        if (poller.config, poller.interval) == (config, interval):
            return poller
    pollers.append(Poller(config, interval))
    return pollers[-1]


def _forget(poller: Poller) -> None:
    for pollers in _pollers.values():
        if poller in pollers:
            pollers.remove(poller)
