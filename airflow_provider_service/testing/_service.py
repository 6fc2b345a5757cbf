"""A simulated service, in which a test creates workflows and then checks what ran; and the way of triggers to it."""

from __future__ import annotations

import asyncio
import json
import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args

from airflow.triggers.base import BaseTrigger

from airflow_provider_service._core.arguments import read_seconds, require, require_choice
from airflow_provider_service._core.runs.searching import RUN_KEY_FIELD
from airflow_provider_service.client._clock import clock
from airflow_provider_service.simulator import _samples as samples

if TYPE_CHECKING:
    from airflow_provider_service.simulator import ServiceSimulator
    from airflow_provider_service.simulator._engine.engine import Execution
    from airflow_provider_service.simulator._samples import TriggerKind
    from airflow_provider_service.simulator._stores.workflows import Workflow

try:
    from airflow.sdk.serde import deserialize, serialize
except ImportError:  # before Airflow 3.2
    from airflow.serialization.serde import deserialize, serialize  # type: ignore[no-redef,import-not-found,unused-ignore]


#: Stands for any payload.
ANY: Any = object()


@dataclass(frozen=True)
class SimulatedRun:
    """One execution of a workflow.

    :param execution_id: id of the execution.
    :param status: the service's status, such as ``success``, ``error`` or ``running``.
    :param payload: what started it: the JSON body or query of the webhook's call, ``{}`` if it had none; the fields of
        a form; the text of a chat; the input of a sub-workflow, a list if it had several items; None for a schedule or
        a manual trigger.
    """

    execution_id: str
    status: str
    payload: Any

    def __str__(self) -> str:
        return f"execution {self.execution_id}: {self.status}, payload {self.payload!r}"


@dataclass(frozen=True)
class SimulatedWorkflow:
    """A workflow of a simulated service.

    :param id: id of the workflow.
    :param name: name of the workflow.
    :param path: path of its webhook; empty if it has none.
    """

    id: str
    name: str
    path: str
    _service: SimulatedService = field(repr=False, compare=False)

    @property
    def runs(self) -> list[SimulatedRun]:
        """Its executions, oldest first."""
        return self._service.runs(self)


class SimulatedService:
    """A simulated service for one test.

    The fixture ``service`` provides one behind the Airflow connection ``service_default``.

    :param simulator: the running simulator; it also offers faults, a clock, and all requests it has received.
    :param conn_id: id of the Airflow connection that leads to it; ``service_default`` by default.
    """

    def __init__(self, simulator: ServiceSimulator, conn_id: str = "service_default") -> None:
        self.simulator = simulator
        self.conn_id = conn_id
        self._paths: dict[str, str] = {}

    def workflow(
        self,
        name: str,
        *,
        output: Sequence[Mapping[str, Any]] | None = None,
        fails_with: str | None = None,
        takes: timedelta | float = 1.0,
        trigger: TriggerKind = "webhook",
        path: str | None = None,
        active: bool = True,
    ) -> SimulatedWorkflow:
        """Create or change a workflow. Safe to repeat.

        If this method has already created a workflow of the same name, it changes that one, whose next runs behave as
        described now. The workflow is available in MCP, and other workflows may start it, so that tasks can run it
        whatever its trigger.

        :param name: name of the workflow.
        :param output: JSON items that its last node returns; by default those of its trigger.
        :param fails_with: message with which each run fails; by default, no run fails.
        :param takes: seconds, or a timedelta, that each run takes; 1 second by default. While a task waits for the run,
            this time passes at once. A run that takes 0 seconds may end before the first poll, so the task may not
            defer.
        :param trigger: what begins its runs: ``"webhook"`` (the default), ``"schedule"``, ``"form"``, ``"chat"``,
            ``"sub-workflow"`` or ``"manual"``. The schedule itself starts nothing.
        :param path: path of its webhook; a random one by default.
        :param active: whether it is active; True by default. With a manual trigger it never is: only its draft runs.
        :returns: the workflow.
        :raises ServiceInputError: ``takes`` is not a duration, ``trigger`` is unknown, both ``output`` and
            ``fails_with`` are given, or ``path`` is given without a webhook.
        """
        require(output is None or fails_with is None, "a workflow that fails has no output")
        require_choice("trigger", trigger, get_args(samples.TriggerKind))
        require(path is None or trigger == "webhook", f"a workflow with the trigger {trigger!r} has no path")
        seconds = read_seconds("takes", takes, or_zero=True)
        before = self._paths.get(name)
        path = path or before or uuid.uuid4().hex
        items = None if output is None else json.loads(json.dumps([dict(item) for item in output]))
        begin = samples.trigger(trigger, path)
        body = samples.scripted_workflow(name, begin, seconds=seconds, output=items, error=fails_with)
        body["settings"] = {"availableInMCP": True}
        self._paths[name] = path

        def put() -> Workflow:
            workflows = self.simulator.state.workflows
            if before is None:
                workflow = workflows.create(body)
            else:
                workflow = self._find(name)
                workflows.unpublish(workflow)
                workflows.update(workflow, body)
            if active and trigger != "manual":
                workflows.publish(workflow, delay=0)
            self.simulator.state.settle()
            return workflow

        workflow_id = self.simulator.in_loop(put).id
        return SimulatedWorkflow(workflow_id, name, path if trigger == "webhook" else "", self)

    def allow_unknown_nodes(self) -> None:
        """Let workflows with node types that the simulator does not know be published.

        These can be those of community packages. Without this call, they are refused, as by a server that lacks them.
        Such a node needs no credential and no parameter, passes its items on, and counts as a trigger if its type ends
        with ``Trigger``.
        """
        self.simulator.state.node_types.allow_unknown = True

    def runs(self, workflow: SimulatedWorkflow | str) -> list[SimulatedRun]:
        """List the executions of a workflow, oldest first; deleted ones are missing.

        :param workflow: the workflow, or its name or id.
        :raises AssertionError: there is no such workflow.
        """

        def read() -> list[SimulatedRun]:
            self.simulator.state.settle()
            return list(map(_as_run, self.simulator.state.executions.of_workflow(self._find(workflow).id)))

        return self.simulator.in_loop(read)

    def assert_ran(self, workflow: SimulatedWorkflow | str, *, times: int = 1, payload: Any = ANY) -> None:
        """Assert how often a workflow has run.

        :param workflow: the workflow, or its name or id.
        :param times: the exact number of runs; 1 by default.
        :param payload: count only runs with exactly this payload; by default all runs count.
        :raises AssertionError: it ran more or less often, or does not exist; the message lists what has run.
        """
        runs = self.runs(workflow)
        count = sum(payload is ANY or run.payload == payload for run in runs)
        if count == times:
            return
        name = self.simulator.in_loop(lambda: self._find(workflow).name)
        expected = f"to run {_times(times)}" if times else "not to run"
        which = "" if payload is ANY else f" with the payload {payload!r}"
        did = f"ran {_times(count)}" if count else "did not"
        raise AssertionError(f"expected workflow {name!r} {expected}{which}, but it {did}. {self._describe(runs)}")

    def _describe(self, runs: list[SimulatedRun]) -> str:
        if runs:
            return "\n  ".join(["Its runs:", *map(str, runs)])
        state = self.simulator.state

        def read() -> list[str]:
            names = {workflow.id: workflow.name for workflow in state.workflows.all()}
            return [f"{names.get(each.workflow_id)!r}, {_as_run(each)}" for each in state.executions]

        others = self.simulator.in_loop(read)
        return "\n  ".join(["What has run instead:", *others]) if others else "No workflow has run."

    def _find(self, workflow: SimulatedWorkflow | str) -> Workflow:
        wanted = workflow if isinstance(workflow, str) else workflow.id
        workflows = self.simulator.state.workflows.all()
        matching = [each for each in workflows if wanted in (each.id, each.name)]
        if not matching:
            names = ", ".join(sorted(repr(each.name) for each in workflows)) or "none"
            raise AssertionError(f"the simulated service has no workflow {wanted!r}; it has {names}")
        if len(matching) > 1:
            raise AssertionError(f"the simulated service has {len(matching)} workflows named {wanted!r}; give an id")
        return matching[0]


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def _as_run(execution: Execution) -> SimulatedRun:
    return SimulatedRun(str(execution.id), execution.status, _payload(execution))


