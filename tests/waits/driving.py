"""Tasks that wait, driven as Airflow drives them: in the worker, rescheduled, or deferred to a triggerer."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest
from airflow.jobs.triggerer_job_runner import TriggerRunner
from airflow.providers.common.compat.sdk import TaskDeferred
from airflow.providers.common.compat.triggers import BaseEventTrigger
from airflow.triggers.base import BaseTrigger

from airflow_provider_service._core.waits.watch import Wait
from airflow_provider_service.client._clock import clock
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.sensors.execution import ServiceExecutionSensor
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing._service import first_event, revived
from airflow_provider_service.testing._tasks import AirflowRescheduleException
from airflow_provider_service.triggers.execution import ServiceExecutionTrigger
from tests.airflow_features import AIRFLOW

LONGEST_SECONDS = 1200.0  # only so that a test which hangs ends, also where each process gets a twelfth of a core


class TaskInstance:
    """Keeps what a task pushes, when it was first rescheduled, and how often it was paused."""

    #: The one that was made last: Airflow 2.11 asks its database, which tests have not, and not the task instance.
    latest: ClassVar[TaskInstance]

    def __init__(self, try_number: int = 1) -> None:
        TaskInstance.latest = self
        self.dag_id, self.run_id, self.task_id, self.map_index = "dag", "run", "wait", -1
        self.try_number, self.max_tries = try_number, 0
        self.pauses: Counter[str] = Counter()
        self.pushed: dict[str, Any] = {}
        self.first_reschedule: Any = None
        #: What Airflow 3.3 keeps for the task; None for an older version.
        self.store: Any = None

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value

    def get_first_reschedule_date(self, context: Any) -> Any:
        return self.first_reschedule


@dataclass(frozen=True)
class Ending:
    """How a task ended: with a value, or with an exception of a class."""

    kind: str
    message: str
    value: Any = None
    pushed: dict[str, Any] = field(default_factory=dict, compare=False)


def run_to_end(make: Callable[[], Any], ti: TaskInstance | None = None, beside: Sequence[str] = ()) -> Ending:
    """Execute a task until it ends, with a new instance after each pause, as Airflow does.

    :param make: makes the task.
    :param ti: the attempt; the first one by default.
    :param beside: executions that others wait for in the same triggerer.
    """
    ti = ti or TaskInstance()
    try:
        value = _execute(make, ti, beside)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is how the task ended
        return Ending(type(error).__name__, str(error), pushed=ti.pushed)
    return Ending("returned", "", value, pushed=ti.pushed)


def _execute(make: Callable[[], Any], ti: TaskInstance, beside: Sequence[str]) -> Any:
    end = time.monotonic() + LONGEST_SECONDS
    while time.monotonic() < end:
        task = make()
        context: Any = {"ti": ti, "task": task, "dag_run": SimpleNamespace(start_date=None)}
        if ti.store is not None:
            context["task_state_store"] = ti.store
        task.render_template_fields(context)
        try:
            return task.execute(context)
        except AirflowRescheduleException as pause:
            ti.pauses["rescheduled"] += 1
            ti.first_reschedule = ti.first_reschedule or clock().utcnow()
            clock().sleep((pause.reschedule_date - clock().utcnow()).total_seconds())
        except TaskDeferred as deferred:
            ti.pauses["deferred"] += 1
            event = asyncio.run(asyncio.wait_for(_event_beside(deferred.trigger, beside), LONGEST_SECONDS))
            resumed = make()
            return resumed.resume_execution(
                deferred.method_name, {**(deferred.kwargs or {}), "event": event}, {**context, "task": resumed}
            )
    raise AssertionError("the task does not end")


async def _event_beside(trigger: Any, execution_ids: Sequence[str]) -> Any:
    others = waits_for(list(execution_ids), poll_interval=trigger.poll_interval, fault_tolerance=60.0)
    try:
        return await first_event(revived(trigger))
    finally:
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)


@dataclass(frozen=True)
class Mode:
    """A way to wait: which task, and how it waits.

    :param pause: how Airflow pauses the task while it waits, if it does.
    :param neighbours: other waits in the same triggerer: from four waits on the poller reads lists.
    """

    name: str
    starts: bool
    arguments: dict[str, Any] = field(hash=False)
    pause: str | None = None
    neighbours: int = 0

    def task(self, target: str, *, interval: float, **options: Any) -> Any:
        """A task that waits for an execution, or starts one of a workflow and waits for it."""
        if self.starts:
            return ServiceRunWorkflowOperator(
                task_id="wait", workflow_id=target, poll_interval=interval, **self.arguments, **options
            )
        return ServiceExecutionSensor(
            task_id="wait", execution_id=target, poke_interval=interval, **self.arguments, **options
        )


SENSOR_MODES = (
    Mode("poke", False, {"mode": "poke", "deferrable": False}),
    Mode("reschedule", False, {"mode": "reschedule", "deferrable": False}, "rescheduled"),
    Mode("deferrable", False, {"deferrable": True}, "deferred"),
)
OPERATOR_MODES = (
    Mode("operator in worker", True, {"deferrable": False}),
    Mode("operator deferred", True, {"deferrable": True}, "deferred"),
)
MODES = (*SENSOR_MODES, *OPERATOR_MODES)
LISTED_MODES = tuple(
    replace(mode, name=f"{mode.name}, listed", neighbours=6) for mode in MODES if mode.pause == "deferred"
)


def status_of(simulator: ServiceSimulator, execution_id: str) -> str:
    """The status that the service has for an execution."""
    execution = simulator.state.executions.get(int(execution_id))
    assert execution is not None
    return execution.status


def polls_of(simulator: ServiceSimulator, execution_id: str, *, after: int = 0) -> int:
    """How often an execution was read by id to see whether it has ended; what is read with its data is no poll.

    :param after: number of requests to leave out, such as those of a search for an id that did not exist yet.
    """
    page = f"/executions/{execution_id}"
    requests = simulator.requests[after:]
    return sum(one.path.endswith(page) and "includeData" not in one.query for one in requests)


def lists_of_active(simulator: ServiceSimulator) -> int:
    """How often a poller has listed the active executions; others list those of one workflow, or only running ones."""
    requests = simulator.requests
    return sum("status=waiting" in one.query and "workflowId" not in one.query for one in requests)


class Meanwhile:
    """Does something to the service once a wait has polled its execution, by id or in a list.

    :param polls: how many times. The first is made in the worker, also of a task that defers.
    """

    def __init__(self, simulator: ServiceSimulator, act: Callable[[str], None], *, polls: int = 1) -> None:
        self._simulator, self._act, self._polls = simulator, act, polls
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.execution_id: str | None = None

    def __enter__(self) -> Meanwhile:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(60)

    def _run(self) -> None:
        while not clock().wait(self._done, 0.005):
            newest = max((one.id for one in list(self._simulator.state.executions)), default=None)
            if newest is not None and self._polls_of(str(newest)) >= self._polls:
                self.execution_id = str(newest)
                self._act(self.execution_id)
                return

    def _polls_of(self, execution_id: str) -> int:
        return polls_of(self._simulator, execution_id) + lists_of_active(self._simulator)


def in_event_loop(test: Callable[..., Any]) -> Callable[..., None]:
    """Let a test be a coroutine, in an event loop of its own."""

    @wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **named), LONGEST_SECONDS))

    return run


def wait_for(execution_id: str, **changes: Any) -> Wait:
    """A wait of a minute."""
    arguments: dict[str, Any] = {
        "service_conn_id": "service_default",
        "execution_id": execution_id,
        "poll_interval": 0.05,
        "deadline": clock().now() + 60,
        "timeout": 60.0,
        "on_vanished": "fail",
        "fault_tolerance": 0.3,
        "expected_workflow_id": None,
        **changes,
    }
    return Wait(**arguments)


def execution_trigger(execution_id: str, *, cancel_on_kill: bool = False, **changes: Any) -> ServiceExecutionTrigger:
    """A trigger as a task defers it, revived."""
    wait = wait_for(execution_id, **changes)
    trigger = revived(ServiceExecutionTrigger(**wait.to_arguments(), cancel_on_kill=cancel_on_kill))
    assert isinstance(trigger, ServiceExecutionTrigger)
    return trigger


def waits_for(execution_ids: list[str], **changes: Any) -> list[asyncio.Task[Any]]:
    """One wait for each execution, in the running event loop."""
    return [asyncio.create_task(first_event(execution_trigger(one, **changes))) for one in execution_ids]


async def until(condition: Callable[[], bool], every: float = 0.005) -> None:
    """Return once a condition holds, which is looked at every so many seconds."""
    while not condition():
        await clock().async_sleep(every)


class Supervisor:
    """Answers what a task or its trigger asks Airflow about the task.

    :param state: of the task instance, None before it is scheduled; an exception is raised instead.
    :param execution_id: what its latest attempt has pushed.
    """

    def __init__(self, state: str | Exception | None, execution_id: str | None = None) -> None:
        self._state, self._execution_id = state, execution_id

    def becomes(self, state: str) -> None:
        """Put the task into another state."""
        self._state = state

    def send(self, message: Any) -> Any:
        from airflow.sdk.execution_time.comms import (
            GetConnection,
            GetTaskStates,
            GetXCom,
            TaskStatesResult,
            XComResult,
        )

        if isinstance(message, GetConnection):  # Airflow 3.0 leaves even the environment to the supervisor
            return _connection(message.conn_id)
        if isinstance(message, GetTaskStates | GetXCom) and isinstance(self._state, Exception):
            raise self._state
        if isinstance(message, GetTaskStates):
            return TaskStatesResult(task_states={message.run_ids[0]: {message.task_ids[0]: self._state}})
        return XComResult(key=message.key, value=self._execution_id) if isinstance(message, GetXCom) else None


def _connection(conn_id: str) -> Any:
    from airflow.sdk.execution_time.comms import ConnectionResult

    stored = json.loads(os.environ[f"AIRFLOW_CONN_{conn_id.upper()}"])
    return ConnectionResult(conn_id=conn_id, **{**stored, "extra": json.dumps(stored.get("extra", {}))})


def payloads(events: Iterable[Any], number: int) -> list[Any]:
    """What a trigger has fired: its number, the event and, on Airflow 3.3, the number of the event."""
    return [event.payload for trigger, event, *_ in events if trigger == number]


class Triggerer:
    """Airflow's own runner of triggers, without the supervisor that feeds it."""

    def __init__(self) -> None:
        self._runner = TriggerRunner()

    def start(self, trigger: BaseTrigger) -> int:
        """Run a trigger; returns its number."""
        number = len(self._runner.triggers) + 1
        details: Any = {"name": f"trigger {number}", "events": 0, "is_watcher": isinstance(trigger, BaseEventTrigger)}
        self._runner.triggers[number] = details
        trigger.timeout_after = None  # type: ignore[attr-defined]  # Airflow 3.0 asks its triggers, 2.11 their tasks
        if not details["is_watcher"]:
            names = {
                "dag_id": "dag",
                "task_id": "task",
                "run_id": "run",
                "map_index": -1,
                "try_number": 1,
                "context_carrier": None,
                "trigger_timeout": None,
            }
            trigger.task_instance = cast(Any, SimpleNamespace(id=str(number), **names))
        details["task"] = asyncio.create_task(self._runner.run_trigger(number, trigger))
        return number

    def when_ended(self, number: int, act: Callable[[], object]) -> None:
        """Do something once a trigger has ended."""
        self._runner.triggers[number]["task"].add_done_callback(lambda _: act())

    def events(self, number: int) -> list[Any]:
        """The payloads that a trigger has fired."""
        return payloads(self._runner.events, number)

    def broken(self) -> list[BaseException]:
        """What triggers have died of."""
        tasks = [details["task"] for details in self._runner.triggers.values()]
        return [error for task in tasks if task.done() and not task.cancelled() and (error := task.exception())]

    async def kill(self, number: int, airflow: Supervisor | None = None) -> None:
        """End a trigger as Airflow does when a user has ended its task, and when it believes so.

        :param airflow: what it answers the trigger; by default that the task has failed.
        """
        with pytest.MonkeyPatch.context() as patch:
            if not AIRFLOW.startswith("2."):
                supervisor = "airflow.sdk.execution_time.task_runner.SUPERVISOR_COMMS"
                patch.setattr(supervisor, airflow or Supervisor("failed"), raising=False)
            while not self._runner.triggers[number]["task"].done():  # again and again, as Airflow does every second
                self._runner.to_cancel.append(number)
                await self._runner.cancel_triggers()
                await asyncio.sleep(0.01)
            # On Python 3.11 the runner's own wait for on_kill ends before it, at the third cancellation.
            await until(lambda: not any("on_kill" in str(task.get_coro()) for task in asyncio.all_tasks()))

    async def shut_down(self) -> None:
        """End all triggers as a triggerer does that stops."""
        tasks = [details["task"] for details in self._runner.triggers.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if hasattr(self._runner, "_shared_streams"):  # since Airflow 3.3
            await self._runner._shared_streams.stop_all()
