"""Workers that die silently at random times: the next attempt ends with exactly one execution."""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.runs import searching
from airflow_provider_service.operators.executions import ServiceRetryExecutionOperator
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.simulator._engine.engine import Execution
from tests.waits.driving import polls_of

from . import victims
from .hook_task import HookTask
from .moments import connections, seed_of_the_day, soon
from .task_run import StateStore, TaskRun
from .workflows import (
    CALLED,
    CHAT,
    DONE,
    FORM,
    MANUAL,
    SCHEDULE,
    WITH_ID,
    held,
    put,
    put_bridge,
    respond,
    wait,
    webhook,
)

pytestmark = pytest.mark.real_time  # processes are killed

TRIES_FOR_A_KILL = 8
AT_ONCE = 3
RUN_SECONDS = 0.3
# Of a run whose task is killed while it waits: the service's clock jumps to the end of the run after the kill, so that
# the run does not end before it, however slow the machine is. From 65 s on, the service would not call it running.
LONG_RUN_SECONDS = 60.0
SLOW_SECONDS = 0.04

Nodes = list[dict[str, Any]]

CALL = "^/webhook/|^/mcp-server/|/retry$"

QUICKLY_ANSWERED: list[Nodes] = [
    [webhook(), wait(RUN_SECONDS), DONE],
    [webhook(options={"responseData": WITH_ID}), wait(RUN_SECONDS), DONE],
    [webhook(mode="responseNode"), respond(), wait(RUN_SECONDS), DONE],
]
ANSWERED_AT_THE_END: list[Nodes] = [[webhook(mode="lastNode"), wait(RUN_SECONDS), DONE]]
ALL_MODES: list[Nodes] = [*QUICKLY_ANSWERED, *ANSWERED_AT_THE_END, [webhook(mode="lastNode"), DONE]]


class Subject(NamedTuple):
    """What is killed.

    :param operator: starts an execution.
    :param kills: how many have to fall into each window; ``KILLS`` overrides it.
    :param arguments: of the operator.
    :param modes: workflows that it runs; None for those of the window.
    :param may_doubt: whether it may fail for good after a kill, because nothing tells which execution is its own.
    """

    operator: type[Any]
    kills: int
    arguments: Mapping[str, Any] = {}
    modes: list[Nodes] | None = None
    may_doubt: bool = False


THROUGH_MCP = {"start": "mcp"}
WITH_TEXT = {**THROUGH_MCP, "payload": "Hello"}
OF_DRAFT = {**THROUGH_MCP, "mode": "manual"}
THROUGH_BRIDGE = {"start": "bridge"}
SUBJECTS = {
    "webhook": Subject(ServiceRunWorkflowOperator, 5),
    "hook": Subject(HookTask, 3),
    "retry": Subject(ServiceRetryExecutionOperator, 3),
    "form": Subject(ServiceRunWorkflowOperator, 3, THROUGH_MCP, [[FORM, wait(RUN_SECONDS), DONE]]),
    "schedule": Subject(ServiceRunWorkflowOperator, 3, THROUGH_MCP, [[SCHEDULE, wait(RUN_SECONDS), DONE]], True),
    "chat": Subject(ServiceRunWorkflowOperator, 3, WITH_TEXT, [[CHAT, wait(RUN_SECONDS), DONE]], True),
    "manual": Subject(ServiceRunWorkflowOperator, 3, OF_DRAFT, [[MANUAL, wait(RUN_SECONDS), DONE]], True),
    "sub-workflow": Subject(ServiceRunWorkflowOperator, 3, THROUGH_BRIDGE, [[CALLED, wait(RUN_SECONDS), DONE]]),
}


class Phase(Enum):
    """How far an attempt has come, by what the service has seen of it."""

    SILENT = "it has asked for nothing"
    BEFORE = "right before the call"
    DURING = "during the call"
    AFTER = "after the call"
    WAITING = "while waiting"
    ENDED = "the run or the worker had ended"


