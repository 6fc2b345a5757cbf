"""The context of a task without a deployment: a task instance, a DAG run, and the variables of templates."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

from airflow_provider_service.client._clock import clock
from airflow_provider_service.sensors._base import ServiceBaseSensor
from airflow_provider_service.testing._stored_triggers import as_xcom

RETURN_KEY = "return_value"
_KEEPS_STATE = tuple(map(int, version("apache-airflow").split(".")[:2])) >= (3, 3)


@dataclass
class FakeTaskInstance:
    """The parts of a task instance that operators and templates use.

    :param task: the operator.
    :param run_id: id of the DAG run.
    :param upstream: return values of other tasks, by task id.
    """

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
        """Store a value as Airflow does.

        :raises TypeError: Airflow cannot store the value.
        """
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
        """Return XComs of this task, or the results of others.

        :raises LookupError: the test does not provide the result of that task.
        """
        if task_ids is None:
            return self.pushed.get(key, default)
        if not isinstance(task_ids, str):
            return [self.xcom_pull(one, key=key, default=default) for one in task_ids]
        if task_ids == self.task_id:
            return self.pushed.get(key, default)
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
        """Store a value."""
        self[key] = as_xcom(value)

    def delete(self, key: str) -> None:
        """Delete a value."""
        self.pop(key, None)


def task_context(
    task: Any,
    *,
    params: Mapping[str, Any],
    upstream: Mapping[str, Any],
    logical_date: datetime | None,
    run_id: str | None,
) -> dict[str, Any]:
    """Make the context of the first attempt of a task in a new DAG run.

    :param task: the operator.
    :param params: values of the DAG's params.
    :param upstream: return values of other tasks, by task id.
    :param logical_date: logical date of the DAG run; None for now.
    :param run_id: id of the DAG run; None for a new one.
    """
    now = clock().utcnow()
    date = logical_date or now
    run_id = run_id or f"manual__{now.isoformat()}"
    ti = FakeTaskInstance(task, run_id, dict(upstream))
    dag_run = SimpleNamespace(
        dag_id=ti.dag_id,
        run_id=run_id,
        run_type="manual",
        conf=dict(params),
        logical_date=date,
        execution_date=date,
        data_interval_start=date,
        data_interval_end=date,
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
        "params": _params(task, params),
        "inlets": task.inlets,
        "outlets": task.outlets,
        "expanded_ti_count": None,
        **_dates(date),
        **_accessors(),
    }
    if _KEEPS_STATE:
        context["task_state_store"] = FakeStateStore()
    return context


def _params(task: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    merged = copy.deepcopy(task.params)
    merged.update(given)
    values: dict[str, Any] = merged.dump()
    return values


def _dates(date: datetime) -> dict[str, Any]:
    digits, moment = f"{date:%Y%m%d}", f"{date:%Y%m%dT%H%M%S}"
    return {
        "logical_date": date,
        "execution_date": date,
        "data_interval_start": date,
        "data_interval_end": date,
        "ds": f"{date:%Y-%m-%d}",
        "ds_nodash": digits,
        "ts": date.isoformat(),
        "ts_nodash": moment,
        "ts_nodash_with_tz": f"{moment}{date:%z}",
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
        "var": {
            "json": VariableAccessor(deserialize_json=True),
            "value": VariableAccessor(deserialize_json=False),
        },
    }
