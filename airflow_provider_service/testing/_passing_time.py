"""Time that passes at once: when all threads of the process wait, the clock jumps to what is due next.

The clock is that of the package and of a simulated service. What is due is the end of a pause or of a time limit, and
what happens in the service while it holds a request open.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from airflow_provider_service.client._clock import Clock, using
from airflow_provider_service.simulator._clock import real_time

if TYPE_CHECKING:
    from airflow_provider_service.simulator import ServiceSimulator
    from airflow_provider_service.simulator._state import State

T = TypeVar("T")

_STATES = Path("/proc/self/task")
# Between two looks at what the other threads do. Where their states cannot be seen, whoever is ready must get its turn
# by then.
_BREATH_SECONDS = 0.001 if _STATES.exists() else 0.02
# A thread that runs, waits for its turn or for a disk, or is held by a debugger or a profiler.
_READY = "RDTt"
# The time that looking itself takes. A running thread takes longer.
_NOISE_NANOSECONDS = 1_000
# Of dates, which count microseconds.
_ROUNDING_SECONDS = 2e-6


@dataclass(eq=False)
class _Sleeper:
    """A waiter until a time, in seconds since the epoch.

    :param due: when the pause ends.
    :param pause: how long it takes.
    :param deadline: end of the polling that it is a pause of; infinity if nothing is polled.
    :param wake: ends the pause.
    """

    due: float
    pause: float
    deadline: float
    wake: Callable[[], object]
    is_over: bool = False

    def may_sleep_until(self, change: float, others: float) -> float:
        """The end of as many pauses as nothing happens in.

        :param change: when the service does something next.
        :param others: the next time at which a thread that does not poll wakes.
        """
        if self.deadline == math.inf:
            return self.due
        if change < self.due:
            return self.due
        pauses = math.ceil((min(change, self.deadline) - self.due) / self.pause)
        if others < math.inf:
            pauses = min(pauses, math.floor((others - self.due) / self.pause))
        return min(self.due + max(pauses, 0) * self.pause, max(self.deadline, self.due))


class PassingTime(Clock):
    """The clock of this process and of simulated services, which jumps when everybody waits.

    :param stands: whether time passes only in jumps, so that it does not matter how fast this machine is; otherwise
        real time passes in between.
    """

    def __init__(self, *, stands: bool = False) -> None:
        self._stands = stands
        self._simulators: list[ServiceSimulator] = []
        self._began, self._jumped = time.time(), 0.0
        self._sleepers: set[_Sleeper] = set()
        self._failure: Exception | None = None
        self._over = threading.Event()

    def now(self) -> float:
        """Seconds since the epoch, with the time that has passed at once."""
        return (self._began if self._stands else time.time()) + self._jumped

    def monotonic(self) -> float:
        """Seconds that only go forward, with the time that has passed at once."""
        return (self._began if self._stands else time.monotonic()) + self._jumped

    def wait(self, event: threading.Event, seconds: float, deadline: float = math.inf) -> bool:
        """Wait for an event, or until time has jumped."""
        condition: threading.Condition = vars(event)["_cond"]  # so that whoever sets the event wakes this thread, too

        def wake() -> None:
            # The handler of a signal may itself pause in a thread that pauses already, and may then hold this lock.
            if condition.acquire(blocking=False):
                condition.notify_all()
                condition.release()

        with self._sleeping(min(seconds, deadline - self.now()), deadline, wake) as sleeper, condition:
            while not (event.is_set() or sleeper.is_over):
                condition.wait(1.0)  # since the handler of a signal may set the event without notifying anyone
        return event.is_set()

    async def async_sleep(self, seconds: float, deadline: float = math.inf) -> None:
        """Wait until time has jumped."""
        loop, over = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the event loop has been closed
                loop.call_soon_threadsafe(over.set)

        with self._sleeping(seconds, deadline, wake) as sleeper:
            await (asyncio.sleep(0) if sleeper.is_over else over.wait())

    async def wait_for(self, work: Awaitable[T], seconds: float) -> T:
        """Limit the time of work in an event loop."""
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
        """Plan a call of a function in the running event loop, in no context."""

        async def plan() -> None:
            await self.async_sleep(seconds)
            call()

        return Context().run(asyncio.create_task, plan())

    @contextmanager
    def _sleeping(self, seconds: float, deadline: float, wake: Callable[[], object]) -> Iterator[_Sleeper]:
        sleeper = _Sleeper(self.now() + seconds, seconds, deadline, wake, is_over=seconds <= 0)
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

    # ------------------------------------------------------------ the thread that lets time jump

    def run(self) -> None:
        """Let time jump until it ends. A failure to do so fails whoever waits, now or later."""
        while not self._over.is_set():
            try:
                if not (self._sleepers or self._is_anything_held()):
                    time.sleep(_BREATH_SECONDS)
                elif _all_others_rest():
                    self._jump()
            except Exception as error:  # noqa: BLE001 - in this thread, nobody would see it
                self._failure = self._failure or error
            self._wake()

    def end(self) -> None:
        """Let time jump no more; the services go on from where they are in real time."""
        self._over.set()
        for simulator in self._simulators:
            simulator.clock.source = real_time
            simulator.clock.shift(self.now() - time.time())

    def include(self, simulator: ServiceSimulator) -> None:
        """Let a simulated service go by this clock."""
        simulator.clock.source = self.utcnow
        self._simulators.append(simulator)

    def _is_anything_held(self) -> bool:
        return any(simulator.state.held for simulator in self._simulators)

    def _jump(self) -> None:
        """Jump to what is due next."""
        event = min(simulator.in_loop(partial(self._next_event, simulator.state)) for simulator in self._simulators)
        sleepers = [one for one in list(self._sleepers) if not one.is_over]
        others = min((one.due for one in sleepers if one.deadline == math.inf), default=math.inf)
        # A poll that fails counts, so none is skipped that may.
        change = -math.inf if any(simulator.has_faults for simulator in self._simulators) else event
        due = min((one.may_sleep_until(change, others) for one in sleepers), default=math.inf)
        if self._is_anything_held():
            due = min(due, event)
        if due < math.inf:
            self._jumped += max(due + _ROUNDING_SECONDS - self.now(), 0.0)
            for simulator in self._simulators:
                simulator.in_loop(simulator.state.wake)

    def _wake(self) -> None:
        """Wake everybody whose time has come, or never will, until they have woken."""
        now = self.now()
        for one in list(self._sleepers):
            if one.due <= now or self._failure is not None:
                one.is_over = True
                one.wake()

    def _next_event(self, state: State) -> float:
        """The time of the service's next action; never if it has none."""
        state.settle()
        due = state.schedule.next_due()
        return math.inf if due is None else self.now() + (due - state.clock.now()).total_seconds()


def _all_others_rest() -> bool:
    """Whether no other thread of this process has run for a breath, or is about to run."""
    before = _taken_by_others()
    time.sleep(_BREATH_SECONDS)
    return _is_nothing(_taken_by_others() - before) and not _is_any_ready() and _is_nothing(_taken_by_others() - before)


def _taken_by_others() -> int:
    return time.process_time_ns() - time.thread_time_ns()


def _is_nothing(nanoseconds: int) -> bool:
    return abs(nanoseconds) < _NOISE_NANOSECONDS


def _is_any_ready() -> bool:
    """Whether another thread runs, waits for its turn or for a disk, as far as the system shows that."""
    own = str(threading.get_native_id())
    for thread in _STATES.iterdir() if _STATES.exists() else ():
        with suppress(OSError):  # it has ended
            if thread.name != own and (thread / "stat").read_text().rpartition(") ")[2][0] in _READY:
                return True
    return False


@contextmanager
def time_passes_at(simulator: ServiceSimulator, *, stands: bool = False) -> Iterator[PassingTime]:
    """Let time pass at once while everybody in this process waits, also at a simulated service.

    :param stands: whether time passes only then, so that it does not matter how fast this machine is.
    """
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
