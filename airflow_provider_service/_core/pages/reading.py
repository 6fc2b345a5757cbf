"""Read an execution for a page, in one short request without retries, and share reads among viewers.

Results are kept for a while, and simultaneous viewers share a read, so that pages which many people leave open cost the
service and the API server no more than one does.
"""

from __future__ import annotations

import asyncio
import json
import queue
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from airflow_provider_service._core.daemon_threads import DaemonPool, in_background
from airflow_provider_service._core.pages.execution_view import ExecutionView, OutputOf, view_of
from airflow_provider_service._core.pages.executions import EARLIEST, OpenExecution, plausible
from airflow_provider_service._core.runs.output import MAX_SHOWN_MIB, read_small
from airflow_provider_service._core.runs.searching import (
    KEY_IN_HEADERS,
    RUN_KEY_FIELD,
    RUN_KEY_HEADER,
    StartingCall,
    starting_call,
)
from airflow_provider_service._core.runs.start_methods.mcp import KEY_IN_FORM
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._constraints import ACTIVE_STATUSES
from airflow_provider_service.client._execution_data import output_of, parent_execution_id, read_state, starting_items
from airflow_provider_service.client._http.redaction import HIDDEN, TOKENS, redacted
from airflow_provider_service.client.errors import (
    ServiceAnswerTooLargeError,
    ServiceError,
    ServiceInvalidRequestError,
    ServiceNotFoundError,
    ServiceServerError,
)

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceConfig
    from airflow_provider_service.client.models import Execution


T = TypeVar("T")

#: Minimum number of seconds between the beginnings of two reads of the same thing.
LEAST_PAUSE_SECONDS = 2.0
#: The share of one core that repeated reads of the same thing may cost.
CPU_SHARE = 0.05
#: Default number of cached results.
CAPACITY = 200
#: Maximum number of simultaneous reads of one group, which limits the threads that a silent service can occupy.
MAX_READS = 8
#: Maximum number of quick reads that wait for one of as many threads; further ones are refused.
MAX_WAITING = 150
#: Held while a page is computed, so that Airflow's own requests wait for at most one such computation.
COMPUTING = threading.Lock()


@dataclass
class _Entry(Generic[T]):
    began: float
    last: T | None
    reading: Future[T] = field(init=False)
    cost: float = 0.0


class TooManyReadsError(Exception):
    """Too many reads are under way for another one to begin now."""


