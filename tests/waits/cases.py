"""Cases of what can happen to an execution while a task waits for it, and how the task must then end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.simulator._samples import Behaviour

TOLERANCE = 0.3
# Of faults that pass: more than a slow machine takes for all the polls that fail.
LONG_TOLERANCE = 12.0
FAILING_POLLS = 36
CRASH = "Workflow did not finish, possible out-of-memory issue"

Act = Callable[[ServiceSimulator, str], None]


@dataclass(frozen=True)
class Case:
    """What happens to an execution while a task waits, and how the task must end.

    :param act: done once the task has looked.
    :param sensor: how a sensor ends: the exception's class, or "returned".
    :param operator: how an operator that started the execution ends.
    :param message: its message; ``{id}``, ``{url}`` and ``{crash}`` are filled in.
    :param options: further arguments of the task.
    :param behaviour: of the workflow: its run goes on, or sleeps.
    """

    name: str
    act: Act
    sensor: str
    operator: str
    message: str
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    behaviour: Behaviour = "long"


def finish(status: str) -> Act:
    return lambda simulator, execution_id: simulator.finish_execution(
        execution_id, status, node="Webhook", message="it broke"
    )


def vanish(simulator: ServiceSimulator, execution_id: str) -> None:
    simulator.forget_execution(execution_id)


def nothing(simulator: ServiceSimulator, execution_id: str) -> None:
    """It keeps running."""


# Reads by id, and lists.
POLLS = "/executions(/[0-9]+)?$"
FAULTS: tuple[dict[str, Any], ...] = (
    {"kind": "status", "status": 500},
    {"kind": "drop"},
    {"kind": "truncate"},
    {"kind": "status", "status": 429, "retry_after": 1},
    {"kind": "html", "status": 502},
    {"kind": "html", "status": 404},
)


def fail_for_a_while(simulator: ServiceSimulator, execution_id: str) -> None:
    """Many looks in a row fail, in every way; meanwhile it ends."""

    for _ in range(FAILING_POLLS // len(FAULTS)):
        for fault in FAULTS:
            simulator.inject(**fault, path=POLLS)
    simulator.finish_execution(execution_id, "success")


def fail_for_good(simulator: ServiceSimulator, execution_id: str) -> None:
    simulator.inject("status", times=None, path=POLLS, status=503)


def fail_completely(simulator: ServiceSimulator, execution_id: str) -> None:
    """It succeeds, but nothing is answered any longer: neither a read nor a stop."""
    simulator.finish_execution(execution_id, "success")
    simulator.inject("status", times=None, status=503)


def restart(simulator: ServiceSimulator, execution_id: str) -> None:
    simulator.clock.advance(1)  # so that it has come to its second node
    simulator.restart(boot_seconds=TOLERANCE / 2)


def restart_then_succeed(simulator: ServiceSimulator, execution_id: str) -> None:
    restart(simulator, execution_id)
    simulator.finish_execution(execution_id, "success")


def take_scope(simulator: ServiceSimulator, execution_id: str) -> None:
    simulator.inject("status", times=None, path=POLLS, status=403)


def revoke(simulator: ServiceSimulator, execution_id: str) -> None:
    simulator.revoke_key(simulator.api_key)


FAILED = ("AirflowFailException", "ServiceExecutionFailedError")
UNOBSERVED = ("ServiceWaitError", "ServiceWaitError")
UNOBSERVED_FOR_GOOD = ("AirflowFailException", "AirflowFailException")
ENDED = "execution {id} ended with status"
VANISHED = (
    "execution {id} cannot be found: it was deleted or pruned, its workflow does not save such executions, the id is "
    "wrong, or the key of connection 'service_default' may not see it; it counts as failed, although its end was not "
    "seen (on_vanished='fail')"
)
UNOBSERVABLE = "execution {id} could not be observed and may still be running: "
UNAVAILABLE = (
    UNOBSERVABLE + "reading it failed for more than 0.3 s (fault_tolerance), last: the service is not available "
    "now (HTTP 503) - the service says: 'Service Unavailable' (connection 'service_default')"
)
OVERDUE_UNSEEN = UNAVAILABLE.replace(
    "reading it failed for more than 0.3 s (fault_tolerance)", "the deadline passed while reading it failed"
)
UNAUTHORIZED = (
    UNOBSERVABLE + "the key was refused (HTTP 401) - the service says: 'Unauthorized'. The key may be "
    "mistyped, expired or deleted, or sent in the wrong header: see the connection's password, and its type, "
    "which is 'n8n' for n8n (or its extra 'key_header': n8n expects X-N8N-API-KEY) (connection 'service_default')"
)
LACKS_SCOPE = (
    UNOBSERVABLE + "the key lacks the scope 'execution:read' (HTTP 403) - the service says: 'Forbidden'. Give the key "
    "that scope, or its user a role that holds it (connection 'service_default')"
)

LONG = {"fault_tolerance": LONG_TOLERANCE}
SUCCESS = Case("success", finish("success"), "returned", "returned", "")
VANISHED_IS_FINE = Case("vanished, and that succeeds", vanish, "returned", "returned", "", {"on_vanished": "succeed"})
OUTAGE = Case("transient faults", fail_for_a_while, "returned", "returned", "", LONG)
SUCCEEDS = (
    SUCCESS,
    VANISHED_IS_FINE,
    OUTAGE,
    Case("restart while it sleeps", restart_then_succeed, "returned", "returned", "", LONG, behaviour="waiting"),
)
ENDS_BADLY = (
    Case("error", finish("error"), *FAILED, ENDED + " 'error' at node 'Webhook': it broke - {url}"),
    Case(
        "canceled",
        finish("canceled"),
        *FAILED,
        ENDED + " 'canceled' after node 'Webhook': The execution was cancelled manually - {url}",
    ),
    Case("crashed", finish("crashed"), *FAILED, ENDED + " 'crashed' after node 'Webhook': {crash} - {url}"),
    Case("restart while it runs", restart, *FAILED, ENDED + " 'crashed' after node 'Wait': {crash} - {url}", LONG),
)
VANISHES = Case("vanished", vanish, "AirflowFailException", "AirflowFailException", VANISHED)
TIMEOUT = Case(
    "timeout",
    nothing,
    "AirflowSensorTimeout",
    "ServiceExecutionFailedError",
    "execution {id} had not ended 0.8 s after the wait began",
    {"timeout": 0.8},
)
# The wait would still tolerate the faults, so its deadline comes first.
OVERDUE = Case(
    "timeout during faults",
    fail_completely,
    *UNOBSERVED,
    OVERDUE_UNSEEN,
    {"timeout": 0.8, "fault_tolerance": 60.0},
)
CANNOT_SEE = (
    Case("faults without end", fail_for_good, *UNOBSERVED, UNAVAILABLE),
    Case("key revoked", revoke, *UNOBSERVED, UNAUTHORIZED),
)
MAY_NOT_SEE = Case("scope taken away", take_scope, *UNOBSERVED_FOR_GOOD, LACKS_SCOPE)
FAILS = (*ENDS_BADLY, VANISHES, TIMEOUT, OVERDUE, *CANNOT_SEE, MAY_NOT_SEE)
CASES = (*SUCCEEDS, *FAILS)