class Window(NamedTuple):
    """The moments of a phase.

    :param seconds: from the begin of the phase to the latest kill, when the service is slow and when it is not.
    :param slow: path of the requests that are slowed down, to make the phase longer.
    :param modes: workflows that have such a phase.
    """

    seconds: tuple[float, float]
    slow: str
    modes: list[Nodes]


WINDOWS = {
    Phase.BEFORE: Window((0.045, 0.008), "/workflows/|/executions", ALL_MODES),
    Phase.DURING: Window((0.04, 0.004), CALL, ALL_MODES),
    Phase.AFTER: Window((0.04, 0.008), "/executions", QUICKLY_ANSWERED),
    Phase.WAITING: Window((0.08, 0.08), "/executions/[0-9]+$", QUICKLY_ANSWERED + ANSWERED_AT_THE_END),
}
EARLIER = {aim: list(Phase)[: list(Phase).index(aim)] for aim in WINDOWS}
# A retry is answered at the end of its run, so nothing of it comes after the call.
CASES = [(name, aim) for name in SUBJECTS for aim in WINDOWS if (name, aim) != ("retry", Phase.AFTER)]


class Slowness(Enum):
    """What the service is slow to do."""

    NONE = "nothing"
    TO_ACT = "act"
    TO_ANSWER = "answer"


class Slot(NamedTuple):
    """A service of its own for the trials that run one after the other."""

    simulator: ServiceSimulator
    connection: str


@pytest.fixture(scope="module")
def slots() -> Iterator[list[Slot]]:
    simulators = [ServiceSimulator().start() for _ in range(AT_ONCE)]
    yield [Slot(simulator, f"service_{number}") for number, simulator in enumerate(simulators)]
    for simulator in simulators:
        simulator.stop()


@dataclass
class Victim:
    """The first attempt of a task run, in a process of its own.

    :param original: the execution that it retries, if it does.
    """

    simulator: ServiceSimulator
    run: TaskRun
    workflow_id: str
    original: str | None

    def start(self) -> None:
        """Start the process."""
        self._worker = victims.FORKS.Process(target=victims.attempt, args=(connections(), self.run, 1))
        self._worker.start()

    def phase(self) -> Phase:
        """How far it has come; to be asked where the simulator does nothing meanwhile."""
        requests = self.simulator.requests
        call = next((one for one in requests if re.search(CALL, one.path)), None)
        if call is None:
            return Phase.BEFORE if requests else Phase.SILENT
        before = requests.index(call)
        watched = [one for one in self.started() if polls_of(self.simulator, str(one.id), after=before)]
        if watched or not self._worker.is_alive():
            goes_on = self._worker.is_alive() and watched[-1].in_progress
            return Phase.WAITING if goes_on else Phase.ENDED
        return Phase.DURING if call.status is None else Phase.AFTER

    def started(self) -> list[Execution]:
        """The executions that the task run has started."""
        all_of_it = self.simulator.state.executions.of_workflow(self.workflow_id)
        return [one for one in all_of_it if str(one.id) != self.original]

    def kill(self) -> Phase:
        """Kill it, and return the time of the kill."""

        def look_and_kill() -> Phase:
            self.simulator.state.settle()
            phase = self.phase()
            self._worker.kill()
            return phase

        phase = self.simulator.in_loop(look_and_kill)
        self._worker.join()
        self._worker.close()
        return phase


def victim(slot: Slot, subject: Subject, aim: Phase, dice: random.Random, store: StateStore) -> Victim:
    """Create a workflow, and the attempt that is to run it or to retry an execution of it."""
    simulator, operator = slot.simulator, subject.operator
    simulator.reset()
    is_retry = operator is ServiceRetryExecutionOperator
    nodes = QUICKLY_ANSWERED[0] if is_retry else dice.choice(subject.modes or WINDOWS[aim].modes)
    if aim is Phase.WAITING:
        nodes = [wait(LONG_RUN_SECONDS) if one == wait(RUN_SECONDS) else one for one in nodes]
    workflow_id = put(simulator, *nodes, active=subject.arguments != OF_DRAFT, availableInMCP=True)
    if subject.arguments == THROUGH_BRIDGE:
        put_bridge(simulator)
    original = simulator.start_execution(workflow_id, status="error") if is_retry else None
    target = {"execution_id": original} if is_retry else {"workflow_id": workflow_id}
    run = TaskRun(
        operator,
        {
            **target,
            **subject.arguments,
            "service_conn_id": slot.connection,
            "poll_interval": 0.03,
            "timeout": 120.0,
            "deferrable": dice.random() < 0.3,
        },
        store=store if dice.random() < 0.5 else None,
    )
    return Victim(simulator, run, workflow_id, original)


