"""Operators executed as Airflow executes them, against the simulator."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.models import DataTable
from airflow_provider_service.operators._base import ServiceBaseOperator
from airflow_provider_service.operators.rows import ServiceUpsertRowsOperator
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.simulator._samples import webhook_workflow
from tests.results import check_result
from tests.runs.task_run import let_this_thread_execute

Execute = Callable[..., Any]

COLUMNS = {"shop": "string", "sku": "string", "stock": "number", "active": "boolean", "sold_at": "date"}


def counts(done: dict[str, Any]) -> tuple[int, ...]:
    """How many objects a task has created, updated, deleted, and left unchanged."""
    return tuple(done[name] for name in ("created", "updated", "deleted", "unchanged"))


class FakeTaskInstance:
    """Records what a task pushes."""

    dag_id, run_id, task_id, map_index, try_number, max_tries = "dag", "run", "task", -1, 1, 0

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
        let_this_thread_execute()
        task = operator(task_id="task", **arguments)
        tasks.append(task)
        task.resolve_template_files()  # as Airflow does when it loads the DAG file
        context: Any = {"ti": task_instance, "task": task}
        task.render_template_fields(context)
        result = task.execute(context)
        check_result(operator, result)
        return result

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


@pytest.fixture
def definition() -> dict[str, Any]:
    """An inactive workflow that a webhook starts."""
    return webhook_workflow("nightly", "nightly", "immediate")


@pytest.fixture
def table(client: ServiceClient) -> DataTable:
    """An empty table with columns of every type."""
    return client.data_tables.create("stock", [{"name": name, "type": kind} for name, kind in COLUMNS.items()])


@pytest.fixture
def repair(execute: Execute, table: DataTable) -> Callable[..., tuple[int, int, int, int]]:
    """``repair(rows, keys)`` upserts rows and returns (inserted, updated, unchanged, deleted)."""

    def run(rows: Any, keys: Any = "sku", **arguments: Any) -> tuple[int, int, int, int]:
        done = execute(ServiceUpsertRowsOperator, data_table_id=table.id, rows=rows, key_columns=keys, **arguments)
        return done["inserted"], done["updated"], done["unchanged"], done["deleted"]

    return run


@pytest.fixture
def upsert(repair: Callable[..., tuple[int, int, int, int]]) -> Callable[..., tuple[int, int, int]]:
    """``upsert(rows, keys)`` returns (inserted, updated, unchanged), where nothing has to be deleted."""

    def run(*arguments: Any, **options: Any) -> tuple[int, int, int]:
        *counts, deleted = repair(*arguments, **options)
        assert deleted == 0
        return tuple(counts)

    return run


@pytest.fixture
def held(client: ServiceClient, table: DataTable) -> Callable[..., list[tuple[Any, ...]]]:
    """``held(*columns)`` lists those columns of the rows in the order of insertion."""
    return lambda *columns: [tuple(row[one] for one in columns) for row in client.data_table_rows.list(table.id)]
