"""The shared poller: one loop of requests serves all waits of an event loop for the same server, key and interval.

A round lists the active executions, newest first, 250 a page, and reads by id only those that are no longer among
them. As long as that needs fewer requests, it reads each execution by id.

An answer delays only the waits that it concerns: a round waits neither for its reads by id nor for a list that hangs.
So reads are made a few at once, and the slow ones apart (:class:`Reads`). Nor does an error in one wait end another, or
the poller: nobody awaits its task, so every wait would hang.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import Context, copy_context
from functools import partial
from http import HTTPStatus
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from airflow_provider_service._airflow import metrics
from airflow_provider_service._airflow.connection import config_for
from airflow_provider_service._core.arguments import LEAST_POLL_SECONDS
from airflow_provider_service._core.daemon_threads import in_daemon_thread
from airflow_provider_service._core.waits.outcome import Outcome
from airflow_provider_service._core.waits.watch import PAGE_RETRY_SECONDS, PollStatistics, Watch
from airflow_provider_service.client import ServiceClient, ServiceConfig, errors
from airflow_provider_service.client._clock import Timer, clock
from airflow_provider_service.client._constraints import ACTIVE_STATUSES
from airflow_provider_service.client.resources._executions import number_of

if TYPE_CHECKING:
    from airflow_provider_service._core.waits.watch import Wait
    from airflow_provider_service.client._constraints import ExecutionStatus
    from airflow_provider_service.client.models import Execution

log = logging.getLogger(__name__)

#: Seconds after its deadline within which a wait may still see that its execution has just ended.
LAST_READ_SECONDS = 1.0
#: Seconds by which deadlines may differ to be polled together.
DEADLINE_GRAIN_SECONDS = 0.05
#: Seconds for which a new poller gathers waits before its first round, so that they share it.
GATHERING_SECONDS = 0.2
#: Rounds after which lists are tried again although they cost more than single reads, or were refused.
ROUNDS_BEFORE_LISTING_AGAIN = 10
#: Ended executions from which on they are looked up in lists, too.
ENDED_WORTH_LISTING = 5
#: Seconds after which a wait in the triggerer notices that its connection has changed.
CONNECTION_CHECK_SECONDS = 60.0
#: Rounds in which a list may be refused while the service answers others, before executions are read by id.
MAX_PARTIAL_ROUNDS = 3
#: Waits that are judged and woken in a group, with a pause between groups so that the event loop stays responsive.
HANDLE_TOGETHER = 50
#: Reads by id at once.
MAX_READS_AT_ONCE = 5
#: Slow reads at once in addition to those; each may take as long as the connection's timeout allows.
MAX_SLOW_READS_AT_ONCE = 8
#: Seconds after which a read no longer delays other reads, or a list no longer delays a round.
READ_PATIENCE_SECONDS = 5.0
_THREAD_NAME = "service-poller"

#: The waits of an event loop share its pollers, and its reads of connections that are under way.
_pollers: WeakKeyDictionary[asyncio.AbstractEventLoop, list[Poller]] = WeakKeyDictionary()
_configs: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Task[ServiceConfig]]] = WeakKeyDictionary()


async def poller_of(service_conn_id: str, interval: float) -> Poller:
    config = await shared_config_for(service_conn_id)
    pollers = _pollers.setdefault(asyncio.get_running_loop(), [])
    for poller in pollers:
        if (poller.config, poller.interval) == (config, interval):
            return poller
    pollers.append(Poller(config, interval))
    return pollers[-1]


async def shared_config_for(service_conn_id: str) -> ServiceConfig:
    """Return the current settings of a connection. Simultaneous callers share one read of it."""
    loop = asyncio.get_running_loop()
    configs = _configs.setdefault(loop, {})
    reading = configs.get(service_conn_id)
    if reading is None:
        reading = Context().run(loop.create_task, config_for(service_conn_id))
        configs[service_conn_id] = reading
        reading.add_done_callback(lambda _: configs.pop(service_conn_id))
    return await asyncio.shield(reading)


class Waiter(Watch):
    __slots__ = ("_context", "future", "is_last_poll", "is_slow")

    explains = False  # the task does that when it continues in a worker

    def __init__(self, wait: Wait) -> None:
        super().__init__(wait)
        #: Yields the outcome, or None if the connection has changed.
        self.future: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()
        self.is_last_poll = self.is_slow = False
        # Airflow uses the context to find the log of the task. The poller serves many tasks, so it has no such context.
        self._context = copy_context()

    def saw_active(self) -> None:
        if self.in_trouble:
            self._context.copy().run(super().saw_active)

    def poll_failed(
        self, error: Exception, *, is_quiet: bool = False, others_succeeded_at: float = -math.inf
    ) -> Outcome | None:
        failed = partial(super().poll_failed, error, is_quiet=is_quiet, others_succeeded_at=others_succeeded_at)
        return self._context.copy().run(failed)

    @property
    def number(self) -> int:
        """The id of the execution as a number; 0 if it is not a number."""
        return number_of(self.execution_id)

    def end(self, outcome: Outcome | None) -> None:
        """End the wait with an outcome, unless it has already been left."""
        if not self.future.done():
            self.future.set_result(outcome)

    def end_overdue(self) -> None:
        self.end(self.timed_out())

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Keep an error in this wait from affecting other waits. The wait continues until its deadline."""
        try:
            yield
        except Exception:
            log.exception("The wait for execution %s could not be polled", self.execution_id)