# Fields that the service and the task add to those of a form.
_ADDED_TO_FORMS = {"submittedAt", "formMode", RUN_KEY_FIELD}


def _payload(execution: Execution) -> Any:
    initial = execution.run.initial
    if initial is None:
        return {}
    items = [item["json"] for item in initial.items]
    first = items[0] if items else {}
    kind = initial.node["type"].rpartition(".")[2]
    if kind in ("scheduleTrigger", "manualTrigger"):
        return None
    if kind == "formTrigger":
        return {name: value for name, value in first.items() if name not in _ADDED_TO_FORMS}
    if kind == "chatTrigger":
        return first.get("chatInput")
    if kind == "executeWorkflowTrigger":
        return items if len(items) > 1 else first
    is_call = isinstance(first, dict) and {"headers", "query", "body"} <= first.keys()
    if not is_call:
        return first
    return first["query"] if first["body"] == {} else first["body"]


# ---------------------------------------------------------------- values and triggers in Airflow's database


Stored = tuple[str, dict[str, Any]]


def as_stored(trigger: BaseTrigger) -> Stored:
    path, arguments = trigger.serialize()
    return path, json.loads(json.dumps(serialize(arguments)))


def from_stored(path: str, arguments: dict[str, Any]) -> Any:
    module, _, name = path.rpartition(".")
    restored: Any = deserialize(arguments)
    return getattr(import_module(module), name)(**restored)


def revived(trigger: BaseTrigger) -> Any:
    return from_stored(*as_stored(trigger))


class TooLateError(Exception):
    """A trigger had no event in time."""


async def first_event(trigger: BaseTrigger, limit: timedelta | None = None) -> Any:
    seconds, began = math.inf if limit is None else limit.total_seconds(), clock().now()
    try:
        # In real time, in which triggers of other providers wait.
        async with asyncio.timeout(None if limit is None else seconds) as real:
            async for event in trigger.run():
                if clock().now() - began > seconds:
                    raise TooLateError
                return as_xcom(event.payload)
    except TimeoutError:
        if not real.expired():
            raise
        raise TooLateError from None
    raise AssertionError("the trigger ended without an event")


def as_xcom(value: Any) -> Any:
    return deserialize(json.loads(json.dumps(serialize(value))))