class Snapshots(Generic[T]):
    """Caches the last result of each read. Safe to use from several threads and event loops.

    A value that equals the last one is the last one, so that what is made of it need not be made again.

    :param keep: returns the seconds for which a value stays valid, at least; longer if a read is costly.
    :param processes: number of processes that read the same things, each with its own snapshots; the least pause is
        that many times as long, so that together they read no more often.
    :param capacity: number of cached results; the least recently used one is removed first.
    """

    def __init__(self, keep: Callable[[T], float], *, processes: int = 1, capacity: int = CAPACITY) -> None:
        self._keep, self._capacity = keep, capacity
        self._pause = LEAST_PAUSE_SECONDS * max(1, processes)
        self._entries: OrderedDict[Hashable, _Entry[T]] = OrderedDict()
        self._lock = threading.Lock()
        self._under_way: Counter[Hashable] = Counter()
        self._quick = DaemonPool(MAX_READS, MAX_WAITING, name="service-page")

    def look(self, key: Hashable, read: Callable[[T | None], T], group: Hashable = None) -> Future[T]:
        """Return the latest value, or that of a read that begins now; ``read`` is given the last value.

        Reads of a ``group`` are slow together, as those of a connection; one without a group is quick, and may wait.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and self._is_good(entry):
                self._entries.move_to_end(key)
                return entry.reading
            fresh = _Entry(clock().monotonic(), _value_of(entry))
            fresh.reading = self._begin(partial(self._read, read, fresh), group)
            self._entries[key] = fresh
            self._entries.move_to_end(key)
            while len(self._entries) > self._capacity:
                self._entries.popitem(last=False)
        return fresh.reading

    async def in_time(self, until: float, group: Hashable, key: Hashable, read: Callable[[], T]) -> T | None:
        """Wait for the latest value until a time of the clock; then return what was known before, if anything was."""
        with suppress(TimeoutError, TooManyReadsError):
            found = self.look(key, lambda _: read(), group)
            if found.done():
                return found.result()
            return await clock().wait_for(asyncio.wrap_future(found), until - clock().monotonic())
        with self._lock:
            return _value_of(self._entries.get(key))

    def _begin(self, read: Callable[[], T], group: Hashable) -> Future[T]:
        if group is None:
            try:
                return self._quick.submit(read)
            except queue.Full:
                raise TooManyReadsError("too many pages are open") from None
        if self._under_way[group] >= MAX_READS:
            raise TooManyReadsError("the service answers slowly, and too many pages wait for it")
        reading = in_background(self._read_of_group, read, group, name="service-page")
        self._under_way[group] += 1
        return reading

    def _is_good(self, entry: _Entry[T]) -> bool:
        if not entry.reading.done():
            return True
        failed = entry.reading.exception() is not None
        keep = 0.0 if failed else self._keep(entry.reading.result())
        return clock().monotonic() - entry.began < max(keep, self._pause, entry.cost / CPU_SHARE)

    def _read_of_group(self, read: Callable[[], T], group: Hashable) -> T:
        try:
            return read()
        finally:
            with self._lock:
                self._under_way[group] -= 1
                if not self._under_way[group]:
                    del self._under_way[group]

    @staticmethod
    def _read(read: Callable[[T | None], T], entry: _Entry[T]) -> T:
        began = time.thread_time()
        try:
            value = read(entry.last)
            return entry.last if value == entry.last and entry.last is not None else value
        finally:
            entry.cost = time.thread_time() - began


def _value_of(entry: _Entry[T] | None) -> T | None:
    if entry is None:
        return None
    if not entry.reading.done() or entry.reading.exception() is not None:
        return entry.last
    return entry.reading.result()


#: Seconds that a read may take; a page does not wait longer.
READ_SECONDS = 10.0
#: Seconds for which the last state of an ended execution is kept, which hardly changes.
KEEP_ENDED_SECONDS = 60.0
#: Maximum number of executions that a page lists in each state in which they are open.
MAX_OPEN = 1_000
#: Maximum number of items of a node, and of characters, to show if data may be shown.
MAX_ITEMS, MAX_OUTPUT_CHARS = 3, 2_000

# Names under which a node may pass on a secret of the call.
_SECRET_NAMES = ("authorization", "cookie", "proxy-authorization", RUN_KEY_HEADER, RUN_KEY_FIELD)
# Headers that hold no secret; a webhook may take its own from any other.
_HARMLESS_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "accept-language",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
        "user-agent",
    }
)
# Modes of executions that show the call that they repeat or test.
_REPEATING = ("retry", "manual", None)


@dataclass(frozen=True)
class ExecutionReading:
    base_url: str | None = None
    view: ExecutionView | None = None
    call: StartingCall | None = None  # None while its data does not show it
    html: str = ""  # of its nodes
    error: str | None = None  # why the last read failed
    is_gone: bool = False
    is_large: bool = False  # too large to be read with its data
    data_error: str | None = None  # why its data cannot be read, although its state can
    conn_id: str | None = None
    number: int = field(init=False, compare=False, default_factory=count().__next__)  # of the reading


def keep_seconds(seen: ExecutionReading) -> float:
    """Return for how many seconds the result of a read stays valid."""
    return KEEP_ENDED_SECONDS if seen.view is not None and seen.view.has_ended and seen.error is None else 0.0


def see(
    config_of: Callable[[], ServiceConfig],
    execution_id: str,
    last: ExecutionReading | None,
    *,
    base_url: str,
    show_data: bool,
) -> ExecutionReading:
    """Read an execution once and, if another one has started it, that one; again without its data if this is too large.

    At another ``base_url`` than that at which it was started, the same id names another execution.
    """
    last = last or ExecutionReading()
    try:
        config = config_of()
    except Exception as error:  # noqa: BLE001 - a secrets backend can raise anything
        return replace(last, error=f"The connection cannot be used: {error_text(error)}")
    if config.base_url != base_url:
        return ExecutionReading(
            error=f"The connection now leads to {config.base_url}, but the execution was started at {base_url}. "
            "It is not read from there."
        )
    data_error = None
    try:
        try:
            execution = _read(config, execution_id, is_large=last.is_large)
        except ServiceAnswerTooLargeError:
            last = replace(last, is_large=True)
            execution = _read(config, execution_id, is_large=True)
        except ServiceServerError as error:
            if error.repeat_may_help:
                raise
            data_error = str(error)
            execution = _read(config, execution_id, is_large=True)
        call = last.call or _starting_call(config, execution)
    except ServiceNotFoundError:
        return replace(last, base_url=base_url, is_gone=True, error=None)
    except ServiceError as error:
        return replace(last, base_url=base_url, error=str(error))
    shown = _outputs(execution, config) if show_data else None
    with COMPUTING:
        view = view_of(execution, secrets=config.keys, output_of=shown)
    if last.is_large and last.view is not None and view.drawing is None:
        view = replace(view, drawing=last.view.drawing)
    return ExecutionReading(base_url, view, call, is_large=last.is_large, data_error=data_error)


@dataclass(frozen=True)
class OpenReading:
    """What a service lists as open, by the id of the execution; ``error`` says why that is not known."""

    base_url: str = ""
    listed: Mapping[str, OpenExecution] = field(default_factory=dict)
    error: str | None = None
    number: int = field(init=False, compare=False, default_factory=count().__next__)  # of what is listed


def see_open(service_conn_id: str, config_of: Callable[[], ServiceConfig]) -> OpenReading:
    from airflow_provider_service.client import ServiceClient

    listed: dict[str, OpenExecution] = {}
    base_url = ""
    try:
        config = config_of()
        base_url = config.base_url
        with ServiceClient(config.one_try(timeout=min(config.timeout, READ_SECONDS))) as client:
            for status in ACTIVE_STATUSES:
                with suppress(ServiceInvalidRequestError):  # an older server does not list all of them
                    listed |= {one.id: _open(one) for one in client.executions.list(status=status, limit=MAX_OPEN)}
    except Exception as error:  # noqa: BLE001 - a secrets backend can raise anything
        why = f"Which executions are open is not known from the connection {service_conn_id!r}: {error_text(error)}."
        return OpenReading(base_url, error=why)
    return OpenReading(base_url, listed)


def _open(one: Execution) -> OpenExecution:
    began = plausible(one.started_at)
    if one.status != "waiting":
        return OpenExecution(one.workflow_id, "queued" if one.status == "new" else str(one.status), began)
    until = one.wait_till if one.wait_till is not None and one.wait_till > EARLIEST else None
    return OpenExecution(one.workflow_id, "waiting", began, plausible(one.stopped_at), until)


def why_unusable(config_of: Callable[[], ServiceConfig]) -> str | None:
    try:
        config_of()
    except Exception as error:  # noqa: BLE001 - a secrets backend can raise anything
        return f"The connection cannot be used: {error_text(error)}"
    return None


def error_text(error: Exception) -> str:
    """Say why a connection could not be read, without messages of other libraries, which may contain secrets."""
    from airflow.providers.common.compat.sdk import AirflowNotFoundException

    from airflow_provider_service._airflow.connection import NO_CONNECTION

    if isinstance(error, AirflowNotFoundException):
        return NO_CONNECTION
    return str(error) if isinstance(error, ServiceError) else f"Airflow could not get it ({type(error).__name__})"


def _read(config: ServiceConfig, execution_id: str, *, is_large: bool) -> Execution:
    from airflow_provider_service.client import ServiceClient

    quick = config.one_try(timeout=min(config.timeout, READ_SECONDS))
    if not is_large:
        return read_small(quick, execution_id, MAX_SHOWN_MIB)
    with ServiceClient(quick) as client:
        return read_state(client, execution_id)[0]


def _starting_call(config: ServiceConfig, execution: Execution) -> StartingCall | None:
    """Read the call that started an execution. If the bridge started it, only its parent carries the key."""
    parent = parent_execution_id(execution)
    if parent is not None:
        try:
            execution = _read(config, parent, is_large=False)
        except (ServiceAnswerTooLargeError, ServiceNotFoundError):
            return StartingCall(None, is_shown=False)
    if next(starting_items(execution), None) is None:
        return None
    places = [place for place in (KEY_IN_HEADERS, KEY_IN_FORM) if execution.mode in (place.mode, *_REPEATING)]
    calls = [starting_call(execution, place) for place in places]
    tag = next((call.tag for call in calls if call.tag is not None), None)
    return StartingCall(tag, is_shown=all(call.is_shown for call in calls))


def _outputs(execution: Execution, config: ServiceConfig) -> OutputOf:
    secrets: dict[str, list[str]] = {name: [] for name in _SECRET_NAMES} | {config.key_header: list(config.keys)}

    def shown(node: str) -> str | None:
        items = output_of(execution, node)
        if not items:
            return None
        safe = redacted(_with_harmless_headers(items[:MAX_ITEMS]), secrets, shapes=[TOKENS])
        text = json.dumps(safe, indent=2, ensure_ascii=False)
        return text if len(text) <= MAX_OUTPUT_CHARS else f"{text[:MAX_OUTPUT_CHARS]}..."

    return shown


def _with_harmless_headers(value: Any) -> Any:
    """Copy a JSON value with the headers of calls hidden, except those that hold no secret."""
    if isinstance(value, list):
        return [_with_harmless_headers(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    copy = {name: _with_harmless_headers(inner) for name, inner in value.items()}
    if isinstance(headers := value.get("headers"), dict):
        copy["headers"] = {
            name: text if name.lower() in _HARMLESS_HEADERS else HIDDEN for name, text in headers.items()
        }
    return copy
