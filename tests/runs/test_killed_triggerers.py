"""Triggerers that die at random times and come back: the wait continues to its first deadline, with one event."""

from __future__ import annotations

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import TaskDeferred

from airflow_provider_service.client.errors import ServiceExecutionFailedError
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing._service import as_stored
from tests.waits.driving import polls_of

from . import victims
from .conftest import MakeRun
from .moments import connections, seed_of_the_day, soon
from .task_run import TaskRun
from .workflows import DONE, put, statuses, wait, webhook

pytestmark = pytest.mark.real_time  # processes are killed

WAITS = 17
KILLS = 3
AT_ONCE = 4
INTERVAL = 0.1
#: Seconds of executions and waits that outlast the test on any machine.
UNENDING = 3600.0


class Wait:
    """A wait in triggerers that are killed one after the other."""

    def __init__(self, simulator: ServiceSimulator, run: TaskRun, events: Path) -> None:
        """Execute the first attempt, which defers.

        :param events: where the triggerers write down what the trigger fires.
        """
        self._simulator = simulator
        self.run = run
        with pytest.raises(TaskDeferred) as caught:
            run.attempt(1)
        self.deferred = caught.value
        self.execution_id = str(run.pushed["execution_id"])
        self._trigger = as_stored(self.deferred.trigger)
        self.deadline: float = self.deferred.trigger.deadline
        self._events = events
        self._triggerer: Any = None

    def in_another_triggerer(self) -> None:
        """Start another triggerer; returns when it has looked for the first time."""
        seen = polls_of(self._simulator, self.execution_id)
        self._triggerer = victims.FORKS.Process(
            target=victims.wait_for_event, args=(connections(), self._trigger, self._events)
        )
        self._triggerer.start()
        soon(lambda: polls_of(self._simulator, self.execution_id) > seen)

    def kill(self) -> None:
        """Kill the triggerer, which must be waiting."""
        assert self._triggerer.is_alive()
        self._triggerer.kill()
        self.end()

    def end(self) -> None:
        """Return when the triggerer has ended."""
        self._triggerer.join(120)
        self._triggerer.close()

    def event(self) -> Any:
        """The one event that was written down."""
        [line] = self._events.read_text().splitlines()
        return json.loads(line)


def killed_again_and_again(wait: Wait, dice: random.Random) -> None:
    """Kill triggerers at random times after their first poll, and start the last."""
    for _ in range(KILLS):
        wait.in_another_triggerer()
        time.sleep(dice.uniform(0, 2.5 * INTERVAL))
        wait.kill()
    wait.in_another_triggerer()


def test_waits_continue_in_another_triggerer(simulator: ServiceSimulator, tmp_path: Path) -> None:
    seed = seed_of_the_day()
    workflow_id = put(simulator, webhook(), wait(UNENDING), DONE)

    def trial(number: int) -> str:
        arguments = {"workflow_id": workflow_id, "poll_interval": INTERVAL, "timeout": UNENDING, "deferrable": True}
        run = TaskRun(ServiceRunWorkflowOperator, arguments, map_index=number)
        one, dice = Wait(simulator, run, tmp_path / f"{number}.events"), random.Random(seed + number)
        killed_again_and_again(one, dice)
        if dice.random() < 0.5:
            # It ends while no triggerer is watching.
            one.kill()
            simulator.finish_execution(one.execution_id)
            one.in_another_triggerer()
        else:
            simulator.finish_execution(one.execution_id)
        one.end()
        done = run.resume(1, one.deferred, one.event())
        run.close()
        return str(done["status"])

    with ThreadPoolExecutor(AT_ONCE) as threads:
        assert list(threads.map(trial, range(WAITS))) == ["success"] * WAITS
    assert statuses(simulator, workflow_id) == ["success"] * WAITS
    assert not [request.path for request in simulator.requests if request.path.endswith("/stop")]


def test_the_deadline_is_the_first_ones(task_run: MakeRun, simulator: ServiceSimulator, tmp_path: Path) -> None:
    workflow_id = put(simulator, webhook(), wait(60), DONE)
    run = task_run(workflow_id=workflow_id, deferrable=True, timeout=10.0)
    one = Wait(simulator, run, tmp_path / "events")
    one.in_another_triggerer()
    one.kill()
    time.sleep(max(0.0, one.deadline - time.time()))
    seen = polls_of(simulator, one.execution_id)
    one.in_another_triggerer()
    one.end()
    assert polls_of(simulator, one.execution_id) == seen + 1, "it had no time left but for a last poll"
    event = one.event()
    assert (event["verdict"], event["execution_id"]) == ("timed_out", "1")
    # A triggerer that dies or times out stops nothing; the task does.
    assert statuses(simulator, workflow_id) == ["running"]
    with pytest.raises(ServiceExecutionFailedError, match="had not ended 10 s after the wait began; it was stopped"):
        run.resume(1, one.deferred, event)
    assert statuses(simulator, workflow_id) == ["canceled"]
