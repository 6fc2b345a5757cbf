"""Measure the cost of waiting for many executions in one event loop: shared waits, and one read per wait.

``python -m bench.waiting`` prints a table for docs/benchmarks.md, and fails if shared waits exceed their limits.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import TYPE_CHECKING

from bench.service import Service
from bench.stalls import Heartbeat, SleepingTasks

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceClient

INTERVAL = 10.0
LATENCY = 0.020
WINDOWS = 3
ENDINGS = 100
NAIVE_THREADS = 32
DAY = 86_400.0
HEADER = (
    "| waits | method | requests per interval | % of a core | largest stall, ms | stall of sleeping tasks, ms "
    "| median delay, s | 95th percentile of delays, s |"
)
# The limits of shared waits in any interval, for up to this number of waits.
LIMITED_WAITS = 5000
MAX_REQUESTS = 25
MAX_CPU_PERCENT = 10
MAX_STALL_MS = 50  # beyond that of as many tasks that only sleep


@dataclass
class Sample:
    """The measured values: one per window or per ending.

    :param excess_ms: by how much the largest stall exceeds that of tasks that only sleep; one per run.
    """

    requests: list[float] = field(default_factory=list)
    cpu_percent: list[float] = field(default_factory=list)
    stall_ms: list[float] = field(default_factory=list)
    sleeping_ms: list[float] = field(default_factory=list)
    delay_s: list[float] = field(default_factory=list)
    excess_ms: list[float] = field(default_factory=list)

    def add(self, other: Sample) -> None:
        """Add the values of another run."""
        for name, values in vars(self).items():
            values.extend(getattr(other, name))


async def shared_wait(execution_id: str, interval: float) -> None:
    """Return when an execution has ended, as the provider's own trigger sees it.

    :param interval: seconds between two polls.
    """
    from airflow_provider_service.triggers.execution import ServiceExecutionTrigger

    trigger = ServiceExecutionTrigger(
        service_conn_id="service_default",
        execution_id=execution_id,
        poll_interval=interval,
        deadline=time.time() + DAY,
        timeout=DAY,
        on_vanished="fail",
        fault_tolerance=300.0,
    )
    async for event in trigger.run():
        if event.payload["verdict"] != "succeeded":
            raise RuntimeError(event.payload["message"])


class SharedWaits:
    """The provider's own trigger, one per wait."""

    name = "shared"

    async def wait(self, execution_id: str) -> None:
        """Return when the execution has ended."""
        await shared_wait(execution_id, INTERVAL)

    def close(self) -> None:
        """There is nothing to release."""


class SingleReads:
    """Repeated reads of one execution each, in a pool of threads."""

    name = "one read per wait"

    def __init__(self) -> None:
        from airflow_provider_service.client import ServiceClient, ServiceConfig

        connection = json.loads(os.environ["AIRFLOW_CONN_SERVICE_DEFAULT"])
        config = ServiceConfig(base_url=connection["host"], api_key=connection["password"])
        self._client: ServiceClient = ServiceClient(config)
        self._threads = ThreadPoolExecutor(NAIVE_THREADS)

    async def wait(self, execution_id: str) -> None:
        """Return when the execution has ended."""
        loop = asyncio.get_running_loop()
        while True:
            begin = time.monotonic()
            execution = await loop.run_in_executor(self._threads, self._client.executions.get, execution_id)
            if execution.status == "success":
                return
            await asyncio.sleep(max(0.0, begin + INTERVAL - time.monotonic()))

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(cancel_futures=True)
        self._client.close()


