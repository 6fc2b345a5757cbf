"""However a task waits, the same end of an execution has the same outcome and the same message."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from airflow.providers.common.compat.sdk import AirflowSensorTimeout, TaskDeferred

from airflow_provider_service.simulator import ServiceSimulator

from .driving import MODES, SENSOR_MODES, Ending, Meanwhile, Mode, TaskInstance, Triggerer, revived, run_to_end

INTERVAL = 0.03
TOLERANCE = 0.3

Act = Callable[[ServiceSimulator, str], None]


@dataclass(frozen=True)
class Case:
    """What happens to an execution while a task waits, and how the task must end.

    :param act: done once the task has looked.
    :param sensor: how a sensor ends: the exception's class, or "returned".
    :param operator: how an operator that started the execution ends.
    :param message: its message; ``{id}``, ``{url}``, ``{node}`` and ``{crash}`` are filled in.
    :param options: further arguments of the task.
    :param status: of the execution before.
    """

    name: str
    act: Act
    sensor: str
    operator: str
    message: str
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    status: str = "running"


def finish(status: str) -> Act:
    return lambda simulator, execution_id: simulator.finish_execution(
        execution_id, status, node="Webhook", message="it broke"
    )


def vanish(simulator: ServiceSimulator, execution_id: str) -> None:
    simulator.forget_execution(execution_id)


def nothing(simulator: ServiceSimulator, execution_id: str) -> None:
    """It goes on."""


def fail_for_a_while(simulator: ServiceSimulator, execution_id: str) -> None:
    """Six looks in a row fail, each in its own way; that takes less than the tolerance."""
    path = f"/executions/{execution_id}$"
    simulator.finish_execution(execution_id, "success")
    simulator.inject("status", path=path, status=500)
    simulator.inject("drop", path=path)
    simulator.inject("truncate", path=path)
    simulator.inject("status", path=path, status=429, retry_after=1)
    simulator.inject("html", path=path, status=502)
    simulator.inject("html", path=path, status=404)


def fail_for_good(simulator: ServiceSimulator, execution_id: str) -> None:
    simulator.inject("status", times=None, path=f"/executions/{execution_id}$", status=503)


def restart(simulator: ServiceSimulator, execution_id: str) -> None:
    simulator.clock.advance(1)  # so that one that was really started has come to its second node
    simulator.restart(boot_seconds=TOLERANCE / 2)


def restart_then_succeed(simulator: ServiceSimulator, execution_id: str) -> None:
    restart(simulator, execution_id)
    simulator.finish_execution(execution_id, "success")


def revoke(simulator: ServiceSimulator, execution_id: str) -> None:
    simulator.revoke_key(simulator.api_key)


FAILED = ("AirflowFailException", "ServiceExecutionFailedError")
UNOBSERVED = ("ServiceWaitError", "ServiceWaitError")
ENDED = "execution {id} ended with status"
VANISHED = (
    "execution {id} can not be found: it was deleted or pruned, its workflow does not save such executions, or it "
    "never existed (on_vanished='fail')"
)
UNOBSERVABLE = "execution {id} could not be observed, it may still be running: "
UNAVAILABLE = (
    UNOBSERVABLE + "reading it failed for more than 0.3 s, last: GET /executions/{id}: the service is not available "
    "now (HTTP 503) - the service says: 'Service Unavailable'"
)
UNAUTHORIZED = (
    UNOBSERVABLE + "GET /executions/{id}: the key was refused (HTTP 401) - the service says: 'Unauthorized'. It may be "
    "mistyped, expired or deleted, or sent in the wrong header: see the connection's password and its extra "
    "'api_key_header' (n8n expects X-N8N-API-KEY)"
)

SUCCEEDS = (
    Case("success", finish("success"), "returned", "returned", ""),
    Case("vanished, and that succeeds", vanish, "returned", "returned", "", {"on_vanished": "succeed"}),
    Case("transient faults", fail_for_a_while, "returned", "returned", ""),
    Case("restart while it sleeps", restart_then_succeed, "returned", "returned", "", status="waiting"),
)
FAILS = (
    Case("error", finish("error"), *FAILED, ENDED + " 'error' at node 'Webhook': it broke - {url}"),
    Case(
        "canceled",
        finish("canceled"),
        *FAILED,
        ENDED + " 'canceled': The execution was cancelled manually - {url}",
    ),
    Case("crashed", finish("crashed"), *FAILED, ENDED + " 'crashed' at node 'Webhook': {crash} - {url}"),
    Case("vanished", vanish, "AirflowFailException", "AirflowFailException", VANISHED),
    Case("restart while it runs", restart, *FAILED, ENDED + " 'crashed' at node '{node}': {crash} - {url}"),
)
TIMEOUT = Case(
    "timeout",
    nothing,
    "AirflowSensorTimeout",
    "ServiceExecutionFailedError",
    "execution {id} had not ended 0.2 s after the wait began",
    {"timeout": 0.2},
)
CANNOT_SEE = (
    Case("faults without end", fail_for_good, *UNOBSERVED, UNAVAILABLE),
    Case("key revoked", revoke, *UNOBSERVED, UNAUTHORIZED),
)
CASES = (*SUCCEEDS, *FAILS, TIMEOUT, *CANNOT_SEE)
CRASH = "Workflow did not finish, possible out-of-memory issue"


def named(values: tuple[Any, ...]) -> dict[str, Any]:
    return {"argvalues": values, "ids": [one.name for one in values]}


class Seen(NamedTuple):
    """How a task ended, and for which execution it had waited."""

    ending: Ending
    execution_id: str
    workflow_id: str
    url: str
    node: str

    def expected(self, message: str) -> str:
        return message.format(id=self.execution_id, url=self.url, crash=CRASH, node=self.node)


Run = Callable[..., Seen]


@pytest.fixture
def run(simulator: ServiceSimulator) -> Run:
    """``run(mode, case, **options)`` lets a task wait."""

    def run_case(mode: Mode, case: Case, **options: Any) -> Seen:
        behaviour = "waiting" if case.status == "waiting" else "long"
        workflow = simulator.create_webhook_workflow(path="w", behaviour=behaviour, respond_with_id=True)
        workflow_id = workflow["id"]
        target = workflow_id if mode.starts else simulator.start_execution(workflow_id, status=case.status)
        arguments = {"fault_tolerance": TOLERANCE, **case.options, **options}
        with Meanwhile(simulator, lambda execution_id: case.act(simulator, execution_id)) as meanwhile:
            ending = run_to_end(lambda: mode.task(target, interval=INTERVAL, **arguments))
        assert meanwhile.execution_id is not None, "the task has never looked"
        url = f"{simulator.base_url}/workflow/{workflow_id}/executions/{meanwhile.execution_id}"
        return Seen(ending, meanwhile.execution_id, workflow_id, url, "Wait" if mode.starts else "Webhook")

    return run_case


@pytest.mark.parametrize("mode", **named(MODES))
@pytest.mark.parametrize("case", **named(CASES))
def test_every_way_to_wait_ends_alike(case: Case, mode: Mode, run: Run) -> None:
    seen = run(mode, case)

    assert seen.ending.kind == (case.operator if mode.starts else case.sensor), seen
    fate = "; it was stopped" if case is TIMEOUT and mode.starts else ""
    assert seen.ending.message == seen.expected(case.message) + fate
    if seen.ending.kind == "returned":
        assert seen.ending.value["execution_id"] == seen.execution_id
        assert seen.ending.value["status"] == (None if case.act is vanish else "success")


@pytest.mark.parametrize("mode", **named(MODES))
def test_what_is_returned_is_the_same(mode: Mode, run: Run) -> None:
    seen = run(mode, SUCCEEDS[0])

    value = seen.ending.value
    assert value.keys() == {"execution_id", "status", "workflow_id", "started_at", "stopped_at", "url"}
    assert (value["workflow_id"], value["url"]) == (seen.workflow_id, seen.url)
    assert value["started_at"] <= value["stopped_at"]
    assert seen.ending.pushed["_link_ServiceExecutionLink"] == seen.url


@pytest.mark.parametrize("mode", **named(SENSOR_MODES))
@pytest.mark.parametrize("case", **named((*FAILS, TIMEOUT, *CANNOT_SEE)))
@pytest.mark.parametrize("option", ["soft_fail", "never_fail"])
def test_skipping_is_the_same(option: str, case: Case, mode: Mode, run: Run) -> None:
    seen = run(mode, case, **{option: True})

    # That it could not be observed says nothing of how it ended, so only never_fail skips then.
    fails = option == "soft_fail" and case in CANNOT_SEE
    assert seen.ending.kind == ("ServiceWaitError" if fails else "AirflowSkipException")
    assert seen.ending.message == seen.expected(case.message)


POKE, _, DEFERRABLE, IN_WORKER, DEFERRED = MODES


@pytest.mark.parametrize(
    ("mode", "options", "is_stopped"),
    [
        (POKE, {"timeout": 0.5}, False),
        (DEFERRABLE, {}, False),
        (IN_WORKER, {}, True),
        (IN_WORKER, {"cancel_on_kill": False}, False),
        (DEFERRED, {}, True),
        (DEFERRED, {"cancel_on_kill": False}, False),
    ],
    ids=lambda value: value.name if isinstance(value, Mode) else str(value),
)
def test_only_who_started_an_execution_stops_it_when_killed(
    mode: Mode, options: dict[str, Any], is_stopped: bool, simulator: ServiceSimulator, workflow_id: str
) -> None:
    target = workflow_id if mode.starts else simulator.start_execution(workflow_id)
    task = mode.task(target, interval=0.2, **options)
    context: Any = {"ti": TaskInstance(), "task": task, "dag_run": SimpleNamespace(start_date=None)}
    begin = time.monotonic()
    with Meanwhile(simulator, lambda _: None if mode in {DEFERRABLE, DEFERRED} else task.on_kill(), looks=2):
        try:
            with suppress(InterruptedError, AirflowSensorTimeout):
                task.execute(context)
        except TaskDeferred as deferred:
            kill_in_triggerer(revived(deferred.trigger))

    [execution] = simulator.state.executions
    stops = [one.path for one in simulator.requests if one.path.endswith("/stop")]
    assert stops == ([f"/api/v1/executions/{execution.id}/stop"] if is_stopped else [])
    assert execution.status == ("canceled" if is_stopped else "running")
    assert time.monotonic() - begin < 3


def kill_in_triggerer(trigger: Any) -> None:
    async def kill() -> None:
        triggerer = Triggerer()
        number = triggerer.start(trigger)
        await asyncio.sleep(0.1)
        await triggerer.kill(number)
        await triggerer.shut_down()

    asyncio.run(kill())
