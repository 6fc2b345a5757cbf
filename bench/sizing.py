"""Simulate triggerers that wait for tens of thousands of executions on one service.

``python -m bench.sizing`` prints the table of docs/sizing.md. The waits are the provider's own; only the time between
two rounds of their poller does not pass, and the service is one that answers at once. What is counted is therefore what
each round needs, on however slow a machine.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import math
import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import mean

from airflow_provider_service._core.waits.poller import CONNECTION_CHECK_SECONDS
from airflow_provider_service.client._clock import Clock, using
from bench.many_executions import ManyExecutions
from bench.waiting import shared_wait

WARM_ROUNDS, ROUNDS = 2, 3
ROUND_SECONDS = 600.0
HEADER = (
    "| triggerers | waits | waits per triggerer | requests a minute | requests a minute per triggerer "
    "| pages of the longest list | % of a core per triggerer |"
)


class Rounds(Clock):
    """A clock by which the poller's next round begins when it is told to."""

    def __init__(self) -> None:
        self._over, self._next = asyncio.Event(), asyncio.Event()

    async def async_sleep(self, seconds: float, deadline: float = math.inf) -> None:
        """Wait for the next round to be begun; other pauses take their time."""
        if deadline == math.inf or seconds == CONNECTION_CHECK_SECONDS:
            await super().async_sleep(seconds)
            return
        self._over.set()
        await self._next.wait()
        self._next.clear()

    async def over(self) -> None:
        """Wait until the poller's round is over."""
        await asyncio.wait_for(self._over.wait(), ROUND_SECONDS)
        self._over.clear()

    def begin(self) -> None:
        """Begin the next round."""
        self._next.set()


@dataclass
class Sample:
    """What one round of a triggerer needs: one value for each round."""

    requests: list[int] = field(default_factory=list)
    longest_list: list[int] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)


class Triggerer:
    """The waits of one triggerer, in the running event loop."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._waits: dict[str, asyncio.Task[None]] = {}

    @property
    def count(self) -> int:
        """Waits that have not ended."""
        return len(self._waits)

    def add(self, execution_id: str) -> None:
        """Wait for an execution."""
        self._waits[execution_id] = asyncio.create_task(shared_wait(execution_id, self._interval))

    async def reported(self, ended: Sequence[str]) -> None:
        """Wait until the ends of executions have been reported, and forget them."""
        own = [self._waits.pop(one) for one in ended if one in self._waits]
        if own:
            await asyncio.wait_for(asyncio.gather(*own), ROUND_SECONDS)

    async def close(self) -> None:
        """Give up all waits."""
        for task in self._waits.values():
            task.cancel()
        await asyncio.gather(*self._waits.values(), return_exceptions=True)


async def simulate(service: ManyExecutions, triggerers: int, interval: float, lasts: float, seed: int) -> Sample:
    """Run some rounds of one triggerer, which keeps its share of the service's waits."""
    from airflow_provider_service._airflow.connection import config_for

    await config_for("service_default")  # a triggerer has already loaded the modules that read connections
    rounds, chance, sample = Rounds(), random.Random(seed), Sample()
    with using(rounds):
        own = Triggerer(interval)
        for execution_id in service.active:
            if chance.randrange(triggerers) == 0:
                own.add(execution_id)
        await rounds.over()
        per_round = round(len(service.active) * interval / lasts)
        for number in range(WARM_ROUNDS + ROUNDS):
            turn = await asyncio.to_thread(service.turn, per_round)
            for execution_id in turn.started:
                if chance.randrange(triggerers) == 0:
                    own.add(execution_id)
            await asyncio.sleep(0.1)  # the new waits join
            gc.collect()
            await asyncio.to_thread(service.requests)
            cpu = time.process_time()
            rounds.begin()
            await rounds.over()
            await own.reported(turn.ended)
            cpu = time.process_time() - cpu
            sent: Counter[str] = await asyncio.to_thread(service.requests)
            if number >= WARM_ROUNDS:
                sample.requests.append(sent.total())
                sample.longest_list.append(max(count for what, count in sent.items() if what != "id"))
                sample.cpu_seconds.append(cpu)
        await own.close()
        rounds.begin()
    return sample


def row(waits: int, interval: float, samples: Sequence[Sample]) -> str:
    """A line of the table."""
    each = [mean(sample.requests) * 60 / interval for sample in samples]
    longest = max(max(sample.longest_list) for sample in samples)
    cpu = mean(second for sample in samples for second in sample.cpu_seconds)
    count = len(samples)
    return (
        f"| {count} | {waits:,} | {waits // count:,} | {sum(each):,.0f} | {mean(each):,.0f} | {longest} "
        f"| {100 * cpu / interval:.1f} |"
    )


def run(sizes: Sequence[int], triggerers: Sequence[int], interval: float, lasts: float) -> list[str]:
    """Simulate each number of waits with each number of triggerers, one triggerer after the other."""
    lines = []
    for waits in sizes:
        for count in triggerers:
            samples = []
            for number in range(count):
                with ManyExecutions(waits, seed=number) as service:
                    os.environ["AIRFLOW_CONN_SERVICE_DEFAULT"] = service.connection
                    samples.append(asyncio.run(simulate(service, count, interval, lasts, seed=number)))
            lines.append(row(waits, interval, samples))
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.sizing", description=__doc__)
    parser.add_argument("--waits", type=int, nargs="+", default=[5_000, 20_000, 50_000], help="waits of all triggerers")
    parser.add_argument("--triggerers", type=int, nargs="+", default=[1, 2, 5, 10], help="numbers of triggerers")
    parser.add_argument("--interval", type=float, default=10.0, help="poll_interval in seconds (default: %(default)s)")
    parser.add_argument("--lasts", type=float, default=3600.0, help="mean seconds of a run (default: %(default)s)")
    options = parser.parse_args()
    lines = run(options.waits, options.triggerers, options.interval, options.lasts)
    print("", HEADER, "|---|---|---|---|---|---|---|", *lines, sep="\n")


if __name__ == "__main__":
    main()
