"""Run a task as Airflow does, in this process and without a deployment: templates, retries, deferral and all."""

from __future__ import annotations

import asyncio
import contextvars
import copy
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

from airflow.providers.common.compat.sdk import (
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
    AirflowTaskTimeout,
    MappedOperator,
    TaskDeferred,
    XComArg,
    timeout,
)
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_0_PLUS

from airflow_provider_service.client._clock import clock
from airflow_provider_service.sensors._base import ServiceBaseSensor
from airflow_provider_service.testing._passing_time import PassingTime
from airflow_provider_service.testing._service import TooLateError, as_xcom, first_event, revived

try:
    from airflow.sdk.exceptions import AirflowRescheduleException
except ImportError:  # before Airflow 3.2
    from airflow.exceptions import AirflowRescheduleException  # type: ignore[no-redef,unused-ignore]

if AIRFLOW_V_3_0_PLUS:
    from airflow.sdk.execution_time.context import set_current_context
else:
    from airflow.models.taskinstance import (  # type: ignore[attr-defined,no-redef,unused-ignore]
        set_current_context,
    )

RETURN_KEY = "return_value"
_KEEPS_STATE = tuple(map(int, version("apache-airflow").split(".")[:2])) >= (3, 3)


@dataclass(frozen=True)
class TaskResult:
    """The result and XComs of a task that succeeded.

    :param return_value: return value of the task.
    :param xcoms: all values that it pushed, by key, including the returned value as ``return_value`` and the addresses
        of links.
    :param attempts: number of attempts.
    :param deferrals: number of times that the last attempt was deferred.
    """

    return_value: Any
    xcoms: dict[str, Any] = field(default_factory=dict)
    attempts: int = 1
    deferrals: int = 0


def run_task(
    operator: Any,
    *,
    params: Mapping[str, Any] | None = None,
    upstream: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    attempts: int = 1,
    logical_date: datetime | None = None,
    run_id: str | None = None,
) -> TaskResult:
    """Run a task to its end, and return its result and XComs.

    Its templates are rendered. If it defers, its trigger is stored and runs, and the event continues the task, as in
    Airflow. The operator itself does not change, so it can run again; each call is a separate DAG run. Needs no
    database.

    :param operator: an operator or sensor, inside a DAG or not, or the result of calling a ``@task`` function. It must
        not be mapped: use ``dag.test()`` for a DAG with mapped tasks.
    :param params: values of params, as in ``{{ params.day }}``; by default those of the DAG and the operator.
    :param upstream: return values of other tasks, by task id.
    :param context: further variables of the context, or other values for existing ones.
    :param attempts: maximum number of attempts; 1 by default. Another attempt follows a failure that Airflow would
        retry, so there are never more than the task's ``retries`` and one.
    :param logical_date: logical date of the DAG run; now by default.
    :param run_id: id of the DAG run; a new one by default.
    :returns: the result of the last attempt.
    :raises Exception: what the last attempt raised, such as ``AirflowFailException``, or ``AirflowSkipException`` if
        the task was skipped.
    :raises TypeError: the task is mapped, or returns or defers with a value that Airflow cannot store.
    """
    task: Any = next(operator.iter_references())[0] if isinstance(operator, XComArg) else operator
    if isinstance(task, MappedOperator):
        raise TypeError(f"task {task.task_id!r} is mapped; run its DAG with dag.test()")
    full = task_context(task, params=params or {}, upstream=upstream or {}, logical_date=logical_date, run_id=run_id)
    full.update(context or {})
    last = min(attempts, (task.retries or 0) + 1)
    for number in range(1, last + 1):
        full["ti"].try_number = number
        full["ti"].pushed.clear()  # as Airflow does before each attempt
        try:
            return _attempt(task, full, number)
        except (AirflowFailException, AirflowSensorTimeout, AirflowSkipException):
            raise
        except (Exception, AirflowTaskTimeout):  # the latter is not an Exception
            if number == last:
                raise
    raise ValueError("attempts must be at least 1")


