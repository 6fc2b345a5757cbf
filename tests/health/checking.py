"""Run the operator as a task does."""

from __future__ import annotations

from typing import Any

from airflow_provider_service.operators.health import ServiceWorkflowHealthCheckOperator
from tests.operators.conftest import FakeTaskInstance


def check(ti: Any = None, **arguments: Any) -> dict[str, Any]:
    task = ServiceWorkflowHealthCheckOperator(task_id="check", **arguments)
    context: Any = {"ti": ti or FakeTaskInstance(), "task": task}
    task.render_template_fields(context)
    try:
        return task.execute(context)
    finally:
        task.hook.close()


def statistics(**arguments: Any) -> dict[str, dict[str, Any]]:
    """The statistics of each workflow by its name."""
    return {one["name"]: one for one in check(on_breach="report", **arguments)["workflows"]}


def lists(simulator):
    """The queries of the lists of executions that were read."""
    return [one.query for one in simulator.requests if one.path.endswith("/executions")]
