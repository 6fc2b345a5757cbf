"""A thousand tasks of each kind with a bad network, workers that die and clocks that are wrong.

``SHORT`` runs sixty. ``CHAOS_SEED`` repeats a run, and ``CHAOS_TASK`` runs only the task with that number.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_service.simulator import ServiceSimulator

from .proxy import ChaosProxy, Fault
from .tasks import RETRIES, ChaosTask, RetryTask, RunTask, UpsertTask
from .worker import Ended, run_attempt

SEED = int(os.environ.get("CHAOS_SEED", random.SystemRandom().randrange(10**6)))
TASKS = 60 if os.environ.get("SHORT") else 1000
ONLY = os.environ.get("CHAOS_TASK")
AT_ONCE = 16

#: Share of the calls that are disturbed, and of the attempts that are killed, and the seconds until the kill.
FAULT_RATE = 0.15
KILL_RATE = 0.35
KILL_WITHIN_SECONDS = 1.2

#: How far the service's clock is ahead.
SKEWS = (timedelta(), timedelta(hours=2), timedelta(hours=-2))


@dataclass
class Tally:
    """The results so far."""

    attempts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    faults: Counter[Fault] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def simulators() -> Iterator[list[ServiceSimulator]]:
    services = [ServiceSimulator().start() for _ in SKEWS]
    yield services
    for simulator in services:
        simulator.stop()


def _connection(simulator: ServiceSimulator, base_url: str) -> dict[str, str]:
    connection = {
        **json.loads(simulator.connection_json()),
        "host": base_url,
        "extra": {"timeout": 1.0, "connect_timeout": 1.0, "retry_deadline": 3.0},
    }
    return {"AIRFLOW_CONN_SERVICE_DEFAULT": json.dumps(connection)}


def _try_until_it_ends(
    task: ChaosTask, environment: dict[str, str], name: str, folder: Path, tally: Tally
) -> dict[str, Any] | None:
    """Run attempts as Airflow does; return what the task returned, or None if it failed."""
    dice, run = random.Random(f"{SEED}:{name}:kills"), task.run(folder)
    for number in range(1, RETRIES + 1):
        kill_after = dice.uniform(0, KILL_WITHIN_SECONDS) if dice.random() < KILL_RATE else None
        ended: Ended = run_attempt(environment, run, number, folder / f"{name}.json", kill_after)
        tally.attempts[ended.how] += 1
        if ended.how == "success":
            return dict(ended.value)
        if ended.how != "killed":
            tally.reasons[str(ended.value).partition("(")[0][:60]] += 1
        if ended.how == "failed":
            tally.wrong.append(f"{name}: attempt {number} failed for good: {ended.value}")
            return None
    tally.wrong.append(f"{name}: no attempt of {RETRIES} succeeded, the last: {ended}")
    return None


def _befall(proxy: ChaosProxy, task: ChaosTask, name: str, folder: Path, tally: Tally) -> None:
    """Run a task amid faults, and record what is wrong afterwards."""
    try:
        lane = proxy.lane(name, task.simulator.base_url)
        environment = _connection(task.simulator, lane.base_url)
        returned = _try_until_it_ends(task, environment, name, folder, tally)
        if returned is not None and task.runs_again:
            lane.calm()
            ended = run_attempt(environment, task.run(folder), RETRIES + 1, folder / f"{name}.json", None)
            returned = ended.value if ended.how == "success" else {}
        if returned is not None:
            tally.wrong.extend(f"{name}: {fault}" for fault in task.faults(returned))
    except Exception as error:  # noqa: BLE001 - reported with the name that reproduces it
        tally.wrong.append(f"{name}: {error!r}")


@pytest.mark.parametrize("kind", [RunTask, RetryTask, UpsertTask], ids=lambda kind: kind.__name__)
def test_chaos(
    kind: type[ChaosTask], simulators: list[ServiceSimulator], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for simulator, skew in zip(simulators, SKEWS, strict=True):
        simulator.reset()
        simulator.clock.shift(skew.total_seconds())
    tally = Tally()
    shared: list[dict[str, str]] = [{} for _ in simulators]
    numbers = range(TASKS) if ONLY is None else [int(ONLY)]
    tasks = []
    for number in numbers:
        place = number % len(simulators)
        dice = random.Random(f"{SEED}:{number}")
        tasks.append(kind(number, simulators[place], shared[place], dice))
    with ChaosProxy(SEED, FAULT_RATE) as proxy, ThreadPoolExecutor(AT_ONCE) as threads:
        work = [
            threads.submit(_befall, proxy, task, f"{kind.__name__}-{task.number}", tmp_path, tally) for task in tasks
        ]
        for done, one in enumerate(work, start=1):
            one.result()
            if done % 100 == 0:
                with capsys.disabled():
                    print(f"{kind.__name__}: {done} of {len(work)} tasks, {len(tally.wrong)} wrong", flush=True)
        tally.faults.update(proxy.faults)
    with capsys.disabled():
        print(f"\n{_report(kind.__name__, len(tasks), tally)}", flush=True)
    assert not tally.wrong, tally.wrong


def _report(kind: str, tasks: int, tally: Tally) -> str:
    attempts = ", ".join(f"{count} {how}" for how, count in tally.attempts.most_common())
    faults = "\n".join(f"    {count:>6} {fault.value}" for fault, count in tally.faults.most_common())
    reasons = "\n".join(f"    {count:>6} {reason}" for reason, count in tally.reasons.most_common(8))
    return (
        f"{kind}: {tasks} tasks, CHAOS_SEED={SEED}; attempts: {attempts}; {len(tally.wrong)} wrong\n"
        f"  faults:\n{faults}\n  attempts ended with:\n{reasons}"
    )