async def measure(
    wait: Callable[[str], Awaitable[None]], service: Service, sleeping: SleepingTasks, count: int
) -> Sample:
    """Wait for a number of executions at once, first while none ends and then while some do."""
    # A triggerer has already loaded the modules that read connections.
    from airflow_provider_service._airflow.connection import config_for

    await config_for("service_default")
    ids = await asyncio.to_thread(service.start_executions, count)
    sample, seen, heartbeat = Sample(), dict[str, float](), Heartbeat()

    async def noted(execution_id: str) -> None:
        await wait(execution_id)
        seen[execution_id] = time.time()

    async def note_stalls() -> None:
        sample.stall_ms.append(heartbeat.take_ms())
        sample.sleeping_ms.append(await asyncio.to_thread(sleeping.take_ms))

    tasks = [asyncio.create_task(heartbeat.run())]
    for execution_id in ids:
        tasks.append(asyncio.create_task(noted(execution_id)))
        await asyncio.sleep(0)  # as the triggerer does
    await asyncio.sleep(1.5 * INTERVAL)
    await asyncio.to_thread(service.count_requests)
    # Thousands of new objects trigger the garbage collector, wherever they are created.
    heartbeat.take_ms()
    await asyncio.to_thread(sleeping.take_ms)
    for _ in range(WINDOWS):
        cpu, begin = time.process_time(), time.perf_counter()
        await asyncio.sleep(INTERVAL / 2)
        # One full collection in each interval of both, because otherwise one falls into some interval by chance.
        before = time.process_time()
        gc.collect()
        cpu += time.process_time() - before
        await asyncio.to_thread(sleeping.collect)
        await asyncio.sleep(INTERVAL / 2)
        share = (time.process_time() - cpu) / (time.perf_counter() - begin)
        sample.cpu_percent.append(100 * share)
        sample.requests.append(await asyncio.to_thread(service.count_requests))
        await note_stalls()
    ended = await asyncio.to_thread(service.end_executions, random.sample(ids, min(ENDINGS, count)), INTERVAL)
    give_up = time.monotonic() + 6 * INTERVAL
    while not ended.keys() <= seen.keys() and time.monotonic() < give_up:
        await asyncio.sleep(0.1)
    await note_stalls()
    sample.excess_ms.append(max(sample.stall_ms) - max(sample.sleeping_ms))
    sample.delay_s += [seen[execution_id] - moment for execution_id, moment in ended.items()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return sample


def run_once(way: type[SharedWaits] | type[SingleReads], count: int) -> Sample:
    """Measure one way of waiting against a separate service."""
    with Service(LATENCY) as service, SleepingTasks(count) as sleeping:
        os.environ["AIRFLOW_CONN_SERVICE_DEFAULT"] = service.connection
        waits = way()
        try:
            return asyncio.run(measure(waits.wait, service, sleeping, count))
        finally:
            waits.close()


def row(count: int, name: str, sample: Sample) -> str:
    """A line of the table."""
    p95 = quantiles(sample.delay_s, n=20)[-1]
    return (
        f"| {count:,} | {name} | {_spread(sample.requests, '.0f')} | {_spread(sample.cpu_percent, '.1f')} "
        f"| {max(sample.stall_ms):.0f} | {max(sample.sleeping_ms):.0f} | {median(sample.delay_s):.1f} | {p95:.1f} |"
    )


def _spread(values: Sequence[float], form: str) -> str:
    return f"{median(values):{form}} ({min(values):{form}}-{max(values):{form}})"


def ratios(count: int, shared: Sample, single: Sample) -> str:
    """The factor by which shared waits use less."""
    requests = median(single.requests) / median(shared.requests)
    cpu = median(single.cpu_percent) / median(shared.cpu_percent)
    delay = median(single.delay_s) / median(shared.delay_s)
    return f"{count:,} waits: {requests:.0f}x fewer requests, {cpu:.1f}x less CPU, delay x{1 / delay:.2f}"


def broken_limits(count: int, shared: Sample) -> list[str]:
    """The limits that shared waits exceeded, each with the measured value."""
    if count > LIMITED_WAITS:
        return []
    measured = [
        (max(shared.requests), MAX_REQUESTS, "requests per interval"),
        (max(shared.cpu_percent), MAX_CPU_PERCENT, "% of a core"),
        (median(shared.excess_ms), MAX_STALL_MS, "ms of stall beyond that of tasks that only sleep"),
    ]
    return [
        f"{count:,} waits: {value:.1f} {what}, allowed are {limit}" for value, limit, what in measured if value > limit
    ]


def run(sizes: Iterable[int], repeats: int, ways: Sequence[type[SharedWaits] | type[SingleReads]]) -> list[str]:
    """Measure all sizes in each way in turn, print the table, and return the limits that were exceeded."""
    lines, notes, broken = [], [], list[str]()
    for count in sizes:
        found = {way: Sample() for way in ways}
        for _ in range(repeats):
            for way, sample in found.items():
                sample.add(run_once(way, count))
                print(f"measured {count:,} waits, {way.name}", flush=True)
        lines += [row(count, way.name, sample) for way, sample in found.items()]
        if SingleReads in found:
            notes.append(ratios(count, found[SharedWaits], found[SingleReads]))
        broken += broken_limits(count, found[SharedWaits])
    print("", HEADER, "|---|---|---|---|---|---|---|---|", *lines, "", *notes, sep="\n")
    return broken


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.waiting", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 5000], help="numbers of waits")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each size and way (default: %(default)s)")
    parser.add_argument("--shared-only", action="store_true", help="leave out the reads of single executions")
    options = parser.parse_args()
    ways = (SharedWaits,) if options.shared_only else (SharedWaits, SingleReads)
    if broken := run(options.sizes, options.repeats, ways):
        parser.exit(1, "\n".join(["", "Shared waits exceeded their limits:", *broken, ""]))


if __name__ == "__main__":
    main()
