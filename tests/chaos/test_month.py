"""Forty DAGs run a workflow every hour for thirty days, on a clock that jumps; about an hour of real time.

``SHORT`` takes twelve DAGs and two days. ``CHAOS_SEED`` repeats a run. Every run has one execution that succeeded,
every end of an execution is one event, and nothing that is kept grows.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, TaskDeferred
from starlette.types import ASGIApp, Receive, Scope, Send

from airflow_provider_service.client._clock import clock
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.simulator._engine.engine import TERMINAL, Execution
from airflow_provider_service.testing._passing_time import time_passes_at
from airflow_provider_service.testing._service import first_event, revived
from airflow_provider_service.triggers.events import ServiceExecutionEventTrigger
from tests import airflow_features
from tests.events import persisting
from tests.events.persisting import PersistingTriggerer
from tests.events.watching import AssetState
from tests.runs.task_run import StateStore, TaskRun
from tests.runs.workflows import CALLED, DONE, SCHEDULE, put, put_bridge, wait, webhook

from .tasks import MODES
from .test_chaos import SEED

DAGS, DAYS = (12, 2) if os.environ.get("SHORT") else (40, 30)
HOUR, DAY = 3600.0, 86_400.0
RETRIES, RETRY_DELAY = 12, 60.0
# Below 65 s the service keeps an execution in memory, and a restart crashes it; above, it sleeps in the database.
RUN_SECONDS = (5, 20, 45, 90, 600)
KEPT_SECONDS = 2 * DAY
#: Share of the attempts whose worker or triggerer dies, and of the hours with faults.
DEATHS, FAULTY_HOURS = 0.04, 0.3
EVENT_POLL_SECONDS = 300.0
HEADER = (
    "| day | runs | executions | attempts | in doubt | events | requests a run | task state, bytes | XCom, bytes "
    "| state of the watch, bytes | objects | memory, MiB | open files |"
)
FAULTS: tuple[dict[str, Any], ...] = (
    {"kind": "status", "status": 503},
    {"kind": "status", "status": 502},
    {"kind": "status", "status": 429, "retry_after": 3600},
    {"kind": "html", "status": 504},
    {"kind": "drop"},
    {"kind": "drop", "after_processing": True},
    {"kind": "truncate"},
    {"kind": "latency", "seconds": 25.0},
    {"kind": "latency", "seconds": 25.0, "after_processing": True},
)


@dataclass
class Month:
    """The service, what has happened so far, and what was wrong."""

    simulator: ServiceSimulator
    folder: Path
    progress: Callable[[str], None]
    dice: random.Random = field(default_factory=lambda: random.Random(f"{SEED}:month"))
    counts: Counter[str] = field(default_factory=Counter)
    largest: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    ended: set[str] = field(default_factory=set)
    reported: Counter[str] = field(default_factory=Counter)
    days: list[dict[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.workflows = [self._create(number) for number in range(DAGS)]
        self.seen = dict.fromkeys(self.workflows, 0)
        self.state = AssetState()
        self.at_once = asyncio.Semaphore(8)
        self.simulator.wrap(self._counted)

    def _create(self, number: int) -> str:
        seconds = RUN_SECONDS[number % len(RUN_SECONDS)]
        settings = {"name": f"DAG {number}", "availableInMCP": True}
        if _way(number) == "mcp":
            return put(self.simulator, SCHEDULE, wait(seconds), DONE, **settings)
        if _way(number) == "bridge":
            return put(self.simulator, CALLED, wait(seconds), DONE, **settings)
        options, nodes = list(MODES.values())[number % len(MODES)]
        return put(self.simulator, webhook(f"dag-{number}", **options), *nodes, wait(seconds), DONE, **settings)

    def _counted(self, app: ASGIApp) -> ASGIApp:
        async def layer(scope: Scope, receive: Receive, send: Send) -> None:
            self.counts["requests"] += 1
            await app(scope, receive, send)

        return layer

    async def hour(self, number: int) -> None:
        """Run all DAGs once, amid what happens in this hour."""
        began = clock().now()
        self._inject()
        await asyncio.gather(
            self._befall(number),
            *(self._run(dag, number, began) for dag in range(DAGS)),
        )
        self.simulator.clear_faults()
        await clock().async_sleep(began + HOUR - EVENT_POLL_SECONDS / 2 - clock().now())
        await asyncio.to_thread(self._prune)

    def _inject(self) -> None:
        if self.dice.random() < FAULTY_HOURS:
            for _ in range(self.dice.randrange(1, 6)):
                fault = self.dice.choice(FAULTS)
                self.simulator.inject(times=self.dice.randrange(1, 8), skip=self.dice.randrange(0, 60), **fault)
                self.counts["faults"] += 1

    async def _befall(self, hour: int) -> None:
        """Restart the service four times a day, and correct its clock twice a week."""
        await clock().async_sleep(self.dice.uniform(1, 40))
        if hour % 6 == 5:
            await asyncio.to_thread(self.simulator.restart, 20.0)
            self.counts["restarts"] += 1
        if hour % 84 == 17:
            self.simulator.clock.shift(self.dice.choice([-400.0, -5.0, 5.0, 400.0]))
            self.counts["corrections of the clock"] += 1

    async def _run(self, dag: int, hour: int, began: float) -> None:
        way, workflow_id = _way(dag), self.workflows[dag]
        run = TaskRun(
            ServiceRunWorkflowOperator,
            {
                "workflow_id": workflow_id,
                "start": way,
                "deferrable": dag % 4 != 0,
                "poll_interval": 20.0,
                "timeout": HOUR / 2,
                **({} if way == "mcp" else {"payload": {"hour": hour}}),
                **({"return_output": "last_node"} if dag % 3 == 0 else {}),
            },
            StateStore(self.folder / f"{dag}.json"),
            retries=RETRIES,
            max_tries=RETRIES,
            dag_id=f"dag_{dag}",
            run_id=f"scheduled__{hour}",
        )
        run.store.path.unlink(missing_ok=True)
        result = None
        try:
            result = await self._attempts(run)
        except AirflowFailException as error:
            self.counts["in doubt"] += 1
            if "in doubt" not in str(error) and "could run it twice" not in str(error):
                self.wrong.append(f"hour {hour}, DAG {dag}: {error}")
        except Exception as error:  # noqa: BLE001 - reported with the run that it befell
            self.wrong.append(f"hour {hour}, DAG {dag}: no attempt succeeded, the last: {error!r}")
        run.close()
        executions = await asyncio.to_thread(self._new_executions, workflow_id)
        succeeded = [one for one in executions if one.status == "success"]
        open_ones = [one.id for one in executions if one.status not in TERMINAL]
        self.counts.update({"runs": 1, "executions": len(executions)})
        self.counts.update(one.status for one in executions)
        if len(succeeded) > 1 or (
            result is not None and [str(one.id) for one in succeeded] != [result["execution_id"]]
        ):
            self.wrong.append(
                f"hour {hour}, DAG {dag}: {result}, executions {[(one.id, one.status) for one in executions]}"
            )
        if open_ones and result is not None:  # what is in doubt may run on, as the error says
            self.wrong.append(f"hour {hour}, DAG {dag}: left running: {open_ones}")
        self.ended.update(str(one.id) for one in executions if one.status in TERMINAL)
        stored = run.store.path.read_text() if run.store.path.exists() else ""
        self._note_size("task state", len(stored))
        self._note_size("XCom", len(json.dumps({**run.pushed, "return_value": result})))

    async def _attempts(self, run: TaskRun) -> dict[str, Any]:
        for number in range(1, RETRIES + 2):
            self.counts["attempts"] += 1
            try:
                return await self._attempt(run, number)
            except AirflowFailException:
                raise
            except Exception:
                if number > RETRIES:
                    raise
            await clock().async_sleep(RETRY_DELAY)
        raise AssertionError

    async def _attempt(self, run: TaskRun, number: int) -> Any:
        dies = self.dice.random() < DEATHS
        try:
            async with self.at_once:
                return await asyncio.to_thread(run.attempt, number)
        except TaskDeferred as deferred:
            if dies:
                self.counts["deaths"] += 1
                raise RuntimeError("the triggerer and the worker died") from None
            event = await first_event(revived(deferred.trigger), deferred.timeout)
            async with self.at_once:
                return await asyncio.to_thread(run.resume, number, deferred, event)

    def _new_executions(self, workflow_id: str) -> list[Execution]:
        def look() -> list[Execution]:
            self.simulator.state.settle()
            return [
                one
                for one in self.simulator.state.executions.of_workflow(workflow_id)
                if one.id > self.seen[workflow_id]
            ]

        found = self.simulator.in_loop(look)
        self.seen[workflow_id] = max((one.id for one in found), default=self.seen[workflow_id])
        return found

    def _prune(self) -> None:
        def remove() -> None:
            state = self.simulator.state
            before = state.clock.now().timestamp() - KEPT_SECONDS
            for one in [*state.executions]:
                if one.stopped_at is not None and one.stopped_at.timestamp() < before:
                    state.engine.remove(one)

        self.simulator.in_loop(remove)

    def _note_size(self, name: str, size: int) -> None:
        self.largest[name] = max(self.largest[name], size)

    async def day(self, number: int) -> None:
        """Run all hours of a day below one triggerer, which dies at its end."""
        triggerer = PersistingTriggerer()
        trigger = revived(ServiceExecutionEventTrigger(workflow_id=self.workflows, poll_interval=EVENT_POLL_SECONDS))
        trigger.asset_state_store = self.state
        watch = triggerer.start(trigger)
        await clock().async_sleep(1.0 if number else EVENT_POLL_SECONDS)
        for hour in range(24):
            await self.hour(24 * number + hour)
        await clock().async_sleep(EVENT_POLL_SECONDS)
        self.reported.update(event["execution_id"] for event in triggerer.events(watch))
        self._note_size("state of the watch", sum(map(len, self.state.kept.values())))
        self.wrong += [f"the watch of day {number} died: {error!r}" for error in triggerer.broken()]
        await triggerer.die(None)
        self._close_the_day(number)

    def _close_the_day(self, number: int) -> None:
        gc.collect()
        modules = Counter(type(one).__module__ for one in gc.get_objects())
        process = psutil.Process()
        self.days.append(
            {
                "day": number + 1,
                **{name: self.counts[name] for name in ("runs", "executions", "attempts", "in doubt")},
                "events": self.reported.total(),
                "requests a run": round(self.counts["requests"] / self.counts["runs"], 1),
                **self.largest,
                "objects": sum(modules[name] for name in modules if _is_ours(name)),
                "memory": process.memory_info().rss // 2**20,
                "open files": process.num_fds(),
            }
        )
        self.progress(f"| {' | '.join(f'{value:,}' for value in self.days[-1].values())} |")
        self.largest.clear()


def _is_ours(module: str) -> bool:
    return module.startswith("airflow_provider_service.") and ".simulator" not in module


def _way(dag: int) -> str:
    return {5: "mcp", 6: "bridge"}.get(dag % 8, "webhook")


@pytest.fixture
def simulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceSimulator]:
    with ServiceSimulator() as simulator, time_passes_at(simulator, stands=True):
        connection = json.loads(simulator.connection_json())
        extra = {"mcp_api_key": simulator.mcp_api_key}
        monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps({**connection, "extra": extra}))
        yield simulator


@airflow_features.kept_cursors
def test_a_month(
    simulator: ServiceSimulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, progress: Callable[[str], None]
) -> None:
    monkeypatch.setattr(persisting, "SYNC_SECONDS", 60.0)
    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)  # pytest would keep all records, for a month
    put_bridge(simulator)
    month = Month(simulator, tmp_path, progress)

    async def live() -> None:
        for number in range(DAYS):
            await month.day(number)

    progress(f"{DAGS} DAGs, {DAYS} days, CHAOS_SEED={SEED}\n{HEADER}\n|{' --- |' * (HEADER.count('|') - 1)}")
    asyncio.run(live())
    twice = [one for one, times in month.reported.items() if times > 1]
    missing = sorted(month.ended - set(month.reported), key=int)
    progress(f"{dict(month.counts)}; events missing: {len(missing)}, twice: {len(twice)}")
    assert not month.wrong, month.wrong
    assert (missing, twice) == ([], [])
    # On the sixth day, as many executions are pruned as begin; a short month has no such day.
    first, last = month.days[min(5, DAYS - 1)], month.days[-1]
    for name in ("state of the watch", "objects", "memory", "open files"):
        assert last[name] <= 1.2 * first[name] + 50, name
    for name in ("task state", "XCom"):  # those of one task run, which grow only with its attempts
        assert max(day[name] for day in month.days) <= 4000, name