class Listed(NamedTuple):
    """What the lists of a round show: the active executions' workflows, and the succeeded executions, by id."""

    active: dict[str, str | None]
    succeeded: dict[str, Execution]
    error: errors.ServiceError | None


class Poller:
    """Serves the waits of one server, key and interval within one event loop."""

    def __init__(self, config: ServiceConfig, interval: float) -> None:
        self.config, self.interval = config, interval
        self._client = ServiceClient(config.one_try())
        self._retrying_client = ServiceClient(config.model_copy(update={"retry_deadline": PAGE_RETRY_SECONDS}))
        self._retrying_client.transport.retry_level = logging.DEBUG  # the waits log that reading fails
        self._statistics = PollStatistics(self._client, self._retrying_client)
        self._waits: set[Waiter] = set()
        self._reads = Reads(self._read)
        self._task: asyncio.Task[None] | None = None
        self._alarm: Timer | None = None
        self._alarm_due = math.inf
        self._listing: asyncio.Task[Listed] | None = None
        self._last_item = 0.0
        self._list_requests: float = len(ACTIVE_STATUSES)
        self._rounds_since_listing = 0
        self._partial_rounds = 0
        self._moved: dict[str, bool] = {}

    def join(self, waiter: Waiter) -> None:
        self._waits.add(waiter)
        if self._task is None:
            # The task must not run in the context of the trigger that happens to come first.
            self._task = Context().run(asyncio.get_running_loop().create_task, self._run())
        self._set_alarm(waiter.seconds_left)

    def leave(self, waiter: Waiter) -> None:
        waiter.future.cancel()
        self._waits.discard(waiter)
        self._reads.drop(waiter)

    async def _run(self) -> None:
        follower = asyncio.create_task(self._follow_connections())
        try:
            await self._guarded(clock().async_sleep(min(GATHERING_SECONDS, self.interval)))
            # The poller stays while requests are open, so that no second poller adds further ones.
            while self._waits or self._reads or self._listing:
                await self._guarded(self._poll())
        finally:
            for pollers in _pollers.values():
                if self in pollers:
                    pollers.remove(self)
            _report_active()
            follower.cancel()
            self._cancel_alarm()
            if self._listing:
                self._listing.cancel()
            self._client.close()
            self._retrying_client.close()

    async def _guarded(self, step: Awaitable[None]) -> None:
        try:
            await step
        except Exception:
            log.exception("Polling failed; the next poll is in %g s", self.interval)
            await asyncio.sleep(max(self.interval, LEAST_POLL_SECONDS))  # the clock may be what failed

    async def _poll(self) -> None:
        started = clock().monotonic()
        with self._statistics.poll():
            self._moved.clear()
            self._poll_at_deadlines()  # the clock may have been set
            idle = [waiter for waiter in self._waits if not self._reads.is_open(waiter)]
            await self._round([waiter for waiter in idle if not waiter.asked_pause])
        _report_active()
        pause = started + self.interval - clock().monotonic()
        await clock().async_sleep(max(pause, LEAST_POLL_SECONDS), self._nearest_deadline())

    def _set_alarm(self, seconds: float) -> None:
        """Make sure that the deadlines are checked within some seconds."""
        due = clock().monotonic() + seconds
        if due < self._alarm_due:
            self._cancel_alarm()
            self._alarm_due, self._alarm = due, clock().call_later(seconds, self._poll_at_deadlines)

    def _cancel_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_due, self._alarm = math.inf, None

    def _poll_at_deadlines(self) -> None:
        self._cancel_alarm()
        now, nearest = clock().now(), math.inf
        for waiter in self._waits:
            if waiter.deadline > now:
                nearest = min(nearest, waiter.deadline)
            elif not waiter.is_last_poll:
                waiter.is_last_poll = True
                self._reads.add(waiter, first=True)
                clock().call_later(LAST_READ_SECONDS, waiter.end_overdue)
        self._set_alarm(max(nearest - now, DEADLINE_GRAIN_SECONDS))

    def _nearest_deadline(self) -> float:
        return min((waiter.deadline for waiter in self._waits), default=math.inf)

    async def _round(self, waits: list[Waiter]) -> None:
        if self._listing or self._lists_are_worth_it(len(waits)):
            error, began = None, clock().monotonic()
            try:
                waits, error = await self._not_listed(waits)
            except Exception:
                log.exception("A list of executions cannot be read, so each is read by id")
            is_partial = error is not None and self._client.transport.succeeded_at >= began
            self._partial_rounds = self._partial_rounds + 1 if is_partial else 0
            if error is not None:
                if error.final or isinstance(error, errors.ServiceForbiddenError):
                    # Reading by id either works, or shows what is wrong for each wait.
                    log.info("Executions cannot be listed now, so each is read by id: %s", error)
                    self._list_requests = math.inf
                elif _may_be_of_lists_only(error) or self._partial_rounds > MAX_PARTIAL_ROUNDS:
                    log.warning("A list of executions cannot be read, so each is read by id: %s", error)
                else:
                    is_slow = isinstance(error, errors.ServiceTimeoutError)
                    last = self._client.transport.succeeded_at
                    failed = methodcaller("poll_failed", error, is_quiet=is_slow, others_succeeded_at=last)
                    await self._judge_each(waits, failed)
                    if not is_slow:
                        return
        for waiter in waits:
            # Skip the waits that ended while the lists were read.
            if not waiter.future.done():
                self._reads.add(waiter)

    def _lists_are_worth_it(self, waits: int) -> bool:
        self._rounds_since_listing += 1
        is_stale = self._rounds_since_listing > ROUNDS_BEFORE_LISTING_AGAIN
        is_wanted = waits > (len(ACTIVE_STATUSES) if is_stale else self._list_requests)
        if is_wanted:
            self._rounds_since_listing = 0
        return is_wanted

    async def _not_listed(self, waits: list[Waiter]) -> tuple[list[Waiter], errors.ServiceError | None]:
        """Judge the waits whose executions are in the lists, and return the others, and why a list is incomplete."""
        listed = await self._listed(waits)
        if listed is None:
            if waits:  # the poller may be running only because a list is still open
                log.warning("A list of executions is slow, so each is read by id in the meantime")
            return waits, None
        unlisted = []
        for waiter in waits:
            if waiter.execution_id in listed.active and waiter.may_be_of(listed.active[waiter.execution_id]):
                waiter.saw_active()
                self._reads.drop(waiter)
            elif waiter.execution_id not in listed.succeeded:
                unlisted.append(waiter)
        await self._judge_each(
            (waiter for waiter in waits if waiter.execution_id in listed.succeeded),
            lambda waiter: waiter.saw(listed.succeeded[waiter.execution_id], self._client),
        )
        return unlisted, listed.error

    async def _listed(self, waits: list[Waiter]) -> Listed | None:
        """Read the lists, or continue with those of an earlier round. Return None while they hang."""
        if self._listing is None:
            self._last_item = clock().monotonic()
            self._listing = asyncio.create_task(self._list_all(waits))
        while not self._listing.done() and (left := self._last_item + READ_PATIENCE_SECONDS - clock().monotonic()) > 0:
            with suppress(asyncio.TimeoutError):
                await clock().wait_for(asyncio.wait([self._listing]), left)
        if not self._listing.done():
            return None
        listing, self._listing = self._listing, None
        return listing.result()

    async def _list_all(self, waits: list[Waiter]) -> Listed:
        # Lists longer than this cost more than reading each wait's execution by id.
        limit = self.config.page_size * len(waits)
        oldest = min(waiter.number for waiter in waits)
        began = clock().monotonic()
        lists: dict[ExecutionStatus, dict[str, str | None]] = {status: {} for status in ACTIVE_STATUSES}
        failed = await self._read_lists(self._client, lists, oldest, limit)
        again = {status: lists[status] for status, error in failed.items() if _is_refusal(error)}
        if again and self._client.transport.succeeded_at >= began:
            failed = {status: error for status, error in failed.items() if status not in again}
            failed |= await self._read_lists(self._retrying_client, again, oldest, limit)
        self._list_requests = sum(1 + len(ids) // self.config.page_size for ids in lists.values())
        active = {id_: workflow_id for ids in lists.values() for id_, workflow_id in ids.items()}
        succeeded: dict[str, Execution] = {}
        missing = {waiter.execution_id: waiter.number for waiter in waits if waiter.execution_id not in active}
        if not failed and len(missing) >= ENDED_WORTH_LISTING:
            ended: dict[ExecutionStatus, dict[str, Execution]] = {"success": succeeded}
            oldest = min(missing.values())
            failed = await self._read_lists(self._retrying_client, ended, oldest, 10 * len(missing), wanted=missing)
        return Listed(active, succeeded, next(iter(failed.values()), None))

    async def _read_lists(
        self,
        client: ServiceClient,
        lists: Mapping[ExecutionStatus, dict[str, Any]],
        oldest: int,
        limit: int,
        wanted: Container[str] | None = None,
    ) -> dict[ExecutionStatus, errors.ServiceError]:
        """Add to each list what its pages show; return why lists could not be read to their ends, if so."""

        def read(status: ExecutionStatus, shown: dict[str, Any]) -> None:
            # Only texts if possible: thousands of other objects that live for a whole round would trigger the garbage
            # collector, which blocks the event loop.
            for execution in self._list(client, status, oldest, limit):
                if wanted is None:
                    shown[execution.id] = execution.workflow_id
                elif execution.id in wanted:
                    shown[execution.id] = execution

        answers = await asyncio.gather(
            *(in_daemon_thread(read, status, shown, name=_THREAD_NAME) for status, shown in lists.items()),
            return_exceptions=True,  # so that the next round begins only when all lists of this one have ended
        )
        return {status: _service_error(error) for status, error in zip(lists, answers, strict=True) if error}

    def _list(self, client: ServiceClient, status: ExecutionStatus, oldest: int, limit: int) -> Iterator[Execution]:
        self._last_item = clock().monotonic()
        for execution in client.executions.list(status=status, limit=limit):
            self._last_item = clock().monotonic()
            if 0 < execution.number < oldest:
                return
            if execution.status == status:
                yield execution

    async def _judge_each(self, waits: Iterable[Waiter], judge: Callable[[Waiter], Outcome | None]) -> None:
        for count, waiter in enumerate(waits, 1):
            with waiter.guarded():
                await self._deliver(waiter, judge(waiter))
            if count % HANDLE_TOGETHER == 0:
                await asyncio.sleep(0)

    async def _read(self, waiter: Waiter) -> None:
        with waiter.guarded():
            await self._deliver(waiter, await in_daemon_thread(waiter.poll, self._client, name=_THREAD_NAME))

    async def _deliver(self, waiter: Waiter, outcome: Outcome | None) -> None:
        if outcome is not None:
            is_stale = outcome.verdict == "unobservable" and await self._has_moved(waiter.service_conn_id)
            waiter.end(None if is_stale else outcome)

    async def _follow_connections(self) -> None:
        while True:
            await self._guarded(self._check_connections())

    async def _check_connections(self) -> None:
        await clock().async_sleep(CONNECTION_CHECK_SECONDS, self._nearest_deadline())
        self._moved.clear()
        for service_conn_id in {waiter.service_conn_id for waiter in self._waits}:
            if await self._has_moved(service_conn_id):
                log.info("Connection '%s' has changed; its waits move to the new settings", service_conn_id)
                for waiter in [waiter for waiter in self._waits if waiter.service_conn_id == service_conn_id]:
                    waiter.end(None)

    async def _has_moved(self, service_conn_id: str) -> bool:
        """Whether a connection has changed; each connection is read once per check."""
        if service_conn_id not in self._moved:
            try:
                self._moved[service_conn_id] = await config_for(service_conn_id) != self.config
            except Exception:
                log.warning(
                    "Connection '%s' could not be read again; its waits continue", service_conn_id, exc_info=True
                )
                self._moved[service_conn_id] = False
        return self._moved[service_conn_id]


def _may_be_of_lists_only(error: errors.ServiceError) -> bool:
    """Whether executions may be readable by id: the service answers, but not with this list."""
    # One malformed execution makes a list unreadable for all; read by id, it affects only its own wait. And the query
    # for a list, which counts executions, may take longer than the service's database or a proxy allows.
    if isinstance(error, errors.ServiceUnavailableError):
        return error.status == HTTPStatus.GATEWAY_TIMEOUT
    return isinstance(error, errors.ServiceUnexpectedResponseError | errors.ServiceServerError)


def _is_refusal(error: errors.ServiceError) -> bool:
    """Whether the service as a whole turned a request away, and may accept the next one."""
    return error.repeat_may_help and not (_may_be_of_lists_only(error) or isinstance(error, errors.ServiceTimeoutError))


def _service_error(error: BaseException) -> errors.ServiceError:
    if isinstance(error, errors.ServiceError):
        return error
    raise error


def _report_active() -> None:
    waits = sum(len(poller._waits) for pollers in _pollers.values() for poller in pollers)
    metrics.report_of_host(metrics.WAITS_ACTIVE, waits)


class _Lane(OrderedDict[Waiter, None]):
    """The waiters whose reads are queued, in order, and those whose reads are open."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.open: set[Waiter] = set()
        self.limit = limit


class Reads:
    """Reads that are queued and reads that are open, within one event loop.

    A read that is open for longer than ``READ_PATIENCE_SECONDS`` makes room for another, unless too many are slow. The
    next time, a waiter that was slow queues behind the other slow ones.
    """

    def __init__(self, read: Callable[[Waiter], Awaitable[None]]) -> None:
        self._read = read
        self._lane, self._slow_lane = _Lane(MAX_READS_AT_ONCE), _Lane(MAX_SLOW_READS_AT_ONCE)
        # The event loop keeps only weak references to tasks.
        self._tasks: set[asyncio.Task[None]] = set()

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def is_open(self, waiter: Waiter) -> bool:
        return waiter in self._lane.open or waiter in self._slow_lane.open

    def add(self, waiter: Waiter, *, first: bool = False) -> None:
        if self.is_open(waiter):
            return
        lane = self._slow_lane if waiter.is_slow and not first else self._lane
        lane.setdefault(waiter)
        if first:
            self._slow_lane.pop(waiter, None)
            lane.move_to_end(waiter, last=False)
        self._start()

    def drop(self, waiter: Waiter) -> None:
        """Cancel the read of this waiter if it has not begun."""
        self._lane.pop(waiter, None)
        self._slow_lane.pop(waiter, None)

    def _start(self) -> None:
        for waiter in [waiter for waiter in self._lane.open if waiter.is_slow]:
            if len(self._slow_lane.open) < self._slow_lane.limit:
                self._lane.open.remove(waiter)
                self._slow_lane.open.add(waiter)
        for lane in (self._lane, self._slow_lane):
            while lane and len(lane.open) < lane.limit:
                waiter, _ = lane.popitem(last=False)
                lane.open.add(waiter)
                # The task must not run in the context of the trigger that happens to call this.
                task = Context().run(asyncio.create_task, self._run(waiter))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _run(self, waiter: Waiter) -> None:
        begin = clock().monotonic()
        patience = clock().call_later(READ_PATIENCE_SECONDS, partial(self._set_apart, waiter))
        try:
            await self._read(waiter)
        finally:
            patience.cancel()
            waiter.is_slow = clock().monotonic() - begin >= READ_PATIENCE_SECONDS
            self._lane.open.discard(waiter)
            self._slow_lane.open.discard(waiter)
        self._start()

    def _set_apart(self, waiter: Waiter) -> None:
        waiter.is_slow = True
        self._start()
