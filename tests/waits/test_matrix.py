"""However a task waits, the same end of an execution has the same outcome and the same message."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import requests
from airflow.providers.common.compat.sdk import TaskDeferred

from airflow_provider_service.client._clock import clock
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing._service import revived
from tests import airflow_features

from .cases import (
    CANNOT_SEE,
    CASES,
    CRASH,
    ENDS_BADLY,
    FAILING_POLLS,
    FAILS,
    LONG_TOLERANCE,
    MAY_NOT_SEE,
    OUTAGE,
    OVERDUE,
    SUCCESS,
    TIMEOUT,
    TOLERANCE,
    VANISHES,
    Case,
    vanish,
)
from .driving import (
    LISTED_MODES,
    MODES,
    AirflowRescheduleException,
    Ending,
    Meanwhile,
    Mode,
    TaskInstance,
    Triggerer,
    lists_of_active,
    polls_of,
    run_to_end,
)
from .polls import CONNECTION

INTERVAL = 0.03
ALL_MODES = (*MODES, *LISTED_MODES)
THAT_START = tuple(mode for mode in ALL_MODES if mode.starts)
SENSORS = tuple(mode for mode in ALL_MODES if not mode.starts)


def named(values: tuple[Any, ...]) -> dict[str, Any]:
    return {"argvalues": values, "ids": [one.name for one in values]}


class Seen(NamedTuple):
    """How an attempt of a task ended, and for which execution it had waited."""

    ending: Ending
    execution_id: str
    workflow_id: str
    url: str

    def expected(self, message: str) -> str:
        return message.format(id=self.execution_id, url=self.url, crash=CRASH)


class Waiting:
    """A task that waits in a mode, attempt after attempt, for an execution that something happens to."""

    def __init__(self, simulator: ServiceSimulator, mode: Mode, case: Case) -> None:
        self._simulator, self._mode, self._case = simulator, mode, case
        others = simulator.create_webhook_workflow(path="other", behaviour="long")
        self._beside = [simulator.start_execution(others["id"]) for _ in range(mode.neighbours)]
        workflow = simulator.create_webhook_workflow(path="w", behaviour=case.behaviour, respond_with_id=True)
        self.workflow_id = workflow["id"]
        self._target = self.workflow_id if mode.starts else started(simulator)

    def attempt(self, number: int = 1, case: Case | None = None, **options: Any) -> Seen:
        """Run an attempt to its end; something happens at its second poll, which is made where the mode waits.

        :param case: what happens, by default what the wait was made for.
        """
        self._simulator.clear_requests()
        case, ti = case or self._case, TaskInstance(number)
        arguments = {"fault_tolerance": TOLERANCE, **case.options, **options}
        polls = 1 if case in {TIMEOUT, OVERDUE} else 2  # on a busy machine, time may be up after the first
        with Meanwhile(self._simulator, lambda one: case.act(self._simulator, one), polls=polls) as meanwhile:
            ending = run_to_end(lambda: self._mode.task(self._target, interval=INTERVAL, **arguments), ti, self._beside)
        assert meanwhile.execution_id is not None, f"the task has not looked {polls} times"
        assert set(ti.pauses) == ({self._mode.pause} if self._mode.pause else set())
        assert bool(lists_of_active(self._simulator)) == bool(self._mode.neighbours)
        url = f"{self._simulator.base_url}/workflow/{self.workflow_id}/executions/{meanwhile.execution_id}"
        return Seen(ending, meanwhile.execution_id, self.workflow_id, url)


def started(simulator: ServiceSimulator) -> str:
    """Start an execution on its webhook, as somebody else does whom a sensor waits for; its id."""
    with requests.post(f"{simulator.base_url}/webhook/w", json={}, timeout=60) as answer:
        return str(answer.json()["executionId"])


Wait = Callable[[Mode, Case], Waiting]


@pytest.fixture
def waiting(simulator: ServiceSimulator) -> Wait:
    """``waiting(mode, case).attempt()`` lets a task wait."""
    return lambda mode, case: Waiting(simulator, mode, case)


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("mode", **named(ALL_MODES))
@pytest.mark.parametrize("case", **named(CASES))
def test_every_way_to_wait_ends_alike(case: Case, mode: Mode, waiting: Wait) -> None:
    seen = waiting(mode, case).attempt()

    assert seen.ending.kind == (case.operator if mode.starts else case.sensor), seen
    assert seen.ending.message == seen.expected(case.message) + fate_of(case, mode)
    if seen.ending.kind == "returned":
        assert seen.ending.value["execution_id"] == seen.execution_id
        assert seen.ending.value["status"] == (None if case.act is vanish else "success")


def fate_of(case: Case, mode: Mode) -> str:
    """What a message says at its end about an execution whose wait has passed its deadline."""
    if mode.starts:
        return {TIMEOUT: "; it was stopped", OVERDUE: "; it could NOT be stopped"}.get(case, "")
    return {TIMEOUT: "; it was not stopped. To wait longer, raise timeout"}.get(case, "")


@pytest.mark.slow
@pytest.mark.parametrize("mode", **named(ALL_MODES))
def test_an_outage_lasts_for_many_polls(mode: Mode, waiting: Wait, simulator: ServiceSimulator) -> None:
    seen = waiting(mode, OUTAGE).attempt()

    failed = [one for one in simulator.requests if one.status != 200]
    assert len(failed) >= FAILING_POLLS * 5 / 6  # what is truncated has a status of 200
    assert (seen.ending.kind, polls_of(simulator, seen.execution_id) >= 2) == ("returned", True)


@pytest.mark.parametrize("mode", **named(ALL_MODES))
def test_what_is_returned_is_the_same(mode: Mode, waiting: Wait) -> None:
    seen = waiting(mode, SUCCESS).attempt()

    value = seen.ending.value
    of_runs = {"nodes", "node_count"} if mode.starts else set()
    assert value.keys() == {"execution_id", "status", "workflow_id", "started_at", "stopped_at", "url", *of_runs}
    assert (value["workflow_id"], value["url"]) == (seen.workflow_id, seen.url)
    assert value["started_at"] <= value["stopped_at"]
    assert seen.ending.pushed["_link_ServiceExecutionLink"] == seen.url


@pytest.mark.slow(one_in=7)
@pytest.mark.parametrize("mode", **named(SENSORS))
@pytest.mark.parametrize("case", **named(FAILS))
@pytest.mark.parametrize("option", ["soft_fail", "never_fail"])
def test_skipping_is_the_same(option: str, case: Case, mode: Mode, waiting: Wait) -> None:
    seen = waiting(mode, case).attempt(**{option: True})

    # That it could not be observed says nothing of how it ended, so only never_fail skips then.
    fails = option == "soft_fail" and case in {OVERDUE, *CANNOT_SEE, MAY_NOT_SEE}
    assert seen.ending.kind == (case.sensor if fails else "AirflowSkipException")
    assert seen.ending.message == seen.expected(case.message) + fate_of(case, mode)


# ---------------------------------------------------------------- the next attempt


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("mode", **named(THAT_START))
@pytest.mark.parametrize("case", **named((*ENDS_BADLY, TIMEOUT)))
def test_after_a_run_that_failed_a_retry_starts_one_other(
    case: Case, mode: Mode, waiting: Wait, simulator: ServiceSimulator
) -> None:
    one = waiting(mode, case)
    first, second = one.attempt(), one.attempt(2, SUCCESS)

    assert (first.ending.kind, second.ending.kind) == ("ServiceExecutionFailedError", "returned")
    assert second.ending.value["execution_id"] == second.execution_id != first.execution_id
    assert executions(simulator, one) == [first.execution_id, second.execution_id]


@pytest.mark.parametrize("mode", **named(ALL_MODES))
@pytest.mark.parametrize("case", **named(CANNOT_SEE))
@pytest.mark.real_time  # the clock would jump from the loss of the key to the end of the execution
def test_a_retry_resumes_a_run_that_could_not_be_observed(
    case: Case, mode: Mode, waiting: Wait, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = waiting(mode, case)
    first = one.attempt()
    simulator.clear_faults()
    connection = json.loads(simulator.connection_json())
    monkeypatch.setenv(CONNECTION, json.dumps({**connection, "password": simulator.create_key()}))
    second = one.attempt(2, SUCCESS, fault_tolerance=LONG_TOLERANCE)

    assert (first.ending.kind, second.ending.kind) == ("ServiceWaitError", "returned")
    assert executions(simulator, one) == [second.ending.value["execution_id"]] == [first.execution_id]


@pytest.mark.parametrize("mode", **named(ALL_MODES))
def test_after_a_run_that_vanished_there_is_no_retry(mode: Mode, waiting: Wait, simulator: ServiceSimulator) -> None:
    one = waiting(mode, VANISHES)

    # Airflow does not try a task again that ends so.
    assert one.attempt().ending.kind == "AirflowFailException"
    assert executions(simulator, one) == []


def executions(simulator: ServiceSimulator, one: Waiting) -> list[str]:
    """The executions of the workflow of a wait, oldest first."""
    return [str(each.id) for each in simulator.state.executions.of_workflow(one.workflow_id)]


# ---------------------------------------------------------------- kills

POKE, RESCHEDULE, DEFERRABLE, IN_WORKER, DEFERRED = MODES
KEEP = {"cancel_on_kill": False}
KILLED = ("ServiceTaskKilledError", "the task was killed while execution {id} had not ended")
STOPPED = (KILLED[0], f"{KILLED[1]}; execution {{id}} was stopped: ")
# While Airflow pauses a task, a kill says nothing: the execution or its next attempt does.
PAUSED = Ending("paused", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "options", "end", "is_stopped"),
    [
        # A sensor has nothing to clean up: Airflow ends its process, here its own time does.
        (POKE, {"timeout": 0.8}, ("AirflowSensorTimeout", TIMEOUT.message), False),
        (RESCHEDULE, {}, ("paused", ""), False),
        (DEFERRABLE, {}, ("paused", ""), False),
        (IN_WORKER, {}, STOPPED, True),
        (IN_WORKER, KEEP, KILLED, False),
        pytest.param(DEFERRED, {}, ("paused", ""), True, marks=airflow_features.kills_in_the_triggerer),
        (DEFERRED, KEEP, ("paused", ""), False),
    ],
    ids=lambda value: value.name if isinstance(value, Mode) else None,
)
def test_only_who_started_an_execution_stops_it_when_killed(
    mode: Mode,
    options: dict[str, Any],
    end: tuple[str, str],
    is_stopped: bool,
    simulator: ServiceSimulator,
    workflow_id: str,
) -> None:
    target = workflow_id if mode.starts else simulator.start_execution(workflow_id)
    task = mode.task(target, interval=1.0, **options)
    ending = killed(simulator, task)

    [execution] = simulator.state.executions
    kind, message = end
    assert ending.kind == kind
    assert ending.message.startswith(message.format(id=execution.id))
    stops = [one.path for one in simulator.requests if one.path.endswith("/stop")]
    assert stops == ([f"/api/v1/executions/{execution.id}/stop"] if is_stopped else [])
    assert execution.status == ("canceled" if is_stopped else "running")

    # Cleared or tried again it waits on; for another execution where it has stopped its own.
    with Meanwhile(simulator, simulator.finish_execution, polls=polls_of(simulator, str(execution.id)) + 1):
        again = run_to_end(lambda: mode.task(target, interval=0.05), TaskInstance(2))
    assert (again.kind, again.value["status"]) == ("returned", "success")
    assert (again.value["execution_id"] != str(execution.id)) == is_stopped


def killed(simulator: ServiceSimulator, task: Any) -> Ending:
    """Execute a task and kill it as it waits: in the worker, in the triggerer, or in neither."""
    ti = TaskInstance()
    context: Any = {"ti": ti, "task": task, "dag_run": SimpleNamespace(start_date=None)}
    with Meanwhile(simulator, lambda _: None if task.deferrable else task.on_kill(), polls=2):
        try:
            return Ending("returned", "", task.execute(context))
        except AirflowRescheduleException:
            task.on_kill()
            return PAUSED
        except TaskDeferred as deferred:
            fired = kill_in_triggerer(revived(deferred.trigger))
            return Ending("fired", str(fired)) if fired else PAUSED
        except Exception as error:  # noqa: BLE001 - whatever it is, it is how the task ended
            return Ending(type(error).__name__, str(error))


def kill_in_triggerer(trigger: Any) -> list[Any]:
    """Run a trigger and kill it; what it has fired."""

    async def kill() -> list[Any]:
        triggerer = Triggerer()
        number = triggerer.start(trigger)
        await clock().async_sleep(0.1)
        await triggerer.kill(number)
        await triggerer.shut_down()
        return triggerer.events(number)

    return asyncio.run(kill())