def _attempt(operator: Any, context: dict[str, Any], number: int) -> TaskResult:
    resume: tuple[str, dict[str, Any]] | None = None  # the method that Airflow calls, and its arguments
    deferrals = 0
    while True:
        with _prepared(operator, context) as task:
            try:
                value = _in_task(task, context, resume)
            except TaskDeferred as deferred:
                deferrals += 1
                kwargs = as_xcom(deferred.kwargs or {})
                try:
                    event = asyncio.run(first_event(revived(deferred.trigger), deferred.timeout))
                    resume = (deferred.method_name, {**kwargs, "event": event})
                except TooLateError:
                    resume = ("__fail__", {"error": "Trigger timeout"})
                continue
            except AirflowRescheduleException as pause:
                ti = context["ti"]
                ti.first_reschedule = ti.first_reschedule or clock().utcnow()
                seconds = (pause.reschedule_date - datetime.now(UTC)).total_seconds()  # by Airflow's clock
                clock().sleep(seconds)
                continue
        return TaskResult(value, _push(task, context["ti"], value), number, deferrals)


@contextmanager
def _prepared(operator: Any, context: dict[str, Any]) -> Iterator[Any]:
    task = operator.prepare_for_execution()
    context["task"] = context["ti"].task = task
    task.render_template_fields(context)
    try:
        yield task
    finally:
        hook = vars(task).get("hook")
        if hasattr(hook, "close"):
            hook.close()


def _in_task(task: Any, context: dict[str, Any], resume: tuple[str, dict[str, Any]] | None) -> Any:
    """Execute or resume a task as Airflow's task runner does, so that the operator does not warn about its caller."""
    with set_current_context(context), _killed_in_time(task):  # type: ignore[arg-type,unused-ignore]
        if resume is not None:
            return task.resume_execution(*resume, context)
        if not AIRFLOW_V_3_0_PLUS:
            from airflow.models.base import _sentinel  # type: ignore[attr-defined,unused-ignore]

            return task.execute(context, **{f"{type(task).__name__}__sentinel": _sentinel})
        from airflow.sdk.bases.operator import ExecutorSafeguard

        inside = contextvars.copy_context()
        inside.run(ExecutorSafeguard.tracker.set, task)
        return inside.run(task.execute, context)


@contextmanager
def _killed_in_time(task: Any) -> Iterator[None]:
    """End the block at the task's ``execution_timeout``, by whichever clock reaches it first."""
    if not task.execution_timeout:
        yield
        return
    seconds, time = task.execution_timeout.total_seconds(), clock()
    try:
        with timeout(seconds), time.alarm(seconds) if isinstance(time, PassingTime) else nullcontext():
            yield
    except AirflowTaskTimeout:
        task.on_kill()
        raise


def _push(task: Any, ti: FakeTaskInstance, value: Any) -> dict[str, Any]:
    """Push the returned value as Airflow does, and return all that was pushed."""
    if value is not None and task.do_xcom_push:
        if getattr(task, "multiple_outputs", False):
            if not isinstance(value, Mapping):
                raise TypeError(f"a task with multiple_outputs must return a mapping, not {type(value).__name__}")
            for key, part in value.items():
                ti.xcom_push(key, part)
        ti.xcom_push(RETURN_KEY, value)
    return dict(ti.pushed)


# ---------------------------------------------------------------- the context of a task


