"""Airflow copies and pickles tasks, for example to clear or to test a part of a DAG: each of ours survives that."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, BaseSensorOperator

from airflow_provider_service.decorators.run_workflow import service_workflow_task
from airflow_provider_service.get_provider_info import get_provider_info
from airflow_provider_service.notifications.workflow import ServiceNotifier
from airflow_provider_service.operators._base import revealed
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from tests.operators.test_every_operator import OPERATORS, given_together

Copy = Callable[[Any], Any]
in_each_way = pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))], ids=["deepcopy", "pickle"]
)


def sensors() -> list[type[BaseSensorOperator]]:
    found = [
        member
        for one in get_provider_info()["sensors"]
        for name in one["python-modules"]
        for _, member in inspect.getmembers(importlib.import_module(name), inspect.isclass)
        if issubclass(member, BaseSensorOperator) and member.__module__ == name
    ]
    assert len(found) == 4
    return found


def fields_of(kind: Any) -> Any:
    return kind.template_fields


ARGUMENTS: dict[type, dict[str, Any]] = {
    **{one: dict.fromkeys(given_together(one), "given") for one in OPERATORS},
    **{one: {name: "1"} for one in sensors() for name in ("execution_id", "data_table_id") if name in fields_of(one)},
}
EVERY = pytest.mark.parametrize("kind", [*OPERATORS, *sensors()], ids=lambda kind: kind.__name__)


def build(kind: type, **more: Any) -> Any:
    return kind(task_id="task", **ARGUMENTS.get(kind, {}), **more)


def values(task: Any) -> dict[str, Any]:
    return {name: revealed(getattr(task, name)) for name in task.template_fields}


@in_each_way
@EVERY
def test_each_task_survives(kind: type, copied: Copy) -> None:
    with DAG("dag", schedule=None):
        task = build(kind)
    other = copied(task)
    assert (type(other), other.task_id, values(other)) == (kind, "task", values(task))


@pytest.mark.parametrize("kind", OPERATORS, ids=lambda kind: kind.__name__)
def test_each_part_of_a_dag_survives(kind: type) -> None:
    with DAG("dag", schedule=None) as dag:
        task = build(kind)
    part = dag.partial_subset("task")
    assert values(part.get_task("task")) == values(task)


def payload() -> dict[str, int]:
    return {"n": 1}


@in_each_way
def test_a_decorated_function_survives(copied: Copy) -> None:
    with DAG("dag", schedule=None):
        task = service_workflow_task(payload, workflow_name="Sync")().operator
    other = copied(task)
    assert (values(other), other.python_callable()) == (values(task), {"n": 1})


@in_each_way
def test_a_copy_of_a_task_that_was_killed_is_not_killed(copied: Copy) -> None:
    task = ServiceRunWorkflowOperator(task_id="task", workflow_id="w", webhook_headers={"X-Token": "hidden"})
    task.on_kill()
    other = copied(task)
    assert (task._killed.is_set(), other._killed.is_set()) == (True, False)
    assert revealed(other.webhook_headers) == {"X-Token": "hidden"}


@in_each_way
def test_the_notifier_survives(copied: Copy) -> None:
    notifier = ServiceNotifier(workflow_name="Alert", message="{{ ti.task_id }}", details={"team": "data"})
    assert values(copied(notifier)) == values(notifier)
