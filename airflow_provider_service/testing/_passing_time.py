"""A clock that lets waits end at once: when all threads of the process wait, it jumps to the next event.

The package and a simulated service share this clock. Events are the end of a pause or of a timeout, and the next action
of the service while it holds a request open.

Why it looks at all threads: a start, its search, a poller and the service run at the same time, and each has a deadline
by this clock. A clock that only runs faster, or that jumps whenever one thread waits, lets these deadlines pass while
others work: calls time out that the service would answer in milliseconds. So time may only pass while nobody works.
Whether somebody does is asked in this order, because each answer has a gap that the next one closes:

1. Has everybody who was woken noticed it, and has the service finished with each request that it does not hold open?
2. Has no other thread taken processor time for a moment?
3. Does no packet wait in the kernel, whose delivery would make a thread ready?
4. Is no other thread ready to run? On a busy machine, a thread may be ready for long before it gets its turn.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from airflow_provider_service.client._clock import Clock, using
from airflow_provider_service.simulator._clock import real_time
from airflow_provider_service.simulator._server import is_any_request_processed

if TYPE_CHECKING:
    from airflow_provider_service.simulator import ServiceSimulator
    from airflow_provider_service.simulator._state import State

T = TypeVar("T")

# Where Linux shows threads and packets. Elsewhere, each thread that is ready must get its turn within the pause between
# two checks of the others.
_THREADS = Path("/proc/self/task")
_BREATH_SECONDS = 0.001 if _THREADS.exists() else 0.02
_NETWORK = Path("/proc/net/softnet_stat")
# A thread that wakes takes more processor time than this. The difference of two readings is up to 2,000 ns where no
# thread runs, and more the slower the machine is and the more threads the process has.
_NOISE_NANOSECONDS = 4_000
# Time stands for as long for somebody who has been woken, and for requests that are processed: on a busy machine, a
# thread may look idle, and layers around a simulator pause in real time. What never ends must not stop time forever.
_PATIENCE_SECONDS = 5.0


@dataclass(eq=False)
class _Sleeper:
    """A thread or task that pauses; times are in seconds since the epoch."""

    due: float
    pause: float
    deadline: float  # end of the polling to which the pause belongs; infinity if nothing is polled
    wake: Callable[[], object]
    is_task: bool  # of an event loop, so that its thread does not sleep
    is_over: bool = False
    thread: int = field(default_factory=threading.get_ident)
    woken: float = field(default_factory=time.monotonic)

    def end(self) -> None:
        """End the pause; safe to repeat, which wakes the thread or task once more."""
        if not self.is_over:
            self.is_over, self.woken = True, time.monotonic()
        self.wake()

    def may_sleep_until(self, change: float, others: float) -> float:
        """Return the end of the last pause in a row before the service changes, or another thread wakes."""
        if self.deadline == math.inf or change < self.due:
            return self.due
        pauses = math.ceil((min(change, self.deadline) - self.due) / self.pause)
        if others < math.inf:
            pauses = min(pauses, math.floor((others - self.due) / self.pause))
        return min(self.due + max(pauses, 0) * self.pause, max(self.deadline, self.due))


class PassingTime(Clock):
    """The clock jumps when all threads wait. If it ``stands``, time passes only so, however slow the machine is."""

    def __init__(self, *, stands: bool = False) -> None:
        self._stands = stands
        self._simulators: list[ServiceSimulator] = []
        self._began, self._jumped = time.time(), 0.0
        self._sleepers: set[_Sleeper] = set()
        self._alarm, self._ringing = math.inf, threading.Lock()
        self._failure: Exception | None = None
        self._over = threading.Event()

    def now(self) -> float:
        return (self._began if self._stands else time.time()) + self._jumped

    def monotonic(self) -> float:
        return (self._began if self._stands else time.monotonic()) + self._jumped

    def wait(self, event: threading.Event, seconds: float, deadline: float = math.inf) -> bool:
        condition: threading.Condition = vars(event)["_cond"]  # so that setting the event wakes this thread, too

        def wake() -> None:
            # The handler of a signal may itself pause in a thread that pauses already, and may then hold this lock.
            if condition.acquire(blocking=False):
                condition.notify_all()
                condition.release()

        with self._sleeping(min(seconds, deadline - self.now()), deadline, wake) as sleeper, condition:
            while not (event.is_set() or sleeper.is_over):
                condition.wait(1.0)  # because the handler of a signal may set the event without a notification
        return event.is_set()

    async def async_sleep(self, seconds: float, deadline: float = math.inf) -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the event loop has been closed
                loop.call_soon_threadsafe(over.set)

        with self._sleeping(seconds, deadline, wake, is_task=True) as sleeper:
            await (asyncio.sleep(0) if sleeper.is_over else over.wait())

    async def wait_for(self, work: Awaitable[T], seconds: float) -> T:
        task, limit = asyncio.ensure_future(work), asyncio.ensure_future(self.async_sleep(seconds))
        try:
            await asyncio.wait({task, limit}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise TimeoutError
            return task.result()
        finally:
            limit.cancel()
            task.cancel()

    def call_later(self, seconds: float, call: Callable[[], object]) -> asyncio.Task[None]:
        """Schedule a call of a function in the running event loop, in an empty context."""

        async def plan() -> None:
            await self.async_sleep(seconds)
            call()

        return Context().run(asyncio.create_task, plan())

    @contextmanager
    def alarm(self, seconds: float) -> Iterator[None]:
        """Send SIGALRM to the main thread; others get no signals.

        The clock does not jump for this alone, because the block may wait for what takes real time.
        """
        if threading.current_thread() is threading.main_thread():
            self._alarm = self.now() + seconds
        try:
            yield
        finally:
            with self._ringing:  # a signal that is being sent arrives inside the block
                self._alarm = math.inf

    @contextmanager
    def _sleeping(
        self, seconds: float, deadline: float, wake: Callable[[], object], *, is_task: bool = False
    ) -> Iterator[_Sleeper]:
        sleeper = _Sleeper(self.now() + seconds, seconds, deadline, wake, is_task, is_over=seconds <= 0)
        self._sleepers.add(sleeper)
        try:
            self._require_that_time_passes()
            yield sleeper
            self._require_that_time_passes()
        finally:
            self._sleepers.discard(sleeper)

    def _require_that_time_passes(self) -> None:
        if self._failure is not None:
            raise RuntimeError(f"time cannot pass, so nobody can wait: {self._failure!r}") from self._failure

    # ------------------------------------------------------------ the thread that lets the clock jump

    def run(self) -> None:
        """Let the clock jump until :meth:`end`. A failure to do so is raised in everything that waits, now or later."""
        while not self._over.is_set():
            try:
                if not (self._sleepers or self._is_anything_held()) or self._is_anything_expected():
                    time.sleep(_BREATH_SECONDS)
                elif _all_others_rest():
                    self._jump()
            except Exception as error:  # noqa: BLE001 - raised in this thread, it would be lost
                self._failure = self._failure or error
            self._wake()

    def end(self) -> None:
        """Stop the jumps; the clocks of the services continue from there in real time."""
        self._over.set()
        for simulator in self._simulators:
            simulator.clock.source = real_time
            simulator.clock.shift(self.now() - time.time())

    def include(self, simulator: ServiceSimulator) -> None:
        simulator.clock.source = self.utcnow
        self._simulators.append(simulator)

    def _is_anything_expected(self) -> bool:
        """Whether somebody has been woken and has not noticed it yet, or a service processes a request."""
        sleepers, since = list(self._sleepers), time.monotonic() - _PATIENCE_SECONDS
        # A thread may sleep in the handler of a signal, or in its event loop.
        asleep = {sleeper.thread for sleeper in sleepers if not (sleeper.is_over or sleeper.is_task)}
        return is_any_request_processed(since) or any(
            sleeper.is_over and sleeper.woken > since and sleeper.thread not in asleep for sleeper in sleepers
        )

    def _is_anything_held(self) -> bool:
        return any(simulator.state.held for simulator in self._simulators)

    def _jump(self) -> None:
        event = min(simulator.in_loop(partial(self._next_event, simulator.state)) for simulator in self._simulators)
        sleepers = [sleeper for sleeper in list(self._sleepers) if not sleeper.is_over]
        others = min((sleeper.due for sleeper in sleepers if sleeper.deadline == math.inf), default=math.inf)
        # Polls that fail are counted, so if there may be faults, no poll is skipped.
        change = -math.inf if any(simulator.has_faults for simulator in self._simulators) else event
        due = min((sleeper.may_sleep_until(change, others) for sleeper in sleepers), default=math.inf)
        if self._is_anything_held():
            due = min(due, event)
        if due < math.inf:
            self._jumped += max(min(due, self._alarm) + 2e-6 - self.now(), 0.0)  # dates are rounded to microseconds
            for simulator in self._simulators:
                simulator.in_loop(simulator.state.wake)

    def _wake(self) -> None:
        """Wake whatever is due, or everything after a failure; repeatedly, until it has woken."""
        now = self.now()
        for sleeper in list(self._sleepers):
            if sleeper.due <= now or self._failure is not None:
                sleeper.end()
        with self._ringing:
            if self._alarm <= now:
                self._alarm = math.inf
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)

    def _next_event(self, state: State) -> float:
        state.settle()
        due = state.schedule.next_due()
        return math.inf if due is None else self.now() + (due - state.clock.now()).total_seconds()


def _all_others_rest() -> bool:
    """Whether no other thread of this process has run for a moment or is about to run."""
    before = time.process_time_ns() - time.thread_time_ns()

    def has_run() -> bool:
        return abs(time.process_time_ns() - time.thread_time_ns() - before) >= _NOISE_NANOSECONDS

    time.sleep(_BREATH_SECONDS)
    if has_run() or _is_anything_on_its_way():
        return False
    threads = _others()
    # These run, wait for their turn or for a disk, or are stopped by a debugger or a profiler.
    if any(state[0] in b"RDTt" for state in threads.values()):
        return False
    # A thread that waits for Python's lock looks idle. It got the lock while the files were read: by now it is ready,
    # or it has run, however shortly.
    return threads == _others() and not has_run()


def _is_anything_on_its_way() -> bool:
    """Whether a request or an answer waits in the kernel, which a busy machine delivers late."""
    with suppress(OSError, IndexError, ValueError):
        # In newer kernels, the twelfth number of each line is that of the packets that wait for a processor.
        return any(int(line.split()[11], 16) for line in _NETWORK.read_text().splitlines())
    return False


def _others() -> dict[str, bytes]:
    """The state of each other thread, and how often it has stopped running, as far as the system shows that."""
    states = {}
    # Paths would take twice the time, and this is done before every jump.
    for name in os.listdir(_THREADS) if _THREADS.exists() else ():  # noqa: PTH208
        with suppress(OSError), open(f"{_THREADS}/{name}/status", "rb", buffering=0) as file:  # noqa: PTH123
            status = file.read()
            states[name] = status.partition(b"State:\t")[2][:1] + status.partition(b"voluntary_ctxt_switches")[2]
    states.pop(str(threading.get_native_id()), None)
    return states


@contextmanager
def time_passes_at(simulator: ServiceSimulator, *, stands: bool = False) -> Iterator[PassingTime]:
    """Let the clock jump whenever all threads of this process wait, and with it that of a simulated service."""
    passing = PassingTime(stands=stands)
    passing.include(simulator)
    thread = threading.Thread(target=passing.run, name="service-time", daemon=True)
    thread.start()
    try:
        with using(passing):
            yield passing
    finally:
        passing.end()
        thread.join()
