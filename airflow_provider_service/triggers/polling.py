"""The shared poller: all waits of an event loop on one server, key and interval are served by one loop of requests.

A round lists the active executions, newest first, 250 a page, and reads by id only those that are no longer among
them. While the waits are few, it reads each by id: whatever needs fewer requests. A round does not wait for its reads
by id, so that a slow one delays nobody else; the next rounds leave out the waits whose read is still open.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import OrderedDict
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
# The rest is kept for lists: slow reads must not hold them up.
MAX_READS_AT_ONCE = MAX_REQUESTS_AT_ONCE - len(ACTIVE_STATUSES)
# What a wait may take beyond its deadline to see that its execution has just ended.
LAST_LOOK_SECONDS = 1.0
# A new poller gathers waits this long before its first round, so that they share it.
GATHERING_SECONDS = 0.2
# Lists were longer than single reads, or refused; after so many rounds they are tried again, that may have passed.
ROUNDS_BEFORE_LISTING_AGAIN = 10
# From so many ended executions on, they are looked up in lists too.
ENDED_WORTH_LISTING = 5
CONNECTION_CHECK_SECONDS = 60.0
# Waits are judged and woken in groups with a pause between, so that the event loop stays responsive.
HANDLE_TOGETHER = 50

# Lists that are refused; reading by id works, or says for each wait what is wrong.
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

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Keep what breaks this wait from its neighbours; it goes on until its deadline."""
        try:
            yield
        except Exception:
            log.exception("The wait for execution %s could not look", self.watch.execution_id)


