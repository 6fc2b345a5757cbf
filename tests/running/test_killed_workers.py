"""Workers that die without a word, at random moments: the next attempt ends with exactly one execution."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from airflow_provider_service.client import starting
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.simulator.recording import RecordedRequest

from . import victims
from .task_run import StateStore, TaskRun
from .workflows import DONE, WITH_ID, held, put, respond, statuses, wait, webhook

TRIALS = 50
AT_ONCE = 3
RUN_SECONDS = 0.15

QUICKLY_ANSWERED: list[list[dict[str, Any]]] = [
    [webhook(), wait(RUN_SECONDS), DONE],
    [webhook(options={"responseData": WITH_ID}), wait(RUN_SECONDS), DONE],
    [webhook(mode="responseNode"), respond(), wait(RUN_SECONDS), DONE],
]
ANSWERED_AT_THE_END = [[webhook(mode="lastNode"), wait(RUN_SECONDS), DONE], [webhook(mode="lastNode"), DONE]]


class Moment(NamedTuple):
    """When a worker is killed: up to some seconds after a request of it came in.

    :param came: whether a request is the one.
    :param seconds: from the request to the latest kill.
    :param slow: path of the requests that are slowed down, to make the moment longer.
    :param modes: workflows that have such a moment.
    """

    came: Callable[[RecordedRequest], bool]
    seconds: float
    slow: str
    modes: list[list[dict[str, Any]]]


MOMENTS = {
    "right before the call": Moment(
        lambda request: "/workflows/" in request.path, 0.06, "/workflows/", QUICKLY_ANSWERED + ANSWERED_AT_THE_END
    ),
    "during the call": Moment(
        lambda request: "/webhook/" in request.path, 0.06, "^/webhook/", QUICKLY_ANSWERED + ANSWERED_AT_THE_END
    ),
    "after the call": Moment(
        lambda request: "/webhook/" in request.path and request.status is not None,
        0.05,
        "/executions",
        QUICKLY_ANSWERED,
    ),
    "while waiting": Moment(
        lambda request: "/executions/" in request.path and "includeData" not in request.query,
        RUN_SECONDS + 0.05,
        "/never",
        QUICKLY_ANSWERED + ANSWERED_AT_THE_END[:1],
    ),
}


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


def killed_once(slot: Slot, moment: Moment, seed: int, folder: Path) -> str:
    """Kill the first attempt, run the second to its end, and look at what the service holds.

    :returns: what the kill has met: no execution, one that goes on, or one that has ended.
    """
    dice, simulator = random.Random(seed), slot.simulator
    simulator.reset()
    workflow_id = put(simulator, *dice.choice(moment.modes))
    if dice.random() < 0.7:
        simulator.inject("latency", seconds=0.04, path=moment.slow, times=None, after_processing=dice.random() < 0.5)
    run = TaskRun(
        ServiceRunWorkflowOperator,
        {"workflow_id": workflow_id, "service_conn_id": slot.connection, "poll_interval": 0.03, "timeout": 20.0},
        store=StateStore(folder / f"{seed}.json") if dice.random() < 0.5 else None,
    )
    environment = {name: value for name, value in os.environ.items() if name.startswith("AIRFLOW_CONN_")}
    worker = victims.FORKS.Process(target=victims.attempt, args=(environment, run, 1))
    worker.start()
    deadline = time.monotonic() + 10
    while not any(map(moment.came, list(simulator.requests))):
        assert time.monotonic() < deadline, "the worker did nothing"
        time.sleep(0.001)
    time.sleep(dice.uniform(0, moment.seconds))
    worker.kill()
    worker.join()
    worker.close()
    met = next(iter(statuses(simulator, workflow_id)), "nothing")
    simulator.clear_faults()
    done = run.whole_attempt(2, deferrable=dice.random() < 0.3)
    run.close()
    [execution] = held(simulator, workflow_id)
    assert (execution.status, str(execution.id)) == (done["status"], done["execution_id"])
    assert execution.status == "success"
    return met


@pytest.mark.parametrize("name", MOMENTS)
def test_a_worker_killed_at_a_random_moment(
    name: str, slots: list[Slot], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for constant, seconds in victims.QUICK.items():
        monkeypatch.setattr(starting, constant, seconds)
    for slot in slots:
        monkeypatch.setenv(f"AIRFLOW_CONN_{slot.connection.upper()}", slot.simulator.connection_json())
    first_seed = int(os.environ.get("KILL_SEED", random.SystemRandom().randrange(10**6)))
    print(f"KILL_SEED={first_seed}")
    met: Counter[str] = Counter()
    failed: list[str] = []

    def trials(number: int) -> None:
        for seed in range(first_seed + number, first_seed + TRIALS, AT_ONCE):
            try:
                met[killed_once(slots[number], MOMENTS[name], seed, tmp_path)] += 1
            except Exception as error:  # noqa: BLE001 - told with the seed that makes it come back
                failed.append(f"KILL_SEED={seed}: {error!r}")

    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(trials, range(AT_ONCE)))
    print(f"{name}: the kills met {dict(met)}")
    assert not failed, f"{len(failed)} of {TRIALS} trials: {failed[:5]}"
    assert met.total() == TRIALS
