"""Triggerers that die at random moments and come back: the wait goes on, to its first deadline, with one event."""

from __future__ import annotations

import json
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import TaskDeferred

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.waiting import ServiceExecutionFailedError

from . import victims
from .conftest import MakeRun
from .task_run import Serialized, TaskRun, as_stored
from .workflows import DONE, put, statuses, wait, webhook

WAITS = 17
KILLS = 3
AT_ONCE = 4


def killed_triggerer(trigger: Serialized, events: Path, dice: random.Random) -> int:
    """Run a trigger in a process that is killed some times; the number of processes it took to the event."""
    environment = {name: value for name, value in os.environ.items() if name.startswith("AIRFLOW_CONN_")}
    for number in range(1, 50):
        triggerer = victims.FORKS.Process(target=victims.wait_for_event, args=(environment, trigger, events))
        triggerer.start()
        triggerer.join(dice.uniform(0, 0.5) if number <= KILLS else 20)
        triggerer.kill()
        triggerer.join()
        triggerer.close()
        if events.exists():
            return number
    raise AssertionError("there was no event")


def event_of(events: Path) -> Any:
    """The one event that was written down."""
    [line] = events.read_text().splitlines()
    return json.loads(line)


def deferred(run: TaskRun) -> TaskDeferred:
    """Execute the first attempt, which defers."""
    with pytest.raises(TaskDeferred) as caught:
        run.attempt(1)
    return caught.value


def seed_of_the_day() -> int:
    seed = int(os.environ.get("KILL_SEED", random.SystemRandom().randrange(10**6)))
    print(f"KILL_SEED={seed}")
    return seed


def test_waits_go_on_in_another_triggerer(task_run: MakeRun, simulator: ServiceSimulator, tmp_path: Path) -> None:
    seed = seed_of_the_day()
    workflow_id = put(simulator, webhook(), wait(0.9), DONE)

    def trial(number: int) -> tuple[str, int]:
        run = TaskRun(
            ServiceRunWorkflowOperator,
            {"workflow_id": workflow_id, "poll_interval": 0.1, "timeout": 30.0, "deferrable": True},
            map_index=number,
        )
        waiting = deferred(run)
        events = tmp_path / f"{number}.events"
        processes = killed_triggerer(as_stored(waiting.trigger), events, random.Random(seed + number))
        done = run.resume(1, waiting, event_of(events))
        run.close()
        return done["status"], processes

    with ThreadPoolExecutor(AT_ONCE) as threads:
        ended = list(threads.map(trial, range(WAITS)))
    assert [status for status, _ in ended] == ["success"] * WAITS
    print(f"processes each wait took: {sorted(processes for _, processes in ended)}")
    assert sum(processes - 1 for _, processes in ended) >= WAITS
    assert statuses(simulator, workflow_id) == ["success"] * WAITS
    assert not [request.path for request in simulator.requests if request.path.endswith("/stop")]


def test_the_deadline_is_the_first_ones(task_run: MakeRun, simulator: ServiceSimulator, tmp_path: Path) -> None:
    workflow_id = put(simulator, webhook(), wait(60), DONE)
    run = task_run(workflow_id=workflow_id, deferrable=True, timeout=2.0)
    began = time.time()
    waiting = deferred(run)
    events = tmp_path / "events"
    killed_triggerer(as_stored(waiting.trigger), events, random.Random(seed_of_the_day()))
    assert 2.0 <= time.time() - began < 4.0
    event = event_of(events)
    assert (event["verdict"], event["execution_id"]) == ("timed_out", "1")
    # A triggerer that dies or times out stops nothing; the task does.
    assert statuses(simulator, workflow_id) == ["running"]
    with pytest.raises(ServiceExecutionFailedError, match="had not ended 2 s after the wait began; it was stopped"):
        run.resume(1, waiting, event)
    assert statuses(simulator, workflow_id) == ["canceled"]