class Poller:
    """Serves the waits of one server, key and interval within one event loop.

    :param config: the server; its retries are off here, since the next round is the retry.
    :param interval: seconds between two rounds.
    """

    def __init__(self, config: ServiceConfig, interval: float) -> None:
        self.config, self.interval = config, interval
        self._client = ServiceClient(config.one_try())
        self._subscriptions: set[Subscription] = set()
        self._to_read: OrderedDict[Subscription, None] = OrderedDict()
        self._being_read: dict[Subscription, asyncio.Task[None]] = {}
        self._task: asyncio.Task[None] | None = None
        self._threads = ThreadPoolExecutor(MAX_REQUESTS_AT_ONCE, thread_name_prefix="service-poller")
        self._list_requests: float = len(ACTIVE_STATUSES)
        self._rounds_since_listing = 0
        self._moved: dict[str, bool] = {}

    async def wait(self, watch: Watch, service_conn_id: str) -> Outcome | None:
        """Wait until an execution has ended or the deadline has passed, and keep the poller alive meanwhile.

        :returns: the outcome, or None when the connection has changed.
        """
        one = Subscription(watch, service_conn_id)
        with self._subscribed(one):
            while watch.seconds_left and not one.future.done():
                await asyncio.wait([one.future], timeout=watch.seconds_left)
            if not one.future.done():
                self._read_first(one)
                await asyncio.wait([one.future], timeout=LAST_LOOK_SECONDS)
            return one.future.result() if one.future.done() else watch.timed_out()

    @contextmanager
    def _subscribed(self, one: Subscription) -> Iterator[None]:
        self._subscriptions.add(one)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        try:
            yield
        finally:
            one.future.cancel()
            self._subscriptions.discard(one)
            self._to_read.pop(one, None)

    async def _in_thread(self, call: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)

    async def _run(self) -> None:
        follower = asyncio.create_task(self._follow_connections())
        try:
            await asyncio.sleep(min(GATHERING_SECONDS, self.interval))
            # An open read keeps the poller, so that no second one adds to the requests at once.
            while self._subscriptions or self._being_read:
                started = time.monotonic()
                await self._guarded_round()
                await asyncio.sleep(max(0.0, started + self.interval - time.monotonic()))
        finally:
            _forget(self)
            follower.cancel()
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._client.close()

    async def _guarded_round(self) -> None:
        self._moved.clear()
        try:
            await self._round([one for one in self._subscriptions if one not in self._being_read])
        except Exception:
            # Nobody awaits this task: an error that ended it would leave every wait hanging.
            log.exception("A round of polling failed; the next begins in %g s", self.interval)

    async def _round(self, subscriptions: list[Subscription]) -> None:
        if self._lists_are_worth_it(len(subscriptions)):
            try:
                subscriptions = await self._without_active(subscriptions)
                subscriptions = await self._without_succeeded(subscriptions)
            except _NO_LISTS as error:
                log.info("Executions can not be listed now, so each is read by id: %s", error)
                self._list_requests = math.inf
            except errors.ServiceUnexpectedResponseError as error:
                # One odd execution spoils a list for all; by id it spoils only its own wait.
                log.warning("A list of executions can not be read, so each is read by id: %s", error)
            except errors.ServiceApiError as error:
                await self._failed_to_list(subscriptions, error)
                return
            except Exception:
                log.exception("A list of executions can not be read, so each is read by id")
        self._read_each(subscriptions)

    def _lists_are_worth_it(self, waits: int) -> bool:
        self._rounds_since_listing += 1
        is_stale = self._rounds_since_listing > ROUNDS_BEFORE_LISTING_AGAIN
        is_wanted = waits > (len(ACTIVE_STATUSES) if is_stale else self._list_requests)
        if is_wanted:
            self._rounds_since_listing = 0
        return is_wanted

    async def _without_active(self, subscriptions: list[Subscription]) -> list[Subscription]:
        # Lists longer than this cost more than reading each wait's execution by id.
        limit = self.config.page_size * len(subscriptions)
        oldest = min(one.number for one in subscriptions)
        answers = await asyncio.gather(
            *(self._in_thread(self._active_ids, status, oldest, limit) for status in ACTIVE_STATUSES),
            return_exceptions=True,  # so that the next round begins when all of this one's lists have ended
        )
        lists = [_raised(answer) for answer in answers]
        self._list_requests = sum(1 + len(ids) // self.config.page_size for ids in lists)
        active = {id_ for ids in lists for id_ in ids}
        rest = []
        for one in subscriptions:
            if one.watch.execution_id in active:
                one.watch.saw_active()
                self._to_read.pop(one, None)
            else:
                rest.append(one)
        return rest

    async def _without_succeeded(self, subscriptions: list[Subscription]) -> list[Subscription]:
        if len(subscriptions) < ENDED_WORTH_LISTING:
            return subscriptions
        oldest = min(one.number for one in subscriptions)
        wanted = {one.watch.execution_id for one in subscriptions}
        found = await self._in_thread(self._succeeded, oldest, 10 * len(subscriptions), wanted)
        await self._judge_each(
            (one for one in subscriptions if one.watch.execution_id in found),
            lambda watch: watch.saw(found[watch.execution_id], self._client),
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

    async def _failed_to_list(self, subscriptions: list[Subscription], error: Exception) -> None:
        log.warning("Executions could not be listed: %s", error)
        await self._judge_each(subscriptions, lambda watch: watch.failed_to_look(error))

    async def _judge_each(
        self, subscriptions: Iterable[Subscription], judge: Callable[[Watch], Outcome | None]
    ) -> None:
        for count, one in enumerate(subscriptions, 1):
            with one.guarded():
                await self._deliver(one, judge(one.watch))
            if count % HANDLE_TOGETHER == 0:
                await asyncio.sleep(0)

    def _read_each(self, subscriptions: Iterable[Subscription]) -> None:
        for one in subscriptions:
            # Those that have gone, or whose last look has begun, while lists were read.
            if not one.future.done() and one not in self._being_read:
                self._to_read.setdefault(one)
        self._read_next()

    def _read_first(self, one: Subscription) -> None:
        if one not in self._being_read:
            self._to_read[one] = None
            self._to_read.move_to_end(one, last=False)
            self._read_next()

    def _read_next(self) -> None:
        while self._to_read and len(self._being_read) < MAX_READS_AT_ONCE:
            one, _ = self._to_read.popitem(last=False)
            self._being_read[one] = asyncio.create_task(self._read(one))

    async def _read(self, one: Subscription) -> None:
        try:
            with one.guarded():
                await self._deliver(one, await self._in_thread(one.watch.look, self._client))
        finally:
            del self._being_read[one]
        self._read_next()

    async def _deliver(self, one: Subscription, outcome: Outcome | None) -> None:
        if outcome is not None:
            is_stale = outcome.verdict == "unobservable" and await self._has_moved(one.service_conn_id)
            one.end(None if is_stale else outcome)

    async def _follow_connections(self) -> None:
        while True:
            await asyncio.sleep(CONNECTION_CHECK_SECONDS)
            self._moved.clear()
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
