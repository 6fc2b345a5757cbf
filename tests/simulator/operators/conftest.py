"""Operators executed as Airflow executes them, against the simulator."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_provider_service.operators._base import ServiceBaseOperator
from airflow_provider_service.simulator import ServiceSimulator

Execute = Callable[..., Any]


class FakeTaskInstance:
    """Keeps what a task pushes."""

    def __init__(self) -> None:
        self.pushed: dict[str, Any] = {}

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value


@pytest.fixture
def task_instance() -> FakeTaskInstance:
    return FakeTaskInstance()


@pytest.fixture
def execute(simulator: ServiceSimulator, task_log: None, task_instance: FakeTaskInstance) -> Iterator[Execute]:
    """``execute(Operator, **arguments)`` renders and executes a task, and returns what it returns."""
    tasks: list[ServiceBaseOperator] = []

    def run(operator: type[ServiceBaseOperator], **arguments: Any) -> Any:
        task = operator(task_id="task", **arguments)
        tasks.append(task)
        context: Any = {"ti": task_instance, "task": task}
        task.render_template_fields(context)
        return task.execute(context)

    yield run
    for task in tasks:
        task.hook.close()


@pytest.fixture
def link(simulator: ServiceSimulator, task_instance: FakeTaskInstance) -> Callable[[], str]:
    """``link()`` is the path of the page that the last task's last button leads to."""

    def path() -> str:
        url = [value for key, value in task_instance.pushed.items() if key.startswith("_link_")][-1]
        assert url.startswith(simulator.base_url)
        return str(url.removeprefix(simulator.base_url))

    return path


@pytest.fixture
def writes(simulator: ServiceSimulator) -> Callable[[], list[str]]:
    """``writes()`` lists the requests that changed something since it was last called, e.g. ``"POST /tags"``."""

    def listed() -> list[str]:
        seen = [
            f"{request.method} {re.sub('^/api/v1', '', request.path)}"
            for request in simulator.requests
            if request.method != "GET" and request.status < 400
        ]
        simulator.clear_requests()
        return seen

    listed()
    return listed
