"""How many objects a wait keeps: Python's garbage collector goes through all of them, and stalls the event loop."""

from __future__ import annotations

import asyncio
import gc
import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_service.client._clock import Clock, using
from airflow_provider_service.simulator import ServiceSimulator

from .driving import Triggerer, execution_trigger, in_event_loop, until
from .polls import end, requests_made, started

#: Its own clock keeps pollers from their rounds; the objects of one that jumps would be counted, too.
pytestmark = pytest.mark.real_time

WAITS = 400
MOST_OBJECTS = 11


class SleepingTrigger(BaseTrigger):
    """Does nothing but sleep."""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return "sleeping", {}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        await asyncio.sleep(3600)
        yield TriggerEvent("awake")


class Rounds(Clock):
    """Lets a poller make its rounds, or keeps it from the next one."""

    def __init__(self) -> None:
        self._wanted = asyncio.Event()
        self._wanted.set()

    async def async_sleep(self, seconds: float, deadline: float = math.inf) -> None:
        await super().async_sleep(seconds, deadline)
        await self._wanted.wait()

    @contextmanager
    def kept_off(self) -> Iterator[None]:
        self._wanted.clear()
        yield
        self._wanted.set()


@pytest.fixture(autouse=True)
def counted_from_here() -> None:
    """Leave out what other tests have left: going through it for each count would take ten times as long."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def rounds() -> Iterator[Rounds]:
    rounds = Rounds()
    with using(rounds):
        yield rounds


async def objects_each(rounds: Rounds, start: Callable[[int], None], settled: Callable[[], bool]) -> float:
    """How many objects that the garbage collector tracks are kept for each of some things that are started."""
    before = await objects_kept(rounds)
    for number in range(WAITS):
        start(number)
        await asyncio.sleep(0)
    await until(settled)
    return (await objects_kept(rounds) - before) / WAITS


async def objects_kept(rounds: Rounds) -> int:
    """How many objects the garbage collector tracks while no answer is being read: the least of several counts."""
    counts = []
    with rounds.kept_off():
        for _ in range(5):
            await asyncio.sleep(0.3)
            gc.collect()
            counts.append(len(gc.get_objects()))
    return min(counts)


def rounds_are_made(simulator: ServiceSimulator) -> Callable[[], bool]:
    # The first is for the few that came before; what it makes is shared by all.
    return lambda: requests_made(simulator)["list running"] >= 4


async def consume(trigger: BaseTrigger) -> None:
    async for _ in trigger.run():
        pass


@in_event_loop
async def test_a_wait_keeps_few_objects(simulator: ServiceSimulator, workflow_id: str, rounds: Rounds) -> None:
    others, ids = (started(simulator, workflow_id, count) for count in (10, WAITS))
    tasks = [asyncio.create_task(consume(execution_trigger(one, poll_interval=0.5))) for one in others]
    await until(lambda: requests_made(simulator)["list running"] >= 2)
    simulator.clear_requests()

    def wait(number: int) -> None:
        tasks.append(asyncio.create_task(consume(execution_trigger(ids[number], poll_interval=0.5))))

    # All that is kept, down to the task, its context, the copy of it that leads to the task's log, and the coroutines.
    found = await objects_each(rounds, wait, rounds_are_made(simulator))

    assert round(found) <= MOST_OBJECTS
    await end(tasks)


@pytest.mark.slow
@in_event_loop
async def test_in_the_triggerer_a_wait_keeps_less_than_a_trigger_that_sleeps(
    simulator: ServiceSimulator, workflow_id: str, rounds: Rounds
) -> None:
    others, ids = (started(simulator, workflow_id, count) for count in (10, WAITS))
    triggerer = Triggerer()
    for one in others:
        triggerer.start(execution_trigger(one, poll_interval=0.5))
    triggerer.start(SleepingTrigger())
    await until(lambda: requests_made(simulator)["list running"] >= 2)

    sleeping = await objects_each(rounds, lambda _: void(triggerer.start(SleepingTrigger())), lambda: True)
    simulator.clear_requests()
    waiting = await objects_each(
        rounds,
        lambda number: void(triggerer.start(execution_trigger(ids[number], poll_interval=0.5))),
        rounds_are_made(simulator),
    )

    assert waiting < sleeping
    await triggerer.shut_down()


def void(_: object) -> None:
    """Forget a value."""
