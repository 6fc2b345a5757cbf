"""Measure how late a task of an event loop wakes, compared with a process whose tasks only sleep."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import time
from importlib import import_module
from multiprocessing.connection import Connection
from types import TracebackType

HEARTBEAT = 0.01
DAY = 86_400.0
# The modules of a triggerer that waits for executions: the garbage collector traverses their objects too.
LOADED = ("airflow_provider_service.triggers.execution", "airflow_provider_service._core.waits.poller")


class Heartbeat:
    """A task that should wake every 10 ms, and records its largest delay."""

    def __init__(self) -> None:
        self._largest = 0.0

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            due = time.perf_counter() + HEARTBEAT
            await asyncio.sleep(HEARTBEAT)
            self._largest = max(self._largest, time.perf_counter() - due)

    def take_ms(self) -> float:
        """The largest stall since the last call, in milliseconds."""
        largest, self._largest = self._largest, 0.0
        return largest * 1000


class SleepingTasks:
    """A process with the same modules, whose event loop has a number of tasks that only sleep.

    :param count: number of tasks.
    """

    def __init__(self, count: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, far_end = context.Pipe()
        self._process = context.Process(target=_sleep, args=(far_end, count), daemon=True)

    def __enter__(self) -> SleepingTasks:
        self._process.start()
        self.take_ms()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pipe.send("end")
        self._process.join(10)

    def take_ms(self) -> float:
        """The largest stall since the last call, in milliseconds."""
        return self._ask("take")

    def collect(self) -> None:
        """Run one full garbage collection."""
        self._ask("collect")

    def _ask(self, question: str) -> float:
        self._pipe.send(question)
        answer: float = self._pipe.recv()
        return answer


def _sleep(pipe: Connection, count: int) -> None:
    for module in LOADED:
        import_module(module)
    asyncio.run(_sleep_and_answer(pipe, count))


async def _sleep_and_answer(pipe: Connection, count: int) -> None:
    heartbeat, ended = Heartbeat(), asyncio.Event()
    tasks = [asyncio.create_task(heartbeat.run()), *(asyncio.create_task(asyncio.sleep(DAY)) for _ in range(count))]
    await asyncio.sleep(1)
    heartbeat.take_ms()

    def answer() -> None:
        question = pipe.recv()
        if question == "end":
            ended.set()
        elif question == "collect":
            pipe.send(float(gc.collect()))
        else:
            pipe.send(heartbeat.take_ms())

    asyncio.get_running_loop().add_reader(pipe.fileno(), answer)
    await ended.wait()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
