"""How late a task of an event loop wakes, and beside it an idle process: what both see is the machine's doing."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from multiprocessing.connection import Connection
from types import TracebackType

HEARTBEAT = 0.01


class Heartbeat:
    """A task that wants to wake every 10 ms, and notes by how much it is late at worst."""

    def __init__(self) -> None:
        self._largest = 0.0

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            due = time.perf_counter() + HEARTBEAT
            await asyncio.sleep(HEARTBEAT)
            self._largest = max(self._largest, time.perf_counter() - due)

    def take_ms(self) -> float:
        """The largest stall since this was last asked, in milliseconds."""
        largest, self._largest = self._largest, 0.0
        return largest * 1000


class IdleProcess:
    """A process that does nothing but beat like :class:`Heartbeat`."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, far_end = context.Pipe()
        self._process = context.Process(target=_beat, args=(far_end,), daemon=True)

    def __enter__(self) -> IdleProcess:
        self._process.start()
        self.take_ms()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pipe.send(False)
        self._process.join(10)

    def take_ms(self) -> float:
        """The largest stall since this was last asked, in milliseconds."""
        self._pipe.send(True)
        largest: float = self._pipe.recv()
        return largest


def _beat(pipe: Connection) -> None:
    largest = 0.0
    while True:
        due = time.perf_counter() + HEARTBEAT
        time.sleep(HEARTBEAT)
        largest = max(largest, time.perf_counter() - due)
        if pipe.poll():
            if not pipe.recv():
                return
            pipe.send(largest * 1000)
            largest = 0.0