def killed_once(slot: Slot, subject: Subject, aim: Phase, seed: int, folder: Path) -> Phase:
    """Kill the first attempt, run the second to its end, and look at what the service holds.

    :returns: where the kill fell.
    """
    dice, simulator, window = random.Random(seed), slot.simulator, WINDOWS[aim]
    one = victim(slot, subject, aim, dice, StateStore(folder / f"{seed}.json"))
    slowness = dice.choice([Slowness.NONE, Slowness.TO_ACT, Slowness.TO_ANSWER])
    if slowness is not Slowness.NONE:
        late = slowness is Slowness.TO_ANSWER
        simulator.inject("latency", seconds=SLOW_SECONDS, path=window.slow, times=None, after_processing=late)
    one.start()
    # Before its first request, its phase is known without asking in the service's loop, a thousand times a second.
    soon(lambda: bool(simulator.requests) and simulator.in_loop(one.phase) not in EARLIER[aim])
    time.sleep(dice.uniform(0, window.seconds[slowness is Slowness.NONE]))
    phase = one.kill()
    simulator.clear_faults()
    if aim is Phase.WAITING:
        simulator.clock.advance(LONG_RUN_SECONDS - dice.uniform(0, RUN_SECONDS))
    doubt = ""
    try:
        done = one.run.whole_attempt(2, deferrable=dice.random() < 0.3)
    except AirflowFailException as error:
        doubt = str(error)
    one.run.close()
    held(simulator, one.workflow_id)
    [execution] = one.started()
    if doubt:
        assert subject.may_doubt, doubt
        assert f"/executions/{execution.id}" in doubt
        return phase
    assert (execution.status, str(execution.id)) == (done["status"], done["execution_id"])
    assert execution.status == "success"
    assert execution.retry_of == (None if one.original is None else int(one.original))
    return phase


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize(("name", "aim"), CASES, ids=[f"{name}-{aim.value}" for name, aim in CASES])
def test_a_worker_killed_at_a_random_moment(
    name: str, aim: Phase, slots: list[Slot], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    subject = SUBJECTS[name]
    for constant, seconds in victims.QUICK.items():
        monkeypatch.setattr(searching, constant, seconds)
    for slot in slots:
        fields = {**json.loads(slot.simulator.connection_json()), "extra": {"mcp_api_key": slot.simulator.mcp_api_key}}
        monkeypatch.setenv(f"AIRFLOW_CONN_{slot.connection.upper()}", json.dumps(fields))
    kills, first_seed = int(os.environ.get("KILLS", subject.kills)), seed_of_the_day()
    seeds = iter(range(first_seed, first_seed + TRIES_FOR_A_KILL * kills))
    fell: Counter[Phase] = Counter()
    failed: list[str] = []

    def trials(slot: Slot) -> None:
        while fell[aim] < kills and not failed and (seed := next(seeds, None)) is not None:
            try:
                fell[killed_once(slot, subject, aim, seed, tmp_path)] += 1
            except Exception as error:  # noqa: BLE001 - told with the seed that makes it come back
                failed.append(f"KILL_SEED={seed}: {error!r}")

    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(trials, slots))
    where = ", ".join(f"{times} {phase.value}" for phase, times in fell.items())
    print(f"{name}, {aim.value}: the kills fell {where}")
    assert not failed, failed
    assert fell[aim] >= kills, where