@dataclass
class FakeTaskInstance:
    task: Any
    run_id: str
    upstream: Mapping[str, Any]
    try_number: int = 1
    map_index: int = -1
    state: str = "running"
    pushed: dict[str, Any] = field(default_factory=dict)
    first_reschedule: datetime | None = None

    def __post_init__(self) -> None:
        self.task_id: str = self.task.task_id
        self.dag_id: str = self.task.dag_id
        self.max_tries: int = self.task.retries or 0
        self.key = (self.dag_id, self.task_id, self.run_id, self.try_number, self.map_index)
        self.start_date = clock().utcnow()

    def xcom_push(self, key: str, value: Any, **_: Any) -> None:
        self.pushed[key] = as_xcom(value)

    def xcom_pull(
        self,
        task_ids: str | Iterable[str] | None = None,
        dag_id: str | None = None,
        key: str = RETURN_KEY,
        include_prior_dates: bool = False,
        *,
        default: Any = None,
        **_: Any,
    ) -> Any:
        if task_ids is None or task_ids == self.task_id:
            return self.pushed.get(key, default)
        if not isinstance(task_ids, str):
            return [self.xcom_pull(task_id, key=key, default=default) for task_id in task_ids]
        if task_ids not in self.upstream:
            raise LookupError(
                f"task {self.task_id!r} uses the output of task {task_ids!r}; "
                f"pass its result: run_task(..., upstream={{{task_ids!r}: ...}})"
            )
        value = self.upstream[task_ids]
        if key == RETURN_KEY:
            return value
        return value.get(key, default) if isinstance(value, Mapping) else default

    def get_first_reschedule_date(self, context: Any) -> datetime | None:
        """Return when the task was first rescheduled, by the clock to which the sensor compares it."""
        if self.first_reschedule is None or isinstance(self.task, ServiceBaseSensor):
            return self.first_reschedule
        return self.first_reschedule - (clock().utcnow() - datetime.now(UTC))  # Airflow's clock does not jump

    def get_relevant_upstream_map_indexes(self, *_: Any, **__: Any) -> None:
        """Return None, because no task is mapped."""


class FakeStateStore(dict[str, Any]):
    """The state that Airflow 3.3 keeps for a task run."""

    def set(self, key: str, value: Any, **_: Any) -> None:
        self[key] = as_xcom(value)

    def delete(self, key: str) -> None:
        self.pop(key, None)


def task_context(
    task: Any,
    *,
    params: Mapping[str, Any],
    upstream: Mapping[str, Any],
    logical_date: datetime | None,
    run_id: str | None,
) -> dict[str, Any]:
    merged = copy.deepcopy(task.params)
    merged.update(params)
    now = clock().utcnow()
    date = logical_date or now
    run_id = run_id or f"manual__{now.isoformat()}"
    ti = FakeTaskInstance(task, run_id, dict(upstream))
    dag_run = SimpleNamespace(
        dag_id=ti.dag_id,
        run_id=run_id,
        run_type="manual",
        conf=dict(params),
        **dict.fromkeys(("logical_date", "execution_date", "data_interval_start", "data_interval_end"), date),
        run_after=now,
        start_date=now,
        end_date=None,
        clear_number=0,
        external_trigger=True,
    )
    context: dict[str, Any] = {
        "dag": task.dag if task.has_dag() else None,
        "dag_run": dag_run,
        "run_id": run_id,
        "task": task,
        "ti": ti,
        "task_instance": ti,
        "task_instance_key_str": f"{ti.dag_id}__{ti.task_id}__{date:%Y%m%d}",
        "params": merged.dump(),
        "inlets": task.inlets,
        "outlets": task.outlets,
        "expanded_ti_count": None,
        **_dates(date),
        **_accessors(),
    }
    if _KEEPS_STATE:
        context["task_state_store"] = FakeStateStore()
    return context


def _dates(date: datetime) -> dict[str, Any]:
    return {
        **dict.fromkeys(("logical_date", "execution_date", "data_interval_start", "data_interval_end"), date),
        "ds": f"{date:%Y-%m-%d}",
        "ds_nodash": f"{date:%Y%m%d}",
        "ts": date.isoformat(),
        "ts_nodash": f"{date:%Y%m%dT%H%M%S}",
        "ts_nodash_with_tz": f"{date:%Y%m%dT%H%M%S%z}",
        "prev_start_date_success": None,
        "prev_data_interval_start_success": None,
        "prev_data_interval_end_success": None,
    }


def _accessors() -> dict[str, Any]:
    macros: Any
    try:
        from airflow.sdk.execution_time.context import ConnectionAccessor, MacrosAccessor, VariableAccessor
    except ImportError:  # Airflow 2.11
        from airflow import macros
        from airflow.utils.context import (  # type: ignore[attr-defined,no-redef,unused-ignore]
            ConnectionAccessor,
            VariableAccessor,
        )
    else:
        macros = MacrosAccessor()
    return {
        "conn": ConnectionAccessor(),
        "macros": macros,
        "var": {"json": VariableAccessor(deserialize_json=True), "value": VariableAccessor(deserialize_json=False)},
    }
